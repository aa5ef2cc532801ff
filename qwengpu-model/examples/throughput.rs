//! Greedy decoding of a checkpoint on the sparse engine, with its speed.
//!
//! ```text
//! cargo run --release --example throughput -- DIRECTORY FIRST_TOKEN NUM_TOKENS
//! ```

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use qwengpu_model::{Engine, GenerateOptions, Precision, SparseEngine, generate};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, first, count] = arguments.as_slice() else {
        return Err("expected DIRECTORY FIRST_TOKEN NUM_TOKENS".into());
    };
    let started = Instant::now();
    let mut engine = SparseEngine::from_dir(Path::new(directory), Precision::F32)?;
    println!("loaded in {:.1} s", started.elapsed().as_secs_f64());
    let options = GenerateOptions { max_new_tokens: count.parse()?, stop_ids: engine.config().eos_token_ids.clone() };
    let started = Instant::now();
    let generation = generate(&mut engine, &[first.parse()?], &options, &mut |_| ControlFlow::Continue(()))?;
    let seconds = started.elapsed().as_secs_f64();
    let tokens = generation.tokens.len();
    #[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
    let speed = tokens as f64 / seconds;
    println!("{tokens} tokens in {seconds:.3} s, {speed:.0} a second, ended by {:?}", generation.stop);
    Ok(())
}

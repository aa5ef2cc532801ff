//! Decodes recorded streams on the sparse engine, checks each answer, and prints its speed.
//!
//! ```text
//! cargo run --release --example decode -- DIRECTORY STREAMS [ROUNDS]
//! ```

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use qwengpu_model::{Engine, Precision, SparseEngine};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let started = Instant::now();
    let mut engine = SparseEngine::from_dir(Path::new(&arguments[0]), Precision::F32)?;
    println!("loaded in {:.1} s", started.elapsed().as_secs_f64());
    let limit: usize = arguments.get(2).map_or(Ok(usize::MAX), |n| n.parse())?;
    let text = std::fs::read_to_string(&arguments[1])?;
    let mut lines = Vec::new();
    for line in text.lines() {
        let ids = |text: &str| -> Vec<u32> { text.split_whitespace().map(|id| id.parse().expect("an id")).collect() };
        match line.strip_prefix("reset") {
            Some(program) => lines.push((ids(program), None)),
            None => {
                let (heard, said) = line.split_once(" > ").ok_or("a line without answer")?;
                lines.push((ids(heard), Some(said.parse::<u32>()?)));
            }
        }
    }
    let (mut heard, mut spoken) = (0_usize, 0_usize);
    let mut seconds = 0.0;
    let started = Instant::now();
    for (tokens, said) in &lines {
        match said {
            None => {
                engine.reset();
                if !tokens.is_empty() {
                    engine.forward(tokens)?;
                }
                heard += tokens.len();
            }
            Some(said) => {
                let before = Instant::now();
                let token = engine.argmax(tokens)?;
                if tokens.len() == 1 {
                    seconds += before.elapsed().as_secs_f64();
                    spoken += 1;
                } else {
                    heard += tokens.len();
                }
                assert_eq!(token, *said, "another answer");
            }
        }
        if spoken >= limit {
            break;
        }
    }
    let all = started.elapsed().as_secs_f64();
    println!(
        "{spoken} spoken in {seconds:.3} s, {:.0} a second; with {heard} heard {all:.3} s",
        spoken as f64 / seconds
    );
    Ok(())
}

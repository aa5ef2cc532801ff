//! The dense engine against its machine: reading against decoding, the product of matrices against prefill.
//!
//! ```text
//! cargo run --release --workspace --example dense -- DIRECTORY [f32|bf16] [THREADS]
//! ```
//!
//! Every figure is the best of several rounds, in which its two sides take turns.

use std::error::Error;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use memmap2::Mmap;
use qwengpu_model::{Batch, DenseBatch, DenseEngine, Engine, Precision};
use rayon::prelude::*;

const ROUNDS: usize = 5;
const PROMPT: usize = 512;
/// Rows and columns of the product that shows what the processor can.
const SQUARE: usize = 2048;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("expected DIRECTORY [f32|bf16] [THREADS]")?;
    let precision = match arguments.next().as_deref() {
        None | Some("f32") => Precision::F32,
        Some("bf16") => Precision::Bf16,
        Some(other) => return Err(format!("{other:?} is no precision: f32 or bf16").into()),
    };
    let threads: NonZeroUsize = match arguments.next() {
        Some(threads) => threads.parse()?,
        None => std::thread::available_parallelism()?,
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global()?;
    let mut engine = DenseEngine::from_dir(Path::new(&directory), precision)?;
    engine.set_threads(threads)?;
    let read = Reading::open(Path::new(&directory))?;
    let weights = weights(&engine);
    let values = as_f64(weights);
    let bytes = values * if precision == Precision::F32 { 4.0 } else { 2.0 };
    println!("{weights} weights that every token meets, {:.2} GB; {threads} threads", bytes / 1e9);

    let vocab = u32::try_from(engine.config().vocab_size)?;
    let prompt: Vec<u32> = (0..u32::try_from(PROMPT)?).map(|i| i * 7919 % vocab).collect();
    engine.forward(&prompt)?;
    let (mut reading, mut decoding, mut peak, mut prefill) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    for _ in 0..ROUNDS {
        reading = reading.max(as_f64(read.bytes()) / seconds(|| Ok(read.sum()))?);
        decoding = decoding.max(bytes / seconds(|| Ok(engine.argmax(&[1])?))?);
    }
    for _ in 0..ROUNDS {
        peak = peak.max(2.0 * as_f64(SQUARE).powi(3) / square()?);
        prefill = prefill.max(2.0 * values * as_f64(PROMPT) / seconds(|| Ok(engine.argmax(&prompt)?))?);
    }
    println!("reading the files   {:7.2} GB/s", reading / 1e9);
    println!(
        "decoding            {:7.2} GB/s, {:.0} % of reading, {:.2} tokens/s",
        decoding / 1e9,
        100.0 * decoding / reading,
        decoding / bytes
    );
    println!("product of matrices {:7.1} Gflop/s", peak / 1e9);
    println!(
        "prefill of {PROMPT}      {:7.1} Gflop/s, {:.0} % of that, {:.1} tokens/s",
        prefill / 1e9,
        100.0 * prefill / peak,
        prefill / (2.0 * values)
    );
    for streams in [1, 4, 16, 64] {
        let mut batch = DenseBatch::new(&engine, streams);
        let tokens: Vec<Option<u32>> = prompt.iter().take(streams).map(|&token| Some(token)).collect();
        let mut best = f64::MAX;
        for _ in 0..2 {
            best = best.min(seconds(|| Ok(batch.argmax(&tokens)?))?);
        }
        println!("{streams:2} streams          {:7.2} tokens/s", as_f64(streams) / best);
    }
    Ok(())
}

/// Weights of all layers and of the logits.
fn weights(engine: &DenseEngine) -> usize {
    let config = engine.config();
    let (d, value, head) = (config.hidden_size, config.value_dim(), config.head_dim);
    let linear = d * (config.conv_dim() + 2 * value + 2 * config.linear_num_value_heads);
    let full = d * head * (3 * config.num_attention_heads + 2 * config.num_key_value_heads);
    let mixers = config.layer_types.iter().map(|kind| match kind {
        qwengpu_model::LayerType::LinearAttention => linear,
        qwengpu_model::LayerType::FullAttention => full,
    });
    let mlp = 3 * d * config.intermediate_size;
    mixers.map(|mixer| mixer + mlp).sum::<usize>() + d * config.vocab_size
}

/// All files of a checkpoint, mapped as the engine maps them.
struct Reading(Vec<Mmap>);

impl Reading {
    fn open(directory: &Path) -> Result<Self, Box<dyn Error>> {
        let mut maps = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "safetensors") {
                #[expect(unsafe_code, reason = "a map is only sound while nobody truncates the file; nobody does")]
                maps.push(unsafe { Mmap::map(&std::fs::File::open(path)?)? });
            }
        }
        Ok(Self(maps))
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|map| map.len()).sum()
    }

    /// Reads every byte, at four places at once: faster than one after the other, since a processor looks ahead within a
    /// page only.
    fn sum(&self) -> u64 {
        let task = |bytes: &[u8]| {
            pulp::Arch::new().dispatch(
                #[inline(always)]
                || {
                    let quarter = bytes.len() / 4;
                    let lines = |i: usize| bytes[i * quarter..(i + 1) * quarter].as_chunks::<32>().0;
                    let mut sums = [[0_u64; 4]; 4];
                    for (((a, b), c), d) in lines(0).iter().zip(lines(1)).zip(lines(2)).zip(lines(3)) {
                        for (sum, line) in sums.iter_mut().zip([a, b, c, d]) {
                            for (sum, &word) in sum.iter_mut().zip(line.as_chunks::<8>().0) {
                                *sum ^= u64::from_le_bytes(word);
                            }
                        }
                    }
                    sums.as_flattened().iter().fold(0, |sum, word| sum ^ word)
                },
            )
        };
        self.0.iter().map(|map| map.par_chunks(1 << 18).map(task).reduce(|| 0, |a, b| a ^ b)).fold(0, |a, b| a ^ b)
    }
}

/// Seconds of one large product in f32.
fn square() -> Result<f64, Box<dyn Error>> {
    let matrix = || Tensor::ones((SQUARE, SQUARE), DType::F32, &Device::Cpu);
    let (a, b) = (matrix()?, matrix()?.t()?);
    seconds(|| Ok(a.matmul(&b)?))
}

fn seconds<T>(work: impl FnOnce() -> Result<T, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let begun = Instant::now();
    black_box(work()?);
    Ok(begun.elapsed().as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

//! The machines with names, the same launches on each.

use qwengpu::suite::CaseLaunch;
use qwengpu::{EngineKind, Gpu, GpuOptions, Kernel, Launch, MachinePreset, Precision, weights};

use super::clock::{Reading, time};
use super::dense::token_bytes;
use super::figure::Figure;
use super::{Failure, Setting, memory};

/// Records that a dense model speaks: each takes as long as the others.
pub(crate) const DENSE_TOKENS: usize = 8;

/// The least that a launch took, and what it spoke.
#[derive(Debug, Clone, Copy)]
struct Taken {
    /// Prompt and results included.
    whole: Reading,
    /// From the end of the prompt to the last record.
    speaking: f64,
    tokens: usize,
    warp_instructions: usize,
}

pub(crate) fn measure(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    let presets = MachinePreset::ALL;
    let mut taken: Vec<Vec<Taken>> = vec![Vec::new(); presets.len()];
    for round in 0..setting.rounds() {
        for (preset, best) in presets.iter().zip(&mut taken) {
            setting.say(&format!("machines: the kernels on {}, round {}", preset.name, round + 1));
            let now = sparse(setting, preset)?;
            if best.is_empty() {
                *best = now;
            } else {
                best.iter_mut().zip(now).for_each(|(best, now)| best.take_less(now));
            }
        }
    }
    let mut figures = Vec::new();
    for (preset, taken) in presets.iter().zip(&taken) {
        figures.extend(describe(preset.name, taken));
        if !setting.quick {
            figures.push(dense(setting, preset)?);
        }
    }
    Ok(figures)
}

impl Taken {
    fn take_less(&mut self, other: Self) {
        self.whole = self.whole.least(other.whole);
        self.speaking = self.speaking.min(other.speaking);
    }
}

/// A new machine in the sparse engine, and every launch of the kernels on it.
fn sparse(setting: &Setting<'_>, preset: &MachinePreset) -> Result<Vec<Taken>, Failure> {
    let options = GpuOptions { spec: preset.spec, ..GpuOptions::new(EngineKind::Sparse) };
    let mut gpu = Gpu::with_options(&options).map_err(|error| Failure::from_library(error, setting.kernels))?;
    let most = if setting.quick { 1 } else { usize::MAX };
    let mut all = Vec::new();
    for case in setting.cases {
        let kernel = case.translate(&gpu).map_err(Failure::input)?;
        for launch in case.launches.iter().take(most) {
            let taken = sparse_launch(&mut gpu, &kernel, launch);
            all.push(taken.map_err(|reason| Failure::wrong(format!("{} on {}: {reason}", case.name, preset.name)))?);
        }
    }
    Ok(all)
}

fn sparse_launch(gpu: &mut Gpu, kernel: &Kernel, launch: &CaseLaunch) -> Result<Taken, String> {
    let (result, whole) = time(|| launch.run(gpu, kernel, false));
    let result = result.map_err(|error| error.to_string())?;
    Ok(Taken { whole, speaking: result.seconds, tokens: result.tokens, warp_instructions: result.warp_instructions })
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are far below 2^52")]
fn describe(name: &str, taken: &[Taken]) -> [Figure; 2] {
    let tokens: usize = taken.iter().map(|taken| taken.tokens).sum();
    let warp_instructions: usize = taken.iter().map(|taken| taken.warp_instructions).sum();
    let whole = taken.iter().fold(Reading::ZERO, |sum, taken| sum.plus(taken.whole));
    let speaking = Reading { wall: taken.iter().map(|taken| taken.speaking).sum(), cpu: None };
    // The first record of a launch counts as time of its prompt.
    let behind = tokens.saturating_sub(taken.len()) as f64;
    let over = format!("{} launches of the kernels, {tokens} tokens", taken.len());
    let mut rate = Figure::rate(&format!("machines.{name}.sparse.tokens"), behind, "tokens/s", speaking, &over);
    rate.threads = whole.threads();
    let over = format!("the same launches with their prompts, {warp_instructions} warp instructions");
    let name = format!("machines.{name}.sparse.warp_instructions");
    [rate, Figure::rate(&name, warp_instructions as f64, "instructions/s", whole, &over)]
}

/// Some records of one launch on the dense engine in bf16.
#[expect(clippy::cast_precision_loss, reason = "a few tokens")]
fn dense(setting: &Setting<'_>, preset: &MachinePreset) -> Result<Figure, Failure> {
    setting.say(&format!("machines: the dense engine of {}", preset.name));
    let library = |error| Failure::from_library(error, setting.kernels);
    let machine = weights::build(&preset.spec)?;
    let compiled = weights::compile(&machine)?;
    let config = weights::model_config(&compiled.tensors);
    memory::refuse_without(token_bytes(&config, Precision::Bf16) + (2 << 30))?;
    let options = GpuOptions { precision: Precision::Bf16, ..GpuOptions::new(EngineKind::Dense) };
    let mut gpu = Gpu::from_compiled(machine, compiled, &options).map_err(library)?;
    let (_, case) = setting.kernel("vector_add")?;
    let kernel = case.translate(&gpu).map_err(Failure::input)?;
    let launch = case.launches.first().ok_or_else(|| Failure::input("vector_add has no launch"))?;
    let launch = Launch { max_tokens: DENSE_TOKENS, ..launch.launch.clone() };
    let mut best = f64::INFINITY;
    for _ in 0..setting.rounds() {
        let result = gpu.launch(&kernel, &launch).map_err(library)?;
        best = best.min(result.seconds);
    }
    let (name, behind) = (format!("machines.{}.dense-bf16.tokens", preset.name), (DENSE_TOKENS - 1) as f64);
    let reading = Reading { wall: best, cpu: None };
    Ok(Figure::rate(&name, behind, "tokens/s", reading, &format!("{DENSE_TOKENS} tokens of vector_add")))
}

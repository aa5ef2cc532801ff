//! Many launches at once on one model: a batch of independent streams, each with a launch of its own.

use qwengpu::weights::{build, compile, model_weights};
use qwengpu::{EngineKind, Precision};
use qwengpu_model::{Batch, Cache, DenseBatch, DenseEngine, Engine, SparseBatch, SparseEngine};

use super::clock::time;
use super::dense::token_bytes;
use super::figure::Figure;
use super::{Failure, Setting, memory};

/// How many streams are measured.
const STREAMS: [usize; 4] = [1, 4, 16, 64];

/// A launch as ids: what is heard, then what is to be spoken.
struct Script {
    prompt: Vec<u32>,
    spoken: Vec<u32>,
    /// The model behind all of the prompt but its last token.
    heard: Option<Cache>,
}

pub(crate) fn measure(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    let machine = build(&setting.spec)?;
    let compiled = compile(&machine)?;
    let weights = model_weights(&compiled.tensors).map_err(Failure::wrong)?;
    let most: usize = if setting.quick { 4 } else { 64 };
    let scripts: Result<Vec<Script>, Failure> = (0_u32..).take(most).map(|stream| script(setting, stream)).collect();
    let mut scripts = scripts?;
    let mut sparse = SparseEngine::from_weights(&weights, Precision::F32).map_err(Failure::wrong)?;
    for (i, script) in scripts.iter_mut().enumerate() {
        setting.say(&format!("streams: hearing prompt {} of {most}", i + 1));
        sparse.reset();
        let before_last = script.prompt.len() - 1;
        sparse.forward(&script.prompt[..before_last]).map_err(Failure::wrong)?;
        script.heard = Some(sparse.save());
    }
    let mut figures = Vec::new();
    for streams in STREAMS.into_iter().filter(|&streams| streams <= most) {
        let mut batch = SparseBatch::new(sparse.clone(), streams);
        let steps = if setting.quick { 40 } else { 250 };
        figures.push(decode(setting, "sparse", &mut batch, &scripts[..streams], steps)?);
    }
    memory::refuse_without(token_bytes(&weights.config, Precision::Bf16) + (4 << 30))?;
    setting.say("streams: loading the dense engine");
    let dense = DenseEngine::from_weights(&weights, Precision::Bf16).map_err(Failure::wrong)?;
    for streams in STREAMS.into_iter().filter(|&streams| streams <= most) {
        let mut batch = DenseBatch::new(&dense, streams);
        let steps = if setting.quick { 2 } else { 6 };
        figures.push(decode(setting, "dense-bf16", &mut batch, &scripts[..streams], steps)?);
    }
    Ok(figures)
}

/// Lets each stream speak as far as its launch goes, and checks what it says.
#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn decode(
    setting: &Setting<'_>,
    name: &str,
    batch: &mut dyn Batch,
    scripts: &[Script],
    steps: usize,
) -> Result<Figure, Failure> {
    let streams = scripts.len();
    setting.say(&format!("streams: {name}, {streams} at once"));
    for (stream, script) in scripts.iter().enumerate() {
        let heard = script.heard.as_ref().ok_or_else(|| Failure::wrong("a prompt was not heard"))?;
        batch.restore(stream, heard).map_err(Failure::wrong)?;
    }
    let mut next: Vec<Option<u32>> = scripts.iter().map(|script| script.prompt.last().copied()).collect();
    let mut tokens = 0;
    let (result, taken) = time(|| {
        for step in 0..steps {
            if next.iter().all(Option::is_none) {
                break;
            }
            let said = batch.argmax(&next).map_err(Failure::wrong)?;
            for ((next, said), script) in next.iter_mut().zip(said).zip(scripts) {
                let expected = next.and_then(|_| script.spoken.get(step).copied());
                if said != expected {
                    return Err(Failure::wrong(format!("{name} said {said:?} for {expected:?} at step {step}")));
                }
                tokens += usize::from(said.is_some());
                *next = said.filter(|_| step + 1 < script.spoken.len());
            }
        }
        Ok(())
    });
    result?;
    let over = format!("{streams} launches of collatz in lockstep, {tokens} tokens behind their prompts");
    Ok(Figure::rate(&format!("streams.{name}.{streams}"), tokens as f64, "tokens/s", taken, &over))
}

/// Collatz of four numbers that no other stream has.
fn script(setting: &Setting<'_>, stream: u32) -> Result<Script, Failure> {
    let (kernel, _) = setting.kernel("collatz")?;
    let numbers = [27_u32, 97, 871, 6171].map(|number| number + 4 * stream);
    let launch = qwengpu::Launch::new(qwengpu::Dim3::linear(1), qwengpu::Dim3::linear(4))
        .argument(qwengpu::Argument::buffer(&numbers))
        .argument(qwengpu::Argument::zeros::<i32>(4));
    let mut gpu = setting.gpu(EngineKind::Interp, Precision::F32)?;
    let result = gpu.launch(&kernel, &launch).map_err(|error| Failure::from_library(error, setting.kernels))?;
    let prompt = setting.tokens(&result.prompt)?;
    if prompt.is_empty() {
        return Err(Failure::wrong("a launch without prompt"));
    }
    Ok(Script { prompt, spoken: setting.tokens(&result.records)?, heard: None })
}

//! A merged model: what language tokens pay for the machine, and records for the base.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use qwengpu::weights::{build, compile, language_part, model_config, source as weights_of};
use qwengpu::{EngineKind, Gpu, GpuOptions, Launch, Precision, merge as fitting};
use qwengpu_model::{DenseEngine, Engine};
use qwengpu_weights::{Base, Dtype, MergeOptions, MergeRecord, merge};

use super::checkpoint::{Checkpoint, inside, temporary};
use super::clock::{Reading, take_turns};
use super::dense::token_bytes;
use super::figure::Figure;
use super::machines::DENSE_TOKENS;
use super::{Failure, Setting, memory};

/// Language tokens that are decoded: the first ids of the base, one after the other.
const LANGUAGE_TOKENS: u32 = 64;

/// The base that the machine is merged with.
pub(crate) fn base(directory: &Path) -> Result<Base, Failure> {
    Base::open(directory).map_err(|error| Failure::input(format!("{error}: name a base with --base")))
}

/// Merges the machine with a base, in bf16, and lets each part decode beside what it was before.
pub(crate) fn measure(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    let base = base(setting.base)?;
    setting.say("merged: compiling and writing a checkpoint");
    let machine = build(&setting.spec)?;
    let fitted = fitting::fit(&machine, &base, None)?;
    let source = weights_of(&machine, &fitted.compiled, BTreeMap::new());
    let folder = temporary()?;
    let directory = inside(&folder);
    let options = MergeOptions { dtype: Dtype::Bf16, ..MergeOptions::default() };
    let manifest = merge(&base, &fitted.plan, &source, &directory, &options, &mut |_| ControlFlow::Continue(()))
        .map_err(|error| Failure::input(format!("the merge failed: {error}")))?;
    let facts = manifest.merge.as_ref().ok_or_else(|| Failure::wrong("the manifest names no base"))?;

    setting.say("merged: language tokens, by the base alone and by the merged model");
    let alone = DenseEngine::from_dir(setting.base, Precision::Bf16).map_err(Failure::wrong)?;
    let part = language_part(facts);
    let merged = DenseEngine::from_part(&directory, &part, Precision::Bf16).map_err(Failure::wrong)?;
    let mut figures = language(setting, facts, alone, merged)?;

    let compiled = compile(&machine)?;
    let config = model_config(&compiled.tensors);
    // Both checkpoints are mapped, and the merged one may be some times as wide.
    memory::refuse_without(4 * token_bytes(&config, Precision::Bf16))?;
    let alone = Checkpoint::write(&weights_of(&machine, &compiled, BTreeMap::new()), Precision::Bf16)?;
    for contest in [("sparse", EngineKind::Sparse, usize::MAX), ("dense-bf16", EngineKind::Dense, DENSE_TOKENS)] {
        setting.say(&format!("merged: records, {}, of the machine alone and of the merged model", contest.0));
        figures.extend(records(setting, contest, (&alone.directory(), &directory))?);
    }
    Ok(figures)
}

/// The same language tokens; both must choose the same next ones if nothing is rounded by the merge.
fn language(
    setting: &Setting<'_>,
    facts: &MergeRecord,
    mut alone: DenseEngine,
    mut merged: DenseEngine,
) -> Result<Vec<Figure>, Failure> {
    let ids = 0..LANGUAGE_TOKENS.min(u32::try_from(facts.base.vocab_size).unwrap_or(u32::MAX));
    let decode = |engine: &mut DenseEngine| -> Result<Vec<u32>, Failure> {
        engine.reset();
        ids.clone().map(|id| engine.argmax(&[id]).map_err(Failure::wrong)).collect()
    };
    // The first reading brings the files to memory.
    let (expected, said) = (decode(&mut alone)?, decode(&mut merged)?);
    if facts.exact && said != expected {
        return Err(Failure::wrong("the merged model goes on otherwise than its base"));
    }
    let best = take_turns(
        setting.rounds().max(3),
        &mut [&mut || decode(&mut alone).map(|_| ()), &mut || decode(&mut merged).map(|_| ())],
    )?;
    let over = format!("{} tokens one at a time, {} layers", ids.len(), facts.base.num_layers);
    let behind = format!("the same tokens, {} layers in all", facts.num_layers);
    Ok(compared("language", "base", f64::from(ids.end), &best, (&over, &behind)))
}

/// The same launch; records must be the same.
#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn records(
    setting: &Setting<'_>,
    (name, engine, max_tokens): (&str, EngineKind, usize),
    (alone, merged): (&Path, &Path),
) -> Result<Vec<Figure>, Failure> {
    let library = |error| Failure::from_library(error, setting.kernels);
    let (kernel, launch) = setting.short_launch()?;
    let launch = Launch { max_tokens: launch.max_tokens.min(max_tokens), ..launch };
    let gpu = |checkpoint: &Path| {
        let checkpoint = Some(checkpoint.to_owned());
        let options =
            GpuOptions { spec: setting.spec, precision: Precision::Bf16, checkpoint, ..GpuOptions::new(engine) };
        Gpu::with_options(&options).map_err(library)
    };
    let (mut alone, mut merged) = (gpu(alone)?, gpu(merged)?);
    let expected = alone.launch(&kernel, &launch).map_err(library)?;
    if merged.launch(&kernel, &launch).map_err(library)?.records != expected.records {
        return Err(Failure::wrong("the merged model speaks other records than the machine alone"));
    }
    let speak = |gpu: &mut Gpu| gpu.launch(&kernel, &launch).map(|_| ()).map_err(library);
    let best = take_turns(setting.rounds().max(3), &mut [&mut || speak(&mut alone), &mut || speak(&mut merged)])?;
    let tokens = expected.prompt.len() + expected.records.len();
    let over = format!("a launch of {tokens} tokens, prompt included");
    Ok(compared(&format!("records.{name}"), "machine", tokens as f64, &best, (&over, "the same launch")))
}

/// Rates of both, and how much of the first one's speed the second one has.
fn compared(what: &str, alone: &str, tokens: f64, best: &[Reading], (over, behind): (&str, &str)) -> Vec<Figure> {
    let [first, second] = best[..] else { return Vec::new() };
    let rate =
        |who: &str, taken, over: &str| Figure::rate(&format!("merged.{what}.{who}"), tokens, "tokens/s", taken, over);
    vec![
        rate(alone, first, over),
        rate("merged", second, behind),
        Figure::ratio(
            &format!("merged.{what}.merged_to_{alone}"),
            first.wall / second.wall.max(f64::MIN_POSITIVE),
            "1 pays nothing for the other part",
        ),
    ]
}

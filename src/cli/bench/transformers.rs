//! The dense engine beside transformers: the same checkpoint, threads and tokens.

use std::collections::BTreeMap;
use std::path::Path;

use qwengpu::{EngineKind, Precision, weights};
use qwengpu_model::{DenseEngine, Engine};

use super::checkpoint::Checkpoint;
use super::clock::{Reading, time};
use super::dense::token_bytes;
use super::figure::Figure;
use super::python::{Answer, Python, Turn};
use super::{Failure, Setting, memory};

/// Emits a checkpoint in each dtype, and lets both prefill and decode the same launch, in turns.
pub(crate) fn measure(setting: &Setting<'_>, python: &Python) -> Result<Vec<Figure>, Failure> {
    setting.say("transformers: compiling");
    let machine = weights::build(&setting.spec)?;
    let compiled = weights::compile(&machine)?;
    let config = weights::model_config(&compiled.tensors);
    let source = weights::source(&machine, &compiled, BTreeMap::new());
    let (kernel, launch) = setting.short_launch()?;
    let mut gpu = setting.gpu(EngineKind::Interp, Precision::F32)?;
    let result = gpu.launch(&kernel, &launch).map_err(|error| Failure::from_library(error, setting.kernels))?;
    let (prompt, records) = (setting.tokens(&result.prompt)?, setting.tokens(&result.records)?);

    let mut figures = Vec::new();
    for (name, precision) in [("f32", Precision::F32), ("bf16", Precision::Bf16)] {
        // Each has its own: transformers reads the files to memory, the dense engine maps them.
        memory::refuse_without(2 * token_bytes(&config, precision) + (3 << 30))?;
        setting.say(&format!("transformers {name}: writing a checkpoint"));
        let checkpoint = Checkpoint::write(&source, precision)?;
        let (prompt, records) = (checkpoint.tokens(&prompt), checkpoint.tokens(&records));
        let contest = Contest { checkpoint: &checkpoint.directory(), precision, prompt: &prompt, records: &records };
        figures.extend(contest.figures(setting, python, name)?);
    }
    Ok(figures)
}

/// What both are given.
struct Contest<'a> {
    checkpoint: &'a Path,
    precision: Precision,
    prompt: &'a [u32],
    /// What the model says behind the prompt.
    records: &'a [u32],
}

impl Contest<'_> {
    fn figures(&self, setting: &Setting<'_>, python: &Python, name: &str) -> Result<Vec<Figure>, Failure> {
        let steps = if setting.quick { 2 } else { 8 };
        let threads = memory::threads();
        setting.say(&format!("transformers {name}: loading the dense engine"));
        let mut engine = DenseEngine::from_dir(self.checkpoint, self.precision).map_err(Failure::wrong)?;
        // The zeros of the weights are found in the first forward of several tokens.
        engine.argmax(self.prompt).map_err(Failure::wrong)?;
        let mut best: Option<(Answer, Turn)> = None;
        for round in 0..setting.rounds() {
            setting.say(&format!("transformers {name}: in turns with the dense engine, round {}", round + 1));
            let answer =
                python.time(self.checkpoint, self.precision, threads, self.prompt, steps).map_err(Failure::input)?;
            self.check("transformers", &answer.turn)?;
            let own = dense(&mut engine, self.prompt, steps)?;
            self.check("the dense engine", &own)?;
            match &mut best {
                Some((theirs, best)) => {
                    theirs.turn.take_less(&answer.turn);
                    best.take_less(&own);
                }
                None => best = Some((answer, own)),
            }
        }
        Ok(best.map(|(answer, own)| describe(name, &answer, &own, self.prompt.len())).unwrap_or_default())
    }

    /// Both must say what the launch says.
    fn check(&self, who: &str, turn: &Turn) -> Result<(), Failure> {
        let expected = &self.records[..turn.spoken.len().min(self.records.len())];
        if turn.spoken == expected {
            return Ok(());
        }
        Err(Failure::wrong(format!("{who} said {:?} for the records {expected:?}", turn.spoken)))
    }
}

/// The dense engine's turn: what the script does with transformers.
fn dense(engine: &mut DenseEngine, prompt: &[u32], steps: usize) -> Result<Turn, Failure> {
    engine.reset();
    let (token, prefill) = time(|| engine.argmax(prompt));
    let mut spoken = vec![token.map_err(Failure::wrong)?];
    let mut taken = Vec::new();
    for step in 0..=steps {
        let last = spoken[step];
        let (token, seconds) = time(|| engine.argmax(&[last]));
        spoken.push(token.map_err(Failure::wrong)?);
        taken.push(seconds);
    }
    // The first one is not timed on either side.
    taken.remove(0);
    Ok(Turn { prefill, steps: taken, spoken })
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn describe(name: &str, answer: &Answer, own: &Turn, prompt: usize) -> Vec<Figure> {
    let theirs = &answer.turn;
    let steps = theirs.steps.len();
    let decoding = |turn: &Turn| turn.steps.iter().fold(Reading::ZERO, |sum, &step| sum.plus(step));
    let (behind, at_once) = (format!("{steps} tokens behind a prompt of {prompt}"), format!("{prompt} tokens at once"));
    let rate = |figure: &str, amount: usize, taken: Reading, over: &str| {
        Figure::rate(&format!("transformers.{name}.{figure}"), amount as f64, "tokens/s", taken, over)
    };
    let ratio = |figure: &str, theirs: Reading, own: Reading, over: &str| {
        Figure::ratio(&format!("transformers.{name}.{figure}"), theirs.wall / own.wall.max(f64::MIN_POSITIVE), over)
    };
    let versions = answer.versions();
    vec![
        rate("decode", steps, decoding(theirs), &format!("{versions}, {behind}")),
        rate("dense_decode", steps, decoding(own), &format!("the dense engine, {behind}")),
        ratio(
            "dense_to_transformers",
            decoding(theirs),
            decoding(own),
            "decoding: the same checkpoint, threads and tokens in turns",
        ),
        rate("prefill", prompt, theirs.prefill, &format!("{versions}, {at_once}")),
        rate("dense_prefill", prompt, own.prefill, &format!("the dense engine, {at_once}, zeros left out")),
        ratio(
            "dense_prefill_to_transformers",
            theirs.prefill,
            own.prefill,
            "the prefill: the same in turns; the dense engine leaves zeros out",
        ),
    ]
}

//! The engines over the kernels of a folder, the same launches in turns.

use qwengpu::suite::{Case, CaseLaunch};
use qwengpu::{EngineKind, Gpu, Kernel, Launch, LaunchResult, Precision, Record};

use super::clock::{Reading, time};
use super::figure::Figure;
use super::{Failure, Setting};

/// An engine that takes part.
#[derive(Debug, Clone, Copy)]
struct Contestant {
    name: &'static str,
    kind: EngineKind,
    precision: Precision,
}

const INTERP: Contestant = Contestant { name: "interp", kind: EngineKind::Interp, precision: Precision::F32 };
const NETLIST: Contestant = Contestant { name: "netlist", kind: EngineKind::Netlist, precision: Precision::F32 };
const SPARSE: Contestant = Contestant { name: "sparse", kind: EngineKind::Sparse, precision: Precision::F32 };
const DENSE_F32: Contestant = Contestant { name: "dense-f32", kind: EngineKind::Dense, precision: Precision::F32 };
const DENSE_BF16: Contestant = Contestant { name: "dense-bf16", kind: EngineKind::Dense, precision: Precision::Bf16 };

/// Kernels of the short selection that the slow engines run.
const SHORT: [&str; 3] = ["gcd", "reverse", "vector_add"];

/// A launch of the course.
struct Entry<'a> {
    name: &'a str,
    kernel: &'a Kernel,
    launch: &'a CaseLaunch,
}

/// What a contestant took for all launches.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    launches: usize,
    tokens: usize,
    /// Those spoken behind the first of a launch, which its prompt counts for.
    timed_tokens: usize,
    warp_instructions: usize,
    /// Prompts and results included.
    whole: Reading,
    /// From the end of the prompt to the last record.
    speaking: f64,
}

/// The least that one launch took.
#[derive(Debug, Clone, Copy)]
struct Taken {
    whole: Reading,
    speaking: f64,
}

pub(crate) fn measure(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    let interp = setting.gpu(EngineKind::Interp, Precision::F32)?;
    let kernels = setting.cases.iter().map(|case| case.translate(&interp).map_err(Failure::input));
    let kernels = kernels.collect::<Result<Vec<Kernel>, _>>()?;
    let entries = |wanted: &dyn Fn(&Case, usize) -> bool| -> Vec<Entry<'_>> {
        let mut entries = Vec::new();
        for (case, kernel) in setting.cases.iter().zip(&kernels) {
            let launches = case.launches.iter().enumerate().filter(|&(number, _)| wanted(case, number));
            entries.extend(launches.map(|(_, launch)| Entry { name: &case.name, kernel, launch }));
        }
        entries
    };
    let every = entries(&|_, number| !setting.quick || number == 0);
    let first = entries(&|_, number| number == 0);
    let short = entries(&|case, number| SHORT.contains(&case.name.as_str()) && number == 0);
    let (rounds, brief, dense) = if setting.quick { (1, 60, 8) } else { (3, 400, 24) };

    let mut figures = Vec::new();
    let all = run(setting, &[INTERP, SPARSE], &every, rounds, setting.quick.then_some(200))?;
    figures.extend(describe(&all, "launches of the kernels"));
    figures.push(compare(&all[1], &all[0], "whole launches in turns"));
    let logic = run(setting, &[NETLIST, SPARSE], &first, 1, Some(brief))?;
    figures.extend(describe(&logic[..1], &format!("launches of the kernels cut off after {brief} tokens")));
    figures.push(compare(&logic[1], &logic[0], "the same launches in turns"));
    if !short.is_empty() {
        let weights = run(setting, &[SPARSE, DENSE_F32, DENSE_BF16], &short, rounds.min(2), Some(dense))?;
        figures.extend(describe(&weights[1..], &format!("launches cut off after {dense} tokens")));
        figures.push(compare(&weights[0], &weights[1], "short launches in turns, prompts included"));
        figures.push(compare(&weights[0], &weights[2], "short launches in turns, prompts included"));
    }
    Ok(figures)
}

/// Runs every launch on every contestant in turns, each for its least time. What an engine has learned lasts for a
/// round: the next one begins with new engines, but for the dense one, which learns nothing and is long in the making.
fn run(
    setting: &Setting<'_>,
    contestants: &[Contestant],
    entries: &[Entry<'_>],
    rounds: usize,
    cut: Option<usize>,
) -> Result<Vec<(Contestant, Sum)>, Failure> {
    let mut best: Vec<Vec<Option<Taken>>> = vec![vec![None; entries.len()]; contestants.len()];
    let mut sums: Vec<(Contestant, Sum)> =
        contestants.iter().map(|&contestant| (contestant, Sum { whole: Reading::ZERO, ..Sum::default() })).collect();
    let mut gpus: Vec<Option<Gpu>> = contestants.iter().map(|_| None).collect();
    for round in 0..rounds {
        for (gpu, contestant) in gpus.iter_mut().zip(contestants) {
            if gpu.is_none() || contestant.kind != EngineKind::Dense {
                setting.say(&format!("engines: making {}", contestant.name));
                *gpu = Some(setting.gpu(contestant.kind, contestant.precision)?);
            }
        }
        for (number, entry) in entries.iter().enumerate() {
            let mut spoken: Option<Vec<Record>> = None;
            for (turn, gpu) in gpus.iter_mut().enumerate() {
                let Some(gpu) = gpu else { continue };
                let name = contestants[turn].name;
                setting.say(&format!(
                    "engines: {name}, {}, {} of {}, round {}",
                    entry.name,
                    number + 1,
                    entries.len(),
                    round + 1
                ));
                let (result, whole) = time(|| launch(gpu, entry, cut));
                let result = result.map_err(|reason| Failure::wrong(format!("{} on {name}: {reason}", entry.name)))?;
                if spoken.get_or_insert_with(|| result.records.clone()) != &result.records {
                    return Err(Failure::wrong(format!("{} on {name}: other records than before", entry.name)));
                }
                // The interpreter speaks everything before anyone hears the first record.
                let speaking = if contestants[turn].kind == EngineKind::Interp { whole.wall } else { result.seconds };
                let taken = &mut best[turn][number];
                *taken = Some(match *taken {
                    Some(Taken { whole: least, speaking: before }) => {
                        Taken { whole: least.least(whole), speaking: before.min(speaking) }
                    }
                    None => Taken { whole, speaking },
                });
                if round == 0 {
                    let sum = &mut sums[turn].1;
                    sum.launches += 1;
                    sum.tokens += result.tokens;
                    sum.timed_tokens +=
                        result.tokens.saturating_sub(usize::from(contestants[turn].kind != EngineKind::Interp));
                    sum.warp_instructions += result.warp_instructions;
                }
            }
        }
    }
    for ((_, sum), best) in sums.iter_mut().zip(&best) {
        for taken in best.iter().flatten() {
            sum.whole = sum.whole.plus(taken.whole);
            sum.speaking += taken.speaking;
        }
    }
    Ok(sums)
}

/// A whole launch with its results compared, or its first records.
fn launch(gpu: &mut Gpu, entry: &Entry<'_>, cut: Option<usize>) -> Result<LaunchResult, String> {
    match cut {
        None => entry.launch.run(gpu, entry.kernel, false).map_err(|error| error.to_string()),
        Some(max_tokens) => {
            let launch = Launch { max_tokens, ..entry.launch.launch.clone() };
            gpu.launch(entry.kernel, &launch).map_err(|error| error.to_string())
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are far below 2^52")]
fn describe(sums: &[(Contestant, Sum)], what: &str) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (contestant, sum) in sums {
        let over = format!("{} {what}, {} tokens", sum.launches, sum.tokens);
        let (name, speaking) = (contestant.name, Reading { wall: sum.speaking, cpu: None });
        let mut tokens =
            Figure::rate(&format!("engines.{name}.tokens"), sum.timed_tokens as f64, "tokens/s", speaking, &over);
        tokens.threads = sum.whole.threads();
        figures.push(tokens);
        if sum.warp_instructions == 0 {
            continue;
        }
        let over = format!("the same launches with their prompts, {} warp instructions", sum.warp_instructions);
        let name = format!("engines.{name}.warp_instructions");
        figures.push(Figure::rate(&name, sum.warp_instructions as f64, "instructions/s", sum.whole, &over));
    }
    figures
}

/// How many times as fast as another an engine is.
fn compare(one: &(Contestant, Sum), other: &(Contestant, Sum), over: &str) -> Figure {
    let name = format!("engines.{}_to_{}", one.0.name, other.0.name);
    Figure::ratio(&name, other.1.whole.wall / one.1.whole.wall.max(f64::MIN_POSITIVE), over)
}

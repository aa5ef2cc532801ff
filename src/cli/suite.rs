//! `qwengpu suite`: every kernel of a folder, with its launches and expected results.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use qwengpu::suite::{Case, CaseError, CaseLaunch};
use qwengpu::{BatchEvent, Gpu, Kernel, Launch, LaunchResult};
use serde_json::{Value, json};

use super::arguments::{DraftArgs, EngineArgs, EngineName};
use super::failure::Failure;
use super::output::outln;
use super::progress::{Paint, Spinner};
use super::run::ratio;

/// The arguments of `suite`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu suite                              all kernels of ./kernels on the sparse engine
  qwengpu suite --engine interp --filter sort
  qwengpu suite --check --json > suite.json
  qwengpu suite --engine dense --dtype bf16 --streams 16 --filter gcd     16 launches at once

With --streams every launch is on a stream of its own, and the model speaks a record of each in turn; the streams share
the weights, and each takes up to 18 MB of states with the seed machine. The results are those of single launches;
seconds and rates are then of all launches together, prompts included. Engines without weights run one after another.

A case is a file NAME.json with launches and expected buffers, beside NAME.ptx.
Exit status: 0 all pass, 1 one fails, 2 bad input.")]
pub(crate) struct SuiteArgs {
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    draft: DraftArgs,
    /// Run so many launches at once
    #[arg(long, value_name = "N", conflicts_with = "draft")]
    streams: Option<NonZeroUsize>,
    /// Only kernels whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// The folder with the cases
    #[arg(long, value_name = "DIR", default_value = "kernels")]
    kernels: PathBuf,
    /// Compare every record with the interpreter's
    #[arg(long)]
    check: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// What a case, or the whole suite, has cost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) launches: usize,
    pub(crate) warp_instructions: usize,
    pub(crate) tokens: usize,
    /// Seconds in which the tokens were spoken.
    pub(crate) seconds: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.launches += other.launches;
        self.warp_instructions += other.warp_instructions;
        self.tokens += other.tokens;
        self.seconds += other.seconds;
    }

    pub(crate) fn ratio(&self) -> f64 {
        ratio(self.tokens, self.warp_instructions)
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(crate) fn tokens_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.tokens as f64 / self.seconds } else { 0.0 }
    }
}

/// Runs the launches of a case up to the first that fails, whose reason is given.
pub(crate) fn run_case(gpu: &mut Gpu, case: &Case, check: bool) -> Counted {
    match case.translate(gpu) {
        Ok(kernel) => count(case.launches.iter().map(|launch| launch.run(gpu, &kernel, check))),
        Err(error) => (Tally::default(), Err(error.to_string())),
    }
}

/// What a case has cost, and why it fails if it does.
type Counted = (Tally, Result<(), String>);

/// Runs the launches of all cases, many at once; gives the seconds that all of them take together, too.
fn run_batch(gpu: &mut Gpu, cases: &[Case], check: bool, streams: NonZeroUsize) -> (Vec<Counted>, f64) {
    let kernels: Vec<Result<Kernel, CaseError>> = cases.iter().map(|case| case.translate(gpu)).collect();
    let ready = cases.iter().zip(&kernels).filter_map(|(case, kernel)| Some((case, kernel.as_ref().ok()?)));
    let launches: Vec<(&Kernel, &CaseLaunch, Launch)> = ready
        .flat_map(|(case, kernel)| case.launches.iter().map(move |launch| (kernel, launch)))
        .map(|(kernel, launch)| (kernel, launch, Launch { check, ..launch.launch.clone() }))
        .collect();
    let batch: Vec<(&Kernel, &Launch)> = launches.iter().map(|(kernel, _, launch)| (*kernel, launch)).collect();
    let spinner = Spinner::counting();
    let begun = Instant::now();
    let (mut ended, all) = (0, batch.len());
    let results = gpu.launch_batch_with(&batch, streams, &mut |event| match event {
        BatchEvent::Ended { .. } => {
            ended += 1;
            spinner.message(&format!("{ended} of {all} launches, {streams} at once"));
        }
        _ => spinner.count(),
    });
    let seconds = begun.elapsed().as_secs_f64();
    drop(spinner);
    let mut judged = launches.iter().zip(results).map(|((_, launch, _), result)| launch.judge(result));
    let counted = cases.iter().zip(&kernels).map(|(case, kernel)| match kernel {
        // The launches of a case stand together; all of them are taken, whether one fails or not.
        Ok(_) => count(judged.by_ref().take(case.launches.len()).collect::<Vec<_>>()),
        Err(error) => (Tally::default(), Err(error.to_string())),
    });
    (counted.collect(), seconds)
}

/// What launches have cost up to the first that fails.
fn count(results: impl IntoIterator<Item = Result<LaunchResult, CaseError>>) -> Counted {
    let mut tally = Tally::default();
    for (number, result) in results.into_iter().enumerate() {
        match result {
            Ok(result) => tally.add(&Tally {
                launches: 1,
                warp_instructions: result.warp_instructions,
                tokens: result.tokens,
                seconds: result.seconds,
            }),
            Err(error) => return (tally, Err(format!("launch {number}: {error}"))),
        }
    }
    (tally, Ok(()))
}

pub(crate) fn run(args: &SuiteArgs) -> Result<(), Failure> {
    let draft = args.draft.draft(args.engine.engine.unwrap_or(EngineName::Sparse).kind())?;
    let mut cases = Case::read_folder(&args.kernels, &args.filter)
        .map_err(|error| Failure::input(format!("{error}: name a folder of cases with --kernels")))?;
    if cases.is_empty() {
        return Err(Failure::input(format!("no case of {} contains {:?}", args.kernels.display(), args.filter)));
    }
    for launch in cases.iter_mut().flat_map(|case| &mut case.launches) {
        launch.launch.draft.clone_from(&draft);
    }
    let mut gpu = args.engine.gpu(EngineName::Sparse)?;
    let paint = Paint::stdout();
    let mut total = Tally::default();
    let mut failed = 0;
    let mut rows = Vec::new();
    if !args.json {
        let header = "kernel             launches  instructions     tokens  tok/instr   seconds  result";
        outln!("{}", paint.bold(header));
    }
    let (batch, seconds_at_once) = args.streams.map(|streams| run_batch(&mut gpu, &cases, args.check, streams)).unzip();
    let mut batch = batch.map(Vec::into_iter);
    for case in &cases {
        let spinner = Spinner::new(&case.name);
        let begun = Instant::now();
        let at_once = batch.as_mut().and_then(Iterator::next);
        let alone = at_once.is_none();
        let (tally, result) = at_once.unwrap_or_else(|| run_case(&mut gpu, case, args.check));
        let seconds = begun.elapsed().as_secs_f64();
        drop(spinner);
        total.add(&tally);
        failed += usize::from(result.is_err());
        if args.json {
            rows.push(row_json(&case.name, &tally, &result, alone));
        } else {
            let verdict = match &result {
                Ok(()) => paint.good("pass"),
                Err(reason) => format!("{}: {reason}", paint.bad("FAIL")),
            };
            // Of launches that ran beside others, none has seconds of its own.
            let seconds = if alone { format!("{seconds:.2}") } else { "-".to_owned() };
            outln!("{}  {seconds:>8}  {verdict}", columns(&case.name, &tally));
        }
    }
    if let Some(seconds) = seconds_at_once {
        total.seconds = seconds;
    }
    let passed = cases.len() - failed;
    if args.json {
        let engine = gpu.engine().name();
        let summary = json!({
            "engine": engine, "streams": args.streams, "kernels": rows, "passed": passed, "failed": failed,
            "launches": total.launches, "warp_instructions": total.warp_instructions, "tokens": total.tokens,
            "tokens_per_instruction": total.ratio(), "seconds": total.seconds,
            "tokens_per_second": total.tokens_per_second(),
        });
        outln!("{summary}");
    } else {
        outln!("{}", paint.bold(&columns("total", &total)));
        outln!("{passed} of {} kernels pass, {:.0} tokens/s", cases.len(), total.tokens_per_second());
    }
    if failed == 0 { Ok(()) } else { Err(Failure::wrong(format!("{failed} of {} kernels fail", cases.len()))) }
}

fn columns(name: &str, tally: &Tally) -> String {
    let Tally { launches, warp_instructions, tokens, .. } = tally;
    format!("{name:<18} {launches:>8}  {warp_instructions:>12}  {tokens:>9}  {:>9.2}", tally.ratio())
}

fn row_json(name: &str, tally: &Tally, result: &Result<(), String>, alone: bool) -> Value {
    json!({
        "kernel": name, "launches": tally.launches, "warp_instructions": tally.warp_instructions, "tokens": tally.tokens,
        "tokens_per_instruction": tally.ratio(), "seconds": alone.then_some(tally.seconds), "pass": result.is_ok(),
        "reason": result.as_ref().err(),
    })
}

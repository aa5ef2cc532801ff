//! `qwengpu suite`: every kernel of a folder, with its launches and expected results.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use qwengpu::Gpu;
use qwengpu::suite::Case;
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

A case is a file NAME.json with launches and expected buffers, beside NAME.ptx.
Exit status: 0 all pass, 1 one fails, 2 bad input.")]
pub(crate) struct SuiteArgs {
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    draft: DraftArgs,
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
pub(crate) fn run_case(gpu: &mut Gpu, case: &Case, check: bool) -> (Tally, Result<(), String>) {
    let mut tally = Tally::default();
    let kernel = match case.translate(gpu) {
        Ok(kernel) => kernel,
        Err(error) => return (tally, Err(error.to_string())),
    };
    for (number, launch) in case.launches.iter().enumerate() {
        match launch.run(gpu, &kernel, check) {
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
    for case in &cases {
        let spinner = Spinner::new(&case.name);
        let begun = Instant::now();
        let (tally, result) = run_case(&mut gpu, case, args.check);
        let seconds = begun.elapsed().as_secs_f64();
        drop(spinner);
        total.add(&tally);
        failed += usize::from(result.is_err());
        if args.json {
            rows.push(row_json(&case.name, &tally, &result));
        } else {
            let verdict = match &result {
                Ok(()) => paint.good("pass"),
                Err(reason) => format!("{}: {reason}", paint.bad("FAIL")),
            };
            outln!("{}  {seconds:>8.2}  {verdict}", columns(&case.name, &tally));
        }
    }
    let passed = cases.len() - failed;
    if args.json {
        let engine = gpu.engine().name();
        let summary = json!({
            "engine": engine, "kernels": rows, "passed": passed, "failed": failed,
            "launches": total.launches, "warp_instructions": total.warp_instructions, "tokens": total.tokens,
            "tokens_per_instruction": total.ratio(), "tokens_per_second": total.tokens_per_second(),
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

fn row_json(name: &str, tally: &Tally, result: &Result<(), String>) -> Value {
    json!({
        "kernel": name, "launches": tally.launches, "warp_instructions": tally.warp_instructions, "tokens": tally.tokens,
        "tokens_per_instruction": tally.ratio(), "seconds": tally.seconds, "pass": result.is_ok(),
        "reason": result.as_ref().err(),
    })
}

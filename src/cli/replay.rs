//! `qwengpu replay`: every launch of a transcript once more.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use qwengpu::generate::{Replay, Transcript, replay};
use serde_json::json;

use super::arguments::{EngineArgs, EngineName};
use super::failure::Failure;
use super::generate::failure;
use super::output::outln;
use super::progress::{Paint, Spinner};

/// The arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu generate --model merged --prompt 'What is 12 * 34?' --transcript reply.json
  qwengpu replay reply.json --model merged
  qwengpu replay reply.json --model merged --engine dense --json

Exit status: 0 every launch is exact, 1 one is not, 2 bad input.")]
pub(crate) struct ReplayArgs {
    /// A transcript of `qwengpu generate`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    engine: EngineArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let transcript = Transcript::read(&args.file).map_err(failure)?;
    let mut gpu = args.engine.gpu(EngineName::Sparse)?;
    let begun = Instant::now();
    let spinner = Spinner::new("checking the launches");
    let checked = replay(&transcript, &mut gpu);
    drop(spinner);
    let checked = checked.map_err(|error| failure(error.into()))?;
    if args.json {
        outln!("{}", json!(checked));
    } else {
        outln!("{}", figures(&checked, begun.elapsed().as_secs_f64()));
    }
    verdict(&checked)
}

/// What a replay found, for people.
pub(crate) fn figures(checked: &Replay, seconds: f64) -> String {
    let paint = Paint::stdout();
    let Replay { launches, exact, records, differences } = checked;
    let mut text = format!("{launches} launches checked, {exact} exact ({records} records, {seconds:.2} s)");
    text = if differences.is_empty() { paint.good(&text) } else { paint.bad(&text) };
    for difference in differences {
        text += &format!("\n  launch {} ({}): {}", difference.launch, difference.request, difference.reason);
    }
    text
}

/// Success, or a launch that is not exact.
pub(crate) fn verdict(checked: &Replay) -> Result<(), Failure> {
    if checked.is_exact() {
        Ok(())
    } else {
        let wrong = checked.launches - checked.exact;
        Err(Failure::wrong(format!("{wrong} of {} launches are not exact", checked.launches)))
    }
}

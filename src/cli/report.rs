//! `qwengpu report`: the three figures of merit.

use std::path::PathBuf;

use clap::Args;
use qwengpu::suite::Case;
use qwengpu::{EngineKind, Gpu, GpuOptions, weights};

use super::arguments::MachineName;
use super::failure::Failure;
use super::info::summary;
use super::output::outln;
use super::progress::{Paint, Spinner};
use super::suite::{Tally, run_case};

/// Records of the kernel suite after which the speed is known well enough.
const ENOUGH_TOKENS: usize = 20_000;

/// The arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu report
  qwengpu report --kernels ./kernels

It prints the number of compiled layers, the tokens that a warp instruction takes over all kernels, and the tokens that
the sparse engine speaks in a second on one core. Build with --release.")]
pub(crate) struct ReportArgs {
    /// The folder with the kernels
    #[arg(long, value_name = "DIR", default_value = "kernels")]
    kernels: PathBuf,
    /// The machine to compile
    #[arg(long, value_enum, default_value = "seed")]
    machine: MachineName,
}

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let library = |error| Failure::from_library(error, &args.kernels);
    let spec = args.machine.spec();
    let cases = Case::read_folder(&args.kernels, "").map_err(Failure::input)?;
    let spinner = Spinner::new("compiling the machine");
    let machine = weights::build(&spec)?;
    let compiled = weights::compile(&machine)?;
    let paint = Paint::stdout();
    let layers = compiled.report.layers.len();
    let costs = summary(&compiled.report);

    // The record stream is the same in every engine, so the interpreter counts.
    spinner.message("counting records");
    let mut interp = Gpu::with_options(&GpuOptions { spec, ..GpuOptions::new(EngineKind::Interp) }).map_err(library)?;
    let mut counted = Tally::default();
    for case in &cases {
        let (tally, result) = run_case(&mut interp, case, false);
        result.map_err(|reason| Failure::wrong(format!("{}: {reason}", case.name)))?;
        counted.add(&tally);
    }
    spinner.message("measuring speed");
    let options = GpuOptions::new(EngineKind::Sparse);
    let mut sparse = Gpu::from_compiled(machine, compiled, &options).map_err(library)?;
    let mut timed = Tally::default();
    for case in &cases {
        let (tally, result) = run_case(&mut sparse, case, false);
        result.map_err(|reason| Failure::wrong(format!("{}: {reason}", case.name)))?;
        timed.add(&tally);
        if timed.tokens >= ENOUGH_TOKENS {
            break;
        }
    }
    drop(spinner);
    outln!("compiled layers               {}", paint.bold(&layers.to_string()));
    outln!("tokens a warp instruction     {}", paint.bold(&format!("{:.3}", counted.ratio())));
    outln!("sparse tokens a second        {}", paint.bold(&format!("{:.0}", timed.tokens_per_second())));
    outln!("{}", paint.dim(&costs));
    let Tally { launches, warp_instructions, tokens, .. } = counted;
    let kernels = cases.len();
    let text =
        format!("{kernels} kernels, {launches} launches, {warp_instructions} warp instructions, {tokens} tokens");
    outln!("{}", paint.dim(&text));
    Ok(())
}

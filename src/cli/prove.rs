//! `qwengpu prove`: that the weights compute the netlist, for every launch there is.

use std::time::Instant;

use clap::Args;
use qwengpu::weights;
use qwengpu_circuit::{Dtype, prove};

use super::arguments::MachineName;
use super::failure::Failure;
use super::info::summary;
use super::output::outln;
use super::progress::{Paint, Spinner};

/// The arguments of `prove`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  qwengpu prove

It derives the values that every signal of the machine can take, and shows for f32 and bf16 that each threshold keeps
its distance from them. docs/numerics.md says what that means.
Exit status: 0 proven, 1 something could not be proven.")]
pub(crate) struct ProveArgs {
    /// The machine to compile
    #[arg(long, value_enum, default_value = "seed")]
    machine: MachineName,
}

pub(crate) fn run(args: &ProveArgs) -> Result<(), Failure> {
    let begun = Instant::now();
    let spinner = Spinner::new("compiling the machine");
    let machine = weights::build(&args.machine.spec())?;
    let compiled = weights::compile(&machine)?;
    spinner.message("proving its margins");
    let report = prove(&machine.netlist, &compiled, &[Dtype::F32, Dtype::Bf16]);
    drop(spinner);
    outln!("{}", summary(&compiled.report));
    let report = report.map_err(|error| Failure::wrong(format!("not proven: {error}")))?;
    let paint = Paint::stdout();
    outln!("{report}");
    outln!(
        "{} {}",
        paint.good("proven in f32 and bf16,"),
        paint.dim(&format!("{:.1} s", begun.elapsed().as_secs_f64()))
    );
    Ok(())
}

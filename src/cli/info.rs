//! `qwengpu info`: what the compiled machine costs, or what a checkpoint holds.

use std::path::PathBuf;

use clap::Args;
use qwengpu::weights;
use qwengpu_circuit::CompileReport;

use super::arguments::MachineName;
use super::failure::Failure;
use super::progress::Spinner;

/// The arguments of `info`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu info                 the compiled machine, layer by layer
  qwengpu info ./checkpoint    what an emitted checkpoint holds")]
pub(crate) struct InfoArgs {
    /// A checkpoint; without it, the machine is compiled and its figures are shown
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The machine to compile
    #[arg(long, value_enum, default_value = "seed")]
    machine: MachineName,
}

pub(crate) fn run(args: &InfoArgs) -> Result<(), Failure> {
    if args.directory.is_some() {
        return Err(Failure::input("later"));
    }
    let spinner = Spinner::new("compiling the machine");
    let machine = weights::build(&args.machine.spec())?;
    let compiled = weights::compile(&machine)?;
    drop(spinner);
    println!("{}", compiled.report);
    Ok(())
}

/// A report in a few lines.
pub(crate) fn summary(report: &CompileReport) -> String {
    let total = report.total();
    let nonzeros = total.nonzeros + report.embedding_nonzeros + report.lm_head_nonzeros;
    format!(
        "{} layers, {} channels, {} neurons, {} heads, {} tokens, {} non-zero weights",
        report.layers.len(),
        report.channels,
        total.neurons,
        total.heads,
        report.tokens,
        nonzeros
    )
}

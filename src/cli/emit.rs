//! `qwengpu emit`: the compiled machine as a checkpoint.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use qwengpu::weights;
use qwengpu_circuit::{Dtype as ProofDtype, DtypeMargins, MarginError, MarginReport, prove};
use qwengpu_weights::{EmitError, EmitOptions, emit};

use super::arguments::{DtypeName, MachineName};
use super::failure::Failure;
use super::info::summary;
use super::output::outln;
use super::progress::Spinner;

/// The arguments of `emit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu emit --out ./checkpoint
  qwengpu emit --out ./checkpoint --dtype f32 --force

transformers loads the directory with AutoModelForCausalLM and AutoTokenizer. Every weight is exact in both dtypes.")]
pub(crate) struct EmitArgs {
    /// The directory to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The machine to compile
    #[arg(long, value_enum, default_value = "seed")]
    machine: MachineName,
    /// How weights are stored
    #[arg(long, value_enum, default_value = "bf16")]
    dtype: DtypeName,
    /// Replace an existing checkpoint
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &EmitArgs) -> Result<(), Failure> {
    let spinner = Spinner::new("compiling the machine");
    let machine = weights::build(&args.machine.spec())?;
    let compiled = weights::compile(&machine)?;
    let dtype = args.dtype.stored();
    let options = EmitOptions { dtype, overwrite: args.force, ..EmitOptions::default() };
    spinner.message("proving its margins");
    let proof = prove(&machine.netlist, &compiled, &[ProofDtype::F32, ProofDtype::Bf16]);
    let margins = proof.as_ref().map(margin_figures).unwrap_or_default();
    let source = weights::source(&machine, &compiled, margins);
    let manifest = emit(&source, &args.out, &options, &mut |progress| {
        let percent = 100 * progress.written / progress.total.max(1);
        spinner.message(&format!("writing {percent} %"));
        ControlFlow::Continue(())
    });
    drop(spinner);
    let manifest = manifest.map_err(|error| explain(&error))?;
    if let Err(error) = proof {
        warn_unproven(&error);
    }
    outln!("{} in {dtype}: {}", args.out.display(), summary(&compiled.report));
    outln!(
        "token ids {} to {}, halt {}",
        manifest.first_machine_token,
        manifest.first_machine_token + manifest.num_machine_tokens - 1,
        manifest.halt_token_id
    );
    Ok(())
}

/// Says that a checkpoint was written without a proof.
pub(crate) fn warn_unproven(error: &MarginError) {
    eprintln!("warning: the margins of this machine are not proven, the manifest has none: {error}");
}

/// The figures of a proof, by name.
pub(crate) fn margin_figures(report: &MarginReport) -> BTreeMap<String, f64> {
    let figures = report.dtypes.iter().flat_map(|margins| {
        let DtypeMargins { dtype, noise, step_distance, row_distance, logit_gap, .. } = margins;
        [("noise", noise), ("step_distance", step_distance), ("row_distance", row_distance), ("logit_gap", logit_gap)]
            .map(|(name, &value)| (format!("{dtype}.{name}"), value))
    });
    figures.collect()
}

fn explain(error: &EmitError) -> Failure {
    explain_writing(error, Some(error), "--force")
}

/// An error with its cause, and what to do about an emission that failed; `replace` is the flag that replaces one.
pub(crate) fn explain_writing(error: &dyn Error, emission: Option<&EmitError>, replace: &str) -> Failure {
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    let advice = match emission {
        Some(EmitError::Exists { .. }) => format!("; {replace} replaces a checkpoint"),
        Some(EmitError::NotReplaceable { .. } | EmitError::PermissionDenied { .. } | EmitError::StorageFull { .. }) => {
            "; choose another --out".to_owned()
        }
        _ => String::new(),
    };
    Failure::input(format!("{error}{cause}{advice}"))
}

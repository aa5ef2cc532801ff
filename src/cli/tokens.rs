//! `qwengpu tokens`: a launch as token ids; the interpreter speaks the records unless an engine is named.

use std::path::PathBuf;

use clap::Args;
use qwengpu::{LaunchResult, MachineError, MachineSpec, Outcome, Record};
use qwengpu_isa::RecordTable;
use qwengpu_weights::{FIRST_MACHINE_TOKEN, Manifest};
use serde_json::{Value, json};

use super::arguments::{EngineArgs, EngineName, LaunchArgs};
use super::failure::Failure;
use super::text::write_output;

/// The arguments of `tokens`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  qwengpu tokens kernels/reverse.ptx --grid 1 --block 4 --arg buf:i32:1,2,3,4 --arg i32:4 --out stream.json

The file holds {\"prompt\": [ids], \"records\": [ids]} with the ids of an emitted checkpoint: what the checkpoint must be
told, and what it must speak under greedy decoding. tests/transformers/check_stream.py checks that it does.")]
pub(crate) struct TokensArgs {
    #[command(flatten)]
    launch: LaunchArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &TokensArgs) -> Result<(), Failure> {
    let file = &args.launch.file;
    let kernel = args.launch.load_kernel(&args.engine.machine.spec())?;
    let launch = args.launch.launch();
    let mut gpu = args.engine.gpu(EngineName::Interp)?;
    let library = |error| Failure::from_library(error, file);
    let result = gpu.launch(&kernel, &launch).map_err(library)?;
    if let Outcome::TokenLimit(limit) = result.outcome {
        return Err(Failure::wrong(format!("the kernel has not ended after {limit} records: raise --max-tokens")));
    }
    let stream = stream(gpu.spec(), &args.engine, &result)?;
    write_output(args.out.as_deref(), &format!("{stream}\n"))
}

/// A launch as token ids of the checkpoint that is named, or else of an emitted one.
pub(crate) fn stream(spec: &MachineSpec, engine: &EngineArgs, result: &LaunchResult) -> Result<Value, Failure> {
    let table = RecordTable::new(spec).map_err(Failure::input)?;
    let first = match &engine.model {
        Some(directory) => Manifest::read(directory).map_err(MachineError::from)?.first_machine_token,
        None => FIRST_MACHINE_TOKEN,
    };
    let ids = |records: &[Record]| records.iter().map(|&record| first + table.index(record)).collect::<Vec<_>>();
    Ok(json!({ "prompt": ids(&result.prompt), "records": ids(&result.records) }))
}

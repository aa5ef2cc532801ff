//! `qwengpu tokens`: a launch as token ids.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::arguments::{EngineArgs, LaunchArgs};
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

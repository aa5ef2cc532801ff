//! `qwengpu demo`: a question, the GPU inside the model, and the checked answer.

mod kernel;
mod question;

use std::path::PathBuf;

use clap::Args;

use super::arguments::MachineName;
use super::failure::Failure;

/// The arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu demo
  qwengpu demo 'What is the gcd of 9216 and 1512?'
  qwengpu demo 'Write a kernel that squares 3, 14 and 15.'
  qwengpu demo --base ./Qwen3.5-2B 'What is 12 * 34?'
  qwengpu demo --kernel

It puts the machine in front of a language model, asks the question, shows what the model and its GPU say, and checks
every record. The model is the small stand-in of examples/standin unless another one is named. With --kernel it shows
the path of one kernel without a language model.")]
pub(crate) struct DemoArgs {
    /// What to ask
    #[arg(default_value = "What is 1234 * 5678?")]
    question: String,
    /// The checkpoint of a language model
    #[arg(long, value_name = "DIR", default_value = "examples/standin/checkpoint")]
    base: PathBuf,
    /// Launch a kernel instead, without a language model
    #[arg(long, conflicts_with = "base")]
    kernel: bool,
    /// The machine to compile for --kernel
    #[arg(long, value_enum, default_value = "seed", requires = "kernel")]
    machine: MachineName,
}

pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    if args.kernel { kernel::run(args.machine.spec()) } else { question::run(&args.base, &args.question) }
}

//! The command line of qwenGPU; everything it does is in the library beside it.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}

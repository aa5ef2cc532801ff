//! Lowers a kernel of a PTX file and prints its program; with `--passes`, the IR after every pass too.
//!
//! `cargo run -p qwengpu-ptx --example lower_ptx -- kernel.ptx [--passes] [kernel-name]`

use std::process::ExitCode;

use qwengpu_ptx::{Options, Stage, lower, parse};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let passes = arguments.iter().any(|a| a == "--passes");
    arguments.retain(|a| a != "--passes");
    let Some(file) = arguments.first() else {
        eprintln!("usage: lower_ptx FILE [--passes] [KERNEL]");
        return ExitCode::FAILURE;
    };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let show = |stage: &Stage<'_>| {
        println!("; {} round {}, {} instructions\n{}", stage.pass, stage.round, stage.instructions, stage.ir);
    };
    let mut options = Options::default();
    if passes {
        options.observer = Some(&show);
    }
    let lowered = parse(&text).and_then(|module| lower(&module, arguments.get(1).map(String::as_str), &options));
    match lowered {
        Ok(kernel) => {
            println!("{}", kernel.program);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}

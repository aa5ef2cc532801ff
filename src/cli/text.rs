//! `qwengpu asm` and `qwengpu disasm`: programs as assembly text and as words.

use std::path::{Path, PathBuf};

use clap::Args;
use qwengpu::{Kernel, MachineSpec};
use qwengpu_isa::disassemble;

use super::arguments::{load_kernel, read_text};
use super::failure::Failure;
use super::output::write;

/// The arguments of `asm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu asm program.asm
  qwengpu asm program.asm -o program.hex

The output has a line for each instruction: its 64-bit word in hexadecimal, and its text as a comment.")]
pub(crate) struct AsmArgs {
    /// Assembly text
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The arguments of `disasm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu disasm program.hex     words, as `qwengpu asm` writes them
  qwengpu disasm kernel.ptx      the program that a kernel is translated to")]
pub(crate) struct DisasmArgs {
    /// Words in hexadecimal, one a line; or a .ptx, .cu or .asm file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn asm(args: &AsmArgs) -> Result<(), Failure> {
    let spec = MachineSpec::seed();
    let kernel = Kernel::from_assembly(&spec, &read_text(&args.file)?);
    let kernel = kernel.map_err(|error| Failure::from_kernel(error, &args.file))?;
    let program = kernel.program();
    let lines = program.words().into_iter().zip(&program.instructions);
    let text: String = lines.map(|(word, instruction)| format!("{word:016x}  // {instruction}\n")).collect();
    write_output(args.output.as_deref(), &text)
}

pub(crate) fn disasm(args: &DisasmArgs) -> Result<(), Failure> {
    let extension = args.file.extension().map(|extension| extension.to_string_lossy().into_owned());
    if matches!(extension.as_deref(), Some("ptx" | "cu" | "asm")) {
        let kernel = load_kernel(&MachineSpec::seed(), &args.file, None)?;
        write(format_args!("{}", kernel.program()));
        return Ok(());
    }
    let words = read_words(&args.file, &read_text(&args.file)?)?;
    let program = disassemble(&words);
    let program = program.map_err(|error| Failure::input(format!("{}: {error}", args.file.display())))?;
    write(format_args!("{program}"));
    Ok(())
}

fn read_words(file: &Path, text: &str) -> Result<Vec<u64>, Failure> {
    let mut words = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split("//").next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let digits = line.strip_prefix("0x").unwrap_or(line);
        let word = u64::from_str_radix(digits, 16).map_err(|_| {
            let file = file.display();
            Failure::input(format!("{file}, line {number}: {line:?} is no word: expected 16 hexadecimal digits"))
        })?;
        words.push(word);
    }
    if words.is_empty() {
        return Err(Failure::input(format!("{}: no words in the file", file.display())));
    }
    Ok(words)
}

/// Writes text to a file, or to standard output.
pub(crate) fn write_output(output: Option<&Path>, text: &str) -> Result<(), Failure> {
    match output {
        Some(path) => std::fs::write(path, text).map_err(|error| Failure::file("writing", path, &error)),
        None => {
            write(format_args!("{text}"));
            Ok(())
        }
    }
}

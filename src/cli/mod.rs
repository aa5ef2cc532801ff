//! The command line: one module for each command.

mod arguments;
mod bench;
mod compute;
mod demo;
mod emit;
mod evaluate;
mod failure;
mod generate;
mod info;
mod merge;
mod output;
mod progress;
mod prove;
mod ptx;
mod replay;
mod report;
mod run;
mod suite;
mod text;
mod tokens;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// A SIMT GPU compiled into the weights of Qwen3.5 layers.
#[derive(Debug, Parser)]
#[command(
    name = "qwengpu",
    version,
    about,
    after_help = "Start with: qwengpu demo
Every command has its own --help with examples. A .ptx file needs no other program; a .cu file needs clang."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile the machine and run a kernel on it, with everything it says
    Demo(demo::DemoArgs),
    /// Run a kernel
    Run(run::RunArgs),
    /// Compute an expression, or a call such as `gcd(48, 36)`
    Compute(compute::ComputeArgs),
    /// Run every kernel of a folder and compare the results
    Suite(suite::SuiteArgs),
    /// Write a launch as token ids, for checking a checkpoint in transformers
    Tokens(tokens::TokensArgs),
    /// Write the compiled machine as a checkpoint
    Emit(emit::EmitArgs),
    /// Put the compiled machine in front of a language model
    Merge(merge::MergeArgs),
    /// Text from a merged model, with what its GPU computes
    Generate(generate::GenerateArgs),
    /// Verify every launch of a transcript
    Replay(replay::ReplayArgs),
    /// Ask a merged model questions with known answers
    Evaluate(evaluate::EvaluateArgs),
    /// Show how a kernel is translated, stage by stage
    Ptx(ptx::PtxArgs),
    /// Assemble a program
    Asm(text::AsmArgs),
    /// Disassemble a program
    Disasm(text::DisasmArgs),
    /// Show what the compiled machine costs, or what a checkpoint holds
    Info(info::InfoArgs),
    /// Prove that the weights compute the machine exactly, in both number formats
    Prove(prove::ProveArgs),
    /// Print layers, tokens a warp instruction, and tokens a second
    Report(report::ReportArgs),
    /// Measure the engines, the compilers and the dense model, side by side
    Bench(bench::BenchArgs),
}

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    // Fails only if a hook is installed already, which nobody does.
    let _ = progress::install_error_style();
    let result: Result<(), Failure> = match &cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Run(args) => run::run(args),
        Command::Compute(args) => compute::run(args),
        Command::Suite(args) => suite::run(args),
        Command::Tokens(args) => tokens::run(args),
        Command::Emit(args) => emit::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Ptx(args) => ptx::run(args),
        Command::Asm(args) => text::asm(args),
        Command::Disasm(args) => text::disasm(args),
        Command::Info(args) => info::run(args),
        Command::Prove(args) => prove::run(args),
        Command::Report(args) => report::run(args),
        Command::Bench(args) => bench::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ExitCode::from(failure.show()),
    }
}

//! Lowers folders of PTX that the kernels of `kernels/` were compiled to, runs every launch on the
//! interpreter, and prints what fails and figures of each folder; with `--opcodes`, how often each opcode
//! stands in the programs of all folders.
//!
//! `cargo run -p qwengpu-ptx --example corpus -- [--opcodes] FOLDER...`

#[path = "../tests/common/suite.rs"]
mod suite;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let opcodes = arguments.iter().any(|a| a == "--opcodes");
    arguments.retain(|a| a != "--opcodes");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failed = 0;
    println!("| folder | kernels | instructions | largest | full registers | spilling | warp instructions | tokens |");
    println!("|---|---|---|---|---|---|---|---|");
    for folder in arguments.iter().map(PathBuf::from) {
        let (mut good, mut all, mut size, mut largest, mut full, mut spilling) = (0, 0, 0, 0, 0, 0);
        let mut cost = suite::Cost::default();
        for name in suite::names() {
            all += 1;
            match suite::check(&name, &folder.join(format!("{name}.ptx"))) {
                Ok((kernel, run)) => {
                    good += 1;
                    size += kernel.stats.instructions;
                    largest = largest.max(kernel.stats.instructions);
                    full += usize::from(kernel.stats.registers == 15);
                    spilling += usize::from(kernel.stats.spill_slots > 0);
                    cost.warp_instructions += run.warp_instructions;
                    cost.tokens += run.tokens;
                    for instruction in &kernel.program.instructions {
                        *counts.entry(instruction.opcode().mnemonic()).or_default() += 1;
                    }
                }
                Err(error) => {
                    failed += 1;
                    eprintln!("{}/{name}: {error}", folder.display());
                }
            }
        }
        println!(
            "| {} | {good} of {all} | {size} | {largest} | {full} | {spilling} | {} | {} |",
            folder.file_name().unwrap_or_default().display(),
            cost.warp_instructions,
            cost.tokens
        );
    }
    if opcodes {
        let total: usize = counts.values().sum();
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        for (name, count) in counts {
            println!("| `{name}` | {count} | {:.1} % |", 100.0 * count as f64 / total as f64);
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

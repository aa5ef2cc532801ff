//! Every instruction, type and modifier on edge values, through the interpreter.
//!
//! The cases are the data files of `instructions/`, whose results come from the manual through `generate.py`.
//! Each runs twice: with operands from memory, and with the operands as constants, which the compiler folds.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::table::{Block, Case, read};
use common::{Argument, compile, run};
use qwengpu_isa::Dim3;
use qwengpu_ptx::ast::{Body, Statement};
use qwengpu_ptx::subset;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/instructions")
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// As many threads as global and shared memory have room for, in whole warps.
fn threads(block: &Block, case: &Case) -> usize {
    let words = block.operand_words() + case.words() + block.scratch_buffer_words();
    let fitting = (120 / words).min(128 / block.scratch_words().max(1)).min(32);
    fitting / 4 * 4
}

fn launch(block: &Block, case: &Case, ptx: &str, rows: &[usize]) -> Vec<u32> {
    let kernel = compile(ptx);
    let count = rows.len();
    let zeros = |words: usize| Argument::Buffer(vec![0; 4 * count * words]);
    let arguments =
        [Argument::Buffer(bytes(&block.input(rows))), zeros(case.words()), zeros(block.scratch_buffer_words())];
    let threads = u16::try_from(count).expect("few threads");
    run(&kernel, Dim3::linear(1), Dim3::linear(threads), &arguments).buffers[1].clone()
}

fn mistakes(block: &Block, case: &Case) -> Vec<String> {
    let mut mistakes = Vec::new();
    let threads = threads(block, case);
    for start in (0..block.rows.len()).step_by(threads) {
        let rows: Vec<usize> = (start..block.rows.len().min(start + threads)).collect();
        let output = launch(block, case, &block.kernel(&[case], rows.len()), &rows);
        mistakes.extend(block.mistakes(&[case], &rows, &output));
    }
    if !block.warp && block.space.is_none() {
        for row in (0..block.rows.len()).step_by(5) {
            let output = launch(block, case, &block.constant_kernel(case, row), &[row]);
            mistakes.extend(block.mistakes(&[case], &[row], &output).into_iter().map(|m| format!("constants: {m}")));
        }
    }
    mistakes
}

fn check(name: &str) {
    let blocks = read(&folder().join(format!("{name}.txt")));
    let found: Vec<String> =
        blocks.iter().flat_map(|block| block.cases.iter().flat_map(|case| mistakes(block, case))).collect();
    assert!(found.is_empty(), "{} mistakes:\n{}", found.len(), found[..found.len().min(40)].join("\n"));
}

macro_rules! files {
    ($($name:ident)*) => {
        const FILES: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*
    };
}

files! {
    atomics comparison control_flow conversion division extended_precision integer_arithmetic integer_bits loads
    logic permutations shifts stores video_scalar video_simd warp
}

#[test]
fn every_data_file_is_checked() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("the folder is readable")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    assert_eq!(files, FILES.iter().map(|name| (*name).to_owned()).collect());
}

#[test]
fn a_wrong_result_is_a_mistake() {
    let mut block = read(&folder().join("control_flow.txt")).remove(0);
    let mut case = block.cases.remove(0);
    assert_eq!(mistakes(&block, &case), Vec::<String>::new());
    case.results[0].1[7] ^= 1;
    assert_eq!(mistakes(&block, &case).len(), 1);
}

/// Instructions that leave no result to tabulate, with the tests that are about them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("applypriority", "does nothing"),
    ("bar", "barriers.rs"),
    ("barrier", "barriers.rs"),
    ("brkpt", "a trap"),
    ("call", "calls.rs"),
    ("exit", "memory.rs"),
    ("griddepcontrol", "does nothing"),
    ("membar", "does nothing"),
    ("nanosleep", "does nothing"),
    ("pmevent", "does nothing"),
    ("prefetchu", "does nothing"),
    ("setmaxnreg", "does nothing"),
    ("trap", "memory.rs"),
];

fn rows_of(body: &Body, found: &mut BTreeSet<String>) {
    for statement in body {
        match statement {
            Statement::Instruction(inst) => found.extend(subset::instruction(&inst.opcode).map(|row| row.title())),
            Statement::Block(inner, _) => rows_of(inner, found),
            _ => {}
        }
    }
}

#[test]
fn every_translated_instruction_has_cases() {
    let mut found = BTreeSet::new();
    for name in FILES {
        for block in read(&folder().join(format!("{name}.txt"))) {
            let cases: Vec<&Case> = block.cases.iter().collect();
            let module = qwengpu_ptx::parse(&block.kernel(&cases, 4)).expect("the kernel is valid");
            for kernel in module.kernels() {
                rows_of(kernel.body.as_ref().expect("a body"), &mut found);
            }
        }
    }
    let translated = subset::INSTRUCTIONS.iter().copied().flatten();
    let translated = translated.filter(|row| matches!(row.support, subset::Support::Translated(_)));
    let missing: BTreeSet<String> = translated.map(subset::Instruction::title).filter(|t| !found.contains(t)).collect();
    assert_eq!(missing, ELSEWHERE.iter().map(|(title, _)| (*title).to_owned()).collect());
}

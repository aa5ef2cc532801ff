//! The IR of small kernels behind the passes, and their programs.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use std::cell::RefCell;
use std::fmt::Write as _;

use common::corpus;
use qwengpu_ptx::{Options, PassStats, Stage, lower, parse};

/// The IR behind the named passes (in their first run) and the program.
fn stages(name: &str, passes: &[&str]) -> String {
    let text = std::fs::read_to_string(corpus().join("clang19").join(name)).expect("a corpus file is text");
    let module = parse(&text).expect("the corpus parses");
    let seen = RefCell::new(String::new());
    let observer = |stage: &Stage<'_>| {
        let title = format!("; {}\n", stage.pass);
        let mut seen = seen.borrow_mut();
        if passes.contains(&stage.pass) && !seen.contains(&title) {
            writeln!(seen, "{title}{}", stage.ir).expect("writing to a string");
        }
    };
    let options = Options { observer: Some(&observer), ..Options::default() };
    let kernel = lower(&module, None, &options).expect("the corpus lowers");
    let seen = seen.into_inner();
    format!("{seen}{}", kernel.program)
}

const PASSES: &[&str] = &["build", "promote_locals", "legalize_operands", "order_blocks"];

#[test]
fn vector_add() {
    insta::assert_snapshot!(stages("vector_add.O2.ptx", PASSES));
}

#[test]
fn histogram() {
    insta::assert_snapshot!(stages("histogram.O2.ptx", PASSES));
}

#[test]
fn gcd_without_optimisation() {
    insta::assert_snapshot!(stages("gcd.O0.ptx", &["promote_locals", "expand_macros", "order_blocks"]));
}

#[test]
fn lowering_is_deterministic_and_counts_its_passes() {
    let text = std::fs::read_to_string(corpus().join("clang19/scan_shared.O0.ptx")).expect("a corpus file is text");
    let module = parse(&text).expect("the corpus parses");
    let options = Options { estimates: true, ..Options::default() };
    let first = lower(&module, None, &options).expect("the corpus lowers");
    let second = lower(&module, None, &options).expect("the corpus lowers");
    assert_eq!(first, second);
    assert_eq!(first.source_map.len(), first.program.instructions.len());
    assert!(first.source_map.iter().all(|line| *line > 0));
    let names: Vec<&str> = first.stats.passes.iter().map(|p| p.pass).collect();
    assert!(names.contains(&"propagate_copies") && names.contains(&"allocate_registers"));
    let tokens = |pass: &PassStats| pass.tokens.expect("estimates are asked for");
    let follows = |w: &[PassStats]| w[0].after == w[1].before && tokens(&w[0]).after == tokens(&w[1]).before;
    assert!(first.stats.passes.windows(2).all(follows), "a pass starts from what the one before left");
    assert_eq!(first.stats.passes.last().map(|pass| tokens(pass).after), Some(first.stats.estimated_tokens));
    let plain = lower(&module, None, &Options::default()).expect("the corpus lowers");
    assert_eq!(plain.program, first.program);
    assert!(plain.stats.passes.iter().all(|pass| pass.tokens.is_none()), "nobody asked for estimates");
}

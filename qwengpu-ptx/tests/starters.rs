//! The starter kernels, from two compilers at every level, run on the interpreter.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::{Argument, corpus, run};
use qwengpu_isa::Dim3;
use qwengpu_ptx::{Options, lower, parse};
use serde_json::Value;

fn numbers(text: &str) -> Vec<i64> {
    text.split(',').map(|n| n.parse().expect("a number")).collect()
}

fn bytes(ty: &str, values: &[i64]) -> Vec<u8> {
    let width = if ty.ends_with('8') { 1 } else { 4 };
    values.iter().flat_map(|v| v.to_le_bytes()[..width].to_vec()).collect()
}

fn argument(text: &str) -> Argument {
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        ["buf", ty, values] => Argument::Buffer(bytes(ty, &numbers(values))),
        ["zeros", ty, count] => {
            let count = count.parse().expect("a count");
            Argument::Buffer(bytes(ty, &vec![0; count]))
        }
        [_, value] => {
            let value: i64 = value.parse().expect("a number");
            Argument::Word(u32::try_from(value & 0xffff_ffff).expect("32 bits"))
        }
        _ => panic!("unknown argument {text}"),
    }
}

fn dim(value: &Value) -> Dim3 {
    let at = |idx: usize| u16::try_from(value[idx].as_u64().expect("a size")).expect("a small size");
    Dim3::new(at(0), at(1), at(2))
}

/// Static instructions, warp instructions and records of each kernel at each level.
fn table(compiler: &str) -> String {
    let mut launches: Vec<_> = std::fs::read_dir(corpus().join("launch"))
        .expect("the launch folder is readable")
        .map(|entry| entry.expect("the launch folder is readable").path())
        .collect();
    launches.sort();
    let mut table = String::new();
    for path in launches {
        let launch: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("text")).expect("JSON");
        let name = launch["kernel"].as_str().expect("a name");
        for level in ["O0", "O1", "O2", "O3"] {
            let file = corpus().join(compiler).join(format!("{name}.{level}.ptx"));
            let text = std::fs::read_to_string(&file).expect("a corpus file is text");
            let module = parse(&text).unwrap_or_else(|e| panic!("{name}.{level}: {e}"));
            let kernel = lower(&module, Some(name), &Options::default())
                .unwrap_or_else(|e| panic!("{compiler} {name}.{level}: {e}"));
            let arguments: Vec<Argument> = launch["args"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|a| argument(a.as_str().expect("text")))
                .collect();
            let done = run(&kernel, dim(&launch["grid"]), dim(&launch["block"]), &arguments);
            let mut buffers = Vec::new();
            for argument in launch["args"].as_array().expect("a list") {
                let text = argument.as_str().expect("text");
                buffers.push(text.starts_with("buf") || text.starts_with("zeros"));
            }
            for expect in launch["expect"].as_array().expect("a list") {
                // The harness numbers buffers among themselves.
                let idx = usize::try_from(expect["buffer"].as_u64().expect("an index")).expect("small");
                let values: Vec<i64> = expect["values"]
                    .as_array()
                    .expect("a list")
                    .iter()
                    .map(|v| v.as_i64().expect("a number"))
                    .collect();
                let wanted: Vec<u32> =
                    values.iter().map(|v| u32::try_from(v & 0xffff_ffff).expect("32 bits")).collect();
                assert_eq!(done.buffers[idx], wanted, "{compiler} {name}.{level}\n");
            }
            table.push_str(&format!(
                "{name:14} {level}  rom {:3}  regs {:2}  warp instructions {:4}  tokens {:5}\n",
                kernel.stats.instructions, kernel.stats.registers, done.counts.warp_instructions, done.counts.tokens,
            ));
        }
    }
    table
}

#[test]
fn clang_19() {
    insta::assert_snapshot!(table("clang19"));
}

#[test]
fn clang_14() {
    insta::assert_snapshot!(table("clang14"));
}

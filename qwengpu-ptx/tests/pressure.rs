//! Kernels with more values than registers that need no memory for them.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use std::fmt::Write as _;

use common::{Argument, compile, run};
use qwengpu_isa::Dim3;
use qwengpu_ptx::LoweredKernel;

fn kernel(body: &str) -> LoweredKernel {
    compile(&format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 data)\n{{\n.reg .b32 %r<64>;\n\
         .reg .b64 %a;\nld.param.u64 %a, [data];\n{body}\nret;\n}}\n"
    ))
}

fn first_word(kernel: &LoweredKernel, words: &[u32]) -> u32 {
    let memory = Argument::Buffer(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    run(kernel, Dim3::linear(1), Dim3::linear(1), &[memory]).buffers[0][0]
}

#[test]
fn operations_wait_for_their_use() {
    let mut body = String::from("ld.volatile.u32 %r1, [%a];\n");
    for n in 0..24 {
        writeln!(body, "xor.b32 %r{}, %r1, {};", n + 20, 1000 + n).expect("writing to a string");
    }
    body.push_str("mov.u32 %r2, 0;\n");
    for n in 0..24 {
        writeln!(body, "mad.lo.u32 %r2, %r2, 3, %r{};", n + 20).expect("writing to a string");
    }
    body.push_str("add.u32 %r2, %r2, %r1;\nst.u32 [%a], %r2;");
    let kernel = kernel(&body);
    assert_eq!(kernel.stats.spill_slots, 0);
    assert!(kernel.stats.passes.iter().any(|pass| pass.pass == "delay_definitions"));
    let expected = (0..24u32).fold(0u32, |sum, n| sum.wrapping_mul(3).wrapping_add(77 ^ (1000 + n)));
    assert_eq!(first_word(&kernel, &[77]), expected.wrapping_add(77));
}

#[test]
fn what_a_launch_gives_is_made_again() {
    // Fourteen words from memory, and the thread's place, all used twice with a barrier in between.
    let mut body = String::from("mov.u32 %r40, %tid.x;\nmov.u32 %r41, %warpid;\nmov.u32 %r42, %laneid;\n");
    for n in 0..13 {
        writeln!(body, "ld.volatile.u32 %r{n}, [%a+{}];", 4 * n).expect("writing to a string");
    }
    body.push_str("mov.u32 %r50, 0;\n");
    for factor in [3, 5] {
        for n in (0..13).chain([40, 41, 42]) {
            writeln!(body, "mad.lo.u32 %r50, %r50, {factor}, %r{n};").expect("writing to a string");
        }
        body.push_str("bar.sync 0;\n");
    }
    body.push_str("st.u32 [%a], %r50;");
    let kernel = kernel(&body);
    assert_eq!(kernel.stats.spill_slots, 0);
    let words: Vec<u32> = (0..13).map(|n| n * n + 1).collect();
    let all = || words.iter().copied().chain([0; 3]);
    let once = all().fold(0u32, |sum, word| sum.wrapping_mul(3).wrapping_add(word));
    let expected = all().fold(once, |sum, word| sum.wrapping_mul(5).wrapping_add(word));
    assert_eq!(first_word(&kernel, &words), expected);
}

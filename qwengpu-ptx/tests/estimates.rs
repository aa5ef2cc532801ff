//! The estimate of a kernel's tokens against the records that the interpreter speaks.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::{Argument, compile, run};
use qwengpu_isa::Dim3;

/// Records around the instructions of a CTA of one warp: its three numbers, the warp, and the end.
const FRAME: u64 = 5;

fn kernel(body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %d<8>;\nld.param.u64 %d1, [p];\n{body}\nret;\n}}\n"
    )
}

fn estimate_and_count(body: &str, threads: u16) -> (u64, u64) {
    let lowered = compile(&kernel(body));
    let words = [0x0102u32, 0x0203, 0x0304, 0, 0, 0, 0, 0];
    let memory = Argument::Buffer(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let done = run(&lowered, Dim3::linear(1), Dim3::linear(threads), &[memory, Argument::Word(8)]);
    (lowered.stats.estimated_tokens, done.counts.tokens - FRAME)
}

#[test]
fn straight_lines_of_uniform_words_are_exact() {
    let body = "ld.global.u32 %r1, [%d1];\nld.global.u32 %r2, [%d1+4];\nadd.u32 %r3, %r1, %r2;\nxor.b32 %r4, %r3, 0x1111;\n\
        st.global.u32 [%d1+12], %r4;\npopc.b32 %r5, %r4;\nsetp.lt.u32 %p1, %r3, %r4;\nselp.b32 %r6, %r3, %r1, %p1;\n\
        st.global.u32 [%d1+16], %r5;\nst.global.u32 [%d1+20], %r6;\nld.global.u8 %r7, [%d1+8];\nst.global.u8 [%d1+24], %r7;";
    let (estimate, count) = estimate_and_count(body, 4);
    assert_eq!(estimate, count);
}

#[test]
fn thread_numbers_differ_and_barriers_speak() {
    let body = "mov.u32 %r1, %tid.x;\nbar.sync 0;\nst.global.u32 [%d1+12], %r1;\nmov.u32 %r2, 0x10203;\nst.global.u32 [%d1], %r2;";
    let (estimate, count) = estimate_and_count(body, 4);
    assert_eq!(estimate, count);
}

#[test]
fn loops_count_eight_rounds() {
    let body = "mov.u32 %r1, 0x100;\nld.param.u32 %r2, [n];\nL: add.u32 %r1, %r1, %r1;\nadd.u32 %r2, %r2, -1;\n\
        xor.b32 %r1, %r1, 0x101;\nst.global.u32 [%d1], %r1;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra L;";
    let (estimate, count) = estimate_and_count(body, 4);
    assert!(estimate.abs_diff(count) * 5 < count, "{estimate} and {count}");
}

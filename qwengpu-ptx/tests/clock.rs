//! `%clock` and its relatives: a count of the PTX instructions that the thread has executed.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::{Argument, compile, run};
use qwengpu_isa::Dim3;

/// A kernel whose threads each store `%r0`; `%t` is the thread's number.
fn kernel(functions: &str, body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n{functions}\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n.reg .b32 %t;\n.reg .b64 %mine;\n\
         ld.param.u64 %mine, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %rd0, %t, 4;\nadd.s64 %mine, %mine, %rd0;\n\
         {body}\nst.global.u32 [%mine], %r0;\nret;\n}}\n"
    )
}

fn results(functions: &str, body: &str, threads: u16) -> Vec<u32> {
    let lowered = compile(&kernel(functions, body));
    let output = [Argument::Buffer(vec![0; 4 * usize::from(threads)])];
    run(&lowered, Dim3::linear(1), Dim3::linear(threads), &output).buffers[0].clone()
}

#[test]
fn a_straight_line_counts_its_instructions() {
    for instructions in [0u32, 1, 7, 40] {
        let work = "xor.b32 %r3, %r3, %t;\n".repeat(instructions as usize);
        let body = format!("mov.u32 %r1, %clock;\n{work}mov.u32 %r2, %clock;\nsub.u32 %r0, %r2, %r1;");
        assert_eq!(results("", &body, 1), [instructions + 1]);
    }
}

#[test]
fn the_first_read_counts_what_came_before() {
    assert_eq!(results("", "mov.u32 %r0, %clock;", 4), [5; 4]);
}

#[test]
fn a_loop_counts_every_round_and_lanes_count_their_own() {
    // Three instructions a round; the reads and the end of the last round are always the same.
    let body = "mov.u32 %r1, %clock;\nmov.u32 %r3, %t;\nL: add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 9;\n@%p1 bra L;\n\
        mov.u32 %r2, %clock;\nsub.u32 %r0, %r2, %r1;";
    let expected: Vec<u32> = (0..6).map(|t| 2 + 3 * (9 - t)).collect();
    assert_eq!(results("", body, 6), expected);
}

#[test]
fn guarded_instructions_count_whether_or_not_they_take_effect() {
    let body = "setp.eq.u32 %p1, %t, 1;\nmov.u32 %r1, %clock;\n@%p1 xor.b32 %r3, %r3, 5;\n@%p1 st.global.u32 [%mine], %t;\n\
        mov.u32 %r2, %clock;\nsub.u32 %r0, %r2, %r1;";
    assert_eq!(results("", body, 4), [3; 4]);
}

#[test]
fn wide_and_high_reads() {
    let body = "mov.u64 %rd1, %clock64;\nmov.u64 %rd2, %globaltimer;\nsub.u64 %rd3, %rd2, %rd1;\nmov.b64 {%r1, %r2}, %rd3;\n\
        mov.u32 %r3, %clock_hi;\nmov.u32 %r4, %globaltimer_hi;\nmov.u32 %r5, %globaltimer_lo;\nmov.u32 %r6, %clock;\n\
        sub.u32 %r6, %r6, %r5;\nadd.u32 %r0, %r1, %r2;\nadd.u32 %r0, %r0, %r3;\nadd.u32 %r0, %r0, %r4;\n\
        mad.lo.u32 %r0, %r6, 10, %r0;";
    assert_eq!(results("", body, 1), [11]);
}

#[test]
fn two_reads_are_never_one() {
    // Behind branches, in loops, and with nothing in between.
    let body = "mov.u32 %r1, %clock;\nmov.u32 %r2, %clock;\nsetp.eq.u32 %p1, %t, 0;\n@%p1 bra SKIP;\nmov.u32 %r1, %clock;\n\
        SKIP: mov.u32 %r3, %clock;\nsetp.gt.u32 %p2, %r2, %r1;\nselp.u32 %r4, 1, 0, %p2;\nsub.u32 %r5, %r3, %r1;\n\
        mad.lo.u32 %r0, %r5, 10, %r4;";
    assert_eq!(results("", body, 2), [41, 10]);
}

#[test]
fn calls_in_place_count() {
    let function = ".func (.param .b32 r) late(.param .b32 a)\n{ .reg .b32 %r<4>; ld.param.u32 %r1, [a]; mov.u32 %r2, %clock;\n\
        sub.u32 %r2, %r2, %r1; st.param.b32 [r], %r2; ret; }";
    let body = "mov.u32 %r1, %clock;\n{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 r; call.uni (r), late, (a);\n\
        ld.param.b32 %r0, [r]; }";
    assert_eq!(results(function, body, 4), [4; 4]);
}

#[test]
fn recursion_counts_on_and_returns_with_the_count() {
    // The deepest call reads the clock; each level executes seven instructions on the way down.
    let function = ".func (.param .b32 r) deep(.param .b32 n)\n{ .reg .pred %p<2>; .reg .b32 %r<4>; ld.param.u32 %r1, [n];\n\
        mov.u32 %r2, %clock; setp.eq.u32 %p1, %r1, 0; @%p1 bra END; add.u32 %r1, %r1, -1;\n\
        { .param .b32 a; st.param.b32 [a], %r1; .param .b32 q; call (q), deep, (a); ld.param.b32 %r2, [q]; }\n\
        END: st.param.b32 [r], %r2; ret; }";
    let call = "{ .param .b32 a; st.param.b32 [a], %t; .param .b32 r; call (r), deep, (a); ld.param.b32 %r0, [r]; }";
    let inner = format!("mov.u32 %r1, %clock;\n{call}\nsub.u32 %r0, %r0, %r1;");
    assert_eq!(results(function, &inner, 4), [4, 11, 18, 25]);
    let outer = format!("mov.u32 %r1, %clock;\n{call}\nmov.u32 %r2, %clock;\nsub.u32 %r0, %r2, %r1;");
    assert_eq!(results(function, &outer, 4), [10, 20, 30, 40]);
}

#[test]
fn kernels_that_do_not_ask_do_not_pay() {
    let plain = "L: add.u32 %r0, %r0, %t;\nsetp.lt.u32 %p1, %r0, 9;\n@%p1 bra L;";
    let before = compile(&kernel("", plain)).program.instructions.len();
    let asking = compile(&kernel("", &format!("{plain}\nmov.u32 %r0, %clock;"))).program.instructions.len();
    assert!(before < asking, "{before} and {asking}");
    assert!(asking <= before + 5, "{before} and {asking}");
}

//! Loops in loops, and what moves in front of them.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use std::fmt::Write as _;

use common::{Argument, compile, run};
use qwengpu_isa::Dim3;

#[test]
fn a_chain_of_invariants_leaves_the_loops_in_order() {
    // The inner loop has two entries, so what leaves it stands in a block of its own between the loops. The chain is
    // longer than what leaves one loop at a time.
    let mut chain = String::from("xor.b32 %r20, %r1, 1;\n");
    for n in 1..9 {
        writeln!(chain, "mad.lo.u32 %r{}, %r{}, %r{}, {n};", 20 + n, 19 + n, 19 + n).expect("writing to a string");
    }
    let ptx = format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 data)\n{{\n.reg .b32 %r<64>;\n\
         .reg .pred %p<4>;\n.reg .b64 %a;\nld.param.u64 %a, [data];\nld.volatile.u32 %r1, [%a];\nmov.u32 %r2, 0;\n\
         mov.u32 %r3, 0;\nOUTER: ld.volatile.u32 %r4, [%a+4];\nsetp.eq.u32 %p1, %r4, %r2;\n@%p1 bra OTHER;\n\
         st.volatile.u32 [%a+8], %r2;\nmov.u32 %r5, 2;\nbra INNER;\nOTHER: st.volatile.u32 [%a+12], %r2;\nmov.u32 %r5, 3;\n\
         INNER: {chain}add.u32 %r3, %r3, %r28;\nadd.u32 %r5, %r5, -1;\nsetp.ne.u32 %p2, %r5, 0;\n@%p2 bra INNER;\n\
         add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p3, %r2, 4;\n@%p3 bra OUTER;\nst.u32 [%a], %r3;\nret;\n}}\n"
    );
    let words = [9u32, 2, 0, 0];
    let memory = Argument::Buffer(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let done = run(&compile(&ptx), Dim3::linear(1), Dim3::linear(1), &[memory]);
    let value = (1..9u32).fold(9 ^ 1, |value: u32, n| value.wrapping_mul(value).wrapping_add(n));
    // Two rounds three times, and three rounds once.
    assert_eq!(done.buffers[0], [value.wrapping_mul(9), 2, 3, 2]);
}

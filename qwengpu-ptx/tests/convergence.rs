//! Lanes that leave a loop one after the other come together behind it.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::{Argument, compile, run};
use qwengpu_isa::Dim3;

/// Runs four threads on a buffer of four words: `%o` is the address of a thread's own.
fn four_threads(body: &str, before: [u32; 4]) -> Vec<u32> {
    let ptx = format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .b32 %t, %n, %v; .reg .b64 %o, %p0; .reg .pred %p;\n\
         ld.param.u64 %p0, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 4, %p0; mov.u32 %n, 0;\n{body}\nret;\n}}\n"
    );
    let bytes = before.iter().flat_map(|word| word.to_le_bytes()).collect();
    run(&compile(&ptx), Dim3::linear(1), Dim3::linear(4), &[Argument::Buffer(bytes)]).buffers[0].clone()
}

/// As many rounds as the thread's number and one.
const LOOP: &str = "LOOP: st.volatile.global.u32 [%o], %n; add.u32 %n, %n, 1; setp.le.u32 %p, %n, %t; @%p bra LOOP;";

#[test]
fn a_vote_behind_a_loop_asks_all_lanes() {
    let vote = format!("{LOOP} vote.sync.ballot.b32 %v, 1, -1; st.global.u32 [%o], %v;");
    assert_eq!(four_threads(&vote, [0; 4]), [15; 4]);
}

#[test]
fn a_shuffle_behind_a_loop_reads_lanes_that_left_later() {
    let shuffle = format!("{LOOP} shfl.sync.idx.b32 %v, %n, 3, 0x1f, -1; st.global.u32 [%o], %v;");
    assert_eq!(four_threads(&shuffle, [0; 4]), [4; 4]);
}

#[test]
fn a_load_behind_a_loop_and_a_barrier_of_the_warp_sees_what_all_lanes_stored() {
    let load = format!("{LOOP} bar.warp.sync -1; ld.global.u32 %v, [%p0+12]; st.global.u32 [%o], %v;");
    assert_eq!(four_threads(&load, [9; 4]), [3; 4]);
    // The loop of an atomic is none less.
    let sum = "red.global.add.u32 [%p0], %t; bar.warp.sync -1; ld.global.u32 %v, [%p0]; st.global.u32 [%o], %v;";
    assert_eq!(four_threads(sum, [10, 0, 0, 0]), [16; 4]);
}

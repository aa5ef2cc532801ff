//! Local arrays that do not fit into local memory.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use std::fmt::Write as _;

use common::{Argument, attempt, compile, run};
use qwengpu_interp::{Fault, Outcome};
use qwengpu_isa::{Dim3, FaultKind, MachineSpec};
use qwengpu_ptx::LoweredKernel;

/// A kernel that stores a word for each thread at `%m`; `%t` is the thread's number.
fn kernel(body: &str) -> LoweredKernel {
    compile(&format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n\
         .reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.reg .b64 %m;\n.reg .b32 %t;\nld.param.u64 %m, [out];\n\
         mov.u32 %t, %tid.x;\nmul.wide.u32 %rd1, %t, 4;\nadd.s64 %m, %m, %rd1;\n{body}\nret;\n}}\n"
    ))
}

/// Fills local arrays of the given sizes with indices known only at run time, and sums what they hold.
fn local_arrays(words: &[u32]) -> String {
    let mut body = String::from("mov.u32 %r3, 0;\n");
    for (n, size) in words.iter().enumerate() {
        write!(
            body,
            ".local .align 4 .b8 v{n}[{}];\nmov.u32 %r1, 0;\nmov.u64 %rd1, v{n};\n\
             F{n}: mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nmad.lo.u32 %r2, %r1, 10, %t;\n\
             st.local.u32 [%rd3], %r2;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, {size};\n@%p1 bra F{n};\n",
            4 * size
        )
        .expect("writing to a string");
    }
    for (n, size) in words.iter().enumerate() {
        write!(
            body,
            "mov.u32 %r1, {size};\nmov.u64 %rd1, v{n};\nS{n}: add.u32 %r1, %r1, -1;\nmul.wide.u32 %rd2, %r1, 4;\n\
             add.s64 %rd3, %rd1, %rd2;\nld.local.u32 %r2, [%rd3];\nadd.u32 %r3, %r3, %r2;\nsetp.ne.u32 %p1, %r1, 0;\n\
             @%p1 bra S{n};\n"
        )
        .expect("writing to a string");
    }
    body + "st.u32 [%m], %r3;"
}

#[test]
fn arrays_in_shared_memory_do_not_overlap() {
    // 24 words a thread, and two arrays of which both move.
    for (words, threads) in [(&[24][..], 4), (&[24], 5), (&[17, 18], 3), (&[18, 10, 17], 2), (&[128], 1)] {
        let sum = |t: u32| words.iter().map(|size| (0..*size).map(|i| 10 * i + t).sum::<u32>()).sum::<u32>();
        let expected: Vec<u32> = (0..u32::from(threads)).map(sum).collect();
        let memory = [Argument::Buffer(vec![0; 4 * usize::from(threads)])];
        let done = run(&kernel(&local_arrays(words)), Dim3::linear(1), Dim3::linear(threads), &memory);
        assert_eq!(done.buffers[0], expected, "{words:?}");
    }
}

#[test]
fn too_many_threads_for_their_arrays_overflow_the_stack() {
    for (words, threads) in [(&[24][..], 6), (&[17, 18], 4), (&[128], 2)] {
        let lowered = kernel(&local_arrays(words));
        let memory = [Argument::Buffer(vec![0; 4 * usize::from(threads)])];
        let (outcome, _) = attempt(MachineSpec::seed(), &lowered, Dim3::linear(1), Dim3::linear(threads), &memory);
        assert!(matches!(outcome, Outcome::Fault(Fault { kind: FaultKind::StackOverflow, .. })), "{outcome}");
    }
}

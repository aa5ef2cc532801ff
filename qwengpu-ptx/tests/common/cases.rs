//! Instructions against plain Rust, on edge values, through the interpreter.
//!
//! A case is the body of a kernel that reads `%r1`, `%r2`, `%r3` (or `%rd1`, `%rd2`, `%rd3`) and leaves its
//! result in `%r0` (or `%rd0`). Each case runs twice: with operands from memory, and with the operands as
//! constants, which the compiler folds.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this module")]

use super::{Argument, compile, run};
use qwengpu_isa::Dim3;

pub const EDGES: [u32; 12] = [0, 1, 2, 3, 7, 31, 32, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff_8000, 0x1234_5678];

pub const WIDE_EDGES: [u64; 10] = [
    0,
    1,
    5,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
    0xffff_ffff_8000_0000,
    0x1234_5678_9abc_def0,
];

pub const HEADER: &str = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n\
    .reg .pred %p<8>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.reg .b64 %a<4>;\n.reg .b32 %t;\n";

/// Four lanes compute four cases at once.
pub fn kernel_32(body: &str) -> String {
    format!(
        "{HEADER}ld.param.u64 %a0, [in];\nld.param.u64 %a1, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %a2, %t, 12;\n\
         add.s64 %a0, %a0, %a2;\nld.global.u32 %r1, [%a0];\nld.global.u32 %r2, [%a0+4];\nld.global.u32 %r3, [%a0+8];\n\
         {body}\nmul.wide.u32 %a2, %t, 4;\nadd.s64 %a1, %a1, %a2;\nst.global.u32 [%a1], %r0;\nret;\n}}\n"
    )
}

pub fn constant_32(body: &str, values: [u32; 3]) -> String {
    format!(
        "{HEADER}ld.param.u64 %a1, [out];\nmov.u32 %r1, {};\nmov.u32 %r2, {};\nmov.u32 %r3, {};\n{body}\n\
         st.global.u32 [%a1], %r0;\nret;\n}}\n",
        values[0], values[1], values[2]
    )
}

pub fn kernel_64(body: &str) -> String {
    format!(
        "{HEADER}ld.param.u64 %a0, [in];\nld.param.u64 %a1, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %a2, %t, 24;\n\
         add.s64 %a0, %a0, %a2;\nld.global.u64 %rd1, [%a0];\nld.global.u64 %rd2, [%a0+8];\nld.global.u64 %rd3, [%a0+16];\n\
         {body}\nmul.wide.u32 %a2, %t, 8;\nadd.s64 %a1, %a1, %a2;\nst.global.u64 [%a1], %rd0;\nret;\n}}\n"
    )
}

pub fn constant_64(body: &str, values: [u64; 3]) -> String {
    format!(
        "{HEADER}ld.param.u64 %a1, [out];\nmov.u64 %rd1, {};\nmov.u64 %rd2, {};\nmov.u64 %rd3, {};\n{body}\n\
         st.global.u64 [%a1], %rd0;\nret;\n}}\n",
        values[0], values[1], values[2]
    )
}

pub fn launch(ptx: &str, input: &[u8], output_words: usize, threads: u16) -> Vec<u32> {
    let kernel = compile(ptx);
    let arguments = [Argument::Buffer(input.to_vec()), Argument::Buffer(vec![0; 4 * output_words])];
    run(&kernel, Dim3::linear(1), Dim3::linear(threads), &arguments).buffers[1].clone()
}

pub fn check(body: &str, expected: impl Fn(u32, u32, u32) -> u32) {
    let mut cases = Vec::new();
    for a in EDGES {
        for (idx, b) in EDGES.into_iter().enumerate() {
            cases.push([a, b, EDGES[(idx * 5 + 3) % EDGES.len()]]);
        }
    }
    let ptx = kernel_32(body);
    for group in cases.chunks(4) {
        let bytes: Vec<u8> = group.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        let got = launch(&ptx, &bytes, 4, 4);
        for ([a, b, c], got) in group.iter().zip(got) {
            assert_eq!(got, expected(*a, *b, *c), "{body}\na = {a:#x}, b = {b:#x}, c = {c:#x}");
        }
    }
    for [a, b, c] in cases.into_iter().step_by(7) {
        let got = launch(&constant_32(body, [a, b, c]), &[0; 4], 1, 1);
        assert_eq!(got[0], expected(a, b, c), "constants: {body}\na = {a:#x}, b = {b:#x}, c = {c:#x}");
    }
}

pub fn check_wide(body: &str, expected: impl Fn(u64, u64, u64) -> u64) {
    let mut cases = Vec::new();
    for a in WIDE_EDGES {
        for (idx, b) in WIDE_EDGES.into_iter().enumerate() {
            cases.push([a, b, WIDE_EDGES[(idx * 3 + 1) % WIDE_EDGES.len()]]);
        }
    }
    let ptx = kernel_64(body);
    for group in cases.chunks(4) {
        let bytes: Vec<u8> = group.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        let got = launch(&ptx, &bytes, 8, 4);
        for ([a, b, c], got) in group.iter().zip(got.chunks(2)) {
            let got = u64::from(got[0]) | u64::from(got[1]) << 32;
            assert_eq!(got, expected(*a, *b, *c), "{body}\na = {a:#x}, b = {b:#x}, c = {c:#x}");
        }
    }
    for [a, b, c] in cases.into_iter().step_by(7) {
        let got = launch(&constant_64(body, [a, b, c]), &[0; 4], 2, 1);
        let got = u64::from(got[0]) | u64::from(got[1]) << 32;
        assert_eq!(got, expected(a, b, c), "constants: {body}\na = {a:#x}, b = {b:#x}, c = {c:#x}");
    }
}

pub fn s(x: u32) -> i32 {
    x.cast_signed()
}

pub fn u(x: i32) -> u32 {
    x.cast_unsigned()
}

pub fn low(x: u64) -> u32 {
    u32::try_from(x & 0xffff_ffff).expect("masked")
}

pub fn s64(x: u32) -> i64 {
    i64::from(s(x))
}

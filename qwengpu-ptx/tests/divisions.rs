//! Kernels with many divisions: they share code, and give what Rust gives.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use std::fmt::Write as _;

use common::{Argument, compile, run};
use proptest::prelude::*;
use qwengpu_isa::Dim3;
use qwengpu_ptx::LoweredKernel;

const WIDE_EDGES: [u64; 10] = [
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

const OPERATIONS: [&str; 4] = ["div.u64", "rem.u64", "div.s64", "rem.s64"];

fn wanted(operation: &str, a: u64, b: u64) -> u64 {
    let (x, y) = (a.cast_signed(), b.cast_signed());
    match operation {
        "div.u64" => a.checked_div(b).unwrap_or(u64::MAX),
        "rem.u64" => a.checked_rem(b).unwrap_or(a),
        "div.s64" if y == 0 => u64::MAX,
        "div.s64" => x.wrapping_div(y).cast_unsigned(),
        "rem.s64" if y == 0 => a,
        _ => x.wrapping_rem(y).cast_unsigned(),
    }
}

/// A kernel that divides `a` by `b + n` for each of the operations, and stores each result.
fn kernel_64(operations: &[&str]) -> LoweredKernel {
    let count = operations.len();
    let mut body = String::new();
    for (n, operation) in operations.iter().enumerate() {
        writeln!(body, "add.u64 %d4, %d2, {n};\n{operation} %d3, %d1, %d4;\nst.global.u64 [%out+{}], %d3;", 8 * n)
            .expect("writing to a string");
    }
    compile(&format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .b32 %t;\n.reg .b64 %d<8>;\n.reg .b64 %in;\n.reg .b64 %out;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         mov.u32 %t, %tid.x;\nmul.wide.u32 %d5, %t, 16;\nadd.s64 %in, %in, %d5;\nmul.wide.u32 %d5, %t, {};\n\
         add.s64 %out, %out, %d5;\nld.global.u64 %d1, [%in];\nld.global.u64 %d2, [%in+8];\n{body}ret;\n}}\n",
        8 * count
    ))
}

fn divide(kernel: &LoweredKernel, count: usize, pairs: &[(u64, u64)]) -> (Vec<u64>, u64) {
    let input = pairs.iter().flat_map(|(a, b)| [*a, *b]).flat_map(u64::to_le_bytes).collect();
    let output = vec![0; 8 * count * pairs.len()];
    let threads = u16::try_from(pairs.len()).expect("few");
    let done =
        run(kernel, Dim3::linear(1), Dim3::linear(threads), &[Argument::Buffer(input), Argument::Buffer(output)]);
    let words = done.buffers[1].chunks(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32).collect();
    (words, done.counts.tokens)
}

fn check(kernel: &LoweredKernel, operations: &[&str], pairs: &[(u64, u64)]) {
    for group in pairs.chunks(4) {
        let (got, _) = divide(kernel, operations.len(), group);
        let each = |(a, b): &(u64, u64)| -> Vec<u64> {
            (0..).zip(operations).map(|(n, operation)| wanted(operation, *a, b.wrapping_add(n))).collect()
        };
        let expected: Vec<u64> = group.iter().flat_map(each).collect();
        assert_eq!(got, expected, "{group:x?}");
    }
}

fn twelve() -> Vec<&'static str> {
    OPERATIONS.into_iter().cycle().take(12).collect()
}

#[test]
fn twelve_wide_divisions_fit_and_are_right() {
    let kernel = kernel_64(&twelve());
    assert!(kernel.stats.instructions < 350, "{}", kernel.stats.instructions);
    let mut pairs = Vec::new();
    for a in WIDE_EDGES {
        pairs.extend(WIDE_EDGES.map(|b| (a, b)));
    }
    for shift in [0, 1, 31, 32, 33, 62, 63] {
        let power = 1u64 << shift;
        pairs.extend([(power, 3), (u64::MAX, power), (power - 1, power), (power, power.wrapping_neg())]);
    }
    check(&kernel, &twelve(), &pairs);
}

#[test]
fn every_operation_alone_and_twice() {
    for operation in OPERATIONS {
        for count in [1, 2] {
            let operations = vec![operation; count];
            let kernel = kernel_64(&operations);
            let pairs = [(100, 7), (u64::MAX, 0), (1 << 63, u64::MAX), (5, 1 << 40), (0x1234_5678_9abc_def0, 0x1_0001)];
            check(&kernel, &operations, &pairs);
        }
    }
}

#[test]
fn sharing_grows_slowly() {
    let size = |count: usize| kernel_64(&vec!["div.u64"; count]).stats.instructions;
    let (two, twelve) = (size(2), size(12));
    assert!(twelve - two <= 10 * 16, "{two} to {twelve}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_wide_divisions(values in prop::collection::vec((any::<u64>(), any::<u64>(), 0..64u32, 0..64u32), 4)) {
        let kernel = kernel_64(&OPERATIONS);
        let pairs: Vec<(u64, u64)> = values.into_iter().map(|(a, b, up, down)| (a >> up, b >> down)).collect();
        check(&kernel, &OPERATIONS, &pairs);
    }
}

/// A kernel of many 32-bit divisions by words: too long in place.
fn kernel_32(count: u32) -> String {
    let mut body = String::new();
    for n in 0..count {
        let operation = ["div.s32", "rem.u32", "div.u32", "rem.s32", "mul.hi.s32"][n as usize % 5];
        writeln!(body, "add.u32 %r4, %r2, {};\n{operation} %r3, %r1, %r4;\nmad.lo.u32 %r0, %r0, 31, %r3;", n * n + 1)
            .expect("writing to a string");
    }
    format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .b32 %r<8>;\n.reg .b32 %t;\n.reg .b64 %d<8>;\nld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\n\
         mov.u32 %t, %tid.x;\nmul.wide.u32 %d3, %t, 8;\nadd.s64 %d1, %d1, %d3;\nmul.wide.u32 %d3, %t, 4;\n\
         add.s64 %d2, %d2, %d3;\nld.global.u32 %r1, [%d1];\nld.global.u32 %r2, [%d1+4];\nmov.u32 %r0, 0;\n{body}\
         st.global.u32 [%d2], %r0;\nret;\n}}\n"
    )
}

fn wanted_32(count: u32, a: u32, b: u32) -> u32 {
    (0..count).fold(0u32, |sum, n| {
        let d = b.wrapping_add(n * n + 1);
        let (x, y) = (a.cast_signed(), d.cast_signed());
        let value = match n % 5 {
            0 if d == 0 => u32::MAX,
            0 => x.wrapping_div(y).cast_unsigned(),
            1 => a.checked_rem(d).unwrap_or(a),
            2 => a.checked_div(d).unwrap_or(u32::MAX),
            3 if d == 0 => a,
            3 => x.wrapping_rem(y).cast_unsigned(),
            _ => u32::try_from((i64::from(x) * i64::from(y)).cast_unsigned() >> 32).expect("a word"),
        };
        sum.wrapping_mul(31).wrapping_add(value)
    })
}

#[test]
fn kernels_too_long_in_place_share_their_divisions() {
    for count in [10, 40] {
        let kernel = compile(&kernel_32(count));
        let pairs = [(100, 7), (u32::MAX, 3), (1 << 31, u32::MAX - 1), (12345, 0)];
        let input = pairs.iter().flat_map(|(a, b): &(u32, u32)| [*a, *b]).flat_map(u32::to_le_bytes).collect();
        let arguments = [Argument::Buffer(input), Argument::Buffer(vec![0; 16])];
        let got = run(&kernel, Dim3::linear(1), Dim3::linear(4), &arguments);
        let expected: Vec<u32> = pairs.iter().map(|(a, b)| wanted_32(count, *a, *b)).collect();
        assert_eq!(got.buffers[1], expected, "{count}");
        println!("{count}: {} instructions, {} tokens", kernel.stats.instructions, got.counts.tokens);
    }
}

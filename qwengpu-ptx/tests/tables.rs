//! Tables of numbers too large for global memory.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use std::fmt::Display;

use common::{Argument, compile, run};
use qwengpu_isa::Dim3;
use qwengpu_ptx::{Options, PtxError, lower, parse};

const SIZE: u32 = 600;

fn kernel(space: &str, ty: &str, entries: &[impl Display], element: u32, load: &str) -> String {
    let list: Vec<String> = entries.iter().map(ToString::to_string).collect();
    format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n.{space} .align 4 .{ty} table[{}] = {{{}}};\n\
         .visible .entry k(.param .u64 data)\n{{\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\nld.param.u64 %d1, [data];\n\
         mov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\nadd.s64 %d1, %d1, %d2;\nld.global.u32 %r2, [%d1];\n\
         mul.wide.u32 %d3, %r2, {element};\nmov.u64 %d4, table;\nadd.s64 %d3, %d4, %d3;\n{load}\n\
         st.global.u32 [%d1], %r3;\nret;\n}}\n",
        list.len(),
        list.join(", ")
    )
}

fn look_up(ptx: &str, indices: &[u32]) -> Vec<u32> {
    let bytes = indices.iter().flat_map(|i| i.to_le_bytes()).collect();
    let threads = u16::try_from(indices.len()).expect("few");
    run(&compile(ptx), Dim3::linear(1), Dim3::linear(threads), &[Argument::Buffer(bytes)]).buffers[0].clone()
}

const INDICES: [u32; 8] = [0, 1, 2, 77, 255, 256, 511, SIZE - 1];

/// The table of CRC-32.
fn crc(index: u32) -> u32 {
    (0..8).fold(index, |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
}

#[test]
fn linear_tables_as_words_and_as_bytes() {
    let words: Vec<u32> = (0..256).map(crc).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let load = "ld.global.nc.b32 %r3, [%d3];";
    let expected: Vec<u32> = INDICES[..5].iter().map(|i| crc(*i)).collect();
    assert_eq!(look_up(&kernel("global", "u32", &words, 4, load), &INDICES[..5]), expected);
    assert_eq!(look_up(&kernel("const", "b8", &bytes, 4, load), &INDICES[..5]), expected);
}

#[test]
fn affine_tables_of_every_width_and_with_an_offset() {
    let entry = |i: u32| (i ^ i >> 1 ^ i << 2 ^ 0x55) & 0xffff;
    let words: Vec<u32> = (0..SIZE).map(entry).collect();
    let halves: Vec<u32> = words.clone();
    let bytes: Vec<u32> = words.iter().map(|word| word & 0xff).collect();
    let indices = &INDICES[..7];
    let at = |offset: u32| -> Vec<u32> { indices.iter().map(|i| entry(i + offset)).collect() };
    assert_eq!(look_up(&kernel("global", "u32", &words, 4, "ld.global.u32 %r3, [%d3+12];"), indices), at(3));
    assert_eq!(look_up(&kernel("global", "u16", &halves, 2, "ld.global.u16 %r3, [%d3+2];"), indices), at(1));
    let low: Vec<u32> = at(0).iter().map(|word| word & 0xff).collect();
    assert_eq!(look_up(&kernel("global", "u8", &bytes, 1, "ld.global.u8 %r3, [%d3];"), indices), low);
}

#[test]
fn progressions() {
    let words: Vec<u32> = (0..SIZE).map(|i| 1000 - i).map(|i| i.wrapping_mul(9)).collect();
    let expected: Vec<u32> = INDICES.iter().map(|i| (1000 - i) * 9).collect();
    assert_eq!(look_up(&kernel("const", "u32", &words, 4, "ld.const.u32 %r3, [%d3];"), &INDICES), expected);
    let bytes: Vec<u32> = (0..SIZE).map(|i| (i * 7) & 0xff).collect();
    let expected: Vec<u32> =
        INDICES.iter().map(|i| i32::from((i * 7).to_le_bytes()[0].cast_signed()).cast_unsigned()).collect();
    assert_eq!(look_up(&kernel("const", "u8", &bytes, 1, "ld.const.s8 %r3, [%d3];"), &INDICES), expected);
}

#[test]
fn tables_that_fit_or_follow_no_rule_stay() {
    let small: Vec<u32> = (0..64).map(crc).collect();
    let fits = compile(&kernel("global", "u32", &small, 4, "ld.global.u32 %r3, [%d3];"));
    assert_eq!(fits.stats.static_words, 64);
    let mut words: Vec<u32> = (0..256).map(crc).collect();
    words[200] ^= 4;
    let refused = |ptx: &str| {
        let module = parse(ptx).expect("the text parses");
        let error = lower(&module, None, &Options::default()).expect_err("the table is too large");
        assert!(matches!(error, PtxError::ImplLimit { need: 1024, .. }), "{error}");
    };
    refused(&kernel("global", "u32", &words, 4, "ld.global.u32 %r3, [%d3];"));
    // Written, and with its address in memory.
    let words: Vec<u32> = (0..256).map(crc).collect();
    refused(&kernel("global", "u32", &words, 4, "ld.global.u32 %r3, [%d3];\nst.global.u32 [%d3], %r2;"));
    refused(
        &kernel("global", "u32", &words, 4, "ld.global.u32 %r3, [%d3];\nst.global.u32 [%d1], %d4;")
            .replace("st.global.u32 [%d1], %d4;", "cvt.u32.u64 %r4, %d4;\nst.global.u32 [%d1], %r4;"),
    );
}

//! Instructions that compilers seldom emit, by their sections of the PTX manual.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::cases::{check, check_wide, low, s, u};
use common::{Argument, compile, run};
use qwengpu_isa::Dim3;

/// "Integer Arithmetic Instructions: fns": the manual's own loop.
fn find_nth_set(mask: u32, base: u32, offset: u32) -> u32 {
    let offset = i64::from(s(offset));
    let bit = |at: i64| (0..32).contains(&at) && mask >> at & 1 == 1;
    let mut at = i64::from(base);
    if offset == 0 {
        return if bit(at) { base } else { u32::MAX };
    }
    let mut count = offset.abs() - 1;
    while (0..32).contains(&at) {
        if bit(at) {
            if count == 0 {
                return u32::try_from(at).expect("below 32");
            }
            count -= 1;
        }
        at += offset.signum();
    }
    u32::MAX
}

#[test]
fn fns() {
    check("and.b32 %r2, %r2, 31; fns.b32 %r0, %r1, %r2, %r3;", |a, b, c| find_nth_set(a, b & 31, c));
    for offset in [-5, -2, -1, 0, 1, 2, 3, 17] {
        let body = format!("and.b32 %r2, %r3, 31; fns.b32 %r0, %r1, %r2, {offset};");
        check(&body, |a, _, c| find_nth_set(a, c & 31, u(offset)));
    }
}

/// "Data Movement and Conversion Instructions: prmt": bytes of `b:a` by index, lowest first.
fn permute(a: u32, b: u32, bytes: [u32; 4]) -> u32 {
    let all = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |word, to| word | low(all >> (8 * bytes[to]) & 0xff) << (8 * to))
}

#[test]
fn prmt_modes() {
    type Mode = fn(u32) -> [u32; 4];
    let modes: [(&str, Mode); 6] = [
        ("f4e", |n| [n, n + 1, n + 2, n + 3]),
        ("b4e", |n| [n, (n + 7) % 8, (n + 6) % 8, (n + 5) % 8]),
        ("rc8", |n| [n; 4]),
        ("ecl", |n| [n, n.max(1), n.max(2), n.max(3)]),
        ("ecr", |n| [0, n.min(1), n.min(2), n.min(3)]),
        ("rc16", |n| [2 * (n & 1), 2 * (n & 1) + 1, 2 * (n & 1), 2 * (n & 1) + 1]),
    ];
    for (name, bytes) in modes {
        // Only the two lowest bits of the selector count.
        check(&format!("prmt.b32.{name} %r0, %r1, %r2, %r3;"), |a, b, c| permute(a, b, bytes(c & 3)));
        for selector in 0..4 {
            let body = format!("prmt.b32.{name} %r0, %r1, %r2, {selector};");
            check(&body, |a, b, _| permute(a, b, bytes(selector)));
        }
    }
}

/// "Logic and Shift Instructions: lop3": the predicate is `(d != 0) BoolOp q`.
#[test]
fn lop3_with_a_predicate() {
    let table = |a: u32, b: u32, c: u32| a & b ^ c;
    for q in [false, true] {
        let number = u32::from(q);
        let setup = format!("setp.ne.u32 %p2, {number}, 0;");
        let show = "selp.u32 %r5, 1, 0, %p1; xor.b32 %r0, %r4, %r5;";
        for (op, combine) in [("or", (|p, q| p | q) as fn(bool, bool) -> bool), ("and", |p, q| p & q)] {
            let body = format!("{setup} lop3.{op}.b32 %r4|%p1, %r1, %r2, %r3, 0x6a, %p2; {show}");
            check(&body, |a, b, c| table(a, b, c) ^ u32::from(combine(table(a, b, c) != 0, q)));
            let sink = format!("{setup} lop3.{op}.b32 _|%p1, %r1, %r2, %r3, 0x6a, !%p2; selp.u32 %r0, 1, 0, %p1;");
            check(&sink, |a, b, c| u32::from(combine(table(a, b, c) != 0, !q)));
        }
    }
}

/// "Data Movement and Conversion Instructions: cvt.pack".
#[test]
fn cvt_pack() {
    let clamp = |v: u32, least: i64, most: i64| low(i64::from(s(v)).clamp(least, most).cast_unsigned());
    check("cvt.pack.sat.s16.s32 %r0, %r1, %r2;", |a, b, _| {
        let half = |v| clamp(v, -0x8000, 0x7fff) & 0xffff;
        half(a) << 16 | half(b)
    });
    check("cvt.pack.sat.u16.s32 %r0, %r1, %r2;", |a, b, _| clamp(a, 0, 0xffff) << 16 | clamp(b, 0, 0xffff));
    for (ty, bits) in [("u8", 8), ("u4", 4), ("u2", 2)] {
        check(&format!("cvt.pack.sat.{ty}.s32.b32 %r0, %r1, %r2, %r3;"), |a, b, c| {
            let part = |v| clamp(v, 0, (1 << bits) - 1);
            c << (2 * bits) | part(a) << bits | part(b)
        });
    }
    for (ty, bits) in [("s8", 8), ("s4", 4), ("s2", 2)] {
        check(&format!("cvt.pack.sat.{ty}.s32.b32 %r0, %r1, %r2, %r3;"), |a, b, c| {
            let part = |v| clamp(v, -1 << (bits - 1), (1 << (bits - 1)) - 1) & ((1 << bits) - 1);
            c << (2 * bits) | part(a) << bits | part(b)
        });
    }
}

/// "Integer Arithmetic Instructions: bfind": `.shiftamt` gives the distance to the top.
#[test]
fn bfind_of_signed_and_wide_values() {
    check("bfind.shiftamt.s32 %r0, %r1;", |a, _, _| {
        let bits = if s(a) < 0 { !a } else { a };
        if bits == 0 { u32::MAX } else { bits.leading_zeros() }
    });
    check_wide("bfind.shiftamt.u64 %r1, %rd1; cvt.u64.u32 %rd0, %r1;", |a, _, _| {
        if a == 0 { 0xffff_ffff } else { u64::from(a.leading_zeros()) }
    });
    check_wide("bfind.s64 %r1, %rd1; cvt.u64.u32 %rd0, %r1;", |a, _, _| {
        let bits = if a.cast_signed() < 0 { !a } else { a };
        if bits == 0 { 0xffff_ffff } else { u64::from(63 - bits.leading_zeros()) }
    });
}

/// "Integer Arithmetic Instructions: mad": `.hi.sat.s32` clamps the sum.
#[test]
fn saturating_high_products() {
    check("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
        let high = (i64::from(s(a)) * i64::from(s(b))) >> 32;
        let sum = high + i64::from(s(c));
        low(sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)).cast_unsigned())
    });
}

/// "Video Instructions": the parts of a word, each extended as its operand's type says.
#[test]
fn simd_video() {
    let parts = |word: u32, bits: u32, signed: bool| -> Vec<i64> {
        let part = |at: u32| i64::from(word >> at & (u32::MAX >> (32 - bits)));
        let half = 1i64 << (bits - 1);
        (0..32 / bits).map(|n| part(n * bits)).map(|v| if signed && v >= half { v - 2 * half } else { v }).collect()
    };
    let join = |values: &[i64], bits: u32| {
        let mask = i64::from(u32::MAX >> (32 - bits));
        values.iter().rev().fold(0, |word: u64, v| word << bits | (v & mask).cast_unsigned())
    };
    type Operation = fn(i64, i64) -> i64;
    let operations: [(&str, Operation); 5] = [
        ("vadd", |x, y| x + y),
        ("vsub", |x, y| x - y),
        ("vabsdiff", |x, y| (x - y).abs()),
        ("vmin", i64::min),
        ("vmax", i64::max),
    ];
    for (count, bits) in [(2, 16), (4, 8)] {
        for (name, operation) in operations {
            for (ty, signed) in [("u32", false), ("s32", true)] {
                let each = |a, b| -> Vec<i64> {
                    parts(a, bits, signed)
                        .into_iter()
                        .zip(parts(b, bits, signed))
                        .map(|(x, y)| operation(x, y))
                        .collect()
                };
                check(&format!("{name}{count}.{ty}.{ty}.{ty} %r0, %r1, %r2, %r3;"), |a, b, _| {
                    low(join(&each(a, b), bits))
                });
                check(&format!("{name}{count}.{ty}.{ty}.{ty}.sat %r0, %r1, %r2, %r3;"), |a, b, _| {
                    let (least, most) =
                        if signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
                    let clamped: Vec<i64> = each(a, b).into_iter().map(|v| v.clamp(least, most)).collect();
                    low(join(&clamped, bits))
                });
                check(&format!("{name}{count}.{ty}.{ty}.{ty}.add %r0, %r1, %r2, %r3;"), |a, b, c| {
                    let sum: i64 = each(a, b).into_iter().sum();
                    low((i64::from(c) + sum).cast_unsigned() & 0xffff_ffff)
                });
            }
        }
        check(&format!("vset{count}.s32.s32.lt %r0, %r1, %r2, %r3;"), |a, b, _| {
            let pairs = parts(a, bits, true).into_iter().zip(parts(b, bits, true));
            low(join(&pairs.map(|(x, y)| i64::from(x < y)).collect::<Vec<_>>(), bits))
        });
    }
}

/// "Control Flow Instructions: brx.idx".
#[test]
fn branches_through_tables_of_every_length() {
    for length in 1..=9u32 {
        let labels: Vec<String> = (0..length).map(|n| format!("L{n}")).collect();
        let mut body =
            format!("rem.u32 %r4, %r1, {length}; T: .branchtargets {}; brx.idx %r4, T;\n", labels.join(", "));
        for n in 0..length {
            body.push_str(&format!("L{n}: mov.u32 %r0, {}; bra END;\n", 100 + 7 * n));
        }
        body.push_str("END: add.u32 %r0, %r0, %r2;");
        check(&body, |a, b, _| (100 + 7 * (a % length)).wrapping_add(b));
    }
}

/// Runs eight threads on a buffer of eight words.
fn atomics(body: &str, before: [u32; 8]) -> Vec<u32> {
    let ptx = format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<4>;\n.reg .b16 %h<8>;\n\
         .reg .b32 %r<8>;\n.reg .b64 %d<4>;\nld.param.u64 %d0, [p];\nmov.u32 %r0, %tid.x;\n{body}\nret;\n}}\n"
    );
    let bytes = before.iter().flat_map(|word| word.to_le_bytes()).collect();
    run(&compile(&ptx), Dim3::linear(1), Dim3::linear(8), &[Argument::Buffer(bytes)]).buffers[0].clone()
}

/// "Parallel Synchronization and Communication Instructions: atom": `.cas.b16` leaves its neighbour alone.
#[test]
fn half_word_compare_and_swap() {
    // Every thread adds its number plus one to the upper half of the first word, retrying until it succeeds.
    let body = "add.u32 %r0, %r0, 1; cvt.u16.u32 %h0, %r0; AGAIN: ld.global.u16 %h1, [%d0+2]; add.u16 %h2, %h1, %h0;
        atom.global.cas.b16 %h3, [%d0+2], %h1, %h2; setp.ne.u16 %p0, %h3, %h1; @%p0 bra AGAIN;";
    let after = atomics(body, [0x8001_1234, 5, 0, 0, 0, 0, 0, 0]);
    assert_eq!(after[..2], [0x8025_1234, 5]);
}

/// "match.sync" of 64-bit values: bits of the lanes with the same value in both words.
#[test]
fn matches_of_wide_values() {
    let body = "and.b32 %r1, %r0, 1; shr.u32 %r2, %r0, 1; and.b32 %r2, %r2, 1; mov.b64 %d1, {%r1, %r2};
        mul.wide.u32 %d2, %r0, 4; add.s64 %d2, %d2, %d0; match.any.sync.b64 %r3, %d1, -1;
        match.all.sync.b64 %r4|%p1, %d1, -1; selp.u32 %r5, 1, 0, %p1; shl.b32 %r4, %r4, 4; or.b32 %r3, %r3, %r4; shl.b32 %r5, %r5, 8;
        or.b32 %r3, %r3, %r5; st.global.u32 [%d2], %r3;";
    assert_eq!(atomics(body, [0; 8]), [1, 2, 4, 8, 1, 2, 4, 8]);
    let equal = body.replace("mov.b64 %d1, {%r1, %r2}", "mov.b64 %d1, 0x1234567890");
    assert_eq!(atomics(&equal, [0; 8]), [0x1ff; 8]);
    let low_equal = body.replace("{%r1, %r2}", "{%r6, %r1}").replace("and.b32 %r1", "mov.u32 %r6, 9; and.b32 %r1");
    assert_eq!(atomics(&low_equal, [0; 8]), [5, 10, 5, 10, 5, 10, 5, 10]);
}

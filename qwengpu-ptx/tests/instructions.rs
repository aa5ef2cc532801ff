//! Every instruction against plain Rust; see `common::cases` for what a case is.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::cases::{check, check_wide, low, s, s64, u};

#[test]
fn sums_and_products() {
    check("add.s32 %r0, %r1, %r2;", |a, b, _| a.wrapping_add(b));
    check("sub.s32 %r0, %r1, %r2;", |a, b, _| a.wrapping_sub(b));
    check("add.sat.s32 %r0, %r1, %r2;", |a, b, _| u(s(a).saturating_add(s(b))));
    check("sub.sat.s32 %r0, %r1, %r2;", |a, b, _| u(s(a).saturating_sub(s(b))));
    check("mul.lo.s32 %r0, %r1, %r2;", |a, b, _| a.wrapping_mul(b));
    check("mul.hi.u32 %r0, %r1, %r2;", |a, b, _| low((u64::from(a) * u64::from(b)) >> 32));
    check("mul.hi.s32 %r0, %r1, %r2;", |a, b, _| low(((s64(a) * s64(b)) >> 32).cast_unsigned()));
    check("mad.lo.s32 %r0, %r1, %r2, %r3;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    check("mad.hi.u32 %r0, %r1, %r2, %r3;", |a, b, c| low((u64::from(a) * u64::from(b)) >> 32).wrapping_add(c));
    check("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
        u(s(low(((s64(a) * s64(b)) >> 32).cast_unsigned())).saturating_add(s(c)))
    });
    check("mul24.lo.u32 %r0, %r1, %r2;", |a, b, _| low(u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)));
    check("mul24.hi.u32 %r0, %r1, %r2;", |a, b, _| low((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16));
    let narrow = |x: u32| i64::from(s(x << 8) >> 8);
    check("mul24.lo.s32 %r0, %r1, %r2;", |a, b, _| low((narrow(a) * narrow(b)).cast_unsigned()));
    check("mul24.hi.s32 %r0, %r1, %r2;", |a, b, _| low(((narrow(a) * narrow(b)) >> 16).cast_unsigned()));
    check("mad24.lo.u32 %r0, %r1, %r2, %r3;", |a, b, c| {
        low(u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)).wrapping_add(c)
    });
    check("sad.u32 %r0, %r1, %r2, %r3;", |a, b, c| c.wrapping_add(a.abs_diff(b)));
    check("sad.s32 %r0, %r1, %r2, %r3;", |a, b, c| c.wrapping_add(s(a).abs_diff(s(b))));
    check("add.cc.u32 %r4, %r1, %r2;\naddc.u32 %r0, %r3, 5;", |a, b, c| {
        c.wrapping_add(5).wrapping_add(u32::from(a.checked_add(b).is_none()))
    });
    check("sub.cc.u32 %r4, %r1, %r2;\nsubc.cc.u32 %r5, %r3, %r1;\nsubc.u32 %r0, 9, 0;", |a, b, c| {
        let borrow = a < b;
        let second = u64::from(c) < u64::from(a) + u64::from(borrow);
        9 - u32::from(second)
    });
    check("add.cc.u32 %r4, %r1, %r2;\nmadc.lo.u32 %r0, %r3, 3, 1;", |a, b, c| {
        c.wrapping_mul(3).wrapping_add(1).wrapping_add(u32::from(a.checked_add(b).is_none()))
    });
}

#[test]
fn divisions() {
    check("div.u32 %r0, %r1, %r2;", |a, b, _| a.checked_div(b).unwrap_or(u32::MAX));
    check("rem.u32 %r0, %r1, %r2;", |a, b, _| a.checked_rem(b).unwrap_or(a));
    check("div.s32 %r0, %r1, %r2;", |a, b, _| if b == 0 { u32::MAX } else { u(s(a).wrapping_div(s(b))) });
    check("rem.s32 %r0, %r1, %r2;", |a, b, _| if b == 0 { a } else { u(s(a).wrapping_rem(s(b))) });
    for d in [
        1,
        2,
        3,
        5,
        6,
        7,
        10,
        11,
        64,
        100,
        641,
        1000,
        65_535,
        65_537,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_fffe,
        0xffff_ffff,
    ] {
        let unsigned = i64::from(d);
        check(&format!("div.u32 %r0, %r1, {unsigned};"), |a, _, _| a / d);
        check(&format!("rem.u32 %r0, %r1, {unsigned};"), |a, _, _| a % d);
        check(&format!("div.s32 %r0, %r1, {};", s(d)), |a, _, _| u(s(a).wrapping_div(s(d))));
        check(&format!("rem.s32 %r0, %r1, {};", s(d)), |a, _, _| u(s(a).wrapping_rem(s(d))));
    }
    // A dividend known to be small takes the short division.
    check("and.b32 %r4, %r1, 31;\ndiv.u32 %r0, %r4, 5;", |a, _, _| (a & 31) / 5);
    check("and.b32 %r4, %r1, 31;\nrem.u32 %r0, %r4, 7;", |a, _, _| (a & 31) % 7);
    check("and.b32 %r4, %r1, 1023;\ndiv.u32 %r0, %r4, 10;", |a, _, _| (a & 1023) / 10);
    check("setp.gt.u32 %p1, %r1, %r2;\nmov.u32 %r0, 77;\n@%p1 div.u32 %r0, %r1, %r3;", |a, b, c| {
        if a > b { a.checked_div(c).unwrap_or(u32::MAX) } else { 77 }
    });
}

#[test]
fn extremes_and_signs() {
    check("min.u32 %r0, %r1, %r2;", |a, b, _| a.min(b));
    check("max.u32 %r0, %r1, %r2;", |a, b, _| a.max(b));
    check("min.s32 %r0, %r1, %r2;", |a, b, _| u(s(a).min(s(b))));
    check("max.s32 %r0, %r1, %r2;", |a, b, _| u(s(a).max(s(b))));
    check("abs.s32 %r0, %r1;", |a, _, _| u(s(a).wrapping_abs()));
    check("neg.s32 %r0, %r1;", |a, _, _| a.wrapping_neg());
}

#[test]
fn bitwise() {
    check("and.b32 %r0, %r1, %r2;", |a, b, _| a & b);
    check("or.b32 %r0, %r1, %r2;", |a, b, _| a | b);
    check("xor.b32 %r0, %r1, %r2;", |a, b, _| a ^ b);
    check("not.b32 %r0, %r1;", |a, _, _| !a);
    check("cnot.b32 %r0, %r1;", |a, _, _| u32::from(a == 0));
    check("not.b32 %r4, %r1;\nand.b32 %r0, %r4, %r2;", |a, b, _| !a & b);
    check("xor.b32 %r4, %r1, %r2;\nand.b32 %r0, %r4, %r3;", |a, b, c| (a ^ b) & c);
    for table in [0x96u32, 0xe8, 0xca, 0x80, 0xfe, 0x00, 0xff, 0x3c, 0x5a, 0x1b] {
        check(&format!("lop3.b32 %r0, %r1, %r2, %r3, {table};"), |a, b, c| {
            (0..32).fold(0, |word, bit| {
                let row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
                word | (table >> row & 1) << bit
            })
        });
    }
    check("clz.b32 %r0, %r1;", |a, _, _| a.leading_zeros());
    check("popc.b32 %r0, %r1;", |a, _, _| a.count_ones());
    check("brev.b32 %r0, %r1;", |a, _, _| a.reverse_bits());
    check("bfind.u32 %r0, %r1;", |a, _, _| 31u32.wrapping_sub(a.leading_zeros()));
    check("bfind.s32 %r0, %r1;", |a, _, _| {
        let x = if s(a) < 0 { !a } else { a };
        31u32.wrapping_sub(x.leading_zeros())
    });
    check("bfind.shiftamt.u32 %r0, %r1;", |a, _, _| if a == 0 { u32::MAX } else { a.leading_zeros() });
}

#[test]
fn shifts() {
    let shl = |a: u32, n: u32| a.checked_shl(n).unwrap_or(0);
    let shr = |a: u32, n: u32| a.checked_shr(n).unwrap_or(0);
    check("shl.b32 %r0, %r1, %r2;", shl_of(shl));
    check("shr.u32 %r0, %r1, %r2;", shl_of(shr));
    check("shr.s32 %r0, %r1, %r2;", |a, n, _| u(s(a) >> n.min(31)));
    check("shr.s32 %r0, %r1, 3;", |a, _, _| u(s(a) >> 3));
    let funnel = |a: u32, b: u32| u64::from(b) << 32 | u64::from(a);
    check("shf.l.wrap.b32 %r0, %r1, %r2, %r3;", |a, b, c| low(funnel(a, b) << (c & 31) >> 32));
    check("shf.r.wrap.b32 %r0, %r1, %r2, %r3;", |a, b, c| low(funnel(a, b) >> (c & 31)));
    check("shf.l.clamp.b32 %r0, %r1, %r2, %r3;", |a, b, c| low(funnel(a, b) << c.min(32) >> 32));
    check("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", |a, b, c| low(funnel(a, b) >> c.min(32)));
    check("shf.l.wrap.b32 %r0, %r1, %r2, 9;", |a, b, _| low(funnel(a, b) << 9 >> 32));
}

fn shl_of(f: impl Fn(u32, u32) -> u32) -> impl Fn(u32, u32, u32) -> u32 {
    move |a, b, _| f(a, b)
}

#[test]
fn bit_fields() {
    let unsigned = |a: u32, pos: u32, len: u32| {
        let (pos, len) = (pos & 0xff, len & 0xff);
        let wide = u64::from(a).checked_shr(pos).unwrap_or(0);
        low(if len >= 32 { wide } else { wide & ((1 << len) - 1) })
    };
    let signed = |a: u32, pos: u32, len: u32| {
        let (pos, len) = (pos & 0xff, len & 0xff);
        if len == 0 {
            return 0;
        }
        let sign = a >> (pos + len - 1).min(31) & 1;
        (0..32).fold(0, |word, bit| {
            let from = if bit < len && pos + bit < 32 { a >> (pos + bit) & 1 } else { sign };
            word | from << bit
        })
    };
    let insert = |a: u32, b: u32, pos: u32, len: u32| {
        let (pos, len) = (pos & 0xff, len & 0xff);
        (0..32).fold(b, |word, bit| {
            if bit >= pos && bit < pos + len { word & !(1 << bit) | (a >> (bit - pos) & 1) << bit } else { word }
        })
    };
    check("bfe.u32 %r0, %r1, %r2, %r3;", unsigned);
    check("bfe.s32 %r0, %r1, %r2, %r3;", signed);
    check("bfi.b32 %r0, %r1, %r2, %r3, 7;", |a, b, c| insert(a, b, c, 7));
    check("bfi.b32 %r0, %r1, %r2, 4, %r3;", |a, b, c| insert(a, b, 4, c));
    for (pos, len) in [(0, 8), (8, 8), (24, 8), (28, 8), (0, 32), (5, 0), (40, 3), (31, 1)] {
        check(&format!("bfe.u32 %r0, %r1, {pos}, {len};"), |a, _, _| unsigned(a, pos, len));
        check(&format!("bfe.s32 %r0, %r1, {pos}, {len};"), |a, _, _| signed(a, pos, len));
        check(&format!("bfi.b32 %r0, %r1, %r2, {pos}, {len};"), |a, b, _| insert(a, b, pos, len));
    }
    check("bmsk.clamp.b32 %r0, %r1, %r2;", |a, b, _| {
        let ones = if b >= 32 { u32::MAX } else { (1 << b) - 1 };
        ones.checked_shl(a).unwrap_or(0)
    });
}

#[test]
fn permutations() {
    let permute = |a: u32, b: u32, selector: u32| {
        let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
        (0..4).fold(0, |word, to| {
            let nibble = selector >> (4 * to) & 0xf;
            let byte = bytes[(nibble & 7) as usize];
            let byte = if nibble & 8 == 0 {
                byte
            } else if byte & 0x80 != 0 {
                0xff
            } else {
                0
            };
            word | u32::from(byte) << (8 * to)
        })
    };
    check("prmt.b32 %r0, %r1, %r2, %r3;", permute);
    for selector in [0x3210, 0x0123, 0x7654, 0x5410, 0x9876, 0x4444, 0x8f0c, 0x1032] {
        check(&format!("prmt.b32 %r0, %r1, %r2, {selector};"), |a, b, _| permute(a, b, selector));
    }
    check("prmt.b32.f4e %r0, %r1, %r2, 1;", |a, b, _| permute(a, b, 0x4321));
    check("prmt.b32.b4e %r0, %r1, %r2, 1;", |a, b, _| permute(a, b, 0x6701));
    check("prmt.b32.rc16 %r0, %r1, %r2, 1;", |a, b, _| permute(a, b, 0x3232));
    check("dp4a.u32.u32 %r0, %r1, %r2, %r3;", |a, b, c| {
        (0..4).fold(c, |sum, i| sum.wrapping_add((a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff)))
    });
    let byte = |x: u32, i: u32| i32::from((x >> (8 * i) & 0xff).to_le_bytes()[0].cast_signed());
    check("dp4a.s32.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
        (0..4).fold(c, |sum, i| sum.wrapping_add(u(byte(a, i) * byte(b, i))))
    });
}

#[test]
fn comparisons() {
    type Relation = fn(u32, u32) -> bool;
    let relations: [(&str, Relation); 14] = [
        ("eq.s32", |a, b| a == b),
        ("ne.u32", |a, b| a != b),
        ("lt.u32", |a, b| a < b),
        ("le.u32", |a, b| a <= b),
        ("gt.u32", |a, b| a > b),
        ("ge.u32", |a, b| a >= b),
        ("lt.s32", |a, b| s(a) < s(b)),
        ("le.s32", |a, b| s(a) <= s(b)),
        ("gt.s32", |a, b| s(a) > s(b)),
        ("ge.s32", |a, b| s(a) >= s(b)),
        ("lo.u32", |a, b| a < b),
        ("ls.u32", |a, b| a <= b),
        ("hi.u32", |a, b| a > b),
        ("hs.u32", |a, b| a >= b),
    ];
    for (name, holds) in relations {
        check(
            &format!("setp.{name} %p1, %r1, %r2;\nselp.b32 %r0, %r3, 9, %p1;"),
            |a, b, c| if holds(a, b) { c } else { 9 },
        );
    }
    check("set.lt.u32.s32 %r0, %r1, %r2;", |a, b, _| if s(a) < s(b) { u32::MAX } else { 0 });
    check("slct.b32.s32 %r0, %r1, %r2, %r3;", |a, b, c| if s(c) >= 0 { a } else { b });
    check(
        "setp.lt.u32 %p1, %r2, %r3;\nsetp.gt.and.u32 %p2|%p3, %r1, %r2, %p1;\nselp.b32 %r4, 1, 0, %p2;\n\
         selp.b32 %r5, 2, 0, %p3;\nadd.u32 %r0, %r4, %r5;",
        |a, b, c| u32::from(a > b && b < c) + 2 * u32::from(a <= b && b < c),
    );
    check("setp.lt.u32 %p1, %r2, %r3;\nsetp.gt.xor.u32 %p2, %r1, %r2, !%p1;\nselp.b32 %r0, 1, 0, %p2;", |a, b, c| {
        u32::from((a > b) ^ (b >= c))
    });
    check(
        "setp.lt.u32 %p1, %r2, %r3;\nsetp.gt.u32 %p2, %r1, %r2;\nor.pred %p3, %p1, %p2;\nnot.pred %p4, %p3;\n\
         xor.pred %p5, %p4, %p1;\n@%p5 bra L;\nmov.u32 %r0, 3;\nbra.uni M;\nL: mov.u32 %r0, 4;\nM:",
        |a, b, c| if (b >= c && a <= b) ^ (b < c) { 4 } else { 3 },
    );
    // The guard and both destinations are the same predicates.
    check(
        "setp.lt.u32 %p1, %r1, %r2;\nsetp.lt.u32 %p2, %r2, %r3;\n@%p1 setp.eq.u32 %p1|%p2, %r3, 7;\n\
         selp.b32 %r4, 1, 0, %p1;\nselp.b32 %r5, 2, 0, %p2;\nadd.u32 %r0, %r4, %r5;",
        |a, b, c| {
            let (p, q) = if a < b { (c == 7, c != 7) } else { (false, b < c) };
            u32::from(p) + 2 * u32::from(q)
        },
    );
}

#[test]
fn conversions() {
    check("cvt.u16.u32 %rs1, %r1;\ncvt.s32.s16 %r0, %rs1;", |a, _, _| u(s(a << 16) >> 16));
    check("cvt.u16.u32 %rs1, %r1;\ncvt.u32.u16 %r0, %rs1;", |a, _, _| a & 0xffff);
    check("cvt.s32.s8 %r0, %r1;", |a, _, _| u(s(a << 24) >> 24));
    check("cvt.u32.u8 %r0, %r1;", |a, _, _| a & 0xff);
    check("cvt.sat.u8.s32 %r0, %r1;", |a, _, _| u(s(a).clamp(0, 255)));
    check("cvt.sat.s8.s32 %r0, %r1;", |a, _, _| u(s(a).clamp(-128, 127)));
    check("cvt.sat.s16.u32 %r0, %r1;", |a, _, _| a.min(32767));
    check("cvt.sat.u32.s32 %r0, %r1;", |a, _, _| u(s(a).max(0)));
    check("cvt.s64.s32 %rd1, %r1;\nshr.s64 %rd2, %rd1, 40;\ncvt.u32.u64 %r0, %rd2;", |a, _, _| u(s(a) >> 31));
    check(
        "cvt.u64.u32 %rd1, %r1;\nshl.b64 %rd1, %rd1, 4;\nshr.u64 %rd2, %rd1, 32;\ncvt.u32.u64 %r0, %rd2;",
        |a, _, _| a >> 28,
    );
    check("mov.b64 %rd1, {%r1, %r2};\nmov.b64 {%r4, %r0}, %rd1;", |_, b, _| b);
    check("mov.b64 %rd1, {%r1, %r2};\nmov.b64 {%r2, %r1}, %rd1;\nsub.u32 %r0, %r1, %r2;", |a, b, _| b.wrapping_sub(a));
    check("cvt.u16.u32 %rs1, %r1;\ncvt.u16.u32 %rs2, %r2;\nmov.b32 %r0, {%rs1, %rs2};", |a, b, _| a & 0xffff | b << 16);
    check("mov.b32 {%rs1, %rs2}, %r1;\ncvt.u32.u16 %r0, %rs2;", |a, _, _| a >> 16);
}

#[test]
fn narrow_arithmetic() {
    let with = |body: &str| format!("cvt.u16.u32 %rs1, %r1;\ncvt.u16.u32 %rs2, %r2;\n{body}\n");
    let s16 = |x: u32| s(x << 16) >> 16;
    check(&with("add.s16 %rs3, %rs1, %rs2;\ncvt.u32.u16 %r0, %rs3;"), |a, b, _| a.wrapping_add(b) & 0xffff);
    check(&with("sub.s16 %rs3, %rs1, %rs2;\ncvt.s32.s16 %r0, %rs3;"), |a, b, _| u(s16(a.wrapping_sub(b))));
    check(&with("mul.wide.s16 %r0, %rs1, %rs2;"), move |a, b, _| u(s16(a) * s16(b)));
    check(&with("mul.wide.u16 %r0, %rs1, %rs2;"), |a, b, _| (a & 0xffff).wrapping_mul(b & 0xffff));
    check(&with("mul.hi.s16 %rs3, %rs1, %rs2;\ncvt.s32.s16 %r0, %rs3;"), move |a, b, _| u((s16(a) * s16(b)) >> 16));
    check(&with("shr.s16 %rs3, %rs1, 3;\ncvt.u32.u16 %r0, %rs3;"), move |a, _, _| u(s16(a) >> 3) & 0xffff);
    check(&with("shl.b16 %rs3, %rs1, %r3;\ncvt.u32.u16 %r0, %rs3;"), |a, _, c| {
        (a & 0xffff).checked_shl(c).unwrap_or(0) & 0xffff
    });
    check(&with("not.b16 %rs3, %rs1;\ncvt.u32.u16 %r0, %rs3;"), |a, _, _| !a & 0xffff);
    check(&with("min.s16 %rs3, %rs1, %rs2;\ncvt.s32.s16 %r0, %rs3;"), move |a, b, _| u(s16(a).min(s16(b))));
    check(&with("setp.lt.s16 %p1, %rs1, %rs2;\nselp.b32 %r0, 1, 0, %p1;"), move |a, b, _| u32::from(s16(a) < s16(b)));
    check(&with("rem.u16 %rs3, %rs1, 10;\ncvt.u32.u16 %r0, %rs3;"), |a, _, _| (a & 0xffff) % 10);
    check(&with("selp.b16 %rs3, %rs1, 5, 1;\ncvt.u32.u16 %r0, %rs3;"), |a, _, _| a & 0xffff);
}

#[test]
fn wide_arithmetic() {
    check_wide("add.s64 %rd0, %rd1, %rd2;", |a, b, _| a.wrapping_add(b));
    check_wide("sub.s64 %rd0, %rd1, %rd2;", |a, b, _| a.wrapping_sub(b));
    check_wide("add.s64 %rd1, %rd1, %rd1;\nmov.u64 %rd0, %rd1;", |a, _, _| a.wrapping_add(a));
    check_wide("mul.lo.s64 %rd0, %rd1, %rd2;", |a, b, _| a.wrapping_mul(b));
    check_wide("mul.hi.u64 %rd0, %rd1, %rd2;", |a, b, _| {
        u64::try_from((u128::from(a) * u128::from(b)) >> 64).expect("64 bits")
    });
    check_wide("mul.hi.s64 %rd0, %rd1, %rd2;", |a, b, _| {
        let product = i128::from(a.cast_signed()) * i128::from(b.cast_signed());
        i64::try_from(product >> 64).expect("64 bits").cast_unsigned()
    });
    check_wide("mad.lo.s64 %rd0, %rd1, %rd2, %rd3;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    check_wide("neg.s64 %rd0, %rd1;", |a, _, _| a.wrapping_neg());
    check_wide("abs.s64 %rd0, %rd1;", |a, _, _| a.cast_signed().wrapping_abs().cast_unsigned());
    check_wide("min.s64 %rd0, %rd1, %rd2;", |a, b, _| a.cast_signed().min(b.cast_signed()).cast_unsigned());
    check_wide("max.u64 %rd0, %rd1, %rd2;", |a, b, _| a.max(b));
    check_wide("and.b64 %rd0, %rd1, %rd2;", |a, b, _| a & b);
    check_wide("not.b64 %rd0, %rd1;", |a, _, _| !a);
    check_wide("brev.b64 %rd0, %rd1;", |a, _, _| a.reverse_bits());
    check_wide("clz.b64 %r0, %rd1;\ncvt.u64.u32 %rd0, %r0;", |a, _, _| u64::from(a.leading_zeros()));
    check_wide("popc.b64 %r0, %rd1;\ncvt.u64.u32 %rd0, %r0;", |a, _, _| u64::from(a.count_ones()));
    check_wide("div.u64 %rd0, %rd1, %rd2;", |a, b, _| a.checked_div(b).unwrap_or(u64::MAX));
    check_wide("rem.u64 %rd0, %rd1, %rd2;", |a, b, _| a.checked_rem(b).unwrap_or(a));
    check_wide("div.s64 %rd0, %rd1, %rd2;", |a, b, _| {
        if b == 0 { u64::MAX } else { a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() }
    });
    check_wide("rem.s64 %rd0, %rd1, %rd2;", |a, b, _| {
        if b == 0 { a } else { a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() }
    });
    check_wide("cvt.u32.u64 %r1, %rd1;\ncvt.u32.u64 %r2, %rd2;\nmul.wide.u32 %rd0, %r1, %r2;", |a, b, _| {
        (a & 0xffff_ffff) * (b & 0xffff_ffff)
    });
    check_wide("cvt.u32.u64 %r1, %rd1;\ncvt.u32.u64 %r2, %rd2;\nmad.wide.s32 %rd0, %r1, %r2, %rd3;", |a, b, c| {
        (s64(low(a)) * s64(low(b))).cast_unsigned().wrapping_add(c)
    });
}

#[test]
fn wide_shifts_and_comparisons() {
    for n in ["0", "1", "31", "32", "33", "63", "64", "100", "%r9"] {
        let amount = |c: u64| if n == "%r9" { low(c & 0x7f) } else { n.parse().expect("a number") };
        let set = "cvt.u32.u64 %r9, %rd3;\nand.b32 %r9, %r9, 127;\n";
        check_wide(&format!("{set}shl.b64 %rd0, %rd1, {n};"), |a, _, c| a.checked_shl(amount(c)).unwrap_or(0));
        check_wide(&format!("{set}shr.u64 %rd0, %rd1, {n};"), |a, _, c| a.checked_shr(amount(c)).unwrap_or(0));
        check_wide(&format!("{set}shr.s64 %rd0, %rd1, {n};"), |a, _, c| {
            (a.cast_signed() >> amount(c).min(63)).cast_unsigned()
        });
    }
    type Relation = fn(u64, u64) -> bool;
    let relations: [(&str, Relation); 7] = [
        ("eq.b64", |a, b| a == b),
        ("ne.s64", |a, b| a != b),
        ("lt.u64", |a, b| a < b),
        ("ge.u64", |a, b| a >= b),
        ("lt.s64", |a, b| a.cast_signed() < b.cast_signed()),
        ("le.s64", |a, b| a.cast_signed() <= b.cast_signed()),
        ("gt.s64", |a, b| a.cast_signed() > b.cast_signed()),
    ];
    for (name, holds) in relations {
        check_wide(&format!("setp.{name} %p1, %rd1, %rd2;\nselp.b64 %rd0, %rd3, 9, %p1;"), |a, b, c| {
            if holds(a, b) { c } else { 9 }
        });
    }
    check_wide("cvt.sat.s32.s64 %r0, %rd1;\ncvt.s64.s32 %rd0, %r0;", |a, _, _| {
        a.cast_signed().clamp(i64::from(i32::MIN), i64::from(i32::MAX)).cast_unsigned()
    });
    check_wide("cvt.sat.u64.s64 %rd0, %rd1;", |a, _, _| a.cast_signed().max(0).cast_unsigned());
    check_wide("bfe.u64 %rd0, %rd1, 20, 24;", |a, _, _| a >> 20 & 0xff_ffff);
    check_wide("bfi.b64 %rd0, %rd1, %rd2, 20, 24;", |a, b, _| b & !(0xff_ffff << 20) | (a & 0xff_ffff) << 20);
}

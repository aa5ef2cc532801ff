//! Integer arithmetic, comparison, logic.

use super::{Family, Instruction, float, yes, yes_with};

pub(super) const INTEGER: &[Instruction] = &[
    yes(
        "add",
        "9.7.1.1",
        Family::AddSub,
        "`.u16 .s16 .u32 .s32 .u64 .s64`, `.u8x4 .s8x4 .u16x2 .s16x2`; `.sat` of 32 bits and packed",
        "add.sat.s32 %r0, %r1, %r2;",
    ),
    yes("sub", "9.7.1.2", Family::AddSub, "as `add`; `.sat` of `.s32 .u8x4 .s8x4`", "sub.s16x2 %r0, %r1, %r2;"),
    yes("mul", "9.7.1.3", Family::Multiply, "`.lo .hi .wide`, 16 to 64 bits", "mul.wide.u32 %d0, %r1, %r2;"),
    yes(
        "mad",
        "9.7.1.4",
        Family::Multiply,
        "`.lo .hi .wide`, 16 to 64 bits; `.hi.sat.s32`",
        "mad.lo.s32 %r0, %r1, %r2, %r3;",
    ),
    yes("clmad", "9.7.1.5", Family::CarrylessMultiply, "`.lo .hi`, `.u64`", "clmad.lo.u64 %d0, %d1, %d2, %d3;"),
    yes("mul24", "9.7.1.6", Family::Multiply24, "`.lo .hi`, `.u32 .s32`", "mul24.hi.s32 %r0, %r1, %r2;"),
    yes(
        "mad24",
        "9.7.1.7",
        Family::Multiply24,
        "`.lo .hi`, `.u32 .s32`; `.hi.sat.s32`",
        "mad24.lo.u32 %r0, %r1, %r2, %r3;",
    ),
    yes("sad", "9.7.1.8", Family::Sad, "16 to 64 bits", "sad.s32 %r0, %r1, %r2, %r3;"),
    yes(
        "div",
        "9.7.1.9",
        Family::Divide,
        "16 to 64 bits; `x / 0` is all ones, the least integer by -1 is itself",
        "div.s64 %d0, %d1, %d2;",
    ),
    yes(
        "rem",
        "9.7.1.10",
        Family::Divide,
        "16 to 64 bits; `x % 0` is `x`, the least integer by -1 leaves 0",
        "rem.u16 %h0, %h1, %h2;",
    ),
    yes("abs", "9.7.1.11", Family::SignAbsolute, "`.s16 .s32 .s64`", "abs.s32 %r0, %r1;"),
    yes("neg", "9.7.1.12", Family::SignAbsolute, "`.s16 .s32 .s64`, `.s8x4`", "neg.s8x4 %r0, %r1;"),
    yes(
        "min",
        "9.7.1.13",
        Family::MinMax,
        "16 to 64 bits, `.u8x4 .s8x4 .u16x2 .s16x2`; `.relu` of `.s32 .s16x2 .s8x4`",
        "min.relu.s16x2 %r0, %r1, %r2;",
    ),
    yes("max", "9.7.1.14", Family::MinMax, "as `min`", "max.u8x4 %r0, %r1, %r2;"),
    yes("popc", "9.7.1.15", Family::CountBits, "`.b32 .b64`", "popc.b64 %r0, %d1;"),
    yes("clz", "9.7.1.16", Family::CountBits, "`.b32 .b64`", "clz.b32 %r0, %r1;"),
    yes("bfind", "9.7.1.17", Family::Bfind, "32 and 64 bits, `.shiftamt`", "bfind.shiftamt.s64 %r0, %d1;"),
    yes("fns", "9.7.1.18", Family::FindNthSet, "`.b32`", "fns.b32 %r0, %r1, %r2, %r3;"),
    yes("brev", "9.7.1.19", Family::CountBits, "`.b32 .b64`", "brev.b64 %d0, %d1;"),
    yes("bfe", "9.7.1.20", Family::BitField, "32 and 64 bits", "bfe.s32 %r0, %r1, %r2, %r3;"),
    yes("bfi", "9.7.1.21", Family::BitField, "`.b32 .b64`", "bfi.b64 %d0, %d1, %d2, %r1, %r2;"),
    yes("szext", "9.7.1.22", Family::MaskExtend, "`.clamp .wrap`, `.u32 .s32`", "szext.wrap.s32 %r0, %r1, %r2;"),
    yes("bmsk", "9.7.1.23", Family::MaskExtend, "`.clamp .wrap`, `.b32`", "bmsk.clamp.b32 %r0, %r1, %r2;"),
    yes("dp4a", "9.7.1.24", Family::Dp4a, "`.u32 .s32` of each operand", "dp4a.u32.s32 %r0, %r1, %r2, %r3;"),
    yes(
        "dp2a",
        "9.7.1.25",
        Family::Dp2a,
        "`.lo .hi`, `.u32 .s32` of each operand",
        "dp2a.hi.s32.u32 %r0, %r1, %r2, %r3;",
    ),
];

pub(super) const EXTENDED: &[Instruction] = &[
    yes_with("add", &["cc"], "9.7.2.1", Family::AddSub, "32 and 64 bits", "add.cc.u32 %r0, %r1, %r2;"),
    yes("addc", "9.7.2.2", Family::AddSub, "32 and 64 bits, `.cc`", "addc.cc.u64 %d0, %d1, %d2;"),
    yes_with("sub", &["cc"], "9.7.2.3", Family::AddSub, "32 and 64 bits", "sub.cc.s32 %r0, %r1, %r2;"),
    yes("subc", "9.7.2.4", Family::AddSub, "32 and 64 bits, `.cc`", "subc.u32 %r0, %r1, %r2;"),
    yes_with(
        "mad",
        &["cc"],
        "9.7.2.5",
        Family::Multiply,
        "`.lo .hi`, 32 and 64 bits",
        "mad.lo.cc.u32 %r0, %r1, %r2, %r3;",
    ),
    yes("madc", "9.7.2.6", Family::Multiply, "`.lo .hi`, 32 and 64 bits, `.cc`", "madc.hi.u32 %r0, %r1, %r2, %r3;"),
];

pub(super) const COMPARISON: &[Instruction] = &[
    yes(
        "set",
        "9.7.7.1",
        Family::Set,
        "to `.u32 .s32` from 16 to 64 bits; every comparison, `.and .or .xor`",
        "set.lt.u32.s16 %r0, %h1, %h2;",
    ),
    yes(
        "setp",
        "9.7.7.2",
        Family::SetPredicate,
        "16 to 64 bits; every comparison, `.and .or .xor`, one or two destinations",
        "setp.hi.and.u32 %p0|%p1, %r1, %r2, %p2;",
    ),
    yes(
        "selp",
        "9.7.7.3",
        Family::SelectByPredicate,
        "16 to 64 bits, bits of floats included",
        "selp.f32 %r0, %r1, %r2, %p1;",
    ),
    yes(
        "slct",
        "9.7.7.4",
        Family::SelectBySign,
        "16 to 64 bits, bits of floats included, by an `.s32` and not by an `.f32`",
        "slct.u64.s32 %d0, %d1, %d2, %r1;",
    ),
    float("set", "9.7.7.1, 9.7.8.1", "set.lt.f32.s32 %r0, %r1, %r2;"),
    float("setp", "9.7.7.2, 9.7.8.2", "setp.ltu.f32 %p0, %r1, %r2;"),
];

pub(super) const LOGIC: &[Instruction] = &[
    yes("and", "9.7.9.1", Family::Bitwise, "`.pred`, 16 to 64 bits", "and.pred %p0, %p1, %p2;"),
    yes("or", "9.7.9.2", Family::Bitwise, "`.pred`, 16 to 64 bits", "or.b64 %d0, %d1, %d2;"),
    yes("xor", "9.7.9.3", Family::Bitwise, "`.pred`, 16 to 64 bits", "xor.b16 %h0, %h1, %h2;"),
    yes("not", "9.7.9.4", Family::Bitwise, "`.pred`, 16 to 64 bits", "not.b32 %r0, %r1;"),
    yes("cnot", "9.7.9.5", Family::Bitwise, "16 to 64 bits", "cnot.b32 %r0, %r1;"),
    yes(
        "lop3",
        "9.7.9.6",
        Family::Lop3,
        "`.b32` with every table; `.or .and` with a predicate",
        "lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 0x1b, %p1;",
    ),
    yes("shf", "9.7.9.7", Family::FunnelShift, "`.l .r`, `.clamp .wrap`, `.b32`", "shf.l.wrap.b32 %r0, %r1, %r2, %r3;"),
    yes("shl", "9.7.9.8", Family::Shift, "16 to 64 bits", "shl.b64 %d0, %d1, %r1;"),
    yes("shr", "9.7.9.9", Family::Shift, "16 to 64 bits", "shr.s16 %h0, %h1, %r1;"),
];

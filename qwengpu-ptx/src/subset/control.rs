//! Textures, control flow, stack, video, and what is left.

use super::{Family, Instruction, STACK as NO_STACK, TEXTURE as NO_TEXTURE, no, yes};

pub(super) const TEXTURE: &[Instruction] = &[
    no("tex", "9.7.12", NO_TEXTURE, "tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%d1, {%r1, %r2}];"),
    no("tld4", "9.7.12", NO_TEXTURE, "tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d1, {%r1, %r2}];"),
    no("txq", "9.7.12", NO_TEXTURE, "txq.width.b32 %r0, [%d1];"),
    no("istypep", "9.7.12", NO_TEXTURE, "istypep.texref %p0, %d1;"),
    no("suld", "9.7.13", NO_TEXTURE, "suld.b.1d.b32.trap %r0, [%d1, {%r1}];"),
    no("sust", "9.7.13", NO_TEXTURE, "sust.b.1d.b32.trap [%d1, {%r1}], %r2;"),
    no("sured", "9.7.13", NO_TEXTURE, "sured.b.add.1d.u32.trap [%d1, {%r1}], %r2;"),
    no("suq", "9.7.13", NO_TEXTURE, "suq.width.b32 %r0, [%d1];"),
];

pub(super) const CONTROL: &[Instruction] = &[
    yes("bra", "9.7.14", Family::Branch, "`.uni`, guards", "bra.uni L; L:"),
    yes(
        "brx",
        "9.7.14",
        Family::BranchIndexed,
        "`.idx`; an index beyond the list goes to its last label",
        "brx.idx %r1, T; T: .branchtargets L, L; L:",
    ),
    yes(
        "call",
        "9.7.14",
        Family::Call,
        "of functions the module defines, directly, through pointers, recursive",
        "call f;",
    ),
    yes("ret", "9.7.14", Family::Return, "`.uni`, guards", "@%p1 ret;"),
    yes("exit", "9.7.14", Family::Exit, "guards", "@%p1 exit;"),
];

pub(super) const STACK: &[Instruction] = &[
    no("stacksave", "9.7.19", NO_STACK, "stacksave.u64 %d0;"),
    no("stackrestore", "9.7.19", NO_STACK, "stackrestore.u64 %d1;"),
    no("alloca", "9.7.19", NO_STACK, "alloca.u64 %d0, 8;"),
];

const SCALAR: &str =
    "`.u32 .s32` and bytes or halves of each operand, `.sat`; `.add .min .max` with `c`, or a part of `c` replaced";
const PARTS: &str = "`.u32 .s32`, any parts of both operands, masks, `.sat`, `.add`";

pub(super) const VIDEO: &[Instruction] = &[
    yes("vadd", "9.7.20.1.1", Family::VideoScalar, SCALAR, "vadd.s32.u32.s32.sat %r0, %r1.b0, %r2.h1;"),
    yes("vsub", "9.7.20.1.1", Family::VideoScalar, SCALAR, "vsub.s32.s32.u32.sat %r0, %r1.h1, %r2.h1;"),
    yes("vabsdiff", "9.7.20.1.1", Family::VideoScalar, SCALAR, "vabsdiff.s32.s32.s32.sat %r0.h0, %r1.b0, %r2.b2, %r3;"),
    yes("vmin", "9.7.20.1.1", Family::VideoScalar, SCALAR, "vmin.s32.s32.s32.sat.add %r0, %r1, %r2, %r3;"),
    yes("vmax", "9.7.20.1.1", Family::VideoScalar, SCALAR, "vmax.u32.u32.u32 %r0, %r1, %r2;"),
    yes(
        "vshl",
        "9.7.20.1.2",
        Family::VideoScalar,
        "`.clamp .wrap`; else as `vadd`",
        "vshl.s32.u32.u32.clamp %r0, %r1, %r2;",
    ),
    yes(
        "vshr",
        "9.7.20.1.2",
        Family::VideoScalar,
        "`.clamp .wrap`; else as `vadd`",
        "vshr.u32.u32.u32.wrap %r0, %r1, %r2.h1;",
    ),
    yes(
        "vmad",
        "9.7.20.1.3",
        Family::VideoMultiply,
        "`.u32 .s32`, bytes or halves, negated operands, `.po`, `.sat`, `.shr7 .shr15`",
        "vmad.s32.s32.u32.sat %r0, %r1, %r2, -%r3;",
    ),
    yes(
        "vset",
        "9.7.20.1.4",
        Family::VideoScalar,
        "every comparison; else as `vadd`",
        "vset.s32.u32.lt %r0, %r1, %r2;",
    ),
    yes("vadd2", "9.7.20.2.1", Family::VideoParts, PARTS, "vadd2.s32.s32.u32.sat %r0, %r1, %r2, %r3;"),
    yes("vsub2", "9.7.20.2.1", Family::VideoParts, PARTS, "vsub2.s32.s32.s32.sat %r0.h0, %r1.h10, %r2.h32, %r3;"),
    yes("vavrg2", "9.7.20.2.1", Family::VideoParts, PARTS, "vavrg2.s32.s32.s32 %r0, %r1, %r2, %r3;"),
    yes("vabsdiff2", "9.7.20.2.1", Family::VideoParts, PARTS, "vabsdiff2.u32.u32.u32.add %r0, %r1, %r2, %r3;"),
    yes("vmin2", "9.7.20.2.1", Family::VideoParts, PARTS, "vmin2.s32.u32.u32.add %r0.h10, %r1.h00, %r2.h22, %r3;"),
    yes("vmax2", "9.7.20.2.1", Family::VideoParts, PARTS, "vmax2.u32.u32.u32 %r0, %r1, %r2, %r3;"),
    yes(
        "vset2",
        "9.7.20.2.2",
        Family::VideoParts,
        "every comparison, any parts, masks, `.add`",
        "vset2.s32.u32.lt %r0, %r1, %r2, %r3;",
    ),
    yes("vadd4", "9.7.20.2.3", Family::VideoParts, PARTS, "vadd4.u32.u32.u32.sat %r0, %r1, %r2, %r3;"),
    yes("vsub4", "9.7.20.2.3", Family::VideoParts, PARTS, "vsub4.s32.s32.s32 %r0.b31, %r1.b3210, %r2.b7654, %r3;"),
    yes("vavrg4", "9.7.20.2.3", Family::VideoParts, PARTS, "vavrg4.u32.u32.u32 %r0, %r1, %r2, %r3;"),
    yes("vabsdiff4", "9.7.20.2.3", Family::VideoParts, PARTS, "vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;"),
    yes("vmin4", "9.7.20.2.3", Family::VideoParts, PARTS, "vmin4.s32.s32.s32 %r0, %r1, %r2, %r3;"),
    yes("vmax4", "9.7.20.2.3", Family::VideoParts, PARTS, "vmax4.s32.u32.s32 %r0, %r1, %r2, %r3;"),
    yes(
        "vset4",
        "9.7.20.2.4",
        Family::VideoParts,
        "every comparison, any parts, masks, `.add`",
        "vset4.u32.u32.ne.add %r0, %r1, %r2, %r3;",
    ),
];

pub(super) const MISCELLANEOUS: &[Instruction] = &[
    yes("brkpt", "9.7.21", Family::Trap, "a trap", "@%p1 brkpt;"),
    yes("nanosleep", "9.7.21", Family::Nothing, "nothing happens", "nanosleep.u32 100;"),
    yes("pmevent", "9.7.21", Family::Nothing, "nothing happens: there are no counters", "pmevent 1;"),
    yes("trap", "9.7.21", Family::Trap, "the fault `trap`", "@%p1 trap;"),
    yes(
        "setmaxnreg",
        "9.7.21",
        Family::Nothing,
        "nothing happens: registers are not shared out",
        "setmaxnreg.inc.sync.aligned.u32 64;",
    ),
];

//! Directives, state spaces, types and modifiers.

use super::{FLOAT, Refusal, Support, WIDE};

/// A part of PTX that is no instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// The section of the manual.
    pub section: &'static str,
    /// Whether it is translated.
    pub support: Support,
    /// Text that uses it: an instruction or a declaration in a body; for directives, of a module or a body.
    pub example: &'static str,
}

const fn yes(name: &'static str, section: &'static str, what: &'static str, example: &'static str) -> Feature {
    Feature { name, section, support: Support::Translated(what), example }
}

const fn no(name: &'static str, section: &'static str, refusal: Refusal, example: &'static str) -> Feature {
    Feature { name, section, support: Support::Refused(refusal), example }
}

const IGNORED: &str = "read and ignored";

/// The directives but those that declare variables.
pub const DIRECTIVES: &[Feature] = &[
    yes(".version", "11.1", "any", ".version 9.4"),
    yes(".target", "11.1", "any", ".target sm_120a, debug"),
    yes(".address_size", "11.1", "64; 32 is refused when a kernel is translated", ".address_size 64"),
    yes(".entry", "11.2", "kernels", ".entry other() { ret; }"),
    yes(
        ".func",
        "11.2",
        "functions, translated in place of their calls unless they are recursive",
        ".func other() { ret; }",
    ),
    yes(
        ".alias",
        "11.2",
        "read and ignored; a call of the alias is a call of an undefined function",
        ".func other() { ret; } .func another(); .alias another, other;",
    ),
    yes(".branchtargets", "11.3", "", "brx.idx %r1, T; T: .branchtargets L; L:"),
    yes(
        ".calltargets",
        "11.3",
        "read and ignored: every function whose address is taken may be called",
        "T: .calltargets f;",
    ),
    yes(".callprototype", "11.3", "read and ignored: the call says its shape", "T: .callprototype _ (.param .b32 _);"),
    yes(".pragma", "11.4.7", IGNORED, ".pragma \"nounroll\";"),
    yes("@@dwarf", "11.5", IGNORED, "@@dwarf .byte 1\n"),
    yes(".section", "11.5", IGNORED, ".section .debug_str { .b8 0 }"),
    yes(".file", "11.5", IGNORED, ".file 1 \"a.cu\"\n"),
    yes(".loc", "11.5", IGNORED, ".loc 1 2 3\n"),
    yes(
        ".extern",
        "11.6",
        "shared arrays of open size; functions without a body; global variables, which fault when used",
        ".extern .shared .b8 open[];",
    ),
    yes(".visible", "11.6", "", ".visible .entry other() { ret; }"),
    yes(".weak", "11.6", "", ".weak .func other() { ret; }"),
    yes(".common", "11.6", "", ".common .global .u32 word;"),
];

/// The directives behind the head of a function, which change no result.
pub const PERFORMANCE_DIRECTIVES: &[Feature] = &[
    yes(".maxnreg", "11.4.1", IGNORED, ".entry other() .maxnreg 16 { ret; }"),
    yes(".maxntid", "11.4.2", IGNORED, ".entry other() .maxntid 32, 1, 1 { ret; }"),
    yes(".reqntid", "11.4.3", IGNORED, ".entry other() .reqntid 32 { ret; }"),
    yes(".minnctapersm", "11.4.4", IGNORED, ".entry other() .maxntid 32 .minnctapersm 4 { ret; }"),
    yes(".maxnctapersm", "11.4.5", IGNORED, ".entry other() .maxntid 32 .maxnctapersm 4 { ret; }"),
    yes(".noreturn", "11.4.6", IGNORED, ".func other() .noreturn { trap; }"),
    yes(".abi_preserve", "11.4.8", IGNORED, ".func other() .abi_preserve 8 { ret; }"),
    yes(".abi_preserve_control", "11.4.9", IGNORED, ".func other() .abi_preserve_control 8 { ret; }"),
    yes(".minperctamemory", "11.4.10", IGNORED, ".entry other() .minperctamemory 8 { ret; }"),
    yes(".reqnctapercluster", "11.7", IGNORED, ".entry other() .reqnctapercluster 1 { ret; }"),
    yes(".explicitcluster", "11.7", IGNORED, ".entry other() .explicitcluster { ret; }"),
    yes(".maxclusterrank", "11.7", IGNORED, ".entry other() .maxclusterrank 1 { ret; }"),
    yes(".blocksareclusters", "11.8", IGNORED, ".entry other() .blocksareclusters { ret; }"),
];

/// Whether a dotted word behind the head of a function is a directive for its speed.
pub(crate) fn is_performance_directive(word: &str) -> bool {
    PERFORMANCE_DIRECTIVES.iter().any(|row| row.name.strip_prefix('.') == Some(word))
}

const TEXTURE: Refusal = Refusal { is: "a texture, sampler or surface", instead: "pass the data in a buffer" };

/// State spaces.
pub const SPACES: &[Feature] = &[
    yes(".reg", "5.1.1", "8 to 64 bits, predicates, vectors of 2 and 4", ".reg .v2 .u32 %v; mov.u32 %v.x, 1;"),
    yes(".sreg", "5.1.2", "the special registers below", "mov.u32 %r0, %tid.x;"),
    yes(".const", "5.1.3", "at the end of global memory", "ld.const.u32 %r0, [%d1];"),
    yes(".global", "5.1.4", "126 words with buffers", "ld.global.u32 %r0, [%d1];"),
    yes(".local", "5.1.5", "16 words a thread", ".local .u32 mine; st.local.u32 [mine], %r1;"),
    yes(".param", "5.1.6", "96 words; of kernels read only, of functions registers", "ld.param.u64 %d0, [p];"),
    yes(".param::entry", "5.1.6", "as `.param`", "ld.param::entry.u64 %d0, [p];"),
    yes(".param::func", "5.1.6", "as `.param`", ".param .b32 x; st.param::func.b32 [x], %r1;"),
    yes(".shared", "5.1.7", "128 words", "ld.shared.u32 %r0, [%d1];"),
    yes(".shared::cta", "5.1.7", "as `.shared`", "ld.shared::cta.u32 %r0, [%d1];"),
    yes(
        ".shared::cluster",
        "5.1.7",
        "as `.shared`: a CTA is a cluster of its own",
        "ld.shared::cluster.u32 %r0, [%d1];",
    ),
    no(".tex", "5.1.8", TEXTURE, ".tex .u32 image;"),
];

/// Types.
pub const TYPES: &[Feature] = &[
    yes(".u8 .s8 .b8", "5.2.1", "in `ld`, `st` and `cvt`", "ld.global.s8 %r0, [%d1];"),
    yes(".u16 .s16 .b16", "5.2.1", "", "add.u16 %h0, %h1, %h2;"),
    yes(".u32 .s32 .b32", "5.2.1", "", "add.u32 %r0, %r1, %r2;"),
    yes(".u64 .s64 .b64", "5.2.1", "pairs of words", "add.u64 %d0, %d1, %d2;"),
    yes(".pred", "5.2.1", "", "not.pred %p0, %p1;"),
    no(".b128", "5.2.1", WIDE, ".reg .b128 %q;"),
    no(".texref .samplerref .surfref", "5.3", TEXTURE, ".global .texref image;"),
    yes(".f16 .f32 .f64", "5.2.1", "as bits: loaded, moved, selected, stored", "mov.f32 %r0, 0f3f800000;"),
    no(".bf16 .tf32 .e4m3 .e5m2 and other formats", "5.2.3", FLOAT, "add.bf16 %h0, %h1, %h2;"),
    yes(".f16x2 .bf16x2", "5.2.5", "as bits: loaded, moved, selected, stored", "mov.b32 %r0, {%h1, %h2};"),
    yes(".u8x4 .s8x4 .u16x2 .s16x2", "5.2.5", "in `add sub min max neg`", "add.u16x2 %r0, %r1, %r2;"),
];

/// Why a state space or type that no declaration here knows is none of them.
pub(crate) fn refused_declaration(word: &str) -> Option<Refusal> {
    let named = |row: &&Feature| row.name.split(' ').any(|name| name.strip_prefix('.') == Some(word));
    match SPACES.iter().chain(TYPES).find(named)?.support {
        Support::Refused(refusal) => Some(refusal),
        Support::Translated(_) => None,
    }
}

const ONE_LEVEL: &str = "dropped: memory is one level";
const IN_ORDER: &str = "dropped: accesses of a warp are in order, and it runs until it waits";

/// Words of loads, stores and atomics about caches and order.
pub const MODIFIERS: &[Feature] = &[
    yes(".ca", "9.7.10.1", ONE_LEVEL, "ld.global.ca.u32 %r0, [%d1];"),
    yes(".cg", "9.7.10.1", ONE_LEVEL, "ld.global.cg.u32 %r0, [%d1];"),
    yes(".cs", "9.7.10.1", ONE_LEVEL, "ld.global.cs.u32 %r0, [%d1];"),
    yes(".lu", "9.7.10.1", ONE_LEVEL, "ld.global.lu.u32 %r0, [%d1];"),
    yes(".cv", "9.7.10.1", ONE_LEVEL, "ld.global.cv.u32 %r0, [%d1];"),
    yes(".wb", "9.7.10.1", ONE_LEVEL, "st.global.wb.u32 [%d1], %r1;"),
    yes(".wt", "9.7.10.1", ONE_LEVEL, "st.global.wt.u32 [%d1], %r1;"),
    yes(".nc", "9.7.10.9", ONE_LEVEL, "ld.global.nc.u32 %r0, [%d1];"),
    yes(".unified", "9.7.10.8", ONE_LEVEL, "ld.global.relaxed.gpu.u32.unified %r0, [%d1];"),
    yes(".L1::*", "9.7.10.2", ONE_LEVEL, "ld.global.L1::evict_last.u32 %r0, [%d1];"),
    yes(
        ".L2::*",
        "9.7.10.2",
        "dropped with the policy it may name: memory is one level",
        "ld.global.L2::cache_hint.u32 %r0, [%d1], %d2;",
    ),
    yes(".level::*", "9.7.10.2", ONE_LEVEL, "ld.global.level::eviction_priority.u32 %r0, [%d1];"),
    yes(".weak", "8.4", IN_ORDER, "ld.weak.global.u32 %r0, [%d1];"),
    yes(".volatile", "8.4", IN_ORDER, "ld.volatile.global.u32 %r0, [%d1];"),
    yes(".relaxed", "8.4", IN_ORDER, "ld.relaxed.gpu.global.u32 %r0, [%d1];"),
    yes(".acquire", "8.4", IN_ORDER, "ld.acquire.sys.global.u32 %r0, [%d1];"),
    yes(".release", "8.4", IN_ORDER, "st.release.cta.global.u32 [%d1], %r1;"),
    yes(".acq_rel", "8.4", IN_ORDER, "atom.acq_rel.gpu.global.add.u32 %r0, [%d1], %r1;"),
    yes(".mmio", "8.4", IN_ORDER, "ld.mmio.relaxed.sys.global.u32 %r0, [%d1];"),
    yes(".cta", "8.5", IN_ORDER, "ld.relaxed.cta.global.u32 %r0, [%d1];"),
    yes(".cluster", "8.5", IN_ORDER, "ld.relaxed.cluster.global.u32 %r0, [%d1];"),
    yes(".gpu", "8.5", IN_ORDER, "atom.relaxed.gpu.global.add.u32 %r0, [%d1], %r1;"),
    yes(".sys", "8.5", IN_ORDER, "red.release.sys.global.add.u32 [%d1], %r1;"),
];

/// Whether a dotted word of a load, store or atomic is about caches or order only.
pub(crate) fn is_dropped(word: &str) -> bool {
    MODIFIERS.iter().any(|row| match row.name[1..].split_once('*') {
        None => &row.name[1..] == word,
        Some((start, _)) => word.starts_with(start),
    })
}

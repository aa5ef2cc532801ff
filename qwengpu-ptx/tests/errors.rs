//! Refusals: the text of each, and that no text whatever makes the compiler panic.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use std::fmt::Write as _;

use proptest::prelude::*;
use qwengpu_ptx::{Options, PtxError, lower, parse};

const HEADER: &str = ".version 7.0\n.target sm_75\n.address_size 64\n";

fn refusal(ptx: &str) -> PtxError {
    match parse(ptx).and_then(|module| lower(&module, None, &Options::default())) {
        Ok(kernel) => panic!("accepted:\n{ptx}\n{}", kernel.program),
        Err(error) => error,
    }
}

/// Refusals of kernel bodies; the first line of a body is line 10.
fn body_refusals(bodies: &[&str]) -> String {
    let mut text = String::new();
    for body in bodies {
        let ptx = format!(
            "{HEADER}.visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n\
             {body}\nret;\n}}\n"
        );
        let error = refusal(&ptx);
        let kind = match error {
            PtxError::Syntax { .. } => "syntax",
            PtxError::Invalid { .. } => "invalid",
            PtxError::Unsupported { .. } => "unsupported",
            PtxError::ImplLimit { .. } => "limit",
            _ => "other",
        };
        writeln!(text, "{body}\n    [{kind}] {error}").expect("writing to a string");
    }
    text
}

#[test]
fn text_that_is_not_ptx() {
    insta::assert_snapshot!(body_refusals(&[
        "add.s32 %r1, %r2 %r3;",
        "add.s32 %r1, %r2, ;",
        "ld.u32 %r1, [%d1+;",
        "mov.u32 %r1, 0x;",
        "mov.u32 %r1, 99999999999999999999;",
        "mov.u32 %r1, (1 + 2;",
        ".reg .u99 %x;",
        "{ mov.u32 %r1, 1;",
        "mov.u32 %r1, 1/0;",
        "mov.u32 %r1, 'a';",
        "/* no end",
    ]));
}

#[test]
fn ptx_that_means_nothing() {
    insta::assert_snapshot!(body_refusals(&[
        "add.s32 %r1, %r2, %x;",
        "add.s32 %r1, %r2;",
        "add.s32 %r1, %r2, %d1;",
        "add.s64 %d1, %d2, %r1;",
        "add.s32 %p1, %r1, %r2;",
        "add.bogus.s32 %r1, %r2, %r3;",
        "bogus.s32 %r1, %r2;",
        "add %r1, %r2, %r3;",
        "setp.s32 %p1, %r1, %r2;",
        "@%r1 mov.u32 %r2, 1;",
        "bra nowhere;",
        "bra %r1;",
        "L: mov.u32 %r1, 1;\nL: mov.u32 %r1, 2;",
        "lop3.b32 %r1, %r2, %r3, %r1, 256;",
        "mov.b64 {%r1, %r2, %r3}, %d1;",
        "ld.v2.u32 {%r1}, [%d1];",
        "mov.u32 %r1, %tid.q;",
        "mul.s32 %r1, %r2, %r3;",
        ".global .u32 g;",
        "mov.u32 %r9, 1;",
        "bar.sync 16;",
        "bar.sync 1, 6;",
        "bar.arrive 1;",
        "lop3.or.b32 %r1, %r2, %r3, %r1, 3, %p1;",
    ]));
}

#[test]
fn ptx_that_is_not_supported() {
    insta::assert_snapshot!(body_refusals(&[
        "add.f32 %r1, %r2, %r3;",
        "fma.rn.f32 %r1, %r2, %r3, %r1;",
        "setp.ltu.f32 %p1, %r1, %r2;",
        "cvt.rn.f32.s32 %r1, %r2;",
        "atom.global.add.f32 %r1, [%d1], %r2;",
        "tex.2d.v4.f32.s32 {%r1,%r2,%r3,%r1}, [%d1, {%r1,%r2}];",
        "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1}, [%d1], %r2;",
        "cp.async.ca.shared.global [%d1], [%d2], 16;",
        "mbarrier.init.shared.b64 [%d1], 1;",
        "barrier.cluster.arrive;",
        "mov.u32 %r1, %clusterid.x;",
        "call (%r1), printf, (%r2);",
        "call.uni (%r1), %d1, (%r2);",
        ".reg .b128 %q;",
        "st.param.u32 [p], %r1;",
        "alloca.u64 %d1, 8;",
    ]));
}

#[test]
fn kernels_that_do_not_fit() {
    let mut long = String::new();
    for idx in 0..600 {
        writeln!(long, "st.volatile.u32 [%d1+{}], {idx};", 4 * idx).expect("writing to a string");
    }
    let deep = format!("{}{}", "{".repeat(70), "}".repeat(70));
    let expression = format!("mov.u32 %r1, {}1{};", "(".repeat(70), ")".repeat(70));
    let mut text = String::new();
    for body in [
        ".local .b32 big[200];\nmov.u64 %d2, big;\nadd.s64 %d2, %d2, %d1;\nst.u32 [%d2], 1;",
        ".shared .b8 big[1000];\nst.shared.u32 [big], 1;",
        deep.as_str(),
        expression.as_str(),
        long.as_str(),
    ] {
        let ptx = format!(
            "{HEADER}.entry k(.param .u64 p)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [p];\n{body}\nret;\n}}\n"
        );
        writeln!(text, "{}", refusal(&ptx)).expect("writing to a string");
    }
    for module in [
        ".global .b8 big[1000];\n.entry k() { st.global.u8 [big], 1; ret; }",
        ".entry k(.param .b8 big[400]) { ret; }",
        ".extern .func f();\n.entry k() { call f; ret; }",
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
         .entry k() { .param .b32 r; .param .b64 f; .param .b64 a; call (r), vprintf, (f, a); ret; }",
        "",
        ".entry a() { ret; } .entry b() { ret; }",
    ] {
        writeln!(text, "{}", refusal(&format!("{HEADER}{module}"))).expect("writing to a string");
    }
    writeln!(text, "{}", refusal(".version 7.0\n.target sm_75\n.address_size 32\n.entry k() { ret; }"))
        .expect("writing");
    let two = parse(&format!("{HEADER}.entry a() {{ ret; }}")).expect("valid");
    let unknown = lower(&two, Some("z"), &Options::default()).expect_err("no such kernel");
    writeln!(text, "{unknown}").expect("writing to a string");
    insta::assert_snapshot!(text);
}

#[test]
fn a_refusal_knows_its_place() {
    let error = refusal(&format!("{HEADER}.entry k()\n{{\n  mov.u32 %r1, 1;\n}}\n"));
    let span = error.span().expect("the error is about a place");
    assert_eq!((span.line, span.column), (6, 11));
}

fn compiles_or_refuses(text: &str) {
    if let Ok(module) = parse(text) {
        let names: Vec<String> = module.kernels().map(|k| k.name.text.clone()).collect();
        for name in names {
            if let Err(PtxError::Internal { check, detail, .. }) = lower(&module, Some(&name), &Options::default()) {
                panic!("{check}: {detail}\n{text}");
            }
        }
        let printed = module.to_string();
        let again = parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(printed, again.to_string());
    }
}

fn corpus_files() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["clang14", "clang19"] {
        let entries = std::fs::read_dir(common::corpus().join(folder)).expect("the corpus is readable");
        let mut paths: Vec<_> = entries.map(|e| e.expect("readable").path()).collect();
        paths.sort();
        texts.extend(paths.iter().map(|p| std::fs::read_to_string(p).expect("text")));
    }
    texts
}

/// Pieces that turn up in PTX, to put where they do not belong.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "@",
    "!",
    "%p1",
    "%r1",
    "%rd1",
    "_",
    ".b64",
    ".u8",
    ".s16",
    ".pred",
    "-1",
    "0x",
    "99999999999",
    "%tid.x",
    "$L__BB0_2",
    "ret",
    "exit",
    "bar.sync 0;",
    "ld.param.u64",
    ".local .b8 x[0];",
    "//",
    "/*",
    "\"",
    "|",
    "+4",
    ":",
    "add.s64",
    "shl.b64",
    "div.s32",
    "atom.global.add.u32",
    "call",
    ".reg .b32 %r<3>;",
    "\u{e9}",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_ptx_never_panics(
        which in 0..88usize,
        edits in prop::collection::vec((0..4u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..PIECES.len()), 1..6),
    ) {
        let texts = corpus_files();
        let mut words: Vec<String> = texts[which % texts.len()].split_inclusive(char::is_whitespace).map(str::to_owned).collect();
        for (kind, first, second, piece) in edits {
            let (i, j) = (first.index(words.len()), second.index(words.len()));
            match kind {
                0 => words[i] = format!("{} ", PIECES[piece]),
                1 => words.swap(i, j),
                2 => { words.remove(i); }
                _ => { let copy = words[j].clone(); words.insert(i, copy); }
            }
            if words.is_empty() { words.push(String::new()); }
        }
        compiles_or_refuses(&words.concat());
    }

    #[test]
    fn cut_ptx_never_panics(which in 0..88usize, at in any::<prop::sample::Index>()) {
        let texts = corpus_files();
        let text = &texts[which % texts.len()];
        let mut end = at.index(text.len());
        while !text.is_char_boundary(end) { end -= 1; }
        compiles_or_refuses(&text[..end]);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        compiles_or_refuses(&text);
        compiles_or_refuses(&format!("{HEADER}.entry k() {{ {text} }}"));
    }
}

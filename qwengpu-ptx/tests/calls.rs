//! Calls: "Control Flow Instructions: call, ret" and "Abstracting the ABI: Function Declarations and Definitions"
//! of the PTX manual.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::{Argument, attempt, compile};
use qwengpu_interp::{Fault, Outcome};
use qwengpu_isa::{Dim3, FaultKind, MachineSpec};

/// A module of functions and a kernel that puts a word for each thread; `%t` is the thread's number.
fn module(functions: &str, body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n{functions}\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n.reg .b32 %t;\n.reg .b64 %mine;\n\
         ld.param.u64 %mine, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %rd0, %t, 4;\nadd.s64 %mine, %mine, %rd0;\n\
         {body}\nst.global.u32 [%mine], %r0;\nret;\n}}\n"
    )
}

fn launch(functions: &str, body: &str, threads: u16) -> (Outcome, Vec<u32>) {
    let lowered = compile(&module(functions, body));
    let output = [Argument::Buffer(vec![0; 4 * usize::from(threads)])];
    let (outcome, finished) = attempt(MachineSpec::seed(), &lowered, Dim3::linear(1), Dim3::linear(threads), &output);
    (outcome, finished.buffers[0].clone())
}

fn check(functions: &str, body: &str, threads: u16, expected: impl Fn(u32) -> u32) {
    let (outcome, buffer) = launch(functions, body, threads);
    assert_eq!(outcome, Outcome::Finished, "{functions}\n{body}");
    let wanted: Vec<u32> = (0..u32::from(threads)).map(expected).collect();
    assert_eq!(buffer, wanted, "{functions}\n{body}");
}

fn fault_kind(functions: &str, body: &str) -> FaultKind {
    match launch(functions, body, 4).0 {
        Outcome::Fault(Fault { kind, .. }) => kind,
        other => panic!("{other}\n{body}"),
    }
}

const CALL: &str =
    "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 r; call.uni (r), FUNCTION, (a); ld.param.b32 %r0, [r]; }";

const FIBONACCI: &str = ".func (.param .b32 result) fib(.param .b32 n)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<8>;\n\
    ld.param.u32 %r1, [n];\nsetp.lt.u32 %p1, %r1, 2;\nmov.u32 %r5, %r1;\n@%p1 bra END;\nadd.s32 %r2, %r1, -1;\n\
    { .param .b32 a; st.param.b32 [a], %r2; .param .b32 r; call.uni (r), fib, (a); ld.param.b32 %r3, [r]; }\n\
    add.s32 %r2, %r1, -2;\n\
    { .param .b32 a; st.param.b32 [a], %r2; .param .b32 r; call.uni (r), fib, (a); ld.param.b32 %r4, [r]; }\n\
    add.s32 %r5, %r3, %r4;\nEND:\nst.param.b32 [result], %r5;\nret;\n}";

fn fib(n: u32) -> u32 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

#[test]
fn recursion_twice_in_a_body() {
    let call = CALL.replace("FUNCTION", "fib");
    check(FIBONACCI, &format!("mov.u32 %r1, %t; {call}"), 8, fib);
    // Two call sites of the kernel, one of them guarded and divergent.
    let twice = format!(
        "and.b32 %r1, %t, 3; {call} mov.u32 %r9, %r0; setp.ge.u32 %p1, %t, 3; @!%p1 bra OUT; add.u32 %r1, %t, 1;
        {call} mad.lo.u32 %r9, %r0, 100, %r9; OUT: mov.u32 %r0, %r9;"
    );
    check(FIBONACCI, &twice, 8, |t| fib(t & 3) + if t >= 3 { 100 * fib(t + 1) } else { 0 });
}

#[test]
fn a_barrier_behind_a_divergent_recursion_is_reached_together() {
    let call = CALL.replace("FUNCTION", "fib");
    check(
        FIBONACCI,
        &format!("mov.u32 %r1, %t; {call} bar.sync 0; bar.red.popc.u32 %r1, 0, 1; add.u32 %r0, %r0, %r1;"),
        8,
        |t| fib(t) + 8,
    );
}

#[test]
fn a_stack_that_overflows_is_a_fault() {
    let call = CALL.replace("FUNCTION", "fib");
    for threads in [1, 4, 32] {
        let (outcome, _) = launch(FIBONACCI, &format!("mov.u32 %r1, 200; {call}"), threads);
        assert!(
            matches!(outcome, Outcome::Fault(Fault { kind: FaultKind::StackOverflow, .. })),
            "{threads}: {outcome}"
        );
    }
}

/// As deep as its argument.
const DEPTH: &str = ".func (.param .b32 result) depth(.param .b32 n)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<8>;\n\
    ld.param.u32 %r1, [n];\nsetp.eq.u32 %p1, %r1, 0;\nmov.u32 %r5, 0;\n@%p1 bra END;\nadd.s32 %r2, %r1, -1;\n\
    { .param .b32 a; st.param.b32 [a], %r2; .param .b32 r; call.uni (r), depth, (a); ld.param.b32 %r3, [r]; }\n\
    mad.lo.u32 %r5, %r3, 3, %r1;\nEND:\nst.param.b32 [result], %r5;\nret;\n}";

fn depth(n: u32) -> u32 {
    if n == 0 { 0 } else { depth(n - 1).wrapping_mul(3).wrapping_add(n) }
}

#[test]
fn few_threads_recur_deeper() {
    let call = CALL.replace("FUNCTION", "depth");
    // Two words a level: what shared memory has for a thread, and one thread of local memory at least.
    for (threads, levels) in [(1, 60), (2, 30), (3, 20), (4, 15), (6, 10), (8, 8), (32, 8)] {
        let body = format!("mov.u32 %r1, {levels}; {call}");
        check(DEPTH, &body, threads, |_| depth(levels));
        let too_deep = format!("mov.u32 %r1, {}; {call}", levels + 5);
        let (outcome, _) = launch(DEPTH, &too_deep, threads);
        assert!(
            matches!(outcome, Outcome::Fault(Fault { kind: FaultKind::StackOverflow, .. })),
            "{threads}: {outcome}"
        );
    }
}

#[test]
fn a_shared_array_leaves_the_rest_to_the_frames() {
    let call = CALL.replace("FUNCTION", "depth");
    for (bytes, levels) in [(100, 40), (300, 20), (480, 8)] {
        let functions = format!(".shared .align 4 .b8 array[{bytes}];\n{DEPTH}");
        let body = format!(
            "st.shared.u32 [array+{}], 77; mov.u32 %r1, {levels}; {call} ld.shared.u32 %r1, [array+{}];
            add.u32 %r0, %r0, %r1;",
            bytes - 4,
            bytes - 4
        );
        check(&functions, &body, 1, |_| depth(levels) + 77);
    }
    let functions = format!(".extern .shared .align 4 .b8 open[];\n{DEPTH}");
    let body =
        format!("st.shared.u32 [open], 77; mov.u32 %r1, 7; {call} ld.shared.u32 %r1, [open]; add.u32 %r0, %r0, %r1;");
    check(&functions, &body, 1, |_| depth(7) + 77);
}

#[test]
fn ackermann_with_one_thread() {
    let functions = ".func (.param .b32 result) ack(.param .b32 m, .param .b32 n)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<8>;\n\
        ld.param.u32 %r1, [m];\nld.param.u32 %r2, [n];\nadd.u32 %r5, %r2, 1;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra END;\n\
        add.u32 %r3, %r1, -1;\nmov.u32 %r4, 1;\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra OUTER;\nadd.u32 %r2, %r2, -1;\n\
        { .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; st.param.b32 [b], %r2; .param .b32 r;\n\
        call.uni (r), ack, (a, b); ld.param.b32 %r4, [r]; }\nOUTER:\n\
        { .param .b32 a; st.param.b32 [a], %r3; .param .b32 b; st.param.b32 [b], %r4; .param .b32 r;\n\
        call.uni (r), ack, (a, b); ld.param.b32 %r5, [r]; }\nEND:\nst.param.b32 [result], %r5;\nret;\n}";
    fn ack(m: u32, n: u32) -> u32 {
        match (m, n) {
            (0, n) => n + 1,
            (m, 0) => ack(m - 1, 1),
            (m, n) => ack(m - 1, ack(m, n - 1)),
        }
    }
    let call = "{ .param .b32 a; st.param.b32 [a], 2; .param .b32 b; st.param.b32 [b], 5; .param .b32 r;
        call.uni (r), ack, (a, b); ld.param.b32 %r0, [r]; }";
    check(functions, call, 1, |_| ack(2, 5));
}

#[test]
fn values_live_across_shared_divisions_and_recursion() {
    // Each level divides 64-bit values twice, and keeps words across both and across the call.
    let functions = ".func (.param .b32 result) digits(.param .b64 x, .param .b32 base)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<8>;\n\
        .reg .b64 %d<8>;\nld.param.u64 %d1, [x];\nld.param.u32 %r1, [base];\nmov.u32 %r5, 1;\nsetp.eq.u64 %p1, %d1, 0;\n\
        @%p1 bra END;\ncvt.u64.u32 %d2, %r1;\nrem.u64 %d3, %d1, %d2;\ndiv.u64 %d4, %d1, %d2;\ncvt.u32.u64 %r2, %d3;\n\
        { .param .b64 a; st.param.b64 [a], %d4; .param .b32 b; st.param.b32 [b], %r1; .param .b32 r;\n\
        call.uni (r), digits, (a, b); ld.param.b32 %r3, [r]; }\nmad.lo.u32 %r5, %r3, 7, %r2;\nEND:\n\
        st.param.b32 [result], %r5;\nret;\n}";
    fn digits(x: u64, base: u64) -> u32 {
        if x == 0 {
            1
        } else {
            digits(x / base, base).wrapping_mul(7).wrapping_add(u32::try_from(x % base).expect("small"))
        }
    }
    let body =
        "mov.u64 %rd1, 0x123456789abc; add.u32 %r1, %t, 1000; { .param .b64 a; st.param.b64 [a], %rd1; .param .b32 b;
        st.param.b32 [b], %r1; .param .b32 r; call.uni (r), digits, (a, b); ld.param.b32 %r2, [r]; }
        cvt.u64.u32 %rd2, %r1; rem.s64 %rd3, %rd1, %rd2; cvt.u32.u64 %r3, %rd3; add.u32 %r0, %r2, %r3;";
    let x = 0x1234_5678_9abc_u64;
    check(functions, body, 4, |t| {
        let base = u64::from(t) + 1000;
        digits(x, base).wrapping_add(u32::try_from(x % base).expect("small"))
    });
}

#[test]
fn functions_that_call_each_other() {
    let functions = ".func (.param .b32 result) odd(.param .b32 n);\n.func (.param .b32 result) even(.param .b32 n)\n{\n\
        .reg .pred %p<2>; .reg .b32 %r<4>; ld.param.u32 %r1, [n]; mov.u32 %r2, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra END;\n\
        add.u32 %r1, %r1, -1; { .param .b32 a; st.param.b32 [a], %r1; .param .b32 r; call.uni (r), odd, (a); ld.param.b32 %r2, [r]; }\n\
        END: st.param.b32 [result], %r2; ret;\n}\n.func (.param .b32 result) odd(.param .b32 n)\n{\n\
        .reg .pred %p<2>; .reg .b32 %r<4>; ld.param.u32 %r1, [n]; mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra END;\n\
        add.u32 %r1, %r1, -1; { .param .b32 a; st.param.b32 [a], %r1; .param .b32 r; call.uni (r), even, (a); ld.param.b32 %r2, [r]; }\n\
        END: st.param.b32 [result], %r2; ret;\n}";
    for (name, parity) in [("even", 0), ("odd", 1)] {
        let call = CALL.replace("FUNCTION", name);
        check(functions, &format!("mov.u32 %r1, %t; {call}"), 10, |t| u32::from(t % 2 == parity));
    }
}

#[test]
fn what_is_live_behind_a_call_is_kept() {
    // A predicate, a 64-bit value, an array in the frame and a pointer to the caller's array.
    let functions = ".func (.reg .b64 %result) walk(.reg .b32 %n, .reg .b64 %up)\n{\n\
        .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .local .align 4 .b8 own[4];\n\
        mov.u64 %rd1, own; cvta.local.u64 %rd1, %rd1; ld.u32 %r1, [%up]; mad.lo.u32 %r1, %r1, 3, %n; st.u32 [%rd1], %r1;\n\
        mov.u64 %result, 0; setp.eq.u32 %p1, %n, 0; @%p1 ret; and.b32 %r2, %n, 1; setp.eq.u32 %p2, %r2, 1;\n\
        add.u32 %r3, %n, -1; call (%rd2), walk, (%r3, %rd1); ld.u32 %r4, [%up]; cvt.u64.u32 %rd3, %r4;\n\
        ld.u32 %r5, [%rd1]; cvt.u64.u32 %rd4, %r5; @%p2 shl.b64 %rd4, %rd4, 3; add.u64 %rd2, %rd2, %rd3;\n\
        mul.lo.u64 %rd2, %rd2, 5; add.u64 %result, %rd2, %rd4; ret;\n}";
    fn walk(n: u32, up: u64) -> u64 {
        let own = up * 3 + u64::from(n);
        if n == 0 { 0 } else { (walk(n - 1, own) + up) * 5 + if n % 2 == 1 { own << 3 } else { own } }
    }
    let body = ".local .align 4 .b8 top[4]; st.local.u32 [top], 7; mov.u64 %rd1, top; and.b32 %r1, %t, 3;
        call (%rd2), walk, (%r1, %rd1); cvt.u32.u64 %r0, %rd2;";
    check(functions, body, 8, |t| u32::try_from(walk(t & 3, 7)).expect("small"));
}

#[test]
fn structures_as_arguments_and_results() {
    let functions = ".func (.param .align 4 .b8 result[8]) swap(.param .align 4 .b8 pair[8])\n{\n.reg .pred %p<2>; .reg .b32 %r<8>;\n\
        ld.param.u32 %r1, [pair]; ld.param.u32 %r2, [pair+4]; setp.le.u32 %p1, %r1, %r2; @%p1 bra END;\n\
        add.u32 %r1, %r1, -2; add.u32 %r2, %r2, 1;\n\
        { .param .align 4 .b8 a[8]; st.param.u32 [a], %r1; st.param.u32 [a+4], %r2; .param .align 4 .b8 r[8];\n\
        call (r), swap, (a); ld.param.u32 %r1, [r]; ld.param.u32 %r2, [r+4]; }\n\
        END: st.param.u32 [result], %r2; st.param.u32 [result+4], %r1; ret;\n}";
    fn swap(a: u32, b: u32) -> (u32, u32) {
        let (a, b) = if a <= b { (a, b) } else { swap(a - 2, b + 1) };
        (b, a)
    }
    let body = "{ .param .align 4 .b8 a[8]; st.param.u32 [a], %t; st.param.u32 [a+4], 3; .param .align 4 .b8 r[8];
        call (r), swap, (a); ld.param.u32 %r1, [r]; ld.param.u32 %r2, [r+4]; } mad.lo.u32 %r0, %r1, 100, %r2;";
    check(functions, body, 12, |t| {
        let (a, b) = swap(t, 3);
        100 * a + b
    });
}

/// Three functions of one word, and one of two.
const SHAPES: &str = ".func (.param .b32 r) triple(.param .b32 a)\n{ .reg .b32 %r<3>; ld.param.u32 %r1, [a]; mul.lo.u32 %r1, %r1, 3;\n\
    st.param.b32 [r], %r1; ret; }\n.func (.param .b32 r) negate(.param .b32 a)\n{ .reg .b32 %r<3>; ld.param.u32 %r1, [a];\n\
    neg.s32 %r1, %r1; st.param.b32 [r], %r1; ret; }\n.func (.param .b32 r) square(.param .b32 a)\n{ .reg .b32 %r<3>;\n\
    ld.param.u32 %r1, [a]; mul.lo.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }\n\
    .func (.param .b32 r) both(.param .b32 a, .param .b32 b)\n{ .reg .b32 %r<3>; ld.param.u32 %r1, [b]; st.param.b32 [r], %r1; ret; }\n";

fn shape(which: u32, x: u32) -> u32 {
    match which {
        0 => x.wrapping_mul(3),
        1 => x.wrapping_neg(),
        _ => x.wrapping_mul(x),
    }
}

const POINTER_CALL: &str = "add.u32 %r1, %t, 5; { .param .b32 a; st.param.b32 [a], %r1; .param .b32 r;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _); call (r), %rd1, (a), prototype; ld.param.b32 %r0, [r]; }";

#[test]
fn calls_through_pointers_in_registers() {
    let choose =
        "mov.u64 %rd1, triple; mov.u64 %rd2, negate; mov.u64 %rd3, both; and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 1;
        selp.b64 %rd1, %rd2, %rd1, %p1;";
    check(SHAPES, &format!("{choose}{POINTER_CALL}"), 8, |t| shape(t & 1, t + 5));
}

#[test]
fn calls_through_tables() {
    for space in ["const", "global"] {
        let table = format!("{SHAPES}.{space} .align 8 .u64 table[3] = {{triple, negate, square}};\n");
        let choose = format!(
            "rem.u32 %r2, %t, 3; mul.wide.u32 %rd2, %r2, 8; mov.u64 %rd3, table; add.s64 %rd3, %rd3, %rd2;
            ld.{space}.u64 %rd1, [%rd3];"
        );
        check(&table, &format!("{choose}{POINTER_CALL}"), 8, |t| shape(t % 3, t + 5));
    }
}

#[test]
fn a_pointer_to_no_function_is_a_trap() {
    for pointer in ["0", "4", "both"] {
        let body = format!("mov.u64 %rd2, triple; mov.u64 %rd1, {pointer}; {POINTER_CALL}");
        assert_eq!(fault_kind(SHAPES, &body), FaultKind::Trap, "{pointer}");
    }
}

#[test]
fn recursion_through_a_pointer() {
    let functions = ".func (.param .b32 r) sum(.param .b32 n, .param .b64 f)\n{\n.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<3>;\n\
        ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [f]; mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra END; add.u32 %r3, %r1, -1;\n\
        { .param .b32 a; st.param.b32 [a], %r3; .param .b64 b; st.param.b64 [b], %rd1; .param .b32 q; call (q), %rd1, (a, b), proto;\n\
        ld.param.b32 %r2, [q]; } add.u32 %r2, %r2, %r1; END: st.param.b32 [r], %r2; ret;\n}";
    let body = "mov.u64 %rd1, sum; { .param .b32 a; st.param.b32 [a], %t; .param .b64 b; st.param.b64 [b], %rd1; .param .b32 q;
        call (q), sum, (a, b); ld.param.b32 %r0, [q]; }";
    check(functions, body, 6, |t| t * (t + 1) / 2);
}

#[test]
fn threads_may_end_inside_a_function() {
    let functions = ".func down(.param .b32 n)\n{ .reg .pred %p<3>; .reg .b32 %r<3>; ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 2;\n\
        @%p1 exit; setp.eq.u32 %p2, %r1, 0; @%p2 ret; add.u32 %r1, %r1, -1; { .param .b32 a; st.param.b32 [a], %r1; call down, (a); } ret; }";
    let body = "mov.u32 %r0, 9; { .param .b32 a; st.param.b32 [a], %t; call down, (a); }";
    check(functions, body, 6, |t| if t < 2 { 9 } else { 0 });
}

#[test]
fn a_failed_assertion_is_a_trap() {
    let functions =
        ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);";
    let body = "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; call __assertfail, (a, b, c, d, e); }
        mov.u32 %r0, 1;";
    assert_eq!(fault_kind(functions, body), FaultKind::Assertion);
    let guarded = format!("setp.gt.u32 %p1, %t, 90; @!%p1 bra FINE; {body} FINE: mov.u32 %r0, 4;");
    check(functions, &guarded, 4, |_| 4);
}

//! Barriers: "Parallel Synchronization and Communication Instructions: bar, barrier" of the PTX manual.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::{Argument, Finished, attempt, compile};
use qwengpu_interp::{Fault, Outcome};
use qwengpu_isa::{Dim3, FaultKind, MachineSpec};

/// A kernel with the thread number in `%t`, its warp in `%w`, and the address of its own word in `%mine`.
fn kernel(body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n\
         .reg .b32 %r<16>;\n.reg .b32 %t;\n.reg .b32 %w;\n.reg .b64 %out;\n.reg .b64 %mine;\n.shared .align 4 .b8 box[64];\n\
         ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %w, %warpid;\nmul.wide.u32 %mine, %t, 4;\n\
         add.s64 %mine, %mine, %out;\n{body}\nret;\n}}\n"
    )
}

fn launch(body: &str, threads: u16) -> (Outcome, Vec<u32>, Finished) {
    let lowered = compile(&kernel(body));
    let output = [Argument::Buffer(vec![0; 4 * usize::from(threads)])];
    let (outcome, finished) = attempt(MachineSpec::seed(), &lowered, Dim3::linear(1), Dim3::linear(threads), &output);
    (outcome, finished.buffers[0].clone(), finished)
}

fn check(body: &str, threads: u16, expected: impl Fn(u32) -> u32) {
    let (outcome, buffer, _) = launch(body, threads);
    assert_eq!(outcome, Outcome::Finished, "{body}");
    let wanted: Vec<u32> = (0..u32::from(threads)).map(expected).collect();
    assert_eq!(buffer, wanted, "{threads} threads\n{body}");
}

fn fault_kind(body: &str, threads: u16) -> FaultKind {
    match launch(body, threads).0 {
        Outcome::Fault(Fault { kind, .. }) => kind,
        other => panic!("{other}\n{body}"),
    }
}

const SIZES: [u16; 6] = [1, 3, 4, 5, 13, 32];

#[test]
fn reductions_of_all_threads() {
    for threads in SIZES {
        let n = u32::from(threads);
        for limit in [0, 1, 3, 5, 40] {
            let below = n.min(limit);
            let test = format!("setp.lt.u32 %p1, %t, {limit};");
            for op in ["bar.red.popc.u32", "barrier.cta.red.popc.aligned.u32", "bar.cta.red.popc.u32"] {
                check(&format!("{test} {op} %r1, 0, %p1; st.global.u32 [%mine], %r1;"), threads, |_| below);
            }
            let negated = format!("{test} bar.red.popc.u32 %r1, 0, !%p1; st.global.u32 [%mine], %r1;");
            check(&negated, threads, |_| n - below);
            let logic = |op: &str| {
                format!("{test} bar.red.{op}.pred %p2, 0, %p1; selp.u32 %r1, 1, 0, %p2; st.global.u32 [%mine], %r1;")
            };
            check(&logic("and"), threads, |_| u32::from(below == n));
            check(&logic("or"), threads, |_| u32::from(below > 0));
        }
    }
}

/// Sums of reductions in a loop: no warp may see another round's count.
const ROUNDS: &str = "mov.u32 %r2, 0; mov.u32 %r3, 0;
LOOP: setp.gt.u32 %p1, %t, %r3; bar.red.popc.u32 %r1, NAME %p1; mad.lo.u32 %r2, %r2, 3, %r1;
add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5; @%p2 bra LOOP; st.global.u32 [%mine], %r2;";

#[test]
fn reductions_follow_each_other() {
    for name in ["0,", "7, %r9,"] {
        let setup = "mov.u32 %r9, %nwarpid; shl.b32 %r9, %r9, 2;\n";
        for threads in SIZES {
            let n = u32::from(threads);
            let sum = (0..5).fold(0, |sum, round| 3 * sum + (n - 1).saturating_sub(round));
            check(&(setup.to_owned() + &ROUNDS.replace("NAME", name)), threads, |_| sum);
        }
    }
}

#[test]
fn threads_that_have_exited_count_as_arrived() {
    let body = "setp.ge.u32 %p1, %t, 6; @%p1 exit; setp.ne.u32 %p2, %t, 0; bar.red.popc.u32 %r1, 0, %p2;
        st.global.u32 [%mine], %r1;";
    check(body, 13, |t| if t < 6 { 5 } else { 0 });
    // The same with counted barriers: another one of the kernel is for some threads.
    let some = "setp.eq.u32 %p3, %w, 0; @%p3 bar.sync 1, 4;";
    check(&format!("{some}{body}"), 13, |t| if t < 6 { 5 } else { 0 });
    check(&format!("{body}{some}"), 13, |t| if t < 6 { 5 } else { 0 });
    // Warps that end long after the others have begun to wait.
    let late = "setp.lt.u32 %p3, %w, 2; @%p3 bar.sync 1, 8; setp.lt.u32 %p1, %w, 1; @%p1 bra WORK; bar.sync 0;
        mov.u32 %r1, 7; st.global.u32 [%mine], %r1; exit; WORK: bar.sync 2, 4; mov.u32 %r1, 9; st.global.u32 [%mine], %r1;";
    check(late, 12, |t| if t < 4 { 9 } else { 7 });
}

/// Warp 0 fills the box, the others read it; each side waits for the other with its own barrier.
const PRODUCER: &str = "mov.u32 %r3, 0; mov.u32 %r2, 0; setp.ne.u32 %p1, %w, 0; @%p1 bra CONSUME;
PRODUCE: add.u32 %r4, %r3, 5; st.shared.u32 [box], %r4; FULL_ARRIVE; EMPTY_SYNC;
add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 6; @%p2 bra PRODUCE; bra DONE;
CONSUME: FULL_SYNC; ld.shared.u32 %r4, [box]; mad.lo.u32 %r2, %r2, 3, %r4; EMPTY_ARRIVE;
add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 6; @%p2 bra CONSUME;
DONE: END; st.global.u32 [%mine], %r2;";

#[test]
fn producers_and_consumers() {
    let sum = (0..6).fold(0, |sum, round| 3 * sum + round + 5);
    for (name, prefix) in [("bar", ""), ("barrier.cta", "mov.u32 %r8, 1; mov.u32 %r7, 2; mov.u32 %r6, 12;\n")] {
        let (full, empty, count) = if prefix.is_empty() { ("1", "2", "12") } else { ("%r8", "%r7", "%r6") };
        for end in ["", "bar.sync 0"] {
            let body = PRODUCER
                .replace("FULL_ARRIVE", &format!("{name}.arrive {full}, {count}"))
                .replace("FULL_SYNC", &format!("{name}.sync {full}, {count}"))
                .replace("EMPTY_ARRIVE", &format!("{name}.arrive {empty}, {count}"))
                .replace("EMPTY_SYNC", &format!("{name}.sync {empty}, {count}"))
                .replace("END;", &if end.is_empty() { String::new() } else { format!("{end};") });
            check(&format!("{prefix}{body}"), 12, |t| if t < 4 { 0 } else { sum });
        }
    }
}

#[test]
fn pairs_of_warps_meet_at_barriers_of_their_own() {
    // Warps 0 and 1 use barrier 3, warps 2 and 3 barrier 4; each thread reads what its partner wrote.
    let body = "shr.u32 %r1, %w, 1; add.u32 %r1, %r1, 3; shl.b32 %r2, %t, 2; mov.u32 %r3, box; add.u32 %r4, %r3, %r2;
        mul.lo.u32 %r5, %t, 10; st.shared.u32 [%r4], %r5; bar.sync %r1, 8; xor.b32 %r2, %r2, 16; add.u32 %r4, %r3, %r2;
        ld.shared.u32 %r6, [%r4]; st.global.u32 [%mine], %r6;";
    check(body, 16, |t| 10 * (t ^ 4));
}

#[test]
fn lanes_of_a_warp_arrive_together() {
    let divergent = "setp.lt.u32 %p1, %t, 2; @%p1 BARRIER; st.global.u32 [%mine], %t;";
    for barrier in ["bar.sync 0", "bar.sync 1, 4", "bar.arrive 1, 8", "bar.red.popc.u32 %r1, 0, %p1"] {
        assert_eq!(fault_kind(&divergent.replace("BARRIER", barrier), 4), FaultKind::BarrierDivergence, "{barrier}");
    }
}

#[test]
fn a_barrier_that_never_completes_never_ends() {
    assert_eq!(launch("bar.sync 1, 12;", 8).0, Outcome::StepLimit);
    assert_eq!(launch("setp.eq.u32 %p1, %w, 0; @%p1 bar.sync 0; @!%p1 bar.sync 1, 8;", 8).0, Outcome::StepLimit);
}

#[test]
fn full_barriers_alone_stay_one_instruction() {
    let lowered = compile(&kernel("bar.sync 0; barrier.sync 0; bar.sync 5; st.global.u32 [%mine], %t;"));
    let bars = lowered.program.instructions.iter().filter(|i| i.opcode().mnemonic() == "bar").count();
    assert_eq!((bars, lowered.program.instructions.len()), (3, 6), "{}", lowered.program);
    assert_eq!(lowered.program.signature.shared_bytes, 0);
}

/// Threads that do some work and return, while the others of their warp go on to a barrier.
#[test]
fn threads_may_end_between_barriers() {
    let work = |value: &str| {
        format!("mul.lo.u32 %r9, {value}, %t; ld.global.u32 %r8, [%mine]; add.u32 %r9, %r9, %r8; st.global.u32 [%mine], %r9;
            ld.global.u32 %r8, [%out]; and.b32 %r8, %r8, 0; ld.global.u32 %r9, [%mine]; mul.lo.u32 %r9, %r9, 3;
            add.u32 %r9, %r9, %r8; st.global.u32 [%mine], %r9;")
    };
    // Two ways to the same end, and a barrier behind each branch.
    let shared = format!(
        "mov.u32 %r5, 2; setp.eq.u32 %p1, %t, 1; @%p1 bra END; mov.u32 %r5, 3; bar.sync 0; setp.eq.u32 %p1, %t, 2;
        @%p1 bra END; bar.sync 0; st.global.u32 [%mine], %r5; ret; END: {}",
        work("%r5")
    );
    check(&shared, 4, |t| [3, 6, 18, 3][t as usize]);
    // Before the first barrier, behind it, and in a loop around one: each round one thread of every warp ends.
    let before = format!(
        "setp.ge.u32 %p1, %t, 6; @!%p1 bra GO; {} ret; GO: bar.sync 0; mov.u32 %r1, 5; st.global.u32 [%mine], %r1;",
        work("7")
    );
    check(&before, 13, |t| if t < 6 { 5 } else { 21 * t });
    let behind = format!(
        "bar.sync 0; setp.ge.u32 %p1, %t, 6; @%p1 bra END; bar.sync 0; mov.u32 %r1, 5; st.global.u32 [%mine], %r1; ret; END: {}",
        work("7")
    );
    check(&behind, 13, |t| if t < 6 { 5 } else { 21 * t });
    let round = format!(
        "and.b32 %r5, %t, 3; mov.u32 %r6, 0; LOOP: bar.sync 0; setp.ne.u32 %p1, %r5, %r6; @%p1 bra ON; {} ret;
        ON: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 3; @%p2 bra LOOP; st.global.u32 [%mine], %r6;",
        work("%r6")
    );
    check(&round, 13, |t| if t & 3 == 3 { 3 } else { 3 * t * (t & 3) });
}

#[test]
fn branches_on_which_a_warp_agrees_cost_nothing() {
    let body = |limit: &str| {
        format!("mov.u32 %r6, 0; LOOP: bar.sync 0; st.shared.u32 [box], %t; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, {limit};
            @%p2 bra LOOP; ld.shared.u32 %r1, [box]; add.u32 %r1, %r1, %r6; st.global.u32 [%mine], %r1;")
    };
    let size = |limit: &str| compile(&kernel(&body(limit))).program.instructions.len();
    // The end of the second has to jump over the loop.
    assert_eq!(size("%t"), size("%ctaid.x") + 2);
}

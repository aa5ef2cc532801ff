//! The exact records of small programs.

use qwengpu_interp::{Event, Machine, Outcome, Run, run_stream};
use qwengpu_isa::{Dim3, FaultKind, LaunchConfig, MachineSpec, Program, Record, Reg, assemble, prompt};

const LIMIT: u64 = 10_000;

fn assembled(source: &str) -> Program {
    assemble(source).map_err(|errors| errors.render(source)).expect("assembles")
}

/// The records, a line for each warp instruction or scheduling record.
fn text(run: &Run) -> String {
    let mut text = String::new();
    for record in &run.records {
        let continues = matches!(
            record.without_next(),
            Record::Val { .. } | Record::Ramp { .. } | Record::Fill { .. } | Record::Pred { .. } | Record::Mem { .. }
        );
        if !text.is_empty() {
            text.push(if continues { ' ' } else { '\n' });
        }
        text.push_str(&record.to_string());
    }
    format!("{text}\n{}\n{:?}", run.outcome, run.counts)
}

/// Runs a program in three ways that must agree, and returns the machine with the run.
fn run(source: &str, launch: &LaunchConfig) -> (Machine, Run) {
    let spec = MachineSpec::seed();
    let program = assembled(source);
    let mut machine = Machine::new(spec, &program).expect("is valid");
    let run = machine.launch(launch, LIMIT).expect("launch is valid");
    let spoken = prompt(&spec, &program, launch).expect("launch is valid");
    assert_eq!(run_stream(spec, &spoken, LIMIT), Ok(run.clone()));
    let mut other = Machine::new(spec, &program).expect("is valid");
    let events: Vec<Event> = other.begin(launch, LIMIT).expect("launch is valid").collect();
    assert_eq!(events.iter().flat_map(Event::records).collect::<Vec<_>>(), run.records);
    assert_eq!(other, machine);
    (machine, run)
}

fn linear(grid: u16, block: u16) -> LaunchConfig {
    LaunchConfig::new(Dim3::linear(grid), Dim3::linear(block))
}

#[test]
fn vector_add() {
    let source = "
            s2r r1, tid
            setp.ge.u p0, r1, c[3]
            @p0 bra done
            ld.b32 r2, [r1*4 + c[0]]
            ld.b32 r3, [r1*4 + c[1]]
            iadd r2, r2, r3
            st.b32 [r1*4 + c[2]], r2
        done:
            exit";
    let launch = linear(1, 7).with_parameters(&[0, 32, 64, 6]).with_global([
        1,
        2,
        3,
        4,
        5,
        6,
        0,
        0,
        0x100,
        0x100,
        0x300,
        0xffff_ffff,
        0,
        1,
        0,
        0,
    ]);
    let (machine, run) = run(source, &launch);
    assert_eq!(machine.global()[16..24], [0x101, 0x102, 0x303, 3, 5, 7, 0, 0]);
    insta::assert_snapshot!(text(&run));
}

#[test]
fn divergent_branch() {
    let source = "
            s2r r1, laneid
            lop.and r2, r1, 1
            setp.eq p0, r2, 0
            @p0 bra even
            imad r3, r1, 10, r1
            bra join
        even:
            isub r3, r0, r1
            @!p0 iadd r3, r3, 1
        join:
            st.b32 [r1*4], r3
            exit";
    let (machine, run) = run(source, &linear(1, 4));
    assert_eq!(machine.global()[..4], [0, 11, u32::MAX - 1, 33]);
    insta::assert_snapshot!(text(&run));
}

#[test]
fn barrier_of_two_warps() {
    let source = "
            s2r r1, tid
            st.b32 [r1*4 + 0x100000], r1
            bar
            isub r2, r0, r1
            ld.b32 r3, [r2*4 + 0x100014]
            st.b32 [r1*4], r3
            exit";
    let (machine, run) = run(source, &linear(1, 6));
    assert_eq!(machine.global()[..6], [5, 4, 3, 2, 1, 0]);
    insta::assert_snapshot!(text(&run));
}

#[test]
fn barrier_of_one_warp_and_a_warp_that_has_left() {
    let source = "
            s2r r1, warpid
            setp.eq p0, r1, 0
            @p0 exit
            bar
            bar
            exit";
    let (_, run) = run(source, &linear(1, 5));
    insta::assert_snapshot!(text(&run));
}

#[test]
fn grid_of_ctas() {
    let source = "
            iadd r1, r0, c[ctaid.x]
            imad r1, r1, 1, r1
            iadd r1, r1, c[ctaid.y]
            st.b32 [r1*4], r1
            exit";
    let launch = LaunchConfig::new(Dim3::new(2, 2, 2), Dim3::linear(1));
    let (machine, run) = run(source, &launch);
    assert_eq!(machine.global()[..4], [0, 1, 2, 3]);
    insta::assert_snapshot!(text(&run));
}

#[test]
fn faults() {
    let check = |source: &str, kind: FaultKind, lane: u8, pc: u16, records: &str| {
        let (machine, run) = run(source, &linear(2, 4));
        let Outcome::Fault(fault) = run.outcome else { panic!("{source} does not fault") };
        assert_eq!((fault.kind, fault.lane, fault.pc.get()), (kind, lane, pc), "{source}");
        let begin =
            run.records.iter().position(|&record| record == Record::Fault { kind, lane }).expect("it is spoken");
        let spoken: Vec<String> = run.records[begin + 1..].iter().map(Record::to_string).collect();
        assert_eq!(spoken.join(" "), format!("{records} <|halt|>").trim_start(), "{source}");
        assert_eq!(machine.global()[..], [0; 126], "{source}");
    };
    check("trap.illegal", FaultKind::IllegalInstruction, 0, 0, "");
    check("trap.program", FaultKind::Trap, 0, 0, "");
    check("trap.stack", FaultKind::StackOverflow, 0, 0, "");
    check("s2r r1, tid\n setp.lt.u p0, r1, 2\n @p0 exit\n trap.assertion", FaultKind::Assertion, 2, 3, "");
    // Control can run into unwritten words through an indirect branch only.
    check("iadd r1, r0, 511\n brx r1", FaultKind::IllegalInstruction, 0, 511, "");
    let lane = "s2r r1, tid\n iadd r2, r1, 1\n";
    check(
        &format!("{lane} st.b32 [r1*4 + 496], r2\n exit"),
        FaultKind::OutOfBounds,
        2,
        2,
        "<|val:4:0:f8|> <|val:4:1:01|>",
    );
    check(&format!("{lane} st.b32 [r1 + 0], r2\n exit"), FaultKind::Misaligned, 1, 2, "<|val:2:0:01|>");
    check(&format!("{lane} ld.u16 r0, [r1*4 + 1]\n exit"), FaultKind::Misaligned, 0, 2, "<|val:1:0:01|>");
    check(
        &format!("{lane} ld.b32 r2, [r1 + 503]\n exit"),
        FaultKind::Misaligned,
        0,
        2,
        "<|val:1:0:f7|> <|val:1:1:01|>",
    );
    check(
        &format!("{lane} ld.b32 r2, [r1 + 505]\n exit"),
        FaultKind::OutOfBounds,
        0,
        2,
        "<|val:1:0:f9|> <|val:1:1:01|>",
    );
    check(
        &format!("{lane} setp.gt.u p0, r1, 0\n @p0 ld.b32 r2, [-4]\n exit"),
        FaultKind::OutOfBounds,
        1,
        3,
        "<|val:2:0:fc|> <|fill:2|>",
    );
    // Two lanes have gone on to the second barrier while the other two are at the first.
    check(
        &format!("{lane} setp.lt.u p0, r1, 2\n @p0 bra 5\n bar\n bar\n exit"),
        FaultKind::BarrierDivergence,
        2,
        4,
        "",
    );
}

#[test]
fn records_of_a_fault() {
    let source = "s2r r1, tid\n iadd r3, r0, 7\n ld.b32 r3, [r1*4 + 496]\n exit";
    let (machine, run) = run(source, &linear(1, 4));
    // The lanes in bounds have no result either.
    assert_eq!(machine.register(0, 0, Reg::R3), Some(7));
    insta::assert_snapshot!(text(&run));
}

#[test]
fn a_lane_whose_guard_is_false_does_not_fault() {
    let (_, run) = run("setp.ne p0, r0, 0\n @p0 ld.b32 r1, [-4]\n @p0 st.b32 [-4], r1\n exit", &linear(1, 4));
    assert_eq!(run.outcome, Outcome::Finished);
    insta::assert_snapshot!(text(&run));
}

#[test]
fn a_word_that_is_no_instruction_faults_whatever_its_guard() {
    let spec = MachineSpec::seed();
    for word in [0, 25, 31, 34, 63, 63 | 0b1111 << 6, 3 << 26 | 5, u64::MAX] {
        let mut machine = Machine::power_on(spec).expect("is valid");
        machine.load_words(&[word]).expect("fits");
        let run = machine.launch(&linear(1, 2), LIMIT).expect("launch is valid");
        let text: Vec<String> = run.records[4..].iter().map(Record::to_string).collect();
        assert_eq!(text, ["<|exec:3:000|>", "<|fault:2:0|>", "<|halt|>"], "{word:#x}");
    }
}

#[test]
fn the_pc_wraps() {
    let spec = MachineSpec { rom_words: 4, ..MachineSpec::seed() };
    let mut machine = Machine::power_on(spec).expect("is valid");
    let program = assembled("@p0 exit\n bra 3\n trap.illegal\n setp.eq p0, r0, 0");
    machine.load_words(&program.words()).expect("fits");
    let mut execution = machine.begin(&linear(1, 1), LIMIT).expect("launch is valid");
    let mut pcs = Vec::new();
    let mut records = String::new();
    for event in execution.by_ref() {
        if let Event::Instruction(trace) = &event {
            pcs.push(trace.pc.get());
        }
        records.extend(event.records().iter().map(Record::to_string));
    }
    assert_eq!(execution.outcome(), Some(Outcome::Finished));
    assert_eq!(pcs, [0, 1, 3, 0]);
    assert!(records.ends_with("<|exec:1:003|><|pred+1:1|><|halt|>"), "{records}");
}

#[test]
fn state_survives_a_launch_but_shared_memory_does_not() {
    let source = "
            st.b32 [0], r5
            ld.b32 r6, [0x200000]
            st.b32 [4], r6
            ld.b32 r6, [0x100000]
            st.b32 [8], r6
            iadd r5, r5, 7
            st.b32 [0x200000], r5
            st.b32 [0x100000], r5
            exit";
    let mut machine = Machine::new(MachineSpec::seed(), &assembled(source)).expect("is valid");
    let mut launch = |grid| {
        machine.launch(&linear(grid, 1), LIMIT).expect("launch is valid");
        machine.global()[..3].to_vec()
    };
    assert_eq!(launch(1), [0, 0, 0]);
    assert_eq!(launch(1), [7, 7, 0]);
    assert_eq!(launch(2), [21, 21, 0]);
}

#[test]
fn traces_are_for_people() {
    let source =
        "s2r r1, tid\n setp.gt.u p0, r1, 0\n @p0 ld.u8 r2, [r1 + 1]\n st.b32 [r1*4], r2\n ld.b32 r3, [r1 + 2]\n exit";
    let mut machine = Machine::new(MachineSpec::seed(), &assembled(source)).expect("is valid");
    let launch = linear(1, 2).with_global([0x0102_0304]);
    let lines = machine.begin(&launch, LIMIT).expect("launch is valid").filter_map(|event| match event {
        Event::Instruction(trace) => Some(trace.to_string()),
        _ => None,
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn step_limit() {
    let mut machine = Machine::new(MachineSpec::seed(), &assembled("bra 0")).expect("is valid");
    let run = machine.launch(&linear(1, 1), 3).expect("launch is valid");
    assert_eq!(run.outcome, Outcome::StepLimit);
    assert_eq!(run.counts.warp_instructions, 3);
    assert!(!run.records.contains(&Record::Halt));
}

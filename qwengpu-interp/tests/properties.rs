//! Properties of all programs, on random ones.

use proptest::prelude::*;
use qwengpu_interp::{Event, Machine, Outcome, StreamError, run_stream};
use qwengpu_isa::strategies::{ProgramOptions, launch, raw_program, terminating_program};
use qwengpu_isa::{LaneMask, LaunchConfig, MachineSpec, Memory, Program, Record, RecordTable, prompt};

const LIMIT: u64 = 2_000;

/// What holds for every execution; returns the outcome.
fn check(spec: MachineSpec, program: &Program, launch: &LaunchConfig, limit: u64) -> Result<Outcome, TestCaseError> {
    let mut machine = Machine::new(spec, program).expect("is valid");
    let run = machine.launch(launch, limit).expect("launch is valid");
    prop_assert!(run.counts.warp_instructions <= limit);
    prop_assert_eq!(run.counts.tokens, u64::try_from(run.records.len()).expect("is small"));

    // Every record is a token, and the stream has a shape.
    let table = RecordTable::new(&spec).expect("is valid");
    for &record in &run.records {
        prop_assert!(table.get(record).is_some(), "{}", record);
    }
    let halts = run.records.iter().filter(|&&record| record == Record::Halt).count();
    prop_assert_eq!(halts, usize::from(run.outcome != Outcome::StepLimit));

    // The stream from tokens alone is the same.
    let spoken = prompt(&spec, program, launch).expect("launch is valid");
    let heard = run_stream(spec, &spoken, limit);
    prop_assert_eq!(heard.as_ref(), Ok(&run));

    // Event by event, global memory changes as the traces say, and faults change nothing.
    let mut other = Machine::new(spec, program).expect("is valid");
    let mut execution = other.begin(launch, limit).expect("launch is valid");
    let mut before = execution.machine().clone();
    while let Some(event) = execution.next() {
        if let Event::Instruction(trace) = event {
            let mems =
                trace.records.iter().filter(|record| matches!(record.without_next(), Record::Mem { .. })).count();
            if mems == 0 {
                for memory in Memory::ALL {
                    prop_assert_eq!(execution.machine().memory(memory), before.memory(memory), "{}", trace);
                }
            }
            prop_assert!(trace.exec.and(trace.active) == trace.exec, "{}", trace);
            prop_assert!(!trace.active.is_empty());
            if trace.fault.is_some() {
                prop_assert_eq!(execution.machine(), &before, "{}", trace);
            }
            values_are_spoken(&trace.records, &trace.lanes)?;
        }
        before = execution.machine().clone();
    }
    prop_assert_eq!(execution.outcome(), Some(run.outcome));
    prop_assert_eq!(&other, &machine);
    Ok(run.outcome)
}

/// The `VAL` records of an instruction, put together, are the results of its lanes.
fn values_are_spoken(records: &[Record], lanes: &[qwengpu_interp::LaneTrace]) -> Result<(), TestCaseError> {
    let mut heard = [0u32; 8];
    let mut low = LaneMask::EMPTY;
    for record in records {
        if let Record::Ramp { byte } = record.without_next() {
            for trace in lanes {
                heard[usize::from(trace.lane)] = u32::from(byte) + u32::from(trace.lane);
                low = low.with(trace.lane);
            }
        }
        if let Record::Fill { mask } = record.without_next() {
            for lane in mask.lanes() {
                prop_assert_eq!(heard[usize::from(lane)] & Record::FILLED, 0);
                heard[usize::from(lane)] |= Record::FILLED;
            }
        }
        if let Record::Val { mask, position, byte } = record.without_next() {
            for lane in mask.lanes() {
                heard[usize::from(lane)] |= u32::from(byte) << (8 * u32::from(position));
                if position == 0 {
                    prop_assert!(!low.contains(lane));
                    low = low.with(lane);
                }
            }
        }
    }
    if !low.is_empty() {
        for trace in lanes {
            prop_assert!(low.contains(trace.lane));
            prop_assert_eq!(trace.value, Some(heard[usize::from(trace.lane)]));
        }
    }
    Ok(())
}

fn narrow() -> MachineSpec {
    MachineSpec {
        lanes: 2,
        warps: 4,
        rom_words: 128,
        global_words: 40,
        shared_words: 16,
        local_words: 4,
        ..MachineSpec::seed()
    }
}

fn wide() -> MachineSpec {
    MachineSpec { lanes: 8, warps: 4, rom_words: 1024, global_words: 300, ..MachineSpec::seed() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn structured_programs_end(
        program in terminating_program(&MachineSpec::seed(), &ProgramOptions::default()),
        launch in launch(&MachineSpec::seed()),
    ) {
        let outcome = check(MachineSpec::seed(), &program, &launch, 1_000_000)?;
        prop_assert_eq!(outcome, Outcome::Finished);
    }

    #[test]
    fn structured_programs_with_wild_addresses_end_or_fault(
        program in terminating_program(
            &MachineSpec::seed(),
            &ProgramOptions { wild_addresses: true, ..ProgramOptions::default() },
        ),
        launch in launch(&MachineSpec::seed()),
    ) {
        prop_assert_ne!(check(MachineSpec::seed(), &program, &launch, 1_000_000)?, Outcome::StepLimit);
    }

    #[test]
    fn raw_programs_do_not_panic(program in raw_program(60), launch in launch(&MachineSpec::seed())) {
        check(MachineSpec::seed(), &program, &launch, LIMIT)?;
    }

    #[test]
    fn other_machines_have_the_same_properties(
        (small, small_launch) in (terminating_program(&narrow(), &ProgramOptions::default()), launch(&narrow())),
        (large, large_launch) in (terminating_program(&wide(), &ProgramOptions::default()), launch(&wide())),
    ) {
        prop_assert_eq!(check(narrow(), &small, &small_launch, 1_000_000)?, Outcome::Finished);
        prop_assert_eq!(check(wide(), &large, &large_launch, 1_000_000)?, Outcome::Finished);
    }

    #[test]
    fn random_words_do_not_panic(
        words in proptest::collection::vec(any::<u64>(), 1..64),
        opcodes in proptest::collection::vec(0..34u64, 64),
        launch in launch(&MachineSpec::seed()),
    ) {
        let words: Vec<u64> = words.iter().zip(opcodes).map(|(word, opcode)| word & !0x3f | opcode).collect();
        let mut machine = Machine::power_on(MachineSpec::seed()).expect("is valid");
        machine.load_words(&words).expect("fits");
        machine.launch(&launch, LIMIT).expect("launch is valid");
    }

    #[test]
    fn random_prompts_do_not_panic(indices in proptest::collection::vec(any::<prop::sample::Index>(), 0..60)) {
        let table = RecordTable::new(&MachineSpec::seed()).expect("is valid");
        // Half of the records are exec and val; take them from the whole table and from its end.
        let size = usize::try_from(table.len()).expect("is small");
        let records: Vec<Record> = indices
            .iter()
            .enumerate()
            .map(|(position, index)| if position % 2 == 0 { index.index(size) } else { size - 1 - index.index(1700) })
            .filter_map(|index| table.record(u32::try_from(index).expect("is small")))
            .collect();
        let _ = run_stream(MachineSpec::seed(), &records, LIMIT);
    }
}

#[test]
fn prompts_that_are_refused() {
    let text = |records: &[&str]| {
        let table = RecordTable::new(&MachineSpec::seed()).expect("is valid");
        let records: Vec<Record> = records.iter().map(|text| table.parse(text).expect("is a record")).collect();
        run_stream(MachineSpec::seed(), &records, LIMIT).map_err(|error| error.to_string())
    };
    let check = |records: &[&str], expected: &str| assert_eq!(text(records), Err(expected.to_owned()));
    check(&[], "prompt ends without <|go|>");
    check(&["<|go|>"], "record 0 <|go|>: number of threads is not set");
    check(&["<|threads:01|>", "<|go|>"], "record 1 <|go|>: grid is not set, or too large");
    check(&["<|threads:00|>"], "record 0 <|threads:00|>: expected a positive number");
    check(&["<|ntid:x:00|>"], "record 0 <|ntid:x:00|>: expected a positive number");
    check(&["<|val:1:0:01|>"], "record 0 <|val:1:0:01|>: no word is open");
    check(&["<|gmem:00|>", "<|val:2:0:01|>"], "record 1 <|val:2:0:01|>: mask means no half of the open word");
    check(&["<|rom:000|>", "<|val:3:0:01|>"], "record 1 <|val:3:0:01|>: mask means no half of the open word");
    check(&["<|halt|>"], "record 0 <|halt|>: not a record of a prompt");
    let start = ["<|nctaid:x:01|>", "<|nctaid:y:01|>", "<|nctaid:z:01|>", "<|threads:01|>", "<|go|>"];
    assert!(text(&start).is_ok());
    check(&[&start[..], &["<|go|>"]].concat(), "record 4 <|go|>: expected the end of the prompt after it");
    let error = run_stream(MachineSpec::seed(), &[Record::Gmem { word: 126 }], LIMIT);
    assert!(matches!(error, Err(StreamError::Record { position: 0, .. })));
}

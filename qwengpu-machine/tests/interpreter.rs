//! The netlist speaks what the interpreter speaks, and leaves the same memory.

use proptest::prelude::*;
use qwengpu_circuit::Evaluator;
use qwengpu_interp::{Machine, Outcome};
use qwengpu_isa::strategies::{ProgramOptions, launch, raw_program, terminating_program};
use qwengpu_isa::{LaunchConfig, MachineSpec, Memory, Program, Record, prompt};
use std::sync::LazyLock;

static MACHINE: LazyLock<qwengpu_machine::Machine> =
    LazyLock::new(|| qwengpu_machine::build(&MachineSpec::seed()).expect("the preset can be built"));

/// Warp instructions after which a run is cut.
const STEP_LIMIT: u64 = 400;

/// Runs a program on both and compares records and final memory.
fn check(program: &Program, launch: &LaunchConfig) -> Result<(), TestCaseError> {
    let spec = MachineSpec::seed();
    let mut machine = Machine::new(spec, program).expect("the program fits");
    let run = machine.launch(launch, STEP_LIMIT).expect("the launch fits");
    let heard = prompt(&spec, program, launch).expect("the launch fits");
    let mut evaluator = Evaluator::new(&MACHINE.netlist);
    let mut last = 0;
    let mut hear = |evaluator: &mut Evaluator<'_>, record: Record| -> Result<usize, TestCaseError> {
        last = MACHINE.table.index(record) as usize;
        evaluator.run(last).map_err(|error| TestCaseError::fail(format!("{}: {error}", MACHINE.table.text(record))))?;
        Ok(last)
    };
    let mut token = 0;
    for record in heard {
        token = hear(&mut evaluator, record)?;
    }
    for (position, &record) in run.records.iter().enumerate() {
        let next = evaluator.next(token).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let said = u32::try_from(next).ok().and_then(|next| MACHINE.table.record(next));
        let text = |record: Option<Record>| record.map_or_else(String::new, |record| MACHINE.table.text(record));
        let before: Vec<String> = run.records[position.saturating_sub(12)..position]
            .iter()
            .map(|&record| MACHINE.table.text(record))
            .collect();
        prop_assert_eq!(text(said), text(Some(record)), "record {} after {:?}", position, before);
        token = hear(&mut evaluator, record)?;
    }
    if run.outcome == Outcome::Finished {
        let bytes: Vec<_> = (0..4)
            .map(|byte| {
                evaluator.state_rows(&qwengpu_machine::memory_state(Memory::Global, byte, None)).expect("it exists")
            })
            .collect();
        let words: Vec<u32> = (0..usize::from(spec.global_words))
            .map(|word| {
                let bits = bytes.iter().flat_map(|rows| rows[word]).enumerate();
                bits.fold(0, |sum, (i, &bit)| sum | u32::from(bit != 0) << i)
            })
            .collect();
        prop_assert_eq!(&words[..], machine.global());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("QWENGPU_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24), ..ProptestConfig::default() })]

    #[test]
    fn structured_programs(
        program in terminating_program(&MachineSpec::seed(), &ProgramOptions::default()),
        launch in launch(&MachineSpec::seed()),
    ) {
        check(&program, &launch)?;
    }

    #[test]
    fn programs_with_wild_addresses(
        program in terminating_program(&MachineSpec::seed(), &ProgramOptions { wild_addresses: true, ..ProgramOptions::default() }),
        launch in launch(&MachineSpec::seed()),
    ) {
        check(&program, &launch)?;
    }

    #[test]
    fn raw_programs(program in raw_program(24), launch in launch(&MachineSpec::seed())) {
        check(&program, &launch)?;
    }
}

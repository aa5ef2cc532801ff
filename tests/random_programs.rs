//! The compiled weights speak what the interpreter speaks, for random programs, and leave the same memory.

use std::cell::RefCell;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use qwengpu::{EngineKind, Gpu};
use qwengpu_interp::Machine;
use qwengpu_isa::strategies::{ProgramOptions, launch, raw_program, terminating_program};
use qwengpu_isa::{LaunchConfig, MachineSpec, Program, prompt};

/// Warp instructions after which a run is cut.
const STEP_LIMIT: u64 = 300;

thread_local! {
    static GPU: RefCell<Gpu> = RefCell::new(Gpu::new(EngineKind::Sparse).expect("the machine compiles"));
}

/// Runs a program on both and compares records and memory.
fn check(program: &Program, launch: &LaunchConfig) -> Result<(), TestCaseError> {
    let spec = MachineSpec::seed();
    let mut machine = Machine::new(spec, program).expect("the program fits");
    let run = machine.launch(launch, STEP_LIMIT).expect("the launch fits");
    let heard = prompt(&spec, program, launch).expect("the launch fits");
    let Some(count) = NonZeroUsize::new(run.records.len()) else { return Ok(()) };
    let speech = GPU
        .with_borrow_mut(|gpu| gpu.speak(&heard, count))
        .map_err(|error| TestCaseError::fail(format!("{error}; the interpreter speaks {:?}", run.records)))?;
    prop_assert_eq!(&speech.records, &run.records);
    // A run that was cut was cut behind different parts of an instruction.
    if run.outcome == qwengpu_interp::Outcome::Finished {
        prop_assert_eq!(&speech.global[..], machine.global());
    }
    Ok(())
}

fn config() -> ProptestConfig {
    let cases = std::env::var("QWENGPU_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(16), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn structured_programs(
        program in terminating_program(&MachineSpec::seed(), &ProgramOptions::default()),
        launch in launch(&MachineSpec::seed()),
    ) {
        check(&program, &launch)?;
    }

    #[test]
    fn programs_with_wild_addresses(
        program in terminating_program(
            &MachineSpec::seed(),
            &ProgramOptions { wild_addresses: true, ..ProgramOptions::default() },
        ),
        launch in launch(&MachineSpec::seed()),
    ) {
        check(&program, &launch)?;
    }

    #[test]
    fn raw_programs(program in raw_program(24), launch in launch(&MachineSpec::seed())) {
        check(&program, &launch)?;
    }
}

//! What each fuzz target does with its input. A target finds something if it panics.
//!
//! `cargo test -p qwengpu-ptx --test fuzz_bodies` runs the same bodies on damaged kernels.

use qwengpu_interp::Machine;
use qwengpu_isa::{Dim3, Instruction, LaunchConfig, MachineSpec, assemble, disassemble};
use qwengpu_ptx::{Options, PtxError, lower, parse};

/// Warp instructions after which a program is cut off.
const STEPS: u64 = 2_000;

/// Text that is PTX prints as the same PTX.
pub fn ptx_parser(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(module) = parse(text) else { return };
    let printed = module.to_string();
    let again = parse(&printed).expect("what is printed can be parsed");
    assert_eq!(again.to_string(), printed);
}

/// Text that is a program prints as the same program.
pub fn assembler(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(program) = assemble(text) else { return };
    let again = assemble(&program.to_string()).expect("what is printed can be assembled");
    assert_eq!(again.words(), program.words());
}

/// Words that are instructions encode as the same words, and run without a panic whatever they are.
pub fn decoder(input: &[u8]) {
    let (words, _) = input.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    for &word in &words {
        if let Ok(instruction) = Instruction::decode(word) {
            assert_eq!(instruction.encode(), word, "{instruction}");
        }
    }
    if let Ok(program) = disassemble(&words) {
        assert_eq!(program.words(), words);
    }
    let spec = MachineSpec::seed();
    let mut machine = Machine::power_on(spec).expect("the preset is valid");
    if machine.load_words(&words).is_ok() {
        let launch = LaunchConfig::new(Dim3::linear(2), Dim3::linear(6));
        machine.launch(&launch, STEPS).expect("the launch is valid");
    }
}

/// Text that is PTX is refused, or becomes a program that the machine accepts and runs.
pub fn pipeline(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(module) = parse(text) else { return };
    let spec = MachineSpec::seed();
    let names: Vec<String> = module.kernels().map(|kernel| kernel.name.text.clone()).collect();
    for name in names {
        match lower(&module, Some(&name), &Options::new(spec)) {
            Ok(lowered) => {
                let mut machine = Machine::new(spec, &lowered.program).expect("the machine accepts it");
                let launch = LaunchConfig::new(Dim3::linear(2), Dim3::linear(6));
                machine.launch(&launch, STEPS).expect("the launch is valid");
            }
            Err(error) => assert!(!matches!(error, PtxError::Internal { .. }), "{error}"),
        }
    }
}

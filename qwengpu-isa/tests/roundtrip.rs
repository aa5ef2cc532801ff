//! Words, instructions and text say the same.

use proptest::prelude::*;
use qwengpu_isa::strategies::{ProgramOptions, instruction, launch, raw_program, terminating_program};
use qwengpu_isa::{
    Fields, Instruction, MachineSpec, Opcode, Pc, Program, RecordTable, assemble, disassemble, prompt, verify,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decode_inverts_encode(instruction in instruction(512)) {
        prop_assert_eq!(Instruction::decode(instruction.encode()), Ok(instruction));
    }

    #[test]
    fn text_of_an_instruction_assembles_to_it(instruction in instruction(512)) {
        let text = instruction.to_string();
        let program = assemble(&text).map_err(|errors| TestCaseError::fail(errors.render(&text)))?;
        prop_assert_eq!(program.instructions, vec![instruction]);
    }

    #[test]
    fn the_fields_cover_every_bit(word: u64) {
        prop_assert_eq!(Fields::unpack(word).pack(), word);
    }

    #[test]
    fn a_word_that_decodes_is_canonical(word: u64, sparse in any::<u64>(), opcode in 0..34u8) {
        // Most random words have unused fields set; masking makes many of them valid.
        for word in [word, word & sparse, (word & sparse & !0x3f) | u64::from(opcode), u64::from(opcode) | (word & 0xffff_ffc0)] {
            if let Ok(instruction) = Instruction::decode(word) {
                prop_assert_eq!(instruction.encode(), word);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn text_of_a_program_assembles_to_it(
        mut program in raw_program(40),
        labels in proptest::collection::vec((any::<prop::sample::Index>(), "[a-z_$%][a-z0-9_$]{0,5}"), 0..6),
    ) {
        for (at, name) in labels {
            if program.label(&name).is_none() {
                program.add_label(Pc::try_from(at.index(program.instructions.len())).expect("is small"), name);
            }
        }
        prop_assert_eq!(verify(&MachineSpec::seed(), &program), Ok(()));
        let text = program.to_string();
        let again = assemble(&text).map_err(|errors| TestCaseError::fail(errors.render(&text)))?;
        prop_assert_eq!(again.to_string(), text);
        prop_assert_eq!(&again, &program);
        prop_assert_eq!(disassemble(&program.words()).expect("decodes").instructions, program.instructions);
    }

    #[test]
    fn generated_programs_are_valid_and_their_prompts_are_tokens(
        (program, launch) in (
            terminating_program(&MachineSpec::seed(), &ProgramOptions::default()),
            launch(&MachineSpec::seed()),
        )
    ) {
        let spec = MachineSpec::seed();
        prop_assert_eq!(verify(&spec, &program), Ok(()));
        let table = RecordTable::new(&spec).expect("seed is valid");
        for record in prompt(&spec, &program, &launch).expect("launch is valid") {
            prop_assert!(table.get(record).is_some(), "{}", record);
        }
    }
}

#[test]
fn every_opcode_has_a_syntax_line_that_starts_with_its_mnemonic() {
    for op in Opcode::ALL {
        assert!(op.syntax().starts_with(op.mnemonic()), "{op}");
    }
}

#[test]
fn a_program_of_every_form() {
    let source = include_str!("every_form.asm");
    let program = assemble(source).map_err(|errors| errors.render(source)).expect("assembles");
    verify(&MachineSpec::seed(), &program).expect("is valid");
    let used = Opcode::ALL.iter().filter(|op| program.instructions.iter().any(|i| i.opcode() == **op)).count();
    assert_eq!(used, Opcode::ALL.len());
    let words: Vec<String> = program
        .words()
        .iter()
        .zip(program.to_string().lines().filter(|line| line.starts_with(' ')))
        .map(|(word, text)| format!("{word:016x} {text}"))
        .collect();
    insta::assert_snapshot!("words_of_every_form", words.join("\n"));
    insta::assert_snapshot!("text_of_every_form", program.to_string());
    assert_eq!(assemble(&program.to_string()).as_ref(), Ok(&program));
    let bare = Program { instructions: program.instructions.clone(), ..Program::default() };
    assert_eq!(disassemble(&program.words()), Ok(bare));
}

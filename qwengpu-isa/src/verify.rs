//! Whether a machine can run a program.
//!
//! The types of an instruction rule out words without a meaning. What is left are the rules that need the whole
//! program or the sizes of the machine:
//!
//! - V01 a program has at least one instruction;
//! - V02 it fits the program memory;
//! - V03 branch targets are instructions of the program;
//! - V04 registers and predicates exist on the machine;
//! - V05 `bar` and `trap` have the guard `pt`;
//! - V06 control does not run off the end: the last instruction is an `exit`, `bra`, `brx` or `trap` under `pt`;
//! - V07 labels name instructions, are identifiers, sorted, and unique;
//! - V08 shared and local memory are large enough;
//! - V09 parameters are aligned, inside the parameter area, and do not overlap;
//! - V10 the names of the kernel and its parameters are identifiers or empty.
//!
//! Not checked, because it depends on data: targets of `brx`, addresses, and divergence at barriers.

use std::fmt;

use thiserror::Error;

use crate::asm::is_identifier;
use crate::inst::Instruction;
use crate::program::{KernelSignature, Program};
use crate::reg::{ConstIdx, Guard, Pc, PredReg, Reg};
use crate::spec::{MachineSpec, Memory};

/// Checks a program against a machine.
///
/// # Errors
///
/// Returns every rule that is broken.
pub fn verify(spec: &MachineSpec, program: &Program) -> Result<(), VerifyErrors> {
    let mut errors = Vec::new();
    let length = program.instructions.len();
    if length == 0 {
        errors.push(VerifyError::program(VerifyErrorKind::Empty));
    }
    if length > usize::from(spec.rom_words) {
        errors.push(VerifyError::program(VerifyErrorKind::TooLong { length, max: spec.rom_words }));
    }
    for (index, instruction) in program.instructions.iter().enumerate() {
        check_instruction(spec, length, instruction, |kind| {
            errors.push(VerifyError::instruction(index, instruction, kind));
        });
    }
    if let Some(last) = program.instructions.last().filter(|last| last.can_fall_through()) {
        errors.push(VerifyError::instruction(length - 1, last, VerifyErrorKind::RunsOffEnd));
    }
    check_labels(program, &mut |kind| errors.push(VerifyError::program(kind)));
    check_signature(spec, &program.signature, &mut |kind| errors.push(VerifyError::program(kind)));
    if errors.is_empty() { Ok(()) } else { Err(VerifyErrors { errors }) }
}

fn check_instruction(
    spec: &MachineSpec,
    length: usize,
    instruction: &Instruction,
    mut report: impl FnMut(VerifyErrorKind),
) {
    let operation = &instruction.operation;
    if let Some(target) = instruction.target()
        && target.index() >= length
    {
        report(VerifyErrorKind::BranchTarget { target, length });
    }
    for reg in operation.registers_read().into_iter().flatten().chain(operation.rd()) {
        if u16::from(reg.index()) >= spec.registers {
            report(VerifyErrorKind::Register { reg, registers: spec.registers });
        }
    }
    let sources = operation.predicates_read().into_iter().flatten().chain([instruction.guard]);
    for pred in sources.map(|source| source.index).chain(operation.pd()) {
        if !pred.is_true() && u16::from(pred.index()) >= spec.predicates {
            report(VerifyErrorKind::Predicate { pred, predicates: spec.predicates });
        }
    }
    if !instruction.opcode().allows_guard() && instruction.guard != Guard::TRUE {
        report(VerifyErrorKind::Guarded);
    }
}

fn check_labels(program: &Program, report: &mut impl FnMut(VerifyErrorKind)) {
    let labels = &program.labels;
    if !labels.is_sorted() {
        report(VerifyErrorKind::LabelOrder);
    }
    for (position, label) in labels.iter().enumerate() {
        let name = label.name.clone();
        if label.pc.index() >= program.instructions.len() {
            report(VerifyErrorKind::LabelTarget { name, pc: label.pc });
        } else if !is_identifier(&name) {
            report(VerifyErrorKind::Name { what: "label", name });
        } else if labels[..position].iter().any(|earlier| earlier.name == name) {
            report(VerifyErrorKind::DuplicateLabel { name });
        }
    }
}

fn check_signature(spec: &MachineSpec, signature: &KernelSignature, report: &mut impl FnMut(VerifyErrorKind)) {
    if !(signature.name.is_empty() || is_identifier(&signature.name)) {
        report(VerifyErrorKind::Name { what: "kernel", name: signature.name.clone() });
    }
    for (memory, bytes) in [(Memory::Shared, signature.shared_bytes), (Memory::Local, signature.local_bytes)] {
        let max = spec.window(memory).bytes();
        if bytes > max {
            report(VerifyErrorKind::MemorySize { memory, bytes, max });
        }
    }
    let space = 4 * u64::from(ConstIdx::PARAMETER_WORDS);
    let mut previous_end = 0;
    for (parameter, param) in signature.params.iter().enumerate() {
        let start = u64::from(param.offset);
        let end = start + u64::from(param.size);
        if !param.align.is_power_of_two() || !param.offset.is_multiple_of(param.align) {
            report(VerifyErrorKind::ParameterAlignment { parameter, offset: param.offset, align: param.align });
        }
        if end > space {
            report(VerifyErrorKind::ParameterSpace { parameter, end, max: space });
        }
        if start < previous_end {
            report(VerifyErrorKind::ParameterOverlap { parameter });
        }
        if !(param.name.is_empty() || is_identifier(&param.name)) {
            report(VerifyErrorKind::Name { what: "parameter", name: param.name.clone() });
        }
        previous_end = end;
    }
}

/// A rule that a program breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError {
    /// The instruction that breaks it, with its index; `None` if it is the program as a whole.
    pub instruction: Option<(usize, Instruction)>,
    /// The rule.
    pub kind: VerifyErrorKind,
}

impl VerifyError {
    fn program(kind: VerifyErrorKind) -> Self {
        Self { instruction: None, kind }
    }

    fn instruction(index: usize, instruction: &Instruction, kind: VerifyErrorKind) -> Self {
        Self { instruction: Some((index, *instruction)), kind }
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.instruction {
            Some((index, instruction)) => write!(f, "instruction {index} `{instruction}`: {}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl std::error::Error for VerifyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.kind)
    }
}

/// The rules a program can break; the numbers are those of the module documentation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VerifyErrorKind {
    /// V01
    #[error("V01 program is empty, expected at least one instruction")]
    Empty,
    /// V02
    #[error("V02 program has {length} instructions, expected at most {max}")]
    TooLong {
        /// Instructions of the program.
        length: usize,
        /// Words of the program memory.
        max: u16,
    },
    /// V03
    #[error("V03 branch target is {target}, expected an index below {length}")]
    BranchTarget {
        /// The target.
        target: Pc,
        /// Instructions of the program.
        length: usize,
    },
    /// V04, a register
    #[error("V04 register {reg} does not exist, the machine has {registers}")]
    Register {
        /// The register.
        reg: Reg,
        /// Registers of the machine.
        registers: u16,
    },
    /// V04, a predicate
    #[error("V04 predicate {pred} does not exist, the machine has {predicates}")]
    Predicate {
        /// The predicate.
        pred: PredReg,
        /// Predicates of the machine.
        predicates: u16,
    },
    /// V05
    #[error("V05 instruction has a guard, expected pt")]
    Guarded,
    /// V06
    #[error("V06 control runs off the end, expected an unguarded exit, bra, brx or trap")]
    RunsOffEnd,
    /// V07, the place of a label
    #[error("V07 label {name} is at {pc}, which is no instruction")]
    LabelTarget {
        /// The label.
        name: String,
        /// Its place.
        pc: Pc,
    },
    /// V07, the order of the labels
    #[error("V07 labels are not sorted by index and name")]
    LabelOrder,
    /// V07, a name used twice
    #[error("V07 label {name} is defined more than once")]
    DuplicateLabel {
        /// The label.
        name: String,
    },
    /// V08
    #[error("V08 program needs {bytes} bytes of {memory:?} memory, the machine has {max}")]
    MemorySize {
        /// The memory.
        memory: Memory,
        /// Bytes needed.
        bytes: u32,
        /// Bytes of the machine.
        max: u32,
    },
    /// V09, alignment
    #[error("V09 parameter {parameter} is at byte {offset}, expected a multiple of {align}, a power of two")]
    ParameterAlignment {
        /// Position of the parameter.
        parameter: usize,
        /// Its offset.
        offset: u32,
        /// Its alignment.
        align: u32,
    },
    /// V09, the parameter area
    #[error("V09 parameter {parameter} ends at byte {end}, expected at most {max}")]
    ParameterSpace {
        /// Position of the parameter.
        parameter: usize,
        /// Its end.
        end: u64,
        /// Size of the parameter area in bytes.
        max: u64,
    },
    /// V09, overlap
    #[error("V09 parameter {parameter} starts before the end of the one in front of it")]
    ParameterOverlap {
        /// Position of the parameter.
        parameter: usize,
    },
    /// V07 and V10
    #[error("V10 {name:?} is no identifier and cannot name a {what}")]
    Name {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
}

/// The rules a program breaks; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyErrors {
    /// The errors: instructions in their order, then the program as a whole.
    pub errors: Vec<VerifyError>,
}

impl fmt::Display for VerifyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.errors.iter().enumerate() {
            if position > 0 {
                f.write_str("; ")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for VerifyErrors {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::assemble;
    use crate::program::{Param, ParamKind};

    fn check(change: impl FnOnce(&mut MachineSpec, &mut Program), expected: &[&str]) {
        let mut spec = MachineSpec::seed();
        let source = ".kernel k\nstart:\n iadd r9, r1, r2\n @p5 bra start\n bar\n exit\n";
        let mut program = assemble(source).expect("assembles");
        assert_eq!(verify(&spec, &program), Ok(()));
        change(&mut spec, &mut program);
        let errors = verify(&spec, &program).expect_err("is refused").errors;
        assert_eq!(errors.iter().map(VerifyError::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_rule_can_fail() {
        check(|_, p| *p = Program::default(), &["V01 program is empty, expected at least one instruction"]);
        check(|s, _| s.rom_words = 2, &["V02 program has 4 instructions, expected at most 2"]);
        check(
            |_, p| p.instructions[1] = Instruction::bra(Pc::new(4)),
            &["instruction 1 `bra 4`: V03 branch target is 4, expected an index below 4"],
        );
        check(
            |s, _| (s.registers, s.predicates) = (8, 4),
            &[
                "instruction 0 `iadd r9, r1, r2`: V04 register r9 does not exist, the machine has 8",
                "instruction 1 `@p5 bra 0`: V04 predicate p5 does not exist, the machine has 4",
            ],
        );
        check(
            |_, p| p.instructions[2].guard = Guard::plain(PredReg::P1),
            &["instruction 2 `@p1 bar`: V05 instruction has a guard, expected pt"],
        );
        check(
            |_, p| p.instructions[3].guard = Guard::plain(PredReg::P1),
            &["instruction 3 `@p1 exit`: V06 control runs off the end, expected an unguarded exit, bra, brx or trap"],
        );
        check(|_, p| p.add_label(Pc::new(4), "end"), &["V07 label end is at 4, which is no instruction"]);
        check(|_, p| p.add_label(Pc::new(2), "start"), &["V07 label start is defined more than once"]);
        check(|_, p| p.add_label(Pc::new(2), "a b"), &["V10 \"a b\" is no identifier and cannot name a label"]);
        check(
            |_, p| {
                p.add_label(Pc::new(1), "next");
                p.labels.swap(0, 1);
            },
            &["V07 labels are not sorted by index and name"],
        );
        check(
            |_, p| (p.signature.shared_bytes, p.signature.local_bytes) = (513, 65),
            &[
                "V08 program needs 513 bytes of Shared memory, the machine has 512",
                "V08 program needs 65 bytes of Local memory, the machine has 64",
            ],
        );
        let param = |offset, size| Param::scalar("n", ParamKind::Unsigned, offset, size);
        check(
            |_, p| p.signature.params = vec![param(2, 4), param(4, 4), param(384, 4)],
            &[
                "V09 parameter 0 is at byte 2, expected a multiple of 4, a power of two",
                "V09 parameter 1 starts before the end of the one in front of it",
                "V09 parameter 2 ends at byte 388, expected at most 384",
            ],
        );
        check(|_, p| p.signature.name = "k()".to_owned(), &["V10 \"k()\" is no identifier and cannot name a kernel"]);
    }
}

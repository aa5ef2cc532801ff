//! Instructions and programs to assembly text, which assembles to the same words.

use std::fmt;

use thiserror::Error;

use crate::decode::DecodeError;
use crate::inst::{BinaryOp, Dividend, Instruction, Operation, TernaryOp, UnaryOp};
use crate::modifier::{Extremum, Signedness};
use crate::operand::{Address, Operand};
use crate::program::Program;
use crate::reg::{Guard, PredSource};

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Register(reg) => reg.fmt(f),
            Self::Constant(index) => index.fmt(f),
            // Small magnitudes are numbers to a reader, everything else is a bit pattern.
            Self::Immediate(value) => match value.cast_signed() {
                small @ -0xffff..=0xffff => write!(f, "{small}"),
                _ => write!(f, "{value:#x}"),
            },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.base.is_zero() {
            parts.push(self.base.to_string());
        }
        if !self.index.is_zero() {
            parts.push(format!("{}*4", self.index));
        }
        if let Some(index) = self.constant {
            parts.push(index.to_string());
        }
        let offset = self.offset.get();
        let sum = parts.join(" + ");
        match (sum.is_empty(), offset) {
            (true, _) if offset < 0 => write!(f, "[{offset}]"),
            (true, _) => write!(f, "[{offset:#x}]"),
            (false, 0) => write!(f, "[{sum}]"),
            (false, _) if offset < 0 => write!(f, "[{sum} - {}]", offset.unsigned_abs()),
            (false, _) => write!(f, "[{sum} + {offset}]"),
        }
    }
}

impl fmt::Display for TernaryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iadd => f.write_str("iadd"),
            Self::Isub => f.write_str("isub"),
            Self::Imad => f.write_str("imad"),
            Self::Iscadd(shift) => write!(f, "iscadd.{shift}"),
        }
    }
}

impl fmt::Display for BinaryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lop(table) => write!(f, "lop.{table}"),
            Self::Shl => f.write_str("shl"),
            Self::Shr(signedness) => write!(f, "shr.{signedness}"),
            Self::Imnmx(extremum, signedness) => write!(f, "imnmx.{extremum}.{signedness}"),
        }
    }
}

impl fmt::Display for UnaryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clz => "clz",
            Self::Popc => "popc",
            Self::Brev => "brev",
        })
    }
}

impl fmt::Display for Signedness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.suffix())
    }
}

impl fmt::Display for Extremum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Min => "min",
            Self::Max => "max",
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Trap { reason } => write!(f, "trap.{}", reason.name()),
            Self::Exit | Self::Bar => self.opcode().fmt(f),
            Self::Bra { target } => write!(f, "{} {target}", BranchOperands(self)),
            Self::Brx { a } => write!(f, "brx {a}"),
            Self::Brc { target, .. } => write!(f, "{} {target}", BranchOperands(self)),
            Self::Ternary { op, rd, a, b, c } if c.is_zero() => write!(f, "{op} {rd}, {a}, {b}"),
            Self::Ternary { op, rd, a, b, c } => write!(f, "{op} {rd}, {a}, {b}, {c}"),
            Self::Binary { op, rd, a, b } => write!(f, "{op} {rd}, {a}, {b}"),
            Self::Unary { op, rd, b } => write!(f, "{op} {rd}, {b}"),
            Self::Lop3 { table, rd, a, b, c } => write!(f, "lop3.{table} {rd}, {a}, {b}, {c}"),
            Self::Sel { rd, a, b, condition } => write!(f, "sel {rd}, {a}, {b}, {condition}"),
            Self::Setp { comparison, pd, a, b, and: PredSource::TRUE } => {
                write!(f, "setp.{comparison} {pd}, {a}, {b}")
            }
            Self::Setp { comparison, pd, a, b, and } => write!(f, "setp.{comparison} {pd}, {a}, {b}, {and}"),
            Self::Plop { table, pd, p, q } => write!(f, "plop.{table} {pd}, {p}, {q}"),
            Self::Shfl { mode, rd, a, b } => write!(f, "shfl.{mode} {rd}, {a}, {b}"),
            Self::Vote { rd, source } => write!(f, "vote {rd}, {source}"),
            Self::S2r { rd, special } => write!(f, "s2r {rd}, {special}"),
            Self::Sdiv { part, rd, dividend: Dividend::Register(a), b } => write!(f, "sdiv.{part} {rd}, {a}, {b}"),
            Self::Sdiv { part, rd, dividend: Dividend::LinearTid, b } => write!(f, "sdiv.{part}.lin {rd}, {b}"),
            Self::Lead { pd, a } => write!(f, "lead {pd}, {a}"),
            Self::Ld { width, rd, address } => write!(f, "ld.{width} {rd}, {address}"),
            Self::St { width, address, c } => write!(f, "st.{width} {address}, {c}"),
        }
    }
}

/// A branch without its target, which is an index or a label.
struct BranchOperands<'a>(&'a Operation);

impl fmt::Display for BranchOperands<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.opcode().fmt(f)?;
        if let Operation::Brc { comparison, a, b, and, .. } = *self.0 {
            write!(f, ".{comparison} {a}, {},", b.widen())?;
            if and != PredSource::TRUE {
                write!(f, " {and},")?;
            }
        }
        Ok(())
    }
}

/// The assembly text; a branch target is an instruction index.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.guard != Guard::TRUE {
            write!(f, "@{} ", self.guard)?;
        }
        self.operation.fmt(f)
    }
}

/// The assembly text; a branch target is a label where there is one.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signature = &self.signature;
        if !signature.name.is_empty() {
            writeln!(f, ".kernel {}", signature.name)?;
        }
        for param in &signature.params {
            let (kind, offset, size, align) = (param.kind.text(), param.offset, param.size, param.align);
            write!(f, ".param {kind} offset {offset} size {size} align {align}")?;
            if param.name.is_empty() { writeln!(f) } else { writeln!(f, " {}", param.name) }?;
        }
        if signature.shared_bytes != 0 {
            writeln!(f, ".shared {}", signature.shared_bytes)?;
        }
        if signature.local_bytes != 0 {
            writeln!(f, ".local {}", signature.local_bytes)?;
        }
        let mut labels = self.labels.iter().peekable();
        for (index, instruction) in self.instructions.iter().enumerate() {
            while let Some(label) = labels.next_if(|label| label.pc.index() <= index) {
                writeln!(f, "{}:", label.name)?;
            }
            f.write_str("    ")?;
            match instruction.target().and_then(|target| self.label_at(target)) {
                Some(name) => {
                    if instruction.guard != Guard::TRUE {
                        write!(f, "@{} ", instruction.guard)?;
                    }
                    writeln!(f, "{} {name}", BranchOperands(&instruction.operation))?;
                }
                None => writeln!(f, "{instruction}")?,
            }
        }
        for label in labels {
            writeln!(f, "{}:", label.name)?;
        }
        Ok(())
    }
}

/// The program of instruction words, without names.
///
/// # Errors
///
/// Returns the first word that is no instruction.
pub fn disassemble(words: &[u64]) -> Result<Program, DisassembleError> {
    let mut program = Program::default();
    for (index, &word) in words.iter().enumerate() {
        let instruction = Instruction::decode(word).map_err(|source| DisassembleError { index, source })?;
        program.instructions.push(instruction);
    }
    Ok(program)
}

/// A word of a program that is no instruction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("word {index}: {source}")]
pub struct DisassembleError {
    /// Index of the word.
    pub index: usize,
    /// Why it is none.
    pub source: DecodeError,
}

//! Words to instructions.

use thiserror::Error;

use crate::encode::{B_CONSTANT, B_IMMEDIATE, B_REGISTER, Fields};
use crate::inst::{BinaryOp, Dividend, Instruction, Operation, TernaryOp, UnaryOp};
use crate::modifier::{
    Comparison, DivisionPart, Extremum, LoadWidth, ScaleShift, ShuffleMode, Signedness, SpecialReg, StoreWidth, Table2,
    Table3, TrapReason,
};
use crate::op::Opcode;
use crate::operand::{Address, Offset, Operand, ShortOperand};
use crate::reg::{ConstIdx, Guard, Pc, PredReg, PredSource, Reg};

/// A word that is no canonical instruction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No opcode has this number.
    #[error("opcode {number} does not exist")]
    UnknownOpcode {
        /// The opcode field.
        number: u8,
    },
    /// A field has a value that means nothing.
    #[error("{opcode}: field {field} is {value:#x}, which has no meaning")]
    InvalidField {
        /// The opcode.
        opcode: Opcode,
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A field the instruction does not use is not zero.
    #[error("{opcode}: unused field {field} is not zero")]
    NotCanonical {
        /// The opcode.
        opcode: Opcode,
        /// Name of the field.
        field: &'static str,
    },
    /// An instruction that must not have a guard has one.
    #[error("{opcode} has guard {guard}, expected pt")]
    Guarded {
        /// The opcode.
        opcode: Opcode,
        /// The guard.
        guard: Guard,
    },
}

impl Instruction {
    /// The instruction of a word.
    ///
    /// # Errors
    ///
    /// Fails unless the word is exactly what [`Instruction::encode`] makes of an instruction whose guard is allowed.
    pub fn decode(word: u64) -> Result<Self, DecodeError> {
        let fields = Fields::unpack(word);
        let opcode = Opcode::from_number(fields.opcode).ok_or(DecodeError::UnknownOpcode { number: fields.opcode })?;
        let reader = Reader { opcode, fields };
        let guard = reader.predicate_source("guard", fields.guard)?;
        let instruction = Self { guard, operation: reader.operation()? };
        if !opcode.allows_guard() && guard != Guard::TRUE {
            return Err(DecodeError::Guarded { opcode, guard });
        }
        match first_difference(fields, instruction.fields()) {
            None => Ok(instruction),
            Some(field) => Err(DecodeError::NotCanonical { opcode, field }),
        }
    }
}

/// The first field in which a word differs from the canonical word of its meaning.
fn first_difference(word: Fields, canonical: Fields) -> Option<&'static str> {
    [
        ("rd", word.rd != canonical.rd),
        ("ra", word.ra != canonical.ra),
        ("rb", word.rb != canonical.rb),
        ("rc", word.rc != canonical.rc),
        ("b_kind", word.b_kind != canonical.b_kind),
        ("sub", word.sub != canonical.sub),
        ("imm", word.imm != canonical.imm),
    ]
    .into_iter()
    .find_map(|(field, differs)| differs.then_some(field))
}

/// Reads fields as the types they have under one opcode.
struct Reader {
    opcode: Opcode,
    fields: Fields,
}

impl Reader {
    fn invalid(&self, field: &'static str, value: u32) -> DecodeError {
        DecodeError::InvalidField { opcode: self.opcode, field, value }
    }

    fn register(&self, field: &'static str, value: u8) -> Result<Reg, DecodeError> {
        Reg::new(value).ok_or_else(|| self.invalid(field, value.into()))
    }

    fn predicate_source(&self, field: &'static str, value: u8) -> Result<PredSource, DecodeError> {
        PredSource::from_field(value).ok_or_else(|| self.invalid(field, value.into()))
    }

    fn rd(&self) -> Result<Reg, DecodeError> {
        self.register("rd", self.fields.rd)
    }

    fn a(&self) -> Result<Reg, DecodeError> {
        self.register("ra", self.fields.ra)
    }

    fn b_register(&self) -> Result<Reg, DecodeError> {
        self.register("rb", self.fields.rb)
    }

    fn c(&self) -> Result<Reg, DecodeError> {
        self.register("rc", self.fields.rc)
    }

    fn pd(&self) -> Result<PredReg, DecodeError> {
        PredReg::new(self.fields.rd).ok_or_else(|| self.invalid("rd", self.fields.rd.into()))
    }

    fn c_pred(&self) -> Result<PredSource, DecodeError> {
        self.predicate_source("rc", self.fields.rc)
    }

    fn constant(&self, field: &'static str, index: u32) -> Result<ConstIdx, DecodeError> {
        u8::try_from(index).ok().and_then(ConstIdx::new).ok_or_else(|| self.invalid(field, index))
    }

    fn b(&self) -> Result<Operand, DecodeError> {
        self.operand(self.fields.imm)
    }

    /// Operand B, with an immediate or a constant in `imm`.
    fn operand(&self, imm: u32) -> Result<Operand, DecodeError> {
        match self.fields.b_kind {
            B_REGISTER => self.b_register().map(Operand::Register),
            B_IMMEDIATE => Ok(Operand::Immediate(imm)),
            B_CONSTANT => self.constant("imm", imm).map(Operand::Constant),
            other => Err(self.invalid("b_kind", other.into())),
        }
    }

    fn sub<T>(&self, meaning: Option<T>) -> Result<T, DecodeError> {
        meaning.ok_or_else(|| self.invalid("sub", self.fields.sub.into()))
    }

    fn address(&self) -> Result<Address, DecodeError> {
        let [o0, o1, o2, k] = self.fields.imm.to_le_bytes();
        let fill = if o2 & 0x80 == 0 { 0 } else { 0xff };
        let offset = i32::from_le_bytes([o0, o1, o2, fill]);
        let constant = match self.fields.b_kind & 1 {
            0 => None,
            _ => Some(self.constant("imm", k.into())?),
        };
        Ok(Address {
            base: self.a()?,
            index: self.b_register()?,
            constant,
            offset: Offset::new(offset).ok_or_else(|| self.invalid("imm", self.fields.imm))?,
        })
    }

    fn ternary(&self, op: TernaryOp) -> Result<Operation, DecodeError> {
        Ok(Operation::Ternary { op, rd: self.rd()?, a: self.a()?, b: self.b()?, c: self.c()? })
    }

    fn binary(&self, op: BinaryOp) -> Result<Operation, DecodeError> {
        Ok(Operation::Binary { op, rd: self.rd()?, a: self.a()?, b: self.b()? })
    }

    fn unary(&self, op: UnaryOp) -> Result<Operation, DecodeError> {
        Ok(Operation::Unary { op, rd: self.rd()?, b: self.b()? })
    }

    fn operation(&self) -> Result<Operation, DecodeError> {
        let Fields { ra, rb, sub, imm, .. } = self.fields;
        let sign = |bit: u8| if sub & bit == 0 { Signedness::Unsigned } else { Signedness::Signed };
        Ok(match self.opcode {
            Opcode::Trap => Operation::Trap { reason: self.sub(TrapReason::from_field(sub))? },
            Opcode::Exit => Operation::Exit,
            Opcode::Bra => {
                let target = u16::try_from(imm).ok().ok_or_else(|| self.invalid("imm", imm))?;
                Operation::Bra { target: Pc::new(target) }
            }
            Opcode::Brx => Operation::Brx { a: self.a()? },
            Opcode::Brc => {
                let [b0, b1, t0, t1] = imm.to_le_bytes();
                let b = self.operand(u16::from_le_bytes([b0, b1]).into())?;
                Operation::Brc {
                    comparison: self.sub(Comparison::from_field(sub))?,
                    a: self.a()?,
                    b: ShortOperand::new(b).ok_or_else(|| self.invalid("imm", imm))?,
                    and: self.c_pred()?,
                    target: Pc::new(u16::from_le_bytes([t0, t1])),
                }
            }
            Opcode::Bar => Operation::Bar,
            Opcode::Iadd => self.ternary(TernaryOp::Iadd)?,
            Opcode::Isub => self.ternary(TernaryOp::Isub)?,
            Opcode::Imad => self.ternary(TernaryOp::Imad)?,
            Opcode::Iscadd => self.ternary(TernaryOp::Iscadd(self.sub(ScaleShift::new(sub))?))?,
            Opcode::Lop => self.binary(BinaryOp::Lop(self.sub(Table2::new(sub))?))?,
            Opcode::Shl => self.binary(BinaryOp::Shl)?,
            Opcode::Shr => self.binary(BinaryOp::Shr(sign(1)))?,
            Opcode::Imnmx => {
                let extremum = if sub & 1 == 0 { Extremum::Min } else { Extremum::Max };
                self.binary(BinaryOp::Imnmx(extremum, sign(2)))?
            }
            Opcode::Sel => Operation::Sel { rd: self.rd()?, a: self.a()?, b: self.b()?, condition: self.c_pred()? },
            Opcode::Setp => Operation::Setp {
                comparison: self.sub(Comparison::from_field(sub))?,
                pd: self.pd()?,
                a: self.a()?,
                b: self.b()?,
                and: self.c_pred()?,
            },
            Opcode::Plop => Operation::Plop {
                table: self.sub(Table2::new(sub))?,
                pd: self.pd()?,
                p: self.predicate_source("ra", ra)?,
                q: self.predicate_source("rb", rb)?,
            },
            Opcode::Shfl => Operation::Shfl {
                mode: self.sub(ShuffleMode::from_field(sub))?,
                rd: self.rd()?,
                a: self.a()?,
                b: self.b()?,
            },
            Opcode::Vote => Operation::Vote { rd: self.rd()?, source: self.c_pred()? },
            Opcode::S2r => Operation::S2r { rd: self.rd()?, special: self.sub(SpecialReg::from_field(sub))? },
            Opcode::Sdiv => Operation::Sdiv {
                part: self.sub(DivisionPart::from_field(sub & 1))?,
                rd: self.rd()?,
                dividend: if sub & 2 == 0 { Dividend::Register(self.a()?) } else { Dividend::LinearTid },
                b: self.b()?,
            },
            Opcode::Clz => self.unary(UnaryOp::Clz)?,
            Opcode::Popc => self.unary(UnaryOp::Popc)?,
            Opcode::Lead => Operation::Lead { pd: self.pd()?, a: self.a()? },
            Opcode::Ld => {
                Operation::Ld { width: self.sub(LoadWidth::from_field(sub))?, rd: self.rd()?, address: self.address()? }
            }
            Opcode::St => {
                Operation::St { width: self.sub(StoreWidth::from_field(sub))?, address: self.address()?, c: self.c()? }
            }
            Opcode::Brev => self.unary(UnaryOp::Brev)?,
            Opcode::Lop3 => Operation::Lop3 {
                table: u8::try_from(imm).ok().map(Table3::new).ok_or_else(|| self.invalid("imm", imm))?,
                rd: self.rd()?,
                a: self.a()?,
                b: self.b_register()?,
                c: self.c()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_mean_nothing_are_refused() {
        let iadd = Instruction::iadd(Reg::R1, Reg::R2, Reg::R3, Reg::R4).encode();
        let check = |word: u64, expected: &str| {
            assert_eq!(Instruction::decode(word).expect_err("is refused").to_string(), expected);
        };
        check(63, "opcode 63 does not exist");
        check(iadd | 3 << 26, "iadd: field b_kind is 0x3, which has no meaning");
        check(iadd | 1 << 28, "iadd: unused field sub is not zero");
        check(iadd | 1 << 32, "iadd: unused field imm is not zero");
        check(iadd | 1 << 26, "iadd: unused field rb is not zero");
        let exit = Instruction::exit().encode();
        check(exit | 1 << 10, "exit: unused field rd is not zero");
        check(exit | 1 << 14, "exit: unused field ra is not zero");
        check(exit | 1 << 22, "exit: unused field rc is not zero");
        check(Instruction::bar().guarded(PredReg::P0).encode(), "bar has guard p0, expected pt");
        check(0, "trap has guard p0, expected pt");
        let setp = Instruction::setp(Comparison::Eq, PredReg::P0, Reg::R1, 0);
        check(setp.encode() | 8 << 28, "setp: field sub is 0x8, which has no meaning");
        check(setp.encode() | 8 << 10, "setp: field rd is 0x8, which has no meaning");
        check(
            Instruction::mov(Reg::R1, ConstIdx::CTAID_X).encode() | 128 << 32,
            "iadd: field imm is 0xf5, which has no meaning",
        );
        let lin = Instruction::sdiv_tid(DivisionPart::Quotient, Reg::R1, 3);
        check(lin.encode() | 1 << 14, "sdiv: unused field ra is not zero");
        let ld = Instruction::ld(LoadWidth::B32, Reg::R1, Address::register(Reg::R2)).encode();
        check(ld | 1 << 56, "ld: unused field imm is not zero");
        check(ld | 2 << 26, "ld: unused field b_kind is not zero");
        check(ld + (1 << 28), "ld: field sub is 0x5, which has no meaning");
        check(Instruction::bra(Pc::ENTRY).encode() | 1 << 48, "bra: field imm is 0x10000, which has no meaning");
    }
}

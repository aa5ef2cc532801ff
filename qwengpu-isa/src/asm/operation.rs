//! The operands and modifiers of each opcode.

use super::error::{AsmError, AsmErrorKind};
use super::parser::{Parsed, Parser};
use crate::inst::{BinaryOp, Dividend, Operation, TernaryOp, UnaryOp};
use crate::modifier::{
    Comparison, DivisionPart, Extremum, LoadWidth, Relation, ScaleShift, ShuffleMode, Signedness, SpecialReg,
    StoreWidth, Table2, Table3, TrapReason,
};
use crate::op::Opcode;
use crate::reg::{PredSource, Reg};
use crate::span::Span;

/// The modifiers of an instruction, taken from the left.
struct Modifiers {
    opcode: Opcode,
    span: Span,
    rest: std::vec::IntoIter<(String, Span)>,
}

impl Modifiers {
    /// The next modifier, which must be there and have a meaning.
    fn next<T>(&mut self, meaning: impl Fn(&str) -> Option<T>) -> Parsed<T> {
        let Some((modifier, span)) = self.rest.next() else {
            return Err(AsmError { span: self.span, kind: AsmErrorKind::MissingModifier { opcode: self.opcode } });
        };
        meaning(&modifier).ok_or(AsmError { span, kind: AsmErrorKind::Modifier { opcode: self.opcode, modifier } })
    }

    /// Takes a modifier if it is next.
    fn take(&mut self, text: &str) -> bool {
        let found = self.rest.as_slice().first().is_some_and(|(modifier, _)| modifier == text);
        if found {
            self.rest.next();
        }
        found
    }

    /// A comparison, which is all that is left.
    fn comparison(mut self) -> Parsed<Comparison> {
        let comparison = match self.next(relation)? {
            relation @ (Relation::Eq | Relation::Ne) => Comparison::new(relation, Signedness::Unsigned),
            relation @ (Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge) => {
                Comparison::new(relation, self.next(signedness)?)
            }
        };
        self.end()?;
        Ok(comparison)
    }

    /// There must be no more.
    fn end(mut self) -> Parsed<()> {
        match self.rest.next() {
            None => Ok(()),
            Some((modifier, span)) => {
                Err(AsmError { span, kind: AsmErrorKind::Modifier { opcode: self.opcode, modifier } })
            }
        }
    }
}

fn signedness(text: &str) -> Option<Signedness> {
    match text {
        "u" => Some(Signedness::Unsigned),
        "s" => Some(Signedness::Signed),
        _ => None,
    }
}

fn extremum(text: &str) -> Option<Extremum> {
    match text {
        "min" => Some(Extremum::Min),
        "max" => Some(Extremum::Max),
        _ => None,
    }
}

fn trap_reason(text: &str) -> Option<TrapReason> {
    TrapReason::ALL.into_iter().find(|reason| reason.name() == text)
}

fn relation(text: &str) -> Option<Relation> {
    match text {
        "eq" => Some(Relation::Eq),
        "ne" => Some(Relation::Ne),
        "lt" => Some(Relation::Lt),
        "le" => Some(Relation::Le),
        "gt" => Some(Relation::Gt),
        "ge" => Some(Relation::Ge),
        _ => None,
    }
}

fn table2(text: &str) -> Option<Table2> {
    let named = Table2::NAMED.iter().find(|(_, name)| *name == text);
    named.map(|&(table, _)| table).or_else(|| text.parse().ok().and_then(Table2::new))
}

fn table3(text: &str) -> Option<Table3> {
    text.parse().ok().map(Table3::new)
}

fn scale_shift(text: &str) -> Option<ScaleShift> {
    text.parse().ok().and_then(ScaleShift::new)
}

impl Parser {
    /// The operation of an opcode at `span`, from its modifiers and the operands that follow.
    pub(super) fn operation(
        &mut self,
        opcode: Opcode,
        span: Span,
        modifiers: Vec<(String, Span)>,
    ) -> Parsed<Operation> {
        let mut m = Modifiers { opcode, span, rest: modifiers.into_iter() };
        // Modifiers stand before operands, so all of them are read and checked first.
        match opcode {
            Opcode::Trap => {
                let reason = m.next(trap_reason)?;
                m.end().map(|()| Operation::Trap { reason })
            }
            Opcode::Exit => m.end().map(|()| Operation::Exit),
            Opcode::Bar => m.end().map(|()| Operation::Bar),
            Opcode::Bra => {
                m.end()?;
                Ok(Operation::Bra { target: self.target()? })
            }
            Opcode::Brc => self.brc(m),
            Opcode::Brx => {
                m.end()?;
                Ok(Operation::Brx { a: self.register()? })
            }
            Opcode::Iadd => self.ternary(TernaryOp::Iadd, m),
            Opcode::Isub => self.ternary(TernaryOp::Isub, m),
            Opcode::Imad => self.ternary(TernaryOp::Imad, m),
            Opcode::Iscadd => {
                let shift = m.next(scale_shift)?;
                self.ternary(TernaryOp::Iscadd(shift), m)
            }
            Opcode::Lop => {
                let table = m.next(table2)?;
                self.binary(BinaryOp::Lop(table), m)
            }
            Opcode::Shl => self.binary(BinaryOp::Shl, m),
            Opcode::Shr => {
                let signedness = m.next(signedness)?;
                self.binary(BinaryOp::Shr(signedness), m)
            }
            Opcode::Imnmx => {
                let extremum = m.next(extremum)?;
                let signedness = m.next(signedness)?;
                self.binary(BinaryOp::Imnmx(extremum, signedness), m)
            }
            Opcode::Clz => self.unary(UnaryOp::Clz, m),
            Opcode::Popc => self.unary(UnaryOp::Popc, m),
            Opcode::Brev => self.unary(UnaryOp::Brev, m),
            Opcode::Sel => {
                m.end()?;
                let (rd, a) = self.two_registers()?;
                self.comma()?;
                let b = self.operand()?;
                self.comma()?;
                Ok(Operation::Sel { rd, a, b, condition: self.predicate_source()? })
            }
            Opcode::Setp => self.setp(m),
            Opcode::Plop => {
                let table = m.next(table2)?;
                m.end()?;
                let pd = self.predicate()?;
                self.comma()?;
                let p = self.predicate_source()?;
                self.comma()?;
                Ok(Operation::Plop { table, pd, p, q: self.predicate_source()? })
            }
            Opcode::Shfl => {
                let mode = m.next(ShuffleMode::from_text)?;
                m.end()?;
                let (rd, a) = self.two_registers()?;
                self.comma()?;
                Ok(Operation::Shfl { mode, rd, a, b: self.operand()? })
            }
            Opcode::Vote => {
                m.end()?;
                let rd = self.register()?;
                self.comma()?;
                Ok(Operation::Vote { rd, source: self.predicate_source()? })
            }
            Opcode::S2r => {
                m.end()?;
                let rd = self.register()?;
                self.comma()?;
                let special = self.keyword("`laneid`, `warpid` or `tid`", SpecialReg::from_text)?;
                Ok(Operation::S2r { rd, special })
            }
            Opcode::Sdiv => {
                let part = m.next(DivisionPart::from_text)?;
                let linear = m.take("lin");
                m.end()?;
                let rd = self.register()?;
                self.comma()?;
                let dividend = if linear {
                    Dividend::LinearTid
                } else {
                    let a = self.register()?;
                    self.comma()?;
                    Dividend::Register(a)
                };
                Ok(Operation::Sdiv { part, rd, dividend, b: self.operand()? })
            }
            Opcode::Lead => {
                m.end()?;
                let pd = self.predicate()?;
                self.comma()?;
                Ok(Operation::Lead { pd, a: self.register()? })
            }
            Opcode::Ld => {
                let width = m.next(LoadWidth::from_text)?;
                m.end()?;
                let rd = self.register()?;
                self.comma()?;
                Ok(Operation::Ld { width, rd, address: self.address()? })
            }
            Opcode::St => {
                let width = m.next(StoreWidth::from_text)?;
                m.end()?;
                let address = self.address()?;
                self.comma()?;
                Ok(Operation::St { width, address, c: self.register()? })
            }
            Opcode::Lop3 => {
                let table = m.next(table3)?;
                m.end()?;
                let (rd, a) = self.two_registers()?;
                self.comma()?;
                let b = self.register()?;
                self.comma()?;
                Ok(Operation::Lop3 { table, rd, a, b, c: self.register()? })
            }
        }
    }

    fn two_registers(&mut self) -> Parsed<(Reg, Reg)> {
        let first = self.register()?;
        self.comma()?;
        Ok((first, self.register()?))
    }

    fn ternary(&mut self, op: TernaryOp, modifiers: Modifiers) -> Parsed<Operation> {
        modifiers.end()?;
        let (rd, a) = self.two_registers()?;
        self.comma()?;
        let b = self.operand()?;
        let c = if self.take(',') { self.register()? } else { Reg::ZERO };
        Ok(Operation::Ternary { op, rd, a, b, c })
    }

    fn binary(&mut self, op: BinaryOp, modifiers: Modifiers) -> Parsed<Operation> {
        modifiers.end()?;
        let (rd, a) = self.two_registers()?;
        self.comma()?;
        Ok(Operation::Binary { op, rd, a, b: self.operand()? })
    }

    fn unary(&mut self, op: UnaryOp, modifiers: Modifiers) -> Parsed<Operation> {
        modifiers.end()?;
        let rd = self.register()?;
        self.comma()?;
        Ok(Operation::Unary { op, rd, b: self.operand()? })
    }

    fn setp(&mut self, m: Modifiers) -> Parsed<Operation> {
        let comparison = m.comparison()?;
        let pd = self.predicate()?;
        self.comma()?;
        let a = self.register()?;
        self.comma()?;
        let b = self.operand()?;
        let and = if self.take(',') { self.predicate_source()? } else { PredSource::TRUE };
        Ok(Operation::Setp { comparison, pd, a, b, and })
    }

    fn brc(&mut self, m: Modifiers) -> Parsed<Operation> {
        let comparison = m.comparison()?;
        let a = self.register()?;
        self.comma()?;
        let b = self.short_operand()?;
        self.comma()?;
        let and = if self.has_predicate_source() {
            let and = self.predicate_source()?;
            self.comma()?;
            and
        } else {
            PredSource::TRUE
        };
        Ok(Operation::Brc { comparison, a, b, and, target: self.target()? })
    }
}

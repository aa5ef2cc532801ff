//! Bitwise operations, bit fields, bit counting.

use qwengpu_isa::{Comparison, Signedness, Table2, Table3, UnaryOp};

use crate::ast::{Instruction, Operand, ScalarType, TypeClass};
use crate::error::{PtxError, Result};
use crate::fold::low_word;
use crate::ir::{Cond, PredOp, Value, WordOp};

use super::Builder;
use super::decode::Mods;
use super::integer::signedness;
use super::operand::{Fit, operands};
use super::wide::Wide;

impl<'m> Builder<'m> {
    pub(super) fn bitwise(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let name = mods.opcode().name.text.as_str();
        let ty = mods.any_type()?;
        let table = match name {
            "and" => Table2::AND,
            "or" => Table2::OR,
            "xor" => Table2::XOR,
            _ => Table2::NOT,
        };
        let one_source = matches!(name, "not" | "cnot");
        let ops = operands(inst, &[if one_source { 2 } else { 3 }])?;
        if ty.class() == TypeClass::Predicate {
            let p = if one_source { Cond::TRUE } else { self.read_pred(&ops[1])? };
            let q = self.read_pred(&ops[ops.len() - 1])?;
            let cond = self.cond(PredOp::Logic(table, p, q));
            if let Some(dst) = self.pred_destination(&ops[0])? {
                self.assign_pred(dst, cond);
            }
            return Ok(());
        }
        if ty.class() == TypeClass::Float {
            return Err(mods.float());
        }
        let b = self.read(&ops[ops.len() - 1], ty, Fit::Exact)?;
        if name == "cnot" {
            let any = self.or(b.0, b.1);
            let zero = self.compare(Comparison::Eq, any, Value::ZERO);
            let value = self.select(zero, Value::ONE, Value::ZERO);
            return self.write(&ops[0], ty, value, Value::ZERO);
        }
        let a = if one_source { (Value::ZERO, Value::ZERO) } else { self.read(&ops[1], ty, Fit::Exact)? };
        let (low, high) = self.logic_wide(table, a, b);
        let high = if ty.bits() == 64 { high } else { Value::ZERO };
        self.write(&ops[0], ty, low, high)
    }

    pub(super) fn lop3(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let combination = mods.choice(&[("or", Table2::OR), ("and", Table2::AND)]);
        let ty = mods.int_type()?;
        let ops = operands(inst, &[if combination.is_some() { 6 } else { 5 }])?;
        let mut words = Vec::new();
        for operand in &ops[1..4] {
            words.push(self.read_word(operand, ty)?);
        }
        let table = match &ops[4] {
            Operand::Int { value: value @ 0..=255, .. } => low_word(*value).to_le_bytes()[0],
            other => return Err(PtxError::invalid(other.span(), other.to_string(), "the table is 0 to 255")),
        };
        let value = self.word(WordOp::Logic3(Table3::new(table), words[0], words[1], words[2]));
        let Some(combination) = combination else {
            return self.write(&ops[0], ty, value, Value::ZERO);
        };
        let Operand::Pair(dst, pred) = &ops[0] else {
            return Err(mods.invalid("it has two destinations, `d|p`"));
        };
        let with = self.read_pred(&ops[5])?;
        let any = self.compare(Comparison::Ne, value, Value::ZERO);
        let holds = self.cond(PredOp::Logic(combination, any, with));
        self.write(dst, ty, value, Value::ZERO)?;
        let pred = self.pred_destination(pred)?;
        self.assign_preds(&[(pred, holds)]);
        Ok(())
    }

    /// `2^length - 1` for a length of at least 0: all ones from the type's width on.
    fn ones(&mut self, bits: u32, length: Value) -> Wide {
        if bits == 32 {
            let power = self.shl(Value::ONE, length);
            return (self.add(power, Value::Imm(u32::MAX)), Value::ZERO);
        }
        let power = self.shift_left_wide((Value::ONE, Value::ZERO), length);
        self.add_wide(false, power, (Value::Imm(u32::MAX), Value::Imm(u32::MAX)))
    }

    fn byte_operand(&mut self, operand: &Operand) -> Result<Value> {
        let value = self.read_word(operand, ScalarType::B32)?;
        Ok(self.and(value, Value::Imm(0xff)))
    }

    pub(super) fn bit_field(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let insert = mods.opcode().name.text == "bfi";
        let ty = mods.int_type()?;
        let bits = ty.bits();
        if bits < 32 {
            return Err(mods.invalid("the type has 32 or 64 bits"));
        }
        let ops = operands(inst, &[if insert { 5 } else { 4 }])?;
        let a = self.read(&ops[1], ty, Fit::Exact)?;
        let at = self.byte_operand(&ops[ops.len() - 2])?;
        let length = self.byte_operand(&ops[ops.len() - 1])?;
        let shift_left = |s: &mut Self, x: Wide, by: Value| {
            if bits == 32 { (s.shl(x.0, by), Value::ZERO) } else { s.shift_left_wide(x, by) }
        };
        let shift_right = |s: &mut Self, sign: Signedness, x: Wide, by: Value| {
            if bits == 32 { (s.shr(sign, x.0, by), Value::ZERO) } else { s.shift_right_wide(sign, x, by) }
        };
        let (low, high) = if insert {
            let b = self.read(&ops[2], ty, Fit::Exact)?;
            let ones = self.ones(bits, length);
            let mask = shift_left(self, ones, at);
            let field = shift_left(self, a, at);
            let field = self.logic_wide(Table2::AND, field, mask);
            let kept = self.logic_wide(Table2::ANDN, b, mask);
            self.logic_wide(Table2::OR, field, kept)
        } else if ty.is_signed() {
            // Up until the field's sign stands at the top, then down again with the sign.
            let end = self.add(at, length);
            let room = self.sub(Value::Imm(bits), end);
            let up = self.binary(
                qwengpu_isa::BinaryOp::Imnmx(qwengpu_isa::Extremum::Max, Signedness::Signed),
                room,
                Value::ZERO,
            );
            let lifted = shift_left(self, a, up);
            let down = self.add(up, at);
            let field = shift_right(self, Signedness::Signed, lifted, down);
            let empty = self.compare(Comparison::Eq, length, Value::ZERO);
            (self.select(empty, Value::ZERO, field.0), self.select(empty, Value::ZERO, field.1))
        } else {
            let ones = self.ones(bits, length);
            let down = shift_right(self, Signedness::Unsigned, a, at);
            self.logic_wide(Table2::AND, down, ones)
        };
        self.write(&ops[0], ty, low, high)
    }

    /// Leading zeros of a 32- or 64-bit value.
    fn leading_zeros(&mut self, bits: u32, a: Wide) -> Value {
        if bits == 32 {
            return self.unary(UnaryOp::Clz, a.0);
        }
        let high = self.unary(UnaryOp::Clz, a.1);
        let low = self.unary(UnaryOp::Clz, a.0);
        let below = self.add(low, Value::Imm(32));
        let empty = self.compare(Comparison::Eq, a.1, Value::ZERO);
        self.select(empty, below, high)
    }

    pub(super) fn bfind(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let amount = mods.flag("shiftamt");
        let ty = mods.int_type()?;
        let ops = operands(inst, &[2])?;
        let mut a = self.read(&ops[1], ty, Fit::Exact)?;
        if ty.is_signed() {
            let top = if ty.bits() == 64 { a.1 } else { a.0 };
            let sign = self.shr(Signedness::Signed, top, Value::Imm(31));
            a = self.logic_wide(Table2::XOR, a, (sign, sign));
        }
        let zeros = self.leading_zeros(ty.bits(), a);
        let value = if amount {
            let none = self.compare(Comparison::Eq, zeros, Value::Imm(ty.bits()));
            self.select(none, Value::Imm(u32::MAX), zeros)
        } else {
            self.sub(Value::Imm(ty.bits() - 1), zeros)
        };
        self.write(&ops[0], ScalarType::U32, value, Value::ZERO)
    }

    pub(super) fn count_bits(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let name = mods.opcode().name.text.as_str();
        let ty = mods.int_type()?;
        let ops = operands(inst, &[2])?;
        let a = self.read(&ops[1], ty, Fit::Exact)?;
        let wide = ty.bits() == 64;
        match name {
            "clz" => {
                let value = self.leading_zeros(ty.bits(), a);
                self.write(&ops[0], ScalarType::U32, value, Value::ZERO)
            }
            "popc" => {
                let low = self.unary(UnaryOp::Popc, a.0);
                let high = self.unary(UnaryOp::Popc, a.1);
                let value = if wide { self.add(low, high) } else { low };
                self.write(&ops[0], ScalarType::U32, value, Value::ZERO)
            }
            _ => {
                let low = self.unary(UnaryOp::Brev, a.0);
                if wide {
                    let high = self.unary(UnaryOp::Brev, a.1);
                    return self.write(&ops[0], ty, high, low);
                }
                self.write(&ops[0], ty, low, Value::ZERO)
            }
        }
    }

    /// `bmsk` and `szext`.
    pub(super) fn mask_extend(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let make_mask = mods.opcode().name.text == "bmsk";
        let wrap = mods.required("a mode", &[("clamp", false), ("wrap", true)])?;
        let ty = mods.int_type()?;
        let ops = operands(inst, &[3])?;
        let a = self.read_word(&ops[1], ty)?;
        let mut b = self.read_word(&ops[2], ScalarType::B32)?;
        if wrap {
            b = self.and(b, Value::Imm(31));
        }
        let value = if make_mask {
            let a = if wrap { self.and(a, Value::Imm(31)) } else { a };
            let ones = self.ones(32, b).0;
            self.shl(ones, a)
        } else {
            let clamped = self.binary(
                qwengpu_isa::BinaryOp::Imnmx(qwengpu_isa::Extremum::Min, Signedness::Unsigned),
                b,
                Value::Imm(32),
            );
            let room = self.sub(Value::Imm(32), clamped);
            let up = self.shl(a, room);
            self.shr(signedness(ty), up, room)
        };
        self.write(&ops[0], ty, value, Value::ZERO)
    }
}

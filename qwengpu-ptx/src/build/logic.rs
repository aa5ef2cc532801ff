//! Bitwise operations, bit fields, bit counting, byte permutation.

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
        let ty = mods.int_type()?;
        let ops = operands(inst, &[5])?;
        let mut words = Vec::new();
        for operand in &ops[1..4] {
            words.push(self.read_word(operand, ty)?);
        }
        let table = match &ops[4] {
            Operand::Int { value: value @ 0..=255, .. } => low_word(*value).to_le_bytes()[0],
            other => return Err(PtxError::invalid(other.span(), other.to_string(), "the table is 0 to 255")),
        };
        let value = self.word(WordOp::Logic3(Table3::new(table), words[0], words[1], words[2]));
        self.write(&ops[0], ty, value, Value::ZERO)
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

    pub(super) fn prmt(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let mode = mods.choice(&[("f4e", 0), ("b4e", 1), ("rc8", 2), ("ecl", 3), ("ecr", 4), ("rc16", 5)]);
        let ty = mods.int_type()?;
        let ops = operands(inst, &[4])?;
        let a = self.read_word(&ops[1], ty)?;
        let b = self.read_word(&ops[2], ty)?;
        let selector = self.read_word(&ops[3], ScalarType::B32)?;
        let value = match (mode, selector) {
            (None, Value::Imm(selector)) => self.permute(a, b, selector),
            (Some(mode), Value::Imm(selector)) => self.permute(a, b, mode_selector(mode, selector & 3)),
            (None, _) => self.permute_by(a, b, selector),
            (Some(_), _) => {
                return Err(mods.unsupported("a permutation mode with a selector that is no constant; make it one"));
            }
        };
        self.write(&ops[0], ty, value, Value::ZERO)
    }

    /// Bytes of `b:a` by the nibbles of a constant; bit 3 of a nibble replicates the byte's sign.
    fn permute(&mut self, a: Value, b: Value, selector: u32) -> Value {
        // Bytes of one source that move equally far share a shift and a mask.
        let mut groups: Vec<(Value, i32, u32)> = Vec::new();
        let mut result = Value::ZERO;
        for (to, at) in (0..4).zip([0u32, 8, 16, 24]) {
            let nibble = selector >> (4 * to) & 0xf;
            let (source, from) = (if nibble & 4 == 0 { a } else { b }, (nibble & 3).cast_signed());
            if nibble & 8 != 0 {
                let top = self.shl(source, Value::Imm(24 - 8 * (nibble & 3)));
                let sign = self.shr(Signedness::Signed, top, Value::Imm(31));
                let byte = self.and(sign, Value::Imm(0xff << at));
                result = self.or(result, byte);
                continue;
            }
            let distance = to - from;
            match groups.iter_mut().find(|(s, d, _)| *s == source && *d == distance) {
                Some((_, _, mask)) => *mask |= 0xff << at,
                None => groups.push((source, distance, 0xff << at)),
            }
        }
        for (source, distance, mask) in groups {
            let amount = Value::Imm(8 * distance.unsigned_abs());
            let moved = if distance < 0 { self.shr_u(source, amount) } else { self.shl(source, amount) };
            let reach = if distance < 0 {
                u32::MAX >> (8 * distance.unsigned_abs())
            } else {
                u32::MAX << (8 * distance.unsigned_abs())
            };
            let kept = if reach == mask { moved } else { self.and(moved, Value::Imm(mask)) };
            result = self.or(result, kept);
        }
        result
    }

    /// As [`Builder::permute`] for a selector known only at run time.
    fn permute_by(&mut self, a: Value, b: Value, selector: Value) -> Value {
        let mut result = Value::ZERO;
        for at in 0..4 {
            let nibble = self.shr_u(selector, Value::Imm(4 * at));
            let low = self.and(nibble, Value::Imm(7));
            let amount = self.shl(low, Value::Imm(3));
            let byte = self.shift_right_wide(Signedness::Unsigned, (a, b), amount).0;
            let top = self.shl(byte, Value::Imm(24));
            let sign = self.shr(Signedness::Signed, top, Value::Imm(31));
            let replicate = self.and(nibble, Value::Imm(8));
            let replicate = self.compare(Comparison::Ne, replicate, Value::ZERO);
            let chosen = self.select(replicate, sign, byte);
            let chosen = self.and(chosen, Value::Imm(0xff));
            let placed = self.shl(chosen, Value::Imm(8 * at));
            result = self.or(result, placed);
        }
        result
    }
}

/// The selector that the default mode needs to act as another mode does.
fn mode_selector(mode: u32, n: u32) -> u32 {
    let table: [[u32; 4]; 6] = [
        [0x3210, 0x4321, 0x5432, 0x6543],
        [0x5670, 0x6701, 0x7012, 0x0123],
        [0x0000, 0x1111, 0x2222, 0x3333],
        [0x3210, 0x3211, 0x3222, 0x3333],
        [0x0000, 0x1110, 0x2210, 0x3210],
        [0x1010, 0x3232, 0x1010, 0x3232],
    ];
    table[mode as usize % 6][n as usize % 4]
}

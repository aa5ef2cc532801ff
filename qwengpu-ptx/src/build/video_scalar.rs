//! Scalar video instructions: words, halves or bytes in exact arithmetic, then clamped and combined with `c`.

use qwengpu_isa::{BinaryOp, Extremum, Relation, Signedness, Table2};

use crate::ast::{Instruction, Operand, ScalarType};
use crate::error::{PtxError, Result};
use crate::ir::{Cond, Value};

use super::Builder;
use super::decode::Mods;
use super::integer::signedness;
use super::operand::operands;
use super::video_parts::{RELATIONS, split_parts};
use super::wide::Wide;

/// What is done with the result and `c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    Add,
    Extremum(Extremum),
}

const SECONDS: &[(&str, Second)] =
    &[("add", Second::Add), ("min", Second::Extremum(Extremum::Min)), ("max", Second::Extremum(Extremum::Max))];

/// Where a part of a word stands and how wide it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    at: u32,
    bits: u32,
}

fn part(operand: &Operand) -> Result<(Operand, Option<Part>)> {
    let (base, text) = split_parts(operand);
    let part = match text {
        None => None,
        Some("b0") => Some(Part { at: 0, bits: 8 }),
        Some("b1") => Some(Part { at: 8, bits: 8 }),
        Some("b2") => Some(Part { at: 16, bits: 8 }),
        Some("b3") => Some(Part { at: 24, bits: 8 }),
        Some("h0") => Some(Part { at: 0, bits: 16 }),
        Some("h1") => Some(Part { at: 16, bits: 16 }),
        Some(_) => {
            let reason = "a part is `.b0` to `.b3`, `.h0` or `.h1`";
            return Err(PtxError::invalid(operand.span(), operand.to_string(), reason));
        }
    };
    Ok((base, part))
}

impl<'m> Builder<'m> {
    /// A source extended to 64 bits.
    fn video_source(&mut self, operand: &Operand, ty: ScalarType) -> Result<Wide> {
        let (base, part) = part(operand)?;
        let word = self.read_word(&base, ScalarType::B32)?;
        let low = match part {
            Some(Part { at, bits }) => self.field(word, at, bits, ty.is_signed()),
            None => word,
        };
        let high = if ty.is_signed() { self.shr(Signedness::Signed, low, Value::Imm(31)) } else { Value::ZERO };
        Ok((low, high))
    }

    fn video_type(mods: &mut Mods<'m>) -> Result<ScalarType> {
        let ty = mods.int_type()?;
        if matches!(ty, ScalarType::U32 | ScalarType::S32) {
            Ok(ty)
        } else {
            Err(mods.invalid("types are `.u32` and `.s32`"))
        }
    }

    pub(super) fn video_scalar(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let name = mods.opcode().name.text.as_str();
        let relation = if name == "vset" { Some(mods.required("a comparison", RELATIONS)?) } else { None };
        let is_shift = matches!(name, "vshl" | "vshr");
        let wrap = is_shift && mods.required("a mode", &[("clamp", false), ("wrap", true)])?;
        let saturates = mods.flag("sat");
        let second = mods.choice(SECONDS);
        let to = if relation.is_some() { ScalarType::U32 } else { Self::video_type(mods)? };
        let (a_ty, b_ty) = (Self::video_type(mods)?, Self::video_type(mods)?);
        let merges = inst.operands.first().is_some_and(|operand| split_parts(operand).1.is_some());
        let ops = operands(inst, &[if merges || second.is_some() { 4 } else { 3 }])?;
        let (destination, place) = part(&ops[0])?;
        let a = self.video_source(&ops[1], a_ty)?;
        let b = self.video_source(&ops[2], b_ty)?;
        let signed = Signedness::Signed;
        // Nothing but a left shift of an unsigned word needs 64 bits and no sign.
        let mut exact = ScalarType::S64;
        let result = match name {
            "vadd" => self.add_wide(false, a, b),
            "vsub" => self.add_wide(true, a, b),
            "vshl" | "vshr" => {
                let amount = if wrap {
                    self.and(b.0, Value::Imm(31))
                } else {
                    self.binary(BinaryOp::Imnmx(Extremum::Min, Signedness::Unsigned), b.0, Value::Imm(32))
                };
                if name == "vshl" {
                    exact = if a_ty.is_signed() { ScalarType::S64 } else { ScalarType::U64 };
                    self.shift_left_wide(a, amount)
                } else {
                    self.shift_right_wide(signedness(a_ty), a, amount)
                }
            }
            "vset" => {
                let holds = self.compare_wide(relation.unwrap_or(Relation::Eq), signed, a, b);
                (self.select(holds, Value::ONE, Value::ZERO), Value::ZERO)
            }
            "vabsdiff" => {
                let below = self.compare_wide(Relation::Lt, signed, a, b);
                let (up, down) = (self.add_wide(true, b, a), self.add_wide(true, a, b));
                self.select_wide(below, up, down)
            }
            _ => {
                let relation = if name == "vmin" { Relation::Lt } else { Relation::Gt };
                let first = self.compare_wide(relation, signed, a, b);
                self.select_wide(first, a, b)
            }
        };
        let result = if saturates {
            let range = match (place.map(|place| place.bits), to.is_signed()) {
                (Some(8), false) => ScalarType::U8,
                (Some(8), true) => ScalarType::S8,
                (Some(16), false) => ScalarType::U16,
                (Some(16), true) => ScalarType::S16,
                _ => to,
            };
            self.saturate(exact, range, result.0, result.1).0
        } else {
            result.0
        };
        let value = match ops.get(3) {
            None => result,
            Some(c) => {
                let c = self.read_word(c, ScalarType::B32)?;
                self.combine_video(result, c, second, to, place)
            }
        };
        self.write(&destination, ScalarType::B32, value, Value::ZERO)
    }

    fn combine_video(
        &mut self,
        result: Value,
        c: Value,
        second: Option<Second>,
        to: ScalarType,
        place: Option<Part>,
    ) -> Value {
        let result = match second {
            None => result,
            Some(Second::Add) => self.add(result, c),
            Some(Second::Extremum(which)) => self.binary(BinaryOp::Imnmx(which, signedness(to)), result, c),
        };
        match place {
            None => result,
            Some(Part { at, bits }) => {
                let mask = (u32::MAX >> (32 - bits)) << at;
                let rest = self.and(c, Value::Imm(!mask));
                let placed = self.place_part(result, at, bits);
                self.or(rest, placed)
            }
        }
    }

    /// `vmad`: the exact sum has up to 66 bits, so it is three words.
    pub(super) fn video_multiply(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let plus_one = mods.flag("po");
        let saturates = mods.flag("sat");
        let scale = mods.choice(&[("shr7", 7), ("shr15", 15)]).unwrap_or(0);
        Self::video_type(mods)?;
        let (a_ty, b_ty) = (Self::video_type(mods)?, Self::video_type(mods)?);
        let ops = operands(inst, &[4])?;
        let strip = |operand: &'m Operand| match operand {
            Operand::Negative(inner) => (&**inner, true),
            other => (other, false),
        };
        let ((a, a_negated), (b, b_negated), (c, c_negated)) = (strip(&ops[1]), strip(&ops[2]), strip(&ops[3]));
        let negated = a_negated != b_negated;
        if plus_one && (a_negated || b_negated || c_negated) || negated && c_negated {
            return Err(mods.invalid("`.po`, a negative product and a negative `c` exclude each other"));
        }
        let a = self.video_source(a, a_ty)?;
        let b = self.video_source(b, b_ty)?;
        let mut c = self.read_word(c, ScalarType::B32)?;
        let signed_product = a_ty.is_signed() || b_ty.is_signed();
        let is_signed = signed_product || negated || c_negated;
        let (low, high) = if signed_product {
            self.multiply_wide(a, b)
        } else {
            (self.mul(a.0, b.0), self.mul_high(Signedness::Unsigned, a.0, b.0))
        };
        let top = if signed_product { self.shr(Signedness::Signed, high, Value::Imm(31)) } else { Value::ZERO };
        let mut product = [low, high, top];
        if negated {
            product = product.map(|word| self.logic(Table2::NOT, Value::ZERO, word));
        }
        if c_negated {
            c = self.logic(Table2::NOT, Value::ZERO, c);
        }
        let extension = if is_signed { self.shr(Signedness::Signed, c, Value::Imm(31)) } else { Value::ZERO };
        let mut carry = Cond::Fixed(plus_one || negated || c_negated);
        let mut words = [Value::ZERO; 3];
        for (idx, addend) in [c, extension, extension].into_iter().enumerate() {
            (words[idx], carry) = self.add_with_carry(false, product[idx], addend, carry);
        }
        if scale > 0 {
            let down = |s: &mut Self, low: Value, high: Value| {
                let low = s.shr_u(low, Value::Imm(scale));
                let high = s.shl(high, Value::Imm(32 - scale));
                s.or(low, high)
            };
            let sign = if is_signed { Signedness::Signed } else { Signedness::Unsigned };
            words = [
                down(self, words[0], words[1]),
                down(self, words[1], words[2]),
                self.shr(sign, words[2], Value::Imm(scale)),
            ];
        }
        let value = if saturates { self.saturate_words(words, is_signed) } else { words[0] };
        self.write(&ops[0], ScalarType::B32, value, Value::ZERO)
    }

    /// Three words clamped to one.
    fn saturate_words(&mut self, words: [Value; 3], is_signed: bool) -> Value {
        let (above, limit) = if is_signed {
            let sign = self.shr(Signedness::Signed, words[0], Value::Imm(31));
            let middle = self.xor(words[1], sign);
            let top = self.xor(words[2], sign);
            let negative = self.shr(Signedness::Signed, words[2], Value::Imm(31));
            (self.or(middle, top), self.xor(negative, Value::Imm(i32::MAX.cast_unsigned())))
        } else {
            (self.or(words[1], words[2]), Value::Imm(u32::MAX))
        };
        let fits = self.compare(qwengpu_isa::Comparison::Eq, above, Value::ZERO);
        self.select(fits, words[0], limit)
    }
}

//! Integer arithmetic.

use qwengpu_isa::{BinaryOp, Comparison, DivisionPart, Extremum, Relation, Signedness};

use crate::ast::{Instruction, Operand, ScalarType};
use crate::error::Result;
use crate::ir::{Cond, VPred, Value, WordOp};

use super::Builder;
use super::decode::Mods;
use super::operand::{Fit, operands};
use super::packed::PACKED;

/// The signedness of a type; bit types count as unsigned.
pub(super) fn signedness(ty: ScalarType) -> Signedness {
    if ty.is_signed() { Signedness::Signed } else { Signedness::Unsigned }
}

/// Which part of a product an instruction keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProductPart {
    Low,
    High,
    Wide,
}

impl<'m> Builder<'m> {
    fn carry_flag(&mut self) -> VPred {
        match self.carry {
            Some(carry) => carry,
            None => {
                let carry = self.func.vpred();
                self.carry = Some(carry);
                carry
            }
        }
    }

    /// `a + b + carry` or `a - b - carry` in 32 bits, and the carry or borrow out.
    pub(super) fn add_with_carry(&mut self, subtract: bool, a: Value, b: Value, carry: Cond) -> (Value, Cond) {
        let combine = |s: &mut Self, x: Value, y: Value| if subtract { s.sub(x, y) } else { s.add(x, y) };
        let overflows = |s: &mut Self, result: Value, x: Value, y: Value| {
            if subtract { s.compare(Comparison::LtU, x, y) } else { s.compare(Comparison::LtU, result, y) }
        };
        let sum = combine(self, a, b);
        let first = overflows(self, sum, a, b);
        if carry == Cond::FALSE {
            return (sum, first);
        }
        let one = self.select(carry, Value::ONE, Value::ZERO);
        let total = combine(self, sum, one);
        let second = overflows(self, total, sum, one);
        (total, self.either(first, second))
    }

    pub(super) fn add_sub(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let name = mods.opcode().name.text.as_str();
        let subtract = name.starts_with("sub");
        let carry_in = name.ends_with('c');
        let carry_out = mods.flag("cc");
        let saturate = mods.flag("sat");
        if !carry_in
            && !carry_out
            && let Some(packed) = mods.choice(PACKED)
        {
            return self.packed_sum(inst, packed, subtract, saturate);
        }
        let ty = mods.int_type()?;
        let ops = operands(inst, &[3])?;
        let a = self.read(&ops[1], ty, Fit::Exact)?;
        let b = self.read(&ops[2], ty, Fit::Exact)?;
        if saturate {
            let value = match ty {
                ScalarType::S32 => self.saturating(subtract, a.0, b.0),
                ScalarType::U32 if !subtract => {
                    let sum = self.add(a.0, b.0);
                    let over = self.compare(Comparison::LtU, sum, b.0);
                    self.select(over, Value::Imm(u32::MAX), sum)
                }
                _ => return Err(mods.invalid("`.sat` applies to `.s32`, and of sums to `.u32`")),
            };
            return self.write(&ops[0], ty, value, Value::ZERO);
        }
        if !carry_in && !carry_out {
            let (low, high) = if ty.bits() == 64 {
                self.add_wide(subtract, a, b)
            } else if subtract {
                (self.sub(a.0, b.0), Value::ZERO)
            } else {
                (self.add(a.0, b.0), Value::ZERO)
            };
            return self.write(&ops[0], ty, low, high);
        }
        let flag = self.carry_flag();
        let carry = if carry_in { flag.into() } else { Cond::FALSE };
        let (low, middle) = self.add_with_carry(subtract, a.0, b.0, carry);
        let (high, out) = match ty.bits() {
            64 => self.add_with_carry(subtract, a.1, b.1, middle),
            32 => (Value::ZERO, middle),
            _ => return Err(mods.invalid("carries exist for 32 and 64 bits only")),
        };
        self.write(&ops[0], ty, low, high)?;
        if carry_out {
            self.assign_pred(flag, out);
        }
        Ok(())
    }

    /// A 32-bit sum or difference clamped to the signed range.
    fn saturating(&mut self, subtract: bool, a: Value, b: Value) -> Value {
        let result = if subtract { self.sub(a, b) } else { self.add(a, b) };
        // Overflow: the operands' signs allow it and the result's sign differs from a's.
        let by_a = self.xor(result, a);
        let by_b = if subtract { self.xor(a, b) } else { self.xor(result, b) };
        let both = self.and(by_a, by_b);
        let overflow = self.compare(Comparison::LtS, both, Value::ZERO);
        let sign = self.shr(Signedness::Signed, a, Value::Imm(31));
        let limit = self.xor(sign, Value::Imm(i32::MAX.cast_unsigned()));
        self.select(overflow, limit, result)
    }

    pub(super) fn multiply(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let name = mods.opcode().name.text.as_str();
        let with_addend = name != "mul";
        let carry_in = name == "madc";
        let part = mods.choice(&[("lo", ProductPart::Low), ("hi", ProductPart::High), ("wide", ProductPart::Wide)]);
        let carry_out = mods.flag("cc");
        let saturate = mods.flag("sat");
        let ty = mods.int_type()?;
        let Some(part) = part else {
            return Err(mods.invalid("one of `.lo`, `.hi`, `.wide` is missing"));
        };
        let ops = operands(inst, &[if with_addend { 4 } else { 3 }])?;
        let result_ty = match (part, ty.bits(), ty.is_signed()) {
            (ProductPart::Wide, 16, true) => ScalarType::S32,
            (ProductPart::Wide, 16, false) => ScalarType::U32,
            (ProductPart::Wide, 32, true) => ScalarType::S64,
            (ProductPart::Wide, 32, false) => ScalarType::U64,
            (ProductPart::Wide, ..) => return Err(mods.invalid("`.wide` takes 16- or 32-bit types")),
            _ => ty,
        };
        let product = self.product(part, ty, &ops[1], &ops[2])?;
        if !with_addend {
            return self.write(&ops[0], result_ty, product.0, product.1);
        }
        let addend = self.read(&ops[3], result_ty, Fit::Exact)?;
        if saturate {
            if ty != ScalarType::S32 || part != ProductPart::High {
                return Err(mods.invalid("`.sat` applies to `.hi.s32` only"));
            }
            let value = self.saturating(false, product.0, addend.0);
            return self.write(&ops[0], ty, value, Value::ZERO);
        }
        if carry_in || carry_out {
            let flag = self.carry_flag();
            let carry = if carry_in { flag.into() } else { Cond::FALSE };
            let (low, middle) = self.add_with_carry(false, product.0, addend.0, carry);
            let (high, out) = match result_ty.bits() {
                64 => self.add_with_carry(false, product.1, addend.1, middle),
                _ => (Value::ZERO, middle),
            };
            self.write(&ops[0], result_ty, low, high)?;
            if carry_out {
                self.assign_pred(flag, out);
            }
            return Ok(());
        }
        let (low, high) = if result_ty.bits() == 64 {
            self.add_wide(false, product, addend)
        } else {
            (self.add(product.0, addend.0), Value::ZERO)
        };
        self.write(&ops[0], result_ty, low, high)
    }

    fn product(&mut self, part: ProductPart, ty: ScalarType, a: &Operand, b: &Operand) -> Result<(Value, Value)> {
        let sign = signedness(ty);
        if ty.bits() == 64 {
            let a = self.read(a, ty, Fit::Exact)?;
            let b = self.read(b, ty, Fit::Exact)?;
            return Ok(match part {
                ProductPart::High => self.multiply_wide_high(sign, a, b),
                ProductPart::Low | ProductPart::Wide => self.multiply_wide(a, b),
            });
        }
        if ty.bits() < 32 {
            let a = self.read_extended(a, ty)?;
            let b = self.read_extended(b, ty)?;
            let product = self.mul(a, b);
            return Ok(match part {
                ProductPart::High => (self.shr(sign, product, Value::Imm(ty.bits())), Value::ZERO),
                ProductPart::Low | ProductPart::Wide => (product, Value::ZERO),
            });
        }
        let a = self.read_word(a, ty)?;
        let b = self.read_word(b, ty)?;
        Ok(match part {
            ProductPart::Low => (self.mul(a, b), Value::ZERO),
            ProductPart::High => (self.mul_high(sign, a, b), Value::ZERO),
            ProductPart::Wide => (self.mul(a, b), self.mul_high(sign, a, b)),
        })
    }

    /// `mul24`, `mad24`: the product of the low 24 bits.
    pub(super) fn multiply24(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let with_addend = mods.opcode().name.text == "mad24";
        let high = mods.required("a part", &[("lo", false), ("hi", true)])?;
        let saturate = mods.flag("sat");
        let ty = mods.int_type()?;
        if ty.bits() != 32 {
            return Err(mods.invalid("the type is `.u32` or `.s32`"));
        }
        let ops = operands(inst, &[if with_addend { 4 } else { 3 }])?;
        let cut = |s: &mut Self, operand: &Operand| -> Result<Value> {
            let value = s.read_word(operand, ty)?;
            Ok(if ty.is_signed() { s.sign_extend(value, 24) } else { s.zero_extend(value, 24, 32) })
        };
        let (a, b) = (cut(self, &ops[1])?, cut(self, &ops[2])?);
        let mut value = self.mul(a, b);
        if high {
            // Bits 16 to 47 of the 48-bit product.
            let top = self.mul_high(signedness(ty), a, b);
            let top = self.shl(top, Value::Imm(16));
            let bottom = self.shr_u(value, Value::Imm(16));
            value = self.or(top, bottom);
        }
        if with_addend {
            let addend = self.read_word(&ops[3], ty)?;
            value = if saturate { self.saturating(false, value, addend) } else { self.add(value, addend) };
        }
        self.write(&ops[0], ty, value, Value::ZERO)
    }

    pub(super) fn divide(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let part = if mods.opcode().name.text == "div" { DivisionPart::Quotient } else { DivisionPart::Remainder };
        let ty = mods.int_type()?;
        let ops = operands(inst, &[3])?;
        if ty.bits() == 64 {
            let a = self.read(&ops[1], ty, Fit::Exact)?;
            let b = self.read(&ops[2], ty, Fit::Exact)?;
            let (low, high) = self.divide_wide(signedness(ty), part, a, b);
            return self.write(&ops[0], ty, low, high);
        }
        let a = self.read_extended(&ops[1], ty)?;
        let b = self.read_extended(&ops[2], ty)?;
        let value = self.word(WordOp::Divide(signedness(ty), part, a, b));
        self.write(&ops[0], ty, value, Value::ZERO)
    }

    pub(super) fn min_max(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let is_min = mods.opcode().name.text == "min";
        let relu = mods.flag("relu");
        if let Some(packed) = mods.choice(PACKED) {
            let extremum = if is_min { Extremum::Min } else { Extremum::Max };
            return self.packed_extremum(inst, mods, packed, extremum, relu);
        }
        let ty = mods.int_type()?;
        if relu && ty != ScalarType::S32 {
            return Err(mods.invalid("`.relu` applies to `.s32`, `.s16x2` and `.s8x4`"));
        }
        let ops = operands(inst, &[3])?;
        let sign = signedness(ty);
        let zero = Value::ZERO;
        if ty.bits() == 64 {
            let a = self.read(&ops[1], ty, Fit::Exact)?;
            let b = self.read(&ops[2], ty, Fit::Exact)?;
            let relation = if is_min { Relation::Lt } else { Relation::Gt };
            let first = self.compare_wide(relation, sign, a, b);
            let (low, high) = (self.select(first, a.0, b.0), self.select(first, a.1, b.1));
            return self.write(&ops[0], ty, low, high);
        }
        let a = self.read_extended(&ops[1], ty)?;
        let b = self.read_extended(&ops[2], ty)?;
        let extremum = if is_min { Extremum::Min } else { Extremum::Max };
        let mut value = self.binary(BinaryOp::Imnmx(extremum, sign), a, b);
        if relu {
            value = self.binary(BinaryOp::Imnmx(Extremum::Max, Signedness::Signed), value, zero);
        }
        self.write(&ops[0], ty, value, zero)
    }

    pub(super) fn abs_neg(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let is_abs = mods.opcode().name.text == "abs";
        if !is_abs && mods.flag("s8x4") {
            return self.packed_negative(inst);
        }
        let ty = mods.int_type()?;
        let ops = operands(inst, &[2])?;
        if ty.bits() == 64 {
            let a = self.read(&ops[1], ty, Fit::Exact)?;
            let negative = self.add_wide(true, (Value::ZERO, Value::ZERO), a);
            let (low, high) = if is_abs {
                let below = self.compare(Comparison::LtS, a.1, Value::ZERO);
                (self.select(below, negative.0, a.0), self.select(below, negative.1, a.1))
            } else {
                negative
            };
            return self.write(&ops[0], ty, low, high);
        }
        let a = self.read_extended(&ops[1], ty)?;
        let negative = self.neg(a);
        let value = if is_abs {
            self.binary(BinaryOp::Imnmx(Extremum::Max, Signedness::Signed), a, negative)
        } else {
            negative
        };
        self.write(&ops[0], ty, value, Value::ZERO)
    }

    /// `c + |a - b|`
    pub(super) fn sad(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let ty = mods.int_type()?;
        let ops = operands(inst, &[4])?;
        let sign = signedness(ty);
        if ty.bits() == 64 {
            let a = self.read(&ops[1], ty, Fit::Exact)?;
            let b = self.read(&ops[2], ty, Fit::Exact)?;
            let c = self.read(&ops[3], ty, Fit::Exact)?;
            let below = self.compare_wide(Relation::Lt, sign, a, b);
            let up = self.add_wide(true, b, a);
            let down = self.add_wide(true, a, b);
            let distance = (self.select(below, up.0, down.0), self.select(below, up.1, down.1));
            let (low, high) = self.add_wide(false, c, distance);
            return self.write(&ops[0], ty, low, high);
        }
        let a = self.read_extended(&ops[1], ty)?;
        let b = self.read_extended(&ops[2], ty)?;
        let c = self.read_word(&ops[3], ty)?;
        let high = self.binary(BinaryOp::Imnmx(Extremum::Max, sign), a, b);
        let low = self.binary(BinaryOp::Imnmx(Extremum::Min, sign), a, b);
        let value = self.ternary(qwengpu_isa::TernaryOp::Isub, high, low, c);
        self.write(&ops[0], ty, value, Value::ZERO)
    }

    /// Byte `idx` of a word, extended.
    pub(super) fn field(&mut self, word: Value, at: u32, bits: u32, signed: bool) -> Value {
        if signed {
            let up = self.shl(word, Value::Imm(32 - bits - at));
            return self.shr(Signedness::Signed, up, Value::Imm(32 - bits));
        }
        let down = self.shr_u(word, Value::Imm(at));
        self.zero_extend(down, bits, 32 - at)
    }

    pub(super) fn dp4a(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let a_ty = mods.int_type()?;
        let b_ty = mods.int_type()?;
        let ops = operands(inst, &[4])?;
        let a = self.read_word(&ops[1], ScalarType::B32)?;
        let b = self.read_word(&ops[2], ScalarType::B32)?;
        let mut sum = self.read_word(&ops[3], ScalarType::B32)?;
        for idx in 0..4 {
            let x = self.field(a, 8 * idx, 8, a_ty.is_signed());
            let y = self.field(b, 8 * idx, 8, b_ty.is_signed());
            sum = self.mad(x, y, sum);
        }
        self.write(&ops[0], ScalarType::B32, sum, Value::ZERO)
    }

    pub(super) fn dp2a(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let high = mods.required("a half", &[("lo", 0), ("hi", 16)])?;
        let a_ty = mods.int_type()?;
        let b_ty = mods.int_type()?;
        let ops = operands(inst, &[4])?;
        let a = self.read_word(&ops[1], ScalarType::B32)?;
        let b = self.read_word(&ops[2], ScalarType::B32)?;
        let mut sum = self.read_word(&ops[3], ScalarType::B32)?;
        for idx in 0..2 {
            let x = self.field(a, 16 * idx, 16, a_ty.is_signed());
            let y = self.field(b, high + 8 * idx, 8, b_ty.is_signed());
            sum = self.mad(x, y, sum);
        }
        self.write(&ops[0], ScalarType::B32, sum, Value::ZERO)
    }
}

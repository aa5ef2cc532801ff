//! 64-bit arithmetic on pairs of words.

use qwengpu_isa::{Comparison, DivisionPart, Relation, Signedness, Table2};

use crate::ir::{Cond, Terminator, Value};

use super::Builder;

/// The low and high word of a 64-bit value.
pub(super) type Wide = (Value, Value);

impl Builder<'_> {
    /// `a + b` or `a - b`.
    pub(super) fn add_wide(&mut self, subtract: bool, a: Wide, b: Wide) -> Wide {
        // Without a low part to add there is no carry, as for a multiple of 2^32.
        if b.0 == Value::ZERO || (!subtract && a.0 == Value::ZERO) {
            let low = if b.0 == Value::ZERO { a.0 } else { b.0 };
            let high = if subtract { self.sub(a.1, b.1) } else { self.add(a.1, b.1) };
            return (low, high);
        }
        if subtract {
            let low = self.sub(a.0, b.0);
            let borrow = self.compare(Comparison::LtU, a.0, b.0);
            let one = self.select(borrow, Value::Imm(u32::MAX), Value::ZERO);
            return (low, self.ternary(qwengpu_isa::TernaryOp::Isub, a.1, b.1, one));
        }
        let low = self.add(a.0, b.0);
        let carry = self.compare(Comparison::LtU, low, b.0);
        let one = self.select(carry, Value::ONE, Value::ZERO);
        (low, self.add3(a.1, b.1, one))
    }

    /// The low 64 bits of a product.
    pub(super) fn multiply_wide(&mut self, a: Wide, b: Wide) -> Wide {
        let low = self.mul(a.0, b.0);
        let high = self.mul_high(Signedness::Unsigned, a.0, b.0);
        let high = self.mad(a.0, b.1, high);
        (low, self.mad(a.1, b.0, high))
    }

    /// The high 64 bits of a 128-bit product.
    pub(super) fn multiply_wide_high(&mut self, sign: Signedness, a: Wide, b: Wide) -> Wide {
        let unsigned = Signedness::Unsigned;
        let product = |s: &mut Self, x: Value, y: Value| (s.mul(x, y), s.mul_high(unsigned, x, y));
        let low_high = self.mul_high(unsigned, a.0, b.0);
        let cross = product(self, a.0, b.1);
        let other = product(self, a.1, b.0);
        let top = product(self, a.1, b.1);
        let middle = self.add_wide(false, cross, (low_high, Value::ZERO));
        let middle_low = self.add_wide(false, other, (middle.0, Value::ZERO));
        let sum = self.add_wide(false, top, (middle.1, Value::ZERO));
        let mut high = self.add_wide(false, sum, (middle_low.1, Value::ZERO));
        if sign == Signedness::Signed {
            // A negative factor counts 2^64 too much: take the other factor off the high half.
            for (x, y) in [(a, b), (b, a)] {
                let mask = self.shr(sign, x.1, Value::Imm(31));
                let part = (self.and(y.0, mask), self.and(y.1, mask));
                high = self.add_wide(true, high, part);
            }
        }
        high
    }

    /// A shift by a word; amounts from 64 on leave only the fill.
    pub(super) fn shift_left_wide(&mut self, a: Wide, b: Value) -> Wide {
        let low = self.shl(a.0, b);
        let up = self.shl(a.1, b);
        let rest = self.sub(Value::Imm(32), b);
        let across = self.shr_u(a.0, rest);
        let over = self.add(b, Value::Imm(32u32.wrapping_neg()));
        let far = self.shl(a.0, over);
        let near = self.or(up, across);
        (low, self.or(near, far))
    }

    /// As [`Builder::shift_left_wide`], to the right.
    pub(super) fn shift_right_wide(&mut self, sign: Signedness, a: Wide, b: Value) -> Wide {
        let high = self.shr(sign, a.1, b);
        let down = self.shr_u(a.0, b);
        let rest = self.sub(Value::Imm(32), b);
        let across = self.shl(a.1, rest);
        let near = self.or(down, across);
        let over = self.add(b, Value::Imm(32u32.wrapping_neg()));
        let far = self.shr(sign, a.1, over);
        let low = match sign {
            // A far shift by a huge amount is 0 here.
            Signedness::Unsigned => self.or(near, far),
            Signedness::Signed => {
                let beyond = self.compare(Comparison::GeU, b, Value::Imm(32));
                self.select(beyond, far, near)
            }
        };
        (low, high)
    }

    /// A bitwise function.
    pub(super) fn logic_wide(&mut self, table: Table2, a: Wide, b: Wide) -> Wide {
        (self.logic(table, a.0, b.0), self.logic(table, a.1, b.1))
    }

    pub(super) fn select_wide(&mut self, cond: Cond, a: Wide, b: Wide) -> Wide {
        (self.select(cond, a.0, b.0), self.select(cond, a.1, b.1))
    }

    fn negate_wide_if(&mut self, cond: Cond, a: Wide) -> Wide {
        let negative = self.add_wide(true, (Value::ZERO, Value::ZERO), a);
        self.select_wide(cond, negative, a)
    }

    /// Quotient or remainder by 64 steps of shift and subtract.
    ///
    /// `x / 0` is all ones with remainder `x`; the least integer by -1 is itself with remainder 0.
    pub(super) fn divide_wide(&mut self, sign: Signedness, part: DivisionPart, a: Wide, b: Wide) -> Wide {
        let signed = sign == Signedness::Signed;
        let negative = |s: &mut Self, x: Wide| s.compare(Comparison::LtS, x.1, Value::ZERO);
        let (a_negative, b_negative) =
            if signed { (negative(self, a), negative(self, b)) } else { (Cond::FALSE, Cond::FALSE) };
        let dividend = if signed { self.negate_wide_if(a_negative, a) } else { a };
        let divisor = if signed { self.negate_wide_if(b_negative, b) } else { b };
        // quotient:remainder shift left together; the quotient's bits push the dividend's out.
        let quotient = [self.copy(dividend.0), self.copy(dividend.1)];
        let remainder = [self.copy(Value::ZERO), self.copy(Value::ZERO)];
        let steps = self.copy(Value::Imm(64));
        self.unguarded(|s| {
            let body = s.func.new_block();
            let after = s.func.new_block();
            s.end_block(Terminator::Jump(body), body);
            let words = [quotient[0], quotient[1], remainder[0], remainder[1]].map(Value::from);
            let mut carry = Value::ZERO;
            let mut shifted = Vec::new();
            for word in words {
                let doubled = s.add3(word, word, carry);
                carry = s.shr_u(word, Value::Imm(31));
                shifted.push(doubled);
            }
            let rest = (shifted[2], shifted[3]);
            // A bit shifted out of the remainder means it exceeds every divisor.
            let over = s.compare(Comparison::Ne, carry, Value::ZERO);
            let enough = s.compare_wide(Relation::Ge, Signedness::Unsigned, rest, divisor);
            let take = s.either(over, enough);
            let less = s.add_wide(true, rest, divisor);
            let rest = s.select_wide(take, less, rest);
            let bit = s.select(take, Value::ONE, Value::ZERO);
            let low = s.add(shifted[0], bit);
            s.assign(quotient[0], low);
            s.assign(quotient[1], shifted[1]);
            s.assign(remainder[0], rest.0);
            s.assign(remainder[1], rest.1);
            let left = s.add(steps.into(), Value::Imm(u32::MAX));
            s.assign(steps, left);
            let again = s.compare(Comparison::Ne, steps.into(), Value::ZERO);
            s.end_block(Terminator::Branch(again, body, after), after);
        });
        match part {
            DivisionPart::Quotient => {
                let result = (quotient[0].into(), quotient[1].into());
                if !signed {
                    return result;
                }
                let differ = self.cond(crate::ir::PredOp::Logic(Table2::XOR, a_negative, b_negative));
                let fixed = self.negate_wide_if(differ, result);
                let any = self.or(b.0, b.1);
                let by_zero = self.compare(Comparison::Eq, any, Value::ZERO);
                self.select_wide(by_zero, (Value::Imm(u32::MAX), Value::Imm(u32::MAX)), fixed)
            }
            DivisionPart::Remainder => {
                let result = (remainder[0].into(), remainder[1].into());
                if signed { self.negate_wide_if(a_negative, result) } else { result }
            }
        }
    }
}

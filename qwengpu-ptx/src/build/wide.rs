//! 64-bit arithmetic on pairs of words.

use qwengpu_isa::{Comparison, Signedness, Table2};

use crate::ir::{Cond, Value};

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
}

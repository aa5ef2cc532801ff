//! `clmad`: products of polynomials over two elements.

use qwengpu_isa::{Comparison, Signedness, Table2, UnaryOp};

use crate::ast::{Instruction, ScalarType};
use crate::error::Result;
use crate::ir::{Terminator, Value};

use super::Builder;
use super::decode::Mods;
use super::operand::{Fit, operands};
use super::wide::Wide;

impl<'m> Builder<'m> {
    pub(super) fn carryless_multiply(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let high = mods.required("a part", &[("lo", false), ("hi", true)])?;
        let ty = mods.int_type()?;
        if !matches!(ty, ScalarType::U64 | ScalarType::B64) {
            return Err(mods.invalid("the type is `.u64`"));
        }
        let ops = operands(inst, &[4])?;
        let a = self.read(&ops[1], ty, Fit::Exact)?;
        let b = self.read(&ops[2], ty, Fit::Exact)?;
        let c = self.read(&ops[3], ty, Fit::Exact)?;
        let product = if high {
            // The product read backwards is that of the factors read backwards, of 127 bits.
            let (a, b) = (self.reverse_wide(a), self.reverse_wide(b));
            let backwards = self.carryless_product(a, b);
            let product = self.reverse_wide(backwards);
            self.shift_right_wide(Signedness::Unsigned, product, Value::ONE)
        } else {
            self.carryless_product(a, b)
        };
        let (low, high) = self.logic_wide(Table2::XOR, product, c);
        self.write(&ops[0], ty, low, high)
    }

    fn reverse_wide(&mut self, a: Wide) -> Wide {
        (self.unary(UnaryOp::Brev, a.1), self.unary(UnaryOp::Brev, a.0))
    }

    /// The low 64 bits of a product, a bit of `b` a round.
    fn carryless_product(&mut self, a: Wide, b: Wide) -> Wide {
        let left = [self.copy(a.0), self.copy(a.1)];
        let right = [self.copy(b.0), self.copy(b.1)];
        let product = [self.copy(Value::ZERO), self.copy(Value::ZERO)];
        self.unguarded(|s| {
            let body = s.func.new_block();
            let after = s.func.new_block();
            s.end_block(Terminator::Jump(body), body);
            let x: Wide = (left[0].into(), left[1].into());
            let y: Wide = (right[0].into(), right[1].into());
            let bit = s.and(y.0, Value::ONE);
            let mask = s.neg(bit);
            let part = s.logic_wide(Table2::AND, x, (mask, mask));
            let sum = s.logic_wide(Table2::XOR, (product[0].into(), product[1].into()), part);
            let doubled = s.add_wide(false, x, x);
            let halved = s.shift_right_wide(Signedness::Unsigned, y, Value::ONE);
            for (dst, value) in [(product, sum), (left, doubled), (right, halved)] {
                let values = s.detach(vec![value.0, value.1]);
                s.assign(dst[0], values[0]);
                s.assign(dst[1], values[1]);
            }
            let any = s.or(y.0, y.1);
            let again = s.compare(Comparison::Ne, any, Value::ZERO);
            s.end_block(Terminator::Branch(again, body, after), after);
        });
        (product[0].into(), product[1].into())
    }
}

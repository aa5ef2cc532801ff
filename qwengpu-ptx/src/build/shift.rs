//! Shifts.

use qwengpu_isa::{BinaryOp, Extremum, Signedness};

use crate::ast::{Instruction, ScalarType};
use crate::error::Result;
use crate::ir::Value;

use super::Builder;
use super::decode::Mods;
use super::integer::signedness;
use super::operand::{Fit, operands};

impl<'m> Builder<'m> {
    pub(super) fn shift(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let left = mods.opcode().name.text == "shl";
        let ty = mods.int_type()?;
        let ops = operands(inst, &[3])?;
        let amount = self.read_word(&ops[2], ScalarType::B32)?;
        if ty.bits() == 64 {
            let a = self.read(&ops[1], ty, Fit::Exact)?;
            let (low, high) =
                if left { self.shift_left_wide(a, amount) } else { self.shift_right_wide(signedness(ty), a, amount) };
            return self.write(&ops[0], ty, low, high);
        }
        // The machine's shifts clamp as PTX's do; a narrow left shift is cut when written.
        let value = if left {
            let a = self.read_word(&ops[1], ty)?;
            self.shl(a, amount)
        } else {
            let a = self.read_extended(&ops[1], ty)?;
            self.shr(signedness(ty), a, amount)
        };
        self.write(&ops[0], ty, value, Value::ZERO)
    }

    /// `shf.l`: the high word of `b:a << c`; `shf.r`: the low word of `b:a >> c`.
    pub(super) fn funnel_shift(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let left = mods.required("a direction", &[("l", true), ("r", false)])?;
        let wrap = mods.required("a mode", &[("wrap", true), ("clamp", false)])?;
        let ty = mods.int_type()?;
        let ops = operands(inst, &[4])?;
        let low = self.read_word(&ops[1], ty)?;
        let high = self.read_word(&ops[2], ty)?;
        let amount = self.read_word(&ops[3], ScalarType::B32)?;
        let amount = if wrap {
            self.and(amount, Value::Imm(31))
        } else {
            self.binary(BinaryOp::Imnmx(Extremum::Min, Signedness::Unsigned), amount, Value::Imm(32))
        };
        let rest = self.sub(Value::Imm(32), amount);
        let (near, far) = if left {
            (self.shl(high, amount), self.shr_u(low, rest))
        } else {
            (self.shr_u(low, amount), self.shl(high, rest))
        };
        let value = self.or(near, far);
        self.write(&ops[0], ty, value, Value::ZERO)
    }
}

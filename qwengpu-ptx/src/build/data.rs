//! `mov`, `cvta`, `isspacep`: values moved, not computed.

use qwengpu_isa::{Comparison, LOCAL_BASE, SHARED_BASE};

use crate::ast::{Instruction, Operand, ScalarType, StateSpace, TypeClass};
use crate::error::Result;
use crate::ir::{Cond, Value};

use super::Builder;
use super::decode::Mods;
use super::operand::{Fit, operands};

impl<'m> Builder<'m> {
    pub(super) fn mov(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let ty = mods.any_type()?;
        let ops = operands(inst, &[2])?;
        if ty.class() == TypeClass::Predicate {
            let cond = self.read_pred(&ops[1])?;
            if let Some(dst) = self.pred_destination(&ops[0])? {
                self.assign_pred(dst, cond);
            }
            return Ok(());
        }
        if ty.bits() > 64 {
            return Err(mods.refused(crate::subset::WIDE));
        }
        match (&ops[0], &ops[1]) {
            (Operand::Vector(parts, _), source) => self.unpack(mods, parts, source, ty),
            (destination, Operand::Vector(parts, _)) => {
                let (low, high) = self.pack(mods, parts, ty)?;
                self.write(destination, ty, low, high)
            }
            (destination, source) => {
                let (low, high) = self.read(source, ty, Fit::Exact)?;
                self.write(destination, ty, low, high)
            }
        }
    }

    fn part_type(mods: &Mods<'_>, parts: usize, ty: ScalarType) -> Result<ScalarType> {
        let bits = usize::try_from(ty.bits()).unwrap_or(0);
        match bits.checked_div(parts) {
            Some(32) => Ok(ScalarType::B32),
            Some(16) => Ok(ScalarType::B16),
            Some(8) => Ok(ScalarType::B8),
            _ => Err(mods.invalid(format!("{parts} parts do not make up `{ty}`"))),
        }
    }

    /// `mov.b64 d, {a, b}`: parts to one value, the first lowest.
    fn pack(&mut self, mods: &Mods<'_>, parts: &[Operand], ty: ScalarType) -> Result<(Value, Value)> {
        let part = Self::part_type(mods, parts.len(), ty)?;
        let mut words = [Value::ZERO, Value::ZERO];
        let mut at = 0;
        for operand in parts {
            let value = self.read(operand, part, Fit::Exact)?.0;
            let shifted = self.shl(value, Value::Imm(at % 32));
            let word = usize::from(at >= 32);
            words[word] = self.or(words[word], shifted);
            at += part.bits();
        }
        Ok((words[0], words[1]))
    }

    /// `mov.b64 {a, b}, s`: one value to parts.
    fn unpack(&mut self, mods: &Mods<'_>, parts: &'m [Operand], source: &Operand, ty: ScalarType) -> Result<()> {
        let part = Self::part_type(mods, parts.len(), ty)?;
        let (low, high) = self.read(source, ty, Fit::Exact)?;
        let mut values = Vec::new();
        let mut at = 0;
        for _ in parts {
            let word = if at >= 32 { high } else { low };
            let value = self.shr_u(word, Value::Imm(at % 32));
            values.push(self.zero_extend(value, part.bits(), 32));
            at += part.bits();
        }
        // A part may be the register of a later part's source.
        let values = self.detach(values);
        for (operand, value) in parts.iter().zip(values) {
            self.write(operand, part, value, Value::ZERO)?;
        }
        Ok(())
    }

    /// The values in registers of their own.
    pub(super) fn detach(&mut self, values: Vec<Value>) -> Vec<Value> {
        values
            .into_iter()
            .map(|value| match value {
                Value::Reg(_) => self.copy(value).into(),
                other => other,
            })
            .collect()
    }

    /// An address space change: every address is generic here, so this is a move.
    pub(super) fn cvta(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("to");
        let spaces = [
            ("const", StateSpace::Const),
            ("global", StateSpace::Global),
            ("local", StateSpace::Local),
            ("shared", StateSpace::Shared),
            ("shared::cta", StateSpace::Shared),
            ("shared::cluster", StateSpace::Shared),
            ("param", StateSpace::Param),
            ("param::entry", StateSpace::Param),
        ];
        mods.required("a state space", &spaces)?;
        let ty = mods.int_type()?;
        let ops = operands(inst, &[2])?;
        let (low, high) = self.read(&ops[1], ty, Fit::Exact)?;
        self.write(&ops[0], ty, low, high)
    }

    pub(super) fn isspacep(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let spaces = [
            ("const", StateSpace::Const),
            ("global", StateSpace::Global),
            ("local", StateSpace::Local),
            ("shared", StateSpace::Shared),
            ("shared::cta", StateSpace::Shared),
            ("shared::cluster", StateSpace::Shared),
            ("param", StateSpace::Param),
            ("param::entry", StateSpace::Param),
        ];
        let space = mods.required("a state space", &spaces)?;
        let ops = operands(inst, &[2])?;
        let Some(dst) = self.pred_destination(&ops[0])? else { return Ok(()) };
        let address = self.read(&ops[1], ScalarType::B64, Fit::Exact)?.0;
        let below = |b: &mut Self, limit: u32| b.compare(Comparison::LtU, address, Value::Imm(limit));
        let cond = match space {
            StateSpace::Global => below(self, SHARED_BASE),
            StateSpace::Shared => {
                let low = below(self, SHARED_BASE).not();
                let high = below(self, LOCAL_BASE);
                self.both(low, high)
            }
            StateSpace::Local => below(self, LOCAL_BASE).not(),
            StateSpace::Const | StateSpace::Reg | StateSpace::Param => Cond::FALSE,
        };
        self.assign_pred(dst, cond);
        Ok(())
    }
}

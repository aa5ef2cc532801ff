//! `fns`: the n-th set bit from a base.

use qwengpu_isa::{Comparison, Table2, UnaryOp};

use crate::ast::{Instruction, ScalarType};
use crate::error::Result;
use crate::ir::{Cond, InstKind, Terminator, Value, WordOp};

use super::Builder;
use super::decode::Mods;
use super::operand::operands;

impl<'m> Builder<'m> {
    /// Searching downwards is searching the reversed mask upwards; set bits below the n-th are cleared one by one.
    pub(super) fn find_nth_set(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.int_type()?;
        let ops = operands(inst, &[4])?;
        let mask = self.read_word(&ops[1], ScalarType::B32)?;
        let base = self.read_word(&ops[2], ScalarType::B32)?;
        let offset = self.read_word(&ops[3], ScalarType::S32)?;
        let down = self.compare(Comparison::LtS, offset, Value::ZERO);
        let just_here = self.compare(Comparison::Eq, offset, Value::ZERO);
        let reversed = self.unary(UnaryOp::Brev, mask);
        let mask = self.select(down, reversed, mask);
        let mirrored = self.sub(Value::Imm(31), base);
        let start = self.select(down, mirrored, base);
        let ahead = self.shl(Value::Imm(u32::MAX), start);
        let here = self.shl(Value::ONE, base);
        let window = self.select(just_here, here, ahead);
        let negative = self.neg(offset);
        let number = self.select(down, negative, offset);
        let skipped = self.add(number, Value::Imm(u32::MAX));
        let skipped = self.select(just_here, Value::ZERO, skipped);
        let first = self.and(mask, window);
        let left = self.func.vreg();
        let bits = self.func.vreg();
        self.unguarded(|s| {
            s.push(Cond::TRUE, InstKind::Word(left, WordOp::Move(skipped)));
            s.push(Cond::TRUE, InstKind::Word(bits, WordOp::Move(first)));
            let (test, body, after) = (s.func.new_block(), s.func.new_block(), s.func.new_block());
            s.end_block(Terminator::Jump(test), test);
            let more = s.compare(Comparison::Ne, left.into(), Value::ZERO);
            let any = s.compare(Comparison::Ne, bits.into(), Value::ZERO);
            let again = s.both(more, any);
            s.end_block(Terminator::Branch(again, body, after), body);
            let less = s.add(bits.into(), Value::Imm(u32::MAX));
            let rest = s.and(bits.into(), less);
            s.assign(bits, rest);
            let next = s.add(left.into(), Value::Imm(u32::MAX));
            s.assign(left, next);
            s.end_block(Terminator::Jump(test), after);
        });
        let minus = self.neg(bits.into());
        let lowest = self.and(bits.into(), minus);
        let zeros = self.unary(UnaryOp::Clz, lowest);
        // No bit has 32 zeros, and so the position -1.
        let position = self.sub(Value::Imm(31), zeros);
        let none = self.compare(Comparison::Eq, zeros, Value::Imm(32));
        let mirror = self.cond(crate::ir::PredOp::Logic(Table2::ANDN, down, none));
        let value = self.select(mirror, zeros, position);
        self.write(&ops[0], ScalarType::B32, value, Value::ZERO)
    }
}

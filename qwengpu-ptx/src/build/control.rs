//! Branches and ends.

use qwengpu_isa::{Comparison, TrapReason};

use crate::ast::{Instruction, Name, Operand, ScalarType};
use crate::error::{PtxError, Result};
use crate::ir::{BlockId, Cond, InstKind, Terminator, Value};

use super::Builder;
use super::decode::Mods;
use super::operand::operands;
use super::scope::Entity;

impl<'m> Builder<'m> {
    pub(super) fn label(&mut self, name: &Name) -> Result<()> {
        self.line = name.span.line;
        let block = self.label_block(name)?;
        self.end_block(Terminator::Jump(block), block);
        Ok(())
    }

    /// Goes to `target` in the threads whose guard holds.
    fn go(&mut self, target: BlockId) {
        let next = self.func.new_block();
        let terminator = match self.guard {
            Cond::Fixed(true) => Terminator::Jump(target),
            guard => Terminator::Branch(guard, target, next),
        };
        self.end_block(terminator, next);
    }

    pub(super) fn bra(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("uni");
        let ops = operands(inst, &[1])?;
        let Operand::Name(name) = &ops[0] else {
            return Err(PtxError::invalid(ops[0].span(), ops[0].to_string(), "a label is expected"));
        };
        let target = self.label_block(name)?;
        self.go(target);
        Ok(())
    }

    pub(super) fn brx(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("uni");
        mods.flag("idx");
        let ops = operands(inst, &[2])?;
        let index = self.read_word(&ops[0], ScalarType::U32)?;
        let names = match &ops[1] {
            Operand::Name(name) => match self.lookup(name)? {
                Entity::Targets(names) => names,
                _ => return Err(PtxError::invalid(name.span, &name.text, "it is no `.branchtargets`")),
            },
            other => return Err(PtxError::invalid(other.span(), other.to_string(), "a `.branchtargets` is expected")),
        };
        let mut targets = Vec::new();
        for name in names {
            targets.push(self.label_block(name)?);
        }
        if targets.is_empty() {
            return Err(mods.invalid("the list of targets is empty"));
        }
        self.unguarded_end(|s| s.pick(index, 0, &targets));
        Ok(())
    }

    /// Goes to `targets[index - first]` by halving the list; an index beyond it goes to the last.
    fn pick(&mut self, index: Value, first: u32, targets: &[BlockId]) -> Terminator {
        match targets {
            [] => Terminator::Exit,
            [only] => Terminator::Jump(*only),
            [all @ .., last] if all.iter().all(|target| target == last) => Terminator::Jump(*last),
            _ => {
                let (low, high) = targets.split_at(targets.len() / 2);
                let middle = first + u32::try_from(low.len()).unwrap_or(0);
                let below = self.compare(Comparison::LtU, index, Value::Imm(middle));
                let (left, right) = (self.func.new_block(), self.func.new_block());
                self.end_block(Terminator::Branch(below, left, right), left);
                let terminator = self.pick(index, first, low);
                self.end_block(terminator, right);
                self.pick(index, middle, high)
            }
        }
    }

    /// Ends the threads' path as `body` says; threads whose guard fails go on behind it.
    fn unguarded_end(&mut self, body: impl FnOnce(&mut Self) -> Terminator) {
        let after = self.func.new_block();
        if self.guard != Cond::TRUE {
            let inside = self.func.new_block();
            self.end_block(Terminator::Branch(self.guard, inside, after), inside);
        }
        let terminator = body(self);
        self.end_block(terminator, after);
    }

    pub(super) fn ret(&mut self, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("uni");
        match self.returns.last() {
            Some(target) => {
                let target = *target;
                self.go(target);
            }
            None => self.exit()?,
        }
        Ok(())
    }

    pub(super) fn exit(&mut self) -> Result<()> {
        self.count_exits();
        self.unguarded_end(|_| Terminator::Exit);
        Ok(())
    }

    pub(super) fn trap(&mut self) -> Result<()> {
        self.unguarded(|s| s.push(Cond::TRUE, InstKind::Trap(TrapReason::Program)));
        Ok(())
    }
}

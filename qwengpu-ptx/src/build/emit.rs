//! Appending operations to the current block.

use qwengpu_isa::{BinaryOp, Comparison, Relation, Signedness, Table2, TernaryOp, UnaryOp};

use crate::fold::{fold_pred, fold_word};
use crate::ir::{BlockId, Cond, Inst, InstKind, PredOp, Terminator, VPred, VReg, Value, WordOp};

use super::Builder;

impl Builder<'_> {
    pub(super) fn push(&mut self, guard: Cond, kind: InstKind) {
        let line = self.line;
        let current = self.current;
        self.num_pushed += 1;
        self.func.block_mut(current).insts.push(Inst { guard, kind, line });
    }

    /// The value of an operation. Pure ones run in all threads, others under the guard.
    pub(super) fn word(&mut self, op: WordOp) -> Value {
        let op = fold_word(op);
        if let WordOp::Move(value) = op
            && value.reg().is_none()
        {
            return value;
        }
        if let WordOp::Move(Value::Reg(reg)) = op {
            return reg.into();
        }
        let guard = if op.is_pure() && !self.guard_pure { Cond::TRUE } else { self.guard };
        let dst = self.func.vreg();
        self.push(guard, InstKind::Word(dst, op));
        dst.into()
    }

    /// A copy of a value that later writes to its register leave alone.
    pub(super) fn copy(&mut self, value: Value) -> VReg {
        let dst = self.func.vreg();
        self.push(Cond::TRUE, InstKind::Word(dst, WordOp::Move(value)));
        dst
    }

    /// The truth value of an operation, in all threads.
    pub(super) fn cond(&mut self, op: PredOp) -> Cond {
        let op = fold_pred(op);
        if let Some(cond) = op.as_copy() {
            return cond;
        }
        let dst = self.func.vpred();
        self.push(Cond::TRUE, InstKind::Pred(dst, op));
        dst.into()
    }

    /// `dst = value` in the threads whose guard holds.
    pub(super) fn assign(&mut self, dst: VReg, value: Value) {
        self.push(self.guard, InstKind::Word(dst, WordOp::Move(value)));
    }

    /// `dst = cond` in the threads whose guard holds.
    pub(super) fn assign_pred(&mut self, dst: VPred, cond: Cond) {
        self.push(self.guard, InstKind::Pred(dst, PredOp::copy(cond)));
    }

    pub(super) fn ternary(&mut self, op: TernaryOp, a: Value, b: Value, c: Value) -> Value {
        self.word(WordOp::Ternary(op, a, b, c))
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        self.word(WordOp::Binary(op, a, b))
    }

    pub(super) fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        self.word(WordOp::Unary(op, a))
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        self.ternary(TernaryOp::Iadd, a, b, Value::ZERO)
    }

    pub(super) fn add3(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.ternary(TernaryOp::Iadd, a, b, c)
    }

    pub(super) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.ternary(TernaryOp::Isub, a, b, Value::ZERO)
    }

    pub(super) fn neg(&mut self, a: Value) -> Value {
        self.sub(Value::ZERO, a)
    }

    pub(super) fn mad(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.ternary(TernaryOp::Imad, a, b, c)
    }

    pub(super) fn mul(&mut self, a: Value, b: Value) -> Value {
        self.mad(a, b, Value::ZERO)
    }

    pub(super) fn mul_high(&mut self, sign: Signedness, a: Value, b: Value) -> Value {
        self.word(WordOp::MulHigh(sign, a, b))
    }

    pub(super) fn logic(&mut self, table: Table2, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Lop(table), a, b)
    }

    pub(super) fn and(&mut self, a: Value, b: Value) -> Value {
        self.logic(Table2::AND, a, b)
    }

    pub(super) fn or(&mut self, a: Value, b: Value) -> Value {
        self.logic(Table2::OR, a, b)
    }

    pub(super) fn xor(&mut self, a: Value, b: Value) -> Value {
        self.logic(Table2::XOR, a, b)
    }

    pub(super) fn shl(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Shl, a, b)
    }

    pub(super) fn shr(&mut self, sign: Signedness, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Shr(sign), a, b)
    }

    pub(super) fn shr_u(&mut self, a: Value, b: Value) -> Value {
        self.shr(Signedness::Unsigned, a, b)
    }

    pub(super) fn select(&mut self, cond: Cond, a: Value, b: Value) -> Value {
        self.word(WordOp::Select(cond, a, b))
    }

    pub(super) fn compare(&mut self, comparison: Comparison, a: Value, b: Value) -> Cond {
        self.cond(PredOp::Compare(comparison, a, b, Cond::TRUE))
    }

    pub(super) fn relate(&mut self, relation: Relation, sign: Signedness, a: Value, b: Value) -> Cond {
        self.compare(Comparison::new(relation, sign), a, b)
    }

    pub(super) fn both(&mut self, p: Cond, q: Cond) -> Cond {
        self.cond(PredOp::Logic(Table2::AND, p, q))
    }

    pub(super) fn either(&mut self, p: Cond, q: Cond) -> Cond {
        self.cond(PredOp::Logic(Table2::OR, p, q))
    }

    /// Ends the current block and goes on in `next`.
    pub(super) fn end_block(&mut self, terminator: Terminator, next: BlockId) {
        self.settle_clock();
        let (current, line) = (self.current, self.line);
        let block = self.func.block_mut(current);
        block.terminator = terminator;
        block.line = line;
        self.func.layout.push(next);
        self.current = next;
    }

    /// Runs `body` under no guard: threads whose guard fails branch around it.
    pub(super) fn unguarded(&mut self, body: impl FnOnce(&mut Self)) {
        let guard = std::mem::replace(&mut self.guard, Cond::TRUE);
        if guard == Cond::TRUE {
            body(self);
            return;
        }
        let inside = self.func.new_block();
        let after = self.func.new_block();
        self.end_block(Terminator::Branch(guard, inside, after), inside);
        body(self);
        self.end_block(Terminator::Jump(after), after);
        self.guard = guard;
    }
}

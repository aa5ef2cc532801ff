//! Operations the machine does not have become operations it has.
//!
//! The high word of a product is put together from 16-bit products. Division by a number multiplies by its
//! reciprocal; any other division is a loop, see `expand_divisions`.

use qwengpu_isa::{BinaryOp, DivisionPart, Signedness, Table2, TernaryOp};

use crate::analysis::KnownBits;
use crate::fold::fold_word;
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, VReg, Value, WordOp};

use super::expand_divisions::{divide_by_number, expand_division_loop};

/// Appends operations and gives their values.
pub(super) struct Sequence<'f> {
    pub(super) func: &'f mut Function,
    pub(super) insts: Vec<Inst>,
    pub(super) line: u32,
}

impl Sequence<'_> {
    pub(super) fn op(&mut self, op: WordOp) -> Value {
        match fold_word(op) {
            WordOp::Move(value) => value,
            op => {
                let dst = self.func.vreg();
                self.insts.push(Inst::word(dst, op, self.line));
                dst.into()
            }
        }
    }

    pub(super) fn ternary(&mut self, op: TernaryOp, a: Value, b: Value, c: Value) -> Value {
        self.op(WordOp::Ternary(op, a, b, c))
    }

    pub(super) fn mad(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.ternary(TernaryOp::Imad, a, b, c)
    }

    pub(super) fn add(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.ternary(TernaryOp::Iadd, a, b, c)
    }

    pub(super) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.ternary(TernaryOp::Isub, a, b, Value::ZERO)
    }

    pub(super) fn lop(&mut self, table: Table2, a: Value, b: Value) -> Value {
        self.op(WordOp::Binary(BinaryOp::Lop(table), a, b))
    }

    pub(super) fn shr(&mut self, sign: Signedness, a: Value, amount: u32) -> Value {
        self.op(WordOp::Binary(BinaryOp::Shr(sign), a, Value::Imm(amount)))
    }

    pub(super) fn shr_u(&mut self, a: Value, amount: u32) -> Value {
        self.shr(Signedness::Unsigned, a, amount)
    }

    /// The low and high half of a word.
    fn halves(&mut self, a: Value) -> (Value, Value) {
        (self.lop(Table2::AND, a, Value::Imm(0xffff)), self.shr_u(a, 16))
    }

    /// The high word of an unsigned product, by halves: no partial sum exceeds 32 bits.
    pub(super) fn mul_high_u(&mut self, a: Value, b: Value) -> Value {
        let (a_low, a_high) = self.halves(a);
        let (b_low, b_high) = self.halves(b);
        let low = self.mad(a_low, b_low, Value::ZERO);
        let carried = self.shr_u(low, 16);
        let middle = self.mad(a_high, b_low, carried);
        let middle_low = self.lop(Table2::AND, middle, Value::Imm(0xffff));
        let other = self.mad(a_low, b_high, middle_low);
        let middle_high = self.shr_u(middle, 16);
        let other_high = self.shr_u(other, 16);
        let top = self.mad(a_high, b_high, middle_high);
        self.add(top, other_high, Value::ZERO)
    }

    fn mul_high(&mut self, sign: Signedness, a: Value, b: Value) -> Value {
        let unsigned = self.mul_high_u(a, b);
        if sign == Signedness::Unsigned {
            return unsigned;
        }
        // A negative factor counts 2^32 too much.
        let a_sign = self.shr(sign, a, 31);
        let b_sign = self.shr(sign, b, 31);
        let for_a = self.lop(Table2::AND, a_sign, b);
        let for_b = self.lop(Table2::AND, b_sign, a);
        let once = self.sub(unsigned, for_a);
        self.sub(once, for_b)
    }
}

/// An operation still to be expanded.
#[derive(Clone, Copy)]
enum Macro {
    MulHigh(Signedness, Value, Value),
    Divide(Signedness, DivisionPart, Value, Value),
}

fn as_macro(inst: &Inst) -> Option<(VReg, Macro)> {
    match inst.kind {
        InstKind::Word(dst, WordOp::MulHigh(sign, a, b)) => Some((dst, Macro::MulHigh(sign, a, b))),
        InstKind::Word(dst, WordOp::Divide(sign, part, a, b)) => Some((dst, Macro::Divide(sign, part, a, b))),
        _ => None,
    }
}

pub(crate) fn expand_macros(func: &mut Function) {
    let known = KnownBits::new(func);
    let mut work: Vec<BlockId> = func.layout.clone();
    work.reverse();
    while let Some(block) = work.pop() {
        let insts = &func.block(block).insts;
        let Some(pos) = insts.iter().position(|inst| as_macro(inst).is_some()) else { continue };
        let inst = insts[pos].clone();
        let Some((dst, operation)) = as_macro(&inst) else { continue };
        let line = inst.line;
        let mut sequence = Sequence { func: &mut *func, insts: Vec::new(), line };
        let value = match operation {
            Macro::MulHigh(sign, a, b) => Some(sequence.mul_high(sign, a, b)),
            Macro::Divide(sign, part, a, b @ Value::Imm(_)) => {
                divide_by_number(&mut sequence, &known, sign, part, a, b)
            }
            Macro::Divide(..) => None,
        };
        let made = sequence.insts;
        match (value, operation) {
            (Some(value), _) => {
                let last = Inst { guard: inst.guard, kind: InstKind::Word(dst, WordOp::Move(value)), line };
                func.block_mut(block).insts.splice(pos..=pos, made.into_iter().chain([last]));
                work.push(block);
            }
            (None, Macro::Divide(sign, part, a, b)) => {
                let rest = split_behind(func, block, pos);
                func.block_mut(block).insts.pop();
                let inside = if inst.guard == Cond::TRUE {
                    block
                } else {
                    // Threads whose guard fails go around the loop.
                    let inside = func.new_block();
                    insert_behind(func, block, inside);
                    func.block_mut(block).terminator = crate::ir::Terminator::Branch(inst.guard, inside, rest);
                    inside
                };
                expand_division_loop(func, inside, rest, (sign, part), (dst, a, b), line);
                work.push(rest);
            }
            (None, Macro::MulHigh(..)) => {}
        }
    }
}

/// Moves what stands behind `pos` into a new block, which follows in the layout.
fn split_behind(func: &mut Function, block: BlockId, pos: usize) -> BlockId {
    let rest = func.new_block();
    let head = func.block_mut(block);
    let insts = head.insts.split_off(pos + 1);
    let (terminator, line) = (head.terminator, head.line);
    head.terminator = crate::ir::Terminator::Jump(rest);
    let tail = func.block_mut(rest);
    tail.insts = insts;
    tail.terminator = terminator;
    tail.line = line;
    insert_behind(func, block, rest);
    rest
}

/// Places a block behind another in the layout.
pub(super) fn insert_behind(func: &mut Function, block: BlockId, new: BlockId) {
    let at = func.layout.iter().position(|id| *id == block).map_or(func.layout.len(), |at| at + 1);
    func.layout.insert(at, new);
}

//! Operations the machine does not have become operations it has.
//!
//! The high word of a product is put together from 16-bit products. Division by a number multiplies by its
//! reciprocal; any other division is a loop, see `expand_divisions`.

use qwengpu_isa::{BinaryOp, DivisionPart, Signedness, Table2, TernaryOp};

use crate::analysis::KnownBits;
use crate::fold::fold_word;
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, Terminator, VReg, Value, WordOp};

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
    for block in std::mem::take(&mut func.layout) {
        expand_block(func, &known, block);
    }
}

/// Appends a block to the layout, and those that its divisions make of it.
fn expand_block(func: &mut Function, known: &KnownBits, mut block: BlockId) {
    func.layout.push(block);
    let end = func.block(block).clone();
    let mut made = Vec::with_capacity(end.insts.len());
    for inst in end.insts {
        let Some((dst, operation)) = as_macro(&inst) else {
            made.push(inst);
            continue;
        };
        let line = inst.line;
        let mut sequence = Sequence { func: &mut *func, insts: Vec::new(), line };
        let value = match operation {
            Macro::MulHigh(sign, a, b) => Some(sequence.mul_high(sign, a, b)),
            Macro::Divide(sign, part, a, b @ Value::Imm(_)) => divide_by_number(&mut sequence, known, sign, part, a, b),
            Macro::Divide(..) => None,
        };
        let expanded = sequence.insts;
        match (value, operation) {
            (Some(value), _) => {
                made.extend(expanded);
                made.push(Inst { guard: inst.guard, kind: InstKind::Word(dst, WordOp::Move(value)), line });
            }
            (None, Macro::Divide(sign, part, a, b)) => {
                let rest = func.new_block();
                func.block_mut(block).insts = std::mem::take(&mut made);
                let mut inside = block;
                if inst.guard != Cond::TRUE {
                    // Threads whose guard fails go around the loop.
                    inside = func.new_block();
                    func.layout.push(inside);
                    func.block_mut(block).terminator = Terminator::Branch(inst.guard, inside, rest);
                }
                expand_division_loop(func, inside, rest, (sign, part), (dst, a, b), line);
                func.layout.push(rest);
                block = rest;
            }
            (None, Macro::MulHigh(..)) => {}
        }
    }
    let last = func.block_mut(block);
    last.insts = made;
    last.terminator = end.terminator;
    last.line = end.line;
}

//! Operations on constants are done, guards and branches that are decided disappear.

use qwengpu_isa::{BinaryOp, Table2};

use crate::fold::{fold_pred, fold_word};
use crate::ir::{Cond, Function, InstKind, Symbol, Terminator, Value, WordOp};

pub(crate) fn fold_constants(func: &mut Function) {
    for block in func.layout.clone() {
        let symbols = &func.symbols;
        let block = &mut func.blocks[block.idx()];
        for inst in &mut block.insts {
            match &mut inst.kind {
                InstKind::Word(_, op) => *op = aligned_offset(symbols, op).unwrap_or_else(|| fold_word(op.clone())),
                InstKind::Pred(_, op) => *op = fold_pred(op.clone()),
                InstKind::Store(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => {}
            }
        }
        block.insts.retain(|inst| {
            let copies_itself = match &inst.kind {
                InstKind::Word(dst, crate::ir::WordOp::Move(src)) => src.reg() == Some(*dst),
                InstKind::Pred(dst, op) => op.as_copy() == Some(Cond::from(*dst)),
                InstKind::Word(..)
                | InstKind::Store(..)
                | InstKind::Barrier
                | InstKind::Trap(_)
                | InstKind::Call(_) => false,
            };
            inst.guard != Cond::FALSE && !copies_itself
        });
        block.terminator = match block.terminator {
            Terminator::Branch(Cond::Fixed(true), target, _) | Terminator::Branch(Cond::Fixed(false), _, target) => {
                Terminator::Jump(target)
            }
            Terminator::Branch(_, yes, no) if yes == no => Terminator::Jump(yes),
            other => other,
        };
    }
}

/// Compilers add an offset to an aligned address with `or`: its bits are known to be zero.
fn aligned_offset(symbols: &[Symbol], op: &WordOp) -> Option<WordOp> {
    let (symbol, offset, bits) = match *op {
        WordOp::Binary(BinaryOp::Lop(Table2::OR), Value::Symbol(symbol, offset), Value::Imm(bits))
        | WordOp::Binary(BinaryOp::Lop(Table2::OR), Value::Imm(bits), Value::Symbol(symbol, offset)) => {
            (symbol, offset, bits)
        }
        _ => return None,
    };
    let zeros = symbols[symbol.idx()].align - 1;
    (bits & zeros == bits && bits & offset == 0).then(|| WordOp::Move(Value::Symbol(symbol, offset + bits)))
}

//! Operations on constants are done, guards and branches that are decided disappear.

use crate::fold::{fold_pred, fold_word};
use crate::ir::{Cond, Function, InstKind, Terminator};

pub(crate) fn fold_constants(func: &mut Function) {
    for block in func.layout.clone() {
        let block = func.block_mut(block);
        for inst in &mut block.insts {
            match &mut inst.kind {
                InstKind::Word(_, op) => *op = fold_word(op.clone()),
                InstKind::Pred(_, op) => *op = fold_pred(op.clone()),
                InstKind::Store(..) | InstKind::Barrier | InstKind::Trap | InstKind::Call(_) => {}
            }
        }
        block.insts.retain(|inst| {
            let copies_itself = match &inst.kind {
                InstKind::Word(dst, crate::ir::WordOp::Move(src)) => src.reg() == Some(*dst),
                InstKind::Pred(dst, op) => op.as_copy() == Some(Cond::from(*dst)),
                InstKind::Word(..) | InstKind::Store(..) | InstKind::Barrier | InstKind::Trap | InstKind::Call(_) => {
                    false
                }
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

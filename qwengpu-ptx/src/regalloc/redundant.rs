//! Moves of a fixed value into a register that holds it already are dropped.

use std::collections::BTreeSet;

use qwengpu_isa::Reg;

use crate::analysis::Cfg;
use crate::ir::{Cond, Function, Inst, InstKind, Value, WordOp};

use super::Allocation;

/// The fixed value in each architectural register, where known.
type Contents = [Option<Value>; 16];

/// Drops the moves; the allocation stays valid, since registers keep the values they have.
pub(crate) fn drop_redundant_moves(func: &mut Function, allocation: &Allocation) {
    let cfg = Cfg::new(func);
    let mut at_start: Vec<Option<Contents>> = vec![None; func.blocks.len()];
    at_start[func.entry().idx()] = Some([None; 16]);
    // In the order of control, so that a block is visited when most of what leads to it has been.
    let mut work: BTreeSet<usize> = BTreeSet::from([0]);
    while let Some(rank) = work.pop_first() {
        let block = cfg.order[rank];
        let Some(mut contents) = at_start[block.idx()] else { continue };
        for inst in &func.block(block).insts {
            step(&mut contents, inst, allocation);
        }
        for next in func.block(block).terminator.successors() {
            let slot = &mut at_start[next.idx()];
            let merged = match slot {
                None => contents,
                Some(old) => meet(old, &contents),
            };
            if *slot != Some(merged) {
                *slot = Some(merged);
                work.extend(cfg.rank(next));
            }
        }
    }
    for block in cfg.order {
        let Some(mut contents) = at_start[block.idx()] else { continue };
        func.block_mut(block).insts.retain(|inst| {
            let redundant = written(inst, allocation)
                .zip(fixed(inst))
                .is_some_and(|(reg, value)| contents[usize::from(reg.index())] == Some(value));
            step(&mut contents, inst, allocation);
            !redundant
        });
    }
}

fn meet(a: &Contents, b: &Contents) -> Contents {
    let mut result = *a;
    for (mine, theirs) in result.iter_mut().zip(b) {
        if mine != theirs {
            *mine = None;
        }
    }
    result
}

fn written(inst: &Inst, allocation: &Allocation) -> Option<Reg> {
    if matches!(inst.kind, InstKind::Word(_, WordOp::Undefined)) {
        return None;
    }
    inst.reg_written().and_then(|reg| allocation.reg(reg))
}

/// The fixed value an instruction moves, whatever its guard.
fn fixed(inst: &Inst) -> Option<Value> {
    match inst.kind {
        InstKind::Word(_, WordOp::Move(value @ (Value::Imm(_) | Value::Const(_)))) => Some(value),
        _ => None,
    }
}

fn step(contents: &mut Contents, inst: &Inst, allocation: &Allocation) {
    let Some(reg) = written(inst, allocation) else { return };
    let moved = match inst.kind {
        InstKind::Word(_, WordOp::Move(Value::Reg(src))) => {
            allocation.reg(src).and_then(|src| contents[usize::from(src.index())])
        }
        _ => fixed(inst),
    };
    let slot = &mut contents[usize::from(reg.index())];
    // A guarded move changes nothing if the value is there already, and leaves a mixture otherwise.
    *slot = if inst.guard == Cond::TRUE || *slot == moved { moved } else { None };
}

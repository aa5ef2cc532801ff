//! Operations that give the same value in every round of a loop move in front of it.
//!
//! Only operations without effect on plain registers move, and only a few a loop: each one moved holds a
//! register all through the loop.

use std::collections::BTreeSet;

use crate::analysis::{Cfg, Defs, natural_loops};
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, Terminator, VReg, WordOp};

/// Most operations moved in front of one loop.
const MAX_HOISTED: usize = 5;

pub(crate) fn hoist_invariants(func: &mut Function) {
    let cfg = Cfg::new(func);
    let loops = natural_loops(func, &cfg);
    // Inner loops first: what leaves an inner loop may leave the outer one.
    let mut order: Vec<(BlockId, BTreeSet<BlockId>)> = loops.into_iter().collect();
    order.sort_by_key(|(head, body)| (body.len(), *head));
    for idx in 0..order.len() {
        let (head, body) = order[idx].clone();
        if let Some(front) = hoist_from(func, head, &body) {
            // A block between the loops is part of the outer ones.
            let outer = order[idx + 1..].iter_mut().filter(|(other, body)| *other != head && body.contains(&head));
            outer.for_each(|(_, body)| {
                body.insert(front);
            });
        }
    }
}

/// Moves what it can out of a loop; the block in front of the loop, if it is a new one.
fn hoist_from(func: &mut Function, head: BlockId, body: &BTreeSet<BlockId>) -> Option<BlockId> {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    let mut outside: Vec<Inst> = Vec::new();
    let mut moved: BTreeSet<VReg> = BTreeSet::new();
    let mut written: BTreeSet<VReg> = BTreeSet::new();
    for block in body {
        written.extend(func.block(*block).insts.iter().filter_map(Inst::reg_written));
    }
    for block in cfg.order.iter().filter(|block| body.contains(block)) {
        for inst in &func.block(*block).insts {
            let InstKind::Word(dst, op) = &inst.kind else { continue };
            let candidate = inst.guard == Cond::TRUE && op.is_pure() && op.cond().is_none() && defs.is_plain(*dst);
            let stable = |reg: &VReg| defs.is_plain(*reg) && (!written.contains(reg) || moved.contains(reg));
            let cheap_copy = matches!(op, WordOp::Move(crate::ir::Value::Reg(_)));
            if candidate && !cheap_copy && outside.len() < MAX_HOISTED && op.regs().iter().all(stable) {
                outside.push(inst.clone());
                moved.insert(*dst);
            }
        }
    }
    if outside.is_empty() {
        return None;
    }
    for block in body {
        func.block_mut(*block).insts.retain(|inst| inst.reg_written().is_none_or(|dst| !moved.contains(&dst)));
    }
    let entering: Vec<BlockId> = cfg.preds(head).iter().copied().filter(|pred| !body.contains(pred)).collect();
    match entering[..] {
        [only] if func.block(only).terminator == Terminator::Jump(head) => {
            func.block_mut(only).insts.extend(outside);
            None
        }
        _ => {
            let front = func.new_block();
            func.block_mut(front).terminator = Terminator::Jump(head);
            let at = func.layout.iter().position(|id| *id == head).unwrap_or(0);
            func.layout.insert(at, front);
            for pred in entering {
                let terminator = func.block(pred).terminator;
                func.block_mut(pred).terminator =
                    terminator.map_targets(|target| if target == head { front } else { target });
            }
            func.block_mut(front).insts.extend(outside);
            Some(front)
        }
    }
}

//! `t = op …; d = move t` becomes `d = op …` when nothing else reads `t`.
//!
//! An operation without effect moves down to the copy and takes over its guard; what is left of the first
//! instruction is dead. Any other operation gets the copy's destination where it stands, if the guards are the
//! same and nothing in between touches `d`.

use std::collections::BTreeSet;

use crate::analysis::{Cfg, Defs};
use crate::ir::{Cond, Function, InstKind, InstRef, VReg, Value, WordOp};

pub(crate) fn sink_definitions(func: &mut Function) {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    // Registers whose writes or reads are no longer those the facts are about.
    let mut stale: BTreeSet<VReg> = BTreeSet::new();
    for block in cfg.order.clone() {
        for pos in 0..func.block(block).insts.len() {
            sink(func, &defs, InstRef { block, pos }, &mut stale);
        }
        let is_gone =
            |kind: &InstKind| matches!(kind, InstKind::Word(dst, WordOp::Move(Value::Reg(src))) if src == dst);
        func.block_mut(block).insts.retain(|inst| !is_gone(&inst.kind));
    }
    sink_predicates(func);
}

fn sink(func: &mut Function, defs: &Defs, at: InstRef, stale: &mut BTreeSet<VReg>) {
    let inst = &func.block(at.block).insts[at.pos];
    let InstKind::Word(dst, WordOp::Move(Value::Reg(temp))) = inst.kind else { return };
    let guard = inst.guard;
    if temp == dst || defs.num_defs(temp) != 1 || stale.contains(&temp) || stale.contains(&dst) {
        return;
    }
    if defs.num_uses(temp) != 1 {
        if guard == Cond::TRUE && rename(func, defs, at, dst, temp) {
            stale.extend([dst, temp]);
        }
        return;
    }
    if let Some(op) = defs.source(func, temp, at)
        && op.is_pure()
        && defs.reaching(func, temp, at).is_some_and(|from| from.block == at.block)
    {
        let op = op.clone();
        stale.extend(op.regs());
        stale.extend([dst, temp]);
        func.block_mut(at.block).insts[at.pos].kind = InstKind::Word(dst, op);
        return;
    }
    let insts = &func.block(at.block).insts;
    let Some(pos) = insts[..at.pos].iter().rposition(|inst| inst.reg_written() == Some(temp)) else { return };
    let between = &insts[pos + 1..at.pos];
    let guard_holds = insts[pos].guard == guard
        && guard.pred().is_none_or(|pred| !insts[pos..at.pos].iter().any(|inst| inst.pred_written() == Some(pred)));
    if !guard_holds || between.iter().any(|inst| touches(inst, dst)) {
        return;
    }
    let InstKind::Word(_, op) = insts[pos].kind.clone() else { return };
    let insts = &mut func.block_mut(at.block).insts;
    insts[pos].kind = InstKind::Word(dst, op);
    stale.extend([dst, temp]);
    // Left as a copy of itself, so that positions stay; removed at the end.
    insts[at.pos].kind = InstKind::Word(dst, WordOp::Move(dst.into()));
}

/// `t = op …; d = move t` where `t` is read elsewhere in the block too: `t` becomes `d` altogether, if `d` is not
/// touched before the copy and not written while `t` is still read.
fn rename(func: &mut Function, defs: &Defs, at: InstRef, dst: VReg, temp: VReg) -> bool {
    let insts = &func.block(at.block).insts;
    let Some(start) = insts[..at.pos].iter().rposition(|inst| inst.reg_written() == Some(temp)) else { return false };
    let reads = |inst: &crate::ir::Inst| inst.regs_read().iter().filter(|reg| **reg == temp).count();
    let Some(end) = insts.iter().rposition(|inst| reads(inst) > 0) else { return false };
    let all_here = insts[start + 1..].iter().map(reads).sum::<usize>() == defs.num_uses(temp);
    let free_before = !insts[start + 1..at.pos].iter().any(|inst| touches(inst, dst));
    let free_behind = end <= at.pos || !insts[at.pos + 1..end].iter().any(|inst| inst.reg_written() == Some(dst));
    if insts[start].guard != Cond::TRUE || !all_here || !free_before || !free_behind {
        return false;
    }
    let insts = &mut func.block_mut(at.block).insts;
    if let InstKind::Word(written, _) = &mut insts[start].kind {
        *written = dst;
    }
    for inst in &mut insts[start + 1..=end] {
        inst.each_value(&mut |value| {
            if *value == Value::Reg(temp) {
                *value = dst.into();
            }
        });
        if let Some(address) = inst.address_mut() {
            for field in [&mut address.base, &mut address.index] {
                if *field == Some(temp) {
                    *field = Some(dst);
                }
            }
        }
    }
    true
}

fn touches(inst: &crate::ir::Inst, reg: VReg) -> bool {
    inst.reg_written() == Some(reg) || inst.regs_read().contains(&reg)
}

/// The same for predicates: the comparison moves down to the copy.
fn sink_predicates(func: &mut Function) {
    let cfg = Cfg::new(func);
    let defs = Defs::new(func, &cfg);
    for block in cfg.order.clone() {
        for pos in 0..func.block(block).insts.len() {
            let at = InstRef { block, pos };
            let InstKind::Pred(dst, op) = &func.block(block).insts[pos].kind else { continue };
            let Some(Cond::Pred { pred: temp, negated: false }) = op.as_copy() else { continue };
            let dst = *dst;
            if temp == dst || defs.num_pred_uses(temp) != 1 {
                continue;
            }
            let same_block = defs.reaching_pred(func, temp, at).is_some_and(|from| from.block == block);
            let Some(op) = defs.pred_source(func, temp, at).filter(|_| same_block) else { continue };
            if matches!(op, crate::ir::PredOp::Lead(_) | crate::ir::PredOp::Undefined) {
                continue;
            }
            let op = op.clone();
            func.block_mut(block).insts[pos].kind = InstKind::Pred(dst, op);
        }
    }
}

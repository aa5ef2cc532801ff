//! `t = op …; d = move t` becomes `d = op …` when nothing else reads `t`.
//!
//! An operation without effect moves down to the copy and takes over its guard; what is left of the first
//! instruction is dead. Any other operation gets the copy's destination where it stands, if the guards are the
//! same and nothing in between touches `d`.

use std::collections::BTreeSet;

use crate::analysis::{Cfg, Defs, Places};
use crate::ir::{Cond, Function, InstKind, InstRef, VReg, Value, WordOp};

pub(crate) fn sink_definitions(func: &mut Function) {
    let cfg = Cfg::new(func);
    let facts = Facts { defs: Defs::new(func, &cfg), reads: reads(func, &cfg) };
    for block in cfg.order.clone() {
        // Registers whose writes or reads in the block are no longer those the facts are about.
        let mut stale: BTreeSet<VReg> = BTreeSet::new();
        for pos in 0..func.block(block).insts.len() {
            facts.sink(func, InstRef { block, pos }, &mut stale);
        }
        let is_gone =
            |kind: &InstKind| matches!(kind, InstKind::Word(dst, WordOp::Move(Value::Reg(src))) if src == dst);
        func.block_mut(block).insts.retain(|inst| !is_gone(&inst.kind));
    }
    sink_predicates(func);
}

/// Where every register is read, an entry for each operand.
fn reads(func: &Function, cfg: &Cfg) -> Places {
    let mut found = Vec::new();
    for block in &cfg.order {
        for (pos, inst) in func.block(*block).insts.iter().enumerate() {
            let at = InstRef { block: *block, pos };
            found.extend(inst.regs_read().into_iter().map(|reg| (reg.idx(), at)));
        }
    }
    Places::new(func.num_vregs, found)
}

/// What was found of the function before it changed; right for registers that are not stale.
struct Facts {
    defs: Defs,
    reads: Places,
}

impl Facts {
    fn is_touched(&self, reg: VReg, from: InstRef, to: InstRef) -> bool {
        self.defs.is_written(reg, from, to) || !self.reads.between(reg.idx(), from, to).is_empty()
    }

    fn sink(&self, func: &mut Function, at: InstRef, stale: &mut BTreeSet<VReg>) {
        let defs = &self.defs;
        let inst = &func.block(at.block).insts[at.pos];
        let InstKind::Word(dst, WordOp::Move(Value::Reg(temp))) = inst.kind else { return };
        let guard = inst.guard;
        if temp == dst || defs.num_defs(temp) != 1 || stale.contains(&temp) || stale.contains(&dst) {
            return;
        }
        if defs.num_uses(temp) != 1 {
            if guard == Cond::TRUE && self.rename(func, at, dst, temp) {
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
        let Some(from) = defs.last_write(temp, at) else { return };
        let insts = &func.block(at.block).insts;
        let guard_holds =
            insts[from.pos].guard == guard && guard.pred().is_none_or(|pred| !defs.is_pred_written(pred, from, at));
        if !guard_holds || self.is_touched(dst, behind(from), at) {
            return;
        }
        let InstKind::Word(_, op) = insts[from.pos].kind.clone() else { return };
        let insts = &mut func.block_mut(at.block).insts;
        insts[from.pos].kind = InstKind::Word(dst, op);
        stale.extend([dst, temp]);
        // Left as a copy of itself, so that positions stay; removed at the end.
        insts[at.pos].kind = InstKind::Word(dst, WordOp::Move(dst.into()));
    }

    /// `t = op …; d = move t` where `t` is read elsewhere in the block too: `t` becomes `d` altogether, if `d` is not
    /// touched before the copy and not written while `t` is still read.
    fn rename(&self, func: &mut Function, at: InstRef, dst: VReg, temp: VReg) -> bool {
        let Some(start) = self.defs.last_write(temp, at) else { return false };
        let end_of_block = InstRef { pos: func.block(at.block).insts.len(), ..at };
        let reads = self.reads.between(temp.idx(), behind(start), end_of_block);
        let Some(end) = reads.last() else { return false };
        let all_here = reads.len() == self.defs.num_uses(temp);
        let free_before = !self.is_touched(dst, behind(start), at);
        let free_behind = *end <= at || !self.defs.is_written(dst, behind(at), *end);
        if func.block(at.block).insts[start.pos].guard != Cond::TRUE || !all_here || !free_before || !free_behind {
            return false;
        }
        let insts = &mut func.block_mut(at.block).insts;
        if let InstKind::Word(written, _) = &mut insts[start.pos].kind {
            *written = dst;
        }
        for read in reads {
            let inst = &mut insts[read.pos];
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
}

/// The next place in the block.
fn behind(at: InstRef) -> InstRef {
    InstRef { pos: at.pos + 1, ..at }
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

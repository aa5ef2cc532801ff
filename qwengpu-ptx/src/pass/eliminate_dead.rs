//! Instructions whose result nobody reads disappear.
//!
//! First those that only feed each other, found from the effects backwards: the high halves of addresses go
//! here, and with them all 64-bit arithmetic whose high words are never looked at. Then those whose result is
//! overwritten before it is read. A load is no effect: one whose value is unused goes too.

use crate::analysis::{Cfg, Liveness};
use crate::ir::{Cond, Function, Inst, InstRef, VPred, VReg};

pub(crate) fn eliminate_dead(func: &mut Function) {
    keep_needed(func);
    let cfg = Cfg::new(func);
    func.layout.retain(|block| cfg.is_reachable(*block));
    let liveness = Liveness::new(func, &cfg);
    for block in cfg.order {
        let mut live = liveness.before_terminator(func, block);
        let mut kept: Vec<Inst> = Vec::new();
        for inst in std::mem::take(&mut func.block_mut(block).insts).into_iter().rev() {
            let read_later = inst.reg_written().is_some_and(|reg| live.has(reg))
                || inst.pred_written().is_some_and(|pred| live.has_pred(pred));
            if inst.has_effect() || read_later {
                live.step_back(&inst);
                kept.push(inst);
            }
        }
        kept.reverse();
        func.block_mut(block).insts = kept;
    }
}

fn keep_needed(func: &mut Function) {
    let mut needed =
        Needed { words: vec![false; func.num_vregs], preds: vec![false; func.num_vpreds], waiting: Vec::new() };
    // Where each register is written that nothing is known to read yet.
    let mut word_writes: Vec<Vec<InstRef>> = vec![Vec::new(); func.num_vregs];
    let mut pred_writes: Vec<Vec<InstRef>> = vec![Vec::new(); func.num_vpreds];
    for block in func.layout.iter().rev() {
        if let Some(pred) = func.block(*block).terminator.cond().and_then(Cond::pred) {
            needed.pred(pred);
        }
        for (pos, inst) in func.block(*block).insts.iter().enumerate().rev() {
            if needed.has(inst) {
                needed.operands_of(inst);
                continue;
            }
            let at = InstRef { block: *block, pos };
            inst.reg_written().into_iter().for_each(|reg| word_writes[reg.idx()].push(at));
            inst.pred_written().into_iter().for_each(|pred| pred_writes[pred.idx()].push(at));
        }
    }
    while let Some(name) = needed.waiting.pop() {
        let writes = match name {
            Name::Word(reg) => std::mem::take(&mut word_writes[reg.idx()]),
            Name::Pred(pred) => std::mem::take(&mut pred_writes[pred.idx()]),
        };
        for at in writes {
            needed.operands_of(&func.block(at.block).insts[at.pos]);
        }
    }
    for block in func.layout.clone() {
        func.block_mut(block).insts.retain(|inst| needed.has(inst));
    }
}

enum Name {
    Word(VReg),
    Pred(VPred),
}

/// The registers that something needed reads.
struct Needed {
    words: Vec<bool>,
    preds: Vec<bool>,
    /// Those whose writes have not been looked at.
    waiting: Vec<Name>,
}

impl Needed {
    fn has(&self, inst: &Inst) -> bool {
        inst.has_effect()
            || inst.reg_written().is_some_and(|reg| self.words[reg.idx()])
            || inst.pred_written().is_some_and(|pred| self.preds[pred.idx()])
    }

    fn pred(&mut self, pred: VPred) {
        if !std::mem::replace(&mut self.preds[pred.idx()], true) {
            self.waiting.push(Name::Pred(pred));
        }
    }

    fn operands_of(&mut self, inst: &Inst) {
        for reg in inst.regs_read() {
            if !std::mem::replace(&mut self.words[reg.idx()], true) {
                self.waiting.push(Name::Word(reg));
            }
        }
        inst.preds_read().into_iter().for_each(|pred| self.pred(pred));
    }
}

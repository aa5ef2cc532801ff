//! Instructions whose result nobody reads disappear.
//!
//! First those that only feed each other, found from the effects backwards: the high halves of addresses go
//! here, and with them all 64-bit arithmetic whose high words are never looked at. Then those whose result is
//! overwritten before it is read. A load is no effect: one whose value is unused goes too.

use crate::analysis::{Cfg, Liveness};
use crate::ir::{Cond, Function, Inst};

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
    let mut words = vec![false; func.num_vregs];
    let mut preds = vec![false; func.num_vpreds];
    for block in &func.layout {
        if let Some(pred) = func.block(*block).terminator.cond().and_then(Cond::pred) {
            preds[pred.idx()] = true;
        }
    }
    let is_needed = |inst: &Inst, words: &[bool], preds: &[bool]| {
        inst.has_effect()
            || inst.reg_written().is_some_and(|reg| words[reg.idx()])
            || inst.pred_written().is_some_and(|pred| preds[pred.idx()])
    };
    let mut changed = true;
    while changed {
        changed = false;
        for block in func.layout.iter().rev() {
            for inst in func.block(*block).insts.iter().rev() {
                if !is_needed(inst, &words, &preds) {
                    continue;
                }
                for reg in inst.regs_read() {
                    changed |= !std::mem::replace(&mut words[reg.idx()], true);
                }
                for pred in inst.preds_read() {
                    changed |= !std::mem::replace(&mut preds[pred.idx()], true);
                }
            }
        }
    }
    for block in func.layout.clone() {
        func.block_mut(block).insts.retain(|inst| is_needed(inst, &words, &preds));
    }
}

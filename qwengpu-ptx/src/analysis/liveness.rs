//! Which registers are live where, thread by thread.
//!
//! A guarded write leaves other threads their old value, so it does not end a live range.

use crate::ir::{BlockId, Cond, Function, Inst, VPred, VReg};

use super::cfg::Cfg;

/// A set of registers and predicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegSet {
    words: Vec<bool>,
    preds: Vec<bool>,
}

impl RegSet {
    pub(crate) fn new(func: &Function) -> RegSet {
        RegSet { words: vec![false; func.num_vregs], preds: vec![false; func.num_vpreds] }
    }

    pub(crate) fn has(&self, reg: VReg) -> bool {
        self.words[reg.idx()]
    }

    pub(crate) fn has_pred(&self, pred: VPred) -> bool {
        self.preds[pred.idx()]
    }

    pub(crate) fn regs(&self) -> impl Iterator<Item = VReg> {
        let live = self.words.iter().enumerate().filter(|(_, live)| **live);
        live.map(|(idx, _)| VReg::new(idx))
    }

    pub(crate) fn preds(&self) -> impl Iterator<Item = VPred> {
        let live = self.preds.iter().enumerate().filter(|(_, live)| **live);
        live.map(|(idx, _)| VPred::new(idx))
    }

    /// Adds the members of `other`; whether any was new.
    fn merge(&mut self, other: &RegSet) -> bool {
        let mut grew = false;
        for (mine, theirs) in [(&mut self.words, &other.words), (&mut self.preds, &other.preds)] {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                grew |= *theirs && !*mine;
                *mine |= *theirs;
            }
        }
        grew
    }

    /// The set before an instruction, given the set behind it.
    pub(crate) fn step_back(&mut self, inst: &Inst) {
        if inst.guard == Cond::TRUE {
            if let Some(reg) = inst.reg_written() {
                self.words[reg.idx()] = false;
            }
            if let Some(pred) = inst.pred_written() {
                self.preds[pred.idx()] = false;
            }
        }
        for reg in inst.regs_read() {
            self.words[reg.idx()] = true;
        }
        for pred in inst.preds_read() {
            self.preds[pred.idx()] = true;
        }
    }

    fn read_cond(&mut self, cond: Option<Cond>) {
        if let Some(pred) = cond.and_then(Cond::pred) {
            self.preds[pred.idx()] = true;
        }
    }
}

/// Live sets at the ends of blocks.
pub(crate) struct Liveness {
    live_in: Vec<RegSet>,
}

impl Liveness {
    pub(crate) fn new(func: &Function, cfg: &Cfg) -> Liveness {
        let mut live_in = vec![RegSet::new(func); func.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for block in cfg.order.iter().rev() {
                let mut live = Self::before_terminator_of(func, &live_in, *block);
                for inst in func.block(*block).insts.iter().rev() {
                    live.step_back(inst);
                }
                changed |= live_in[block.idx()].merge(&live);
            }
        }
        Liveness { live_in }
    }

    fn before_terminator_of(func: &Function, live_in: &[RegSet], block: BlockId) -> RegSet {
        let terminator = func.block(block).terminator;
        let mut live = RegSet::new(func);
        for next in terminator.successors() {
            live.merge(&live_in[next.idx()]);
        }
        live.read_cond(terminator.cond());
        live
    }

    pub(crate) fn live_in(&self, block: BlockId) -> &RegSet {
        &self.live_in[block.idx()]
    }

    /// What is live between the last instruction and the terminator.
    pub(crate) fn before_terminator(&self, func: &Function, block: BlockId) -> RegSet {
        Self::before_terminator_of(func, &self.live_in, block)
    }
}

//! Which instruction a register's value comes from.
//!
//! A register is *plain* when one unguarded instruction writes it and that instruction dominates every use, as
//! in SSA. The value of a plain register never changes while it can be used, so operations on plain registers
//! may be moved along dominance. Other registers are followed inside one block only.

use crate::ir::{Cond, Function, InstKind, InstRef, PredOp, VPred, VReg, WordOp};

use super::cfg::Cfg;
use super::places::Places;

/// The writes of one register.
#[derive(Debug, Clone, Copy, Default)]
struct Site {
    count: usize,
    first: Option<InstRef>,
    plain: bool,
    uses: usize,
}

/// Where registers are written and read. Valid while instructions change in place only, and keep what they write.
pub(crate) struct Defs {
    words: Vec<Site>,
    preds: Vec<Site>,
    word_writes: Places,
    pred_writes: Places,
}

impl Defs {
    pub(crate) fn new(func: &Function, cfg: &Cfg) -> Defs {
        let mut defs = Defs {
            words: vec![Site::default(); func.num_vregs],
            preds: vec![Site::default(); func.num_vpreds],
            word_writes: Places::default(),
            pred_writes: Places::default(),
        };
        let (mut word_writes, mut pred_writes) = (Vec::new(), Vec::new());
        for block in &cfg.order {
            for (pos, inst) in func.block(*block).insts.iter().enumerate() {
                let at = InstRef { block: *block, pos };
                let plain = inst.guard == Cond::TRUE;
                let undefined = inst.is_undefined();
                let site = match (inst.reg_written(), inst.pred_written()) {
                    (Some(reg), _) => {
                        word_writes.push((reg.idx(), at));
                        &mut defs.words[reg.idx()]
                    }
                    (None, Some(pred)) => {
                        pred_writes.push((pred.idx(), at));
                        &mut defs.preds[pred.idx()]
                    }
                    (None, None) => continue,
                };
                site.count += 1;
                site.first = Some(at);
                site.plain = plain && !undefined && site.count == 1;
            }
        }
        for block in &cfg.order {
            let body = func.block(*block);
            for (pos, inst) in body.insts.iter().enumerate() {
                let at = InstRef { block: *block, pos };
                for reg in inst.regs_read() {
                    note_use(&mut defs.words[reg.idx()], cfg, at);
                }
                for pred in inst.preds_read() {
                    note_use(&mut defs.preds[pred.idx()], cfg, at);
                }
            }
            if let Some(pred) = body.terminator.cond().and_then(Cond::pred) {
                let at = InstRef { block: *block, pos: body.insts.len() };
                note_use(&mut defs.preds[pred.idx()], cfg, at);
            }
        }
        defs.word_writes = Places::new(func.num_vregs, word_writes);
        defs.pred_writes = Places::new(func.num_vpreds, pred_writes);
        defs
    }

    pub(crate) fn is_plain(&self, reg: VReg) -> bool {
        self.words[reg.idx()].plain
    }

    pub(crate) fn is_plain_pred(&self, pred: VPred) -> bool {
        self.preds[pred.idx()].plain
    }

    pub(crate) fn num_defs(&self, reg: VReg) -> usize {
        self.words[reg.idx()].count
    }

    /// Operands that read the register, when the facts were computed.
    pub(crate) fn num_uses(&self, reg: VReg) -> usize {
        self.words[reg.idx()].uses
    }

    pub(crate) fn num_pred_uses(&self, pred: VPred) -> usize {
        self.preds[pred.idx()].uses
    }

    /// The one unguarded instruction whose result `reg` holds at `at`.
    pub(crate) fn reaching(&self, func: &Function, reg: VReg, at: InstRef) -> Option<InstRef> {
        reaching(func, &self.words[reg.idx()], at, || self.last_write(reg, at))
    }

    /// The last write in front of `at`, if it is in the same block.
    pub(crate) fn last_write(&self, reg: VReg, at: InstRef) -> Option<InstRef> {
        self.word_writes.last_before(reg.idx(), at)
    }

    /// Whether something writes the register in a block from one place up to another, the latter left out.
    pub(crate) fn is_written(&self, reg: VReg, from: InstRef, to: InstRef) -> bool {
        !self.word_writes.between(reg.idx(), from, to).is_empty()
    }

    /// As [`Defs::is_written`], for a predicate.
    pub(crate) fn is_pred_written(&self, pred: VPred, from: InstRef, to: InstRef) -> bool {
        !self.pred_writes.between(pred.idx(), from, to).is_empty()
    }

    /// As [`Defs::reaching`], for a predicate.
    pub(crate) fn reaching_pred(&self, func: &Function, pred: VPred, at: InstRef) -> Option<InstRef> {
        reaching(func, &self.preds[pred.idx()], at, || self.pred_writes.last_before(pred.idx(), at))
    }

    /// Whether `reg`, read by the instruction at `from`, has the same value when read at `to` behind it.
    pub(crate) fn unchanged(&self, reg: VReg, from: InstRef, to: InstRef) -> bool {
        self.is_plain(reg) || untouched(&self.word_writes, reg.idx(), from, to)
    }

    /// As [`Defs::unchanged`], for a predicate.
    fn unchanged_pred(&self, pred: VPred, from: InstRef, to: InstRef) -> bool {
        self.is_plain_pred(pred) || untouched(&self.pred_writes, pred.idx(), from, to)
    }

    pub(crate) fn unchanged_cond(&self, cond: Cond, from: InstRef, to: InstRef) -> bool {
        cond.pred().is_none_or(|pred| self.unchanged_pred(pred, from, to))
    }

    /// The word operation whose result `reg` holds at `at`, if its operands still have their values there.
    pub(crate) fn source<'f>(&self, func: &'f Function, reg: VReg, at: InstRef) -> Option<&'f WordOp> {
        let from = self.reaching(func, reg, at)?;
        let op = func.block(from.block).insts.get(from.pos)?.unguarded_op()?;
        let words = op.regs().into_iter().all(|r| self.unchanged(r, from, at));
        let conds = op.cond().is_none_or(|c| self.unchanged_cond(c, from, at));
        (words && conds).then_some(op)
    }

    /// The predicate operation whose result `pred` holds at `at`, if its operands still have their values there.
    pub(crate) fn pred_source<'f>(&self, func: &'f Function, pred: VPred, at: InstRef) -> Option<&'f PredOp> {
        let from = self.reaching_pred(func, pred, at)?;
        let inst = func.block(from.block).insts.get(from.pos)?;
        let InstKind::Pred(_, op) = &inst.kind else { return None };
        let words = inst.regs_read().into_iter().all(|r| self.unchanged(r, from, at));
        let preds = inst.preds_read().into_iter().all(|p| self.unchanged_pred(p, from, at));
        (words && preds).then_some(op)
    }
}

fn note_use(site: &mut Site, cfg: &Cfg, at: InstRef) {
    site.uses += 1;
    let dominated = site
        .first
        .is_some_and(|def| if def.block == at.block { def.pos < at.pos } else { cfg.dominates(def.block, at.block) });
    site.plain &= dominated;
}

fn reaching(func: &Function, site: &Site, at: InstRef, last_write: impl Fn() -> Option<InstRef>) -> Option<InstRef> {
    if site.plain {
        return site.first;
    }
    last_write().filter(|from| func.block(at.block).insts.get(from.pos).is_some_and(|inst| inst.guard == Cond::TRUE))
}

fn untouched(writes: &Places, idx: usize, from: InstRef, to: InstRef) -> bool {
    from.block == to.block && from.pos <= to.pos && writes.between(idx, from, to).is_empty()
}

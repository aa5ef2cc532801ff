//! Which values may differ between the lanes of a warp.
//!
//! A value differs if it comes from the thread's number, from another lane, from memory at an address that
//! differs, or from a write that some lanes of the warp skip. What lies between a branch whose condition differs
//! and the block where all its paths meet again is skipped by some; nothing is if the paths never meet, since
//! each lane then sees one side only. Values that only the lanes there see, all from the same write, are equal.

use std::collections::BTreeSet;

use qwengpu_isa::SpecialReg;

use crate::ir::{BlockId, Cond, Function, Inst, InstKind, PredOp, Terminator, VPred, VReg, WordOp};

use super::cfg::Cfg;
use super::ends::WaysToEnd;

/// The registers and predicates that may differ between lanes.
pub(crate) struct Divergence {
    words: Vec<bool>,
    preds: Vec<bool>,
    /// Blocks that some lanes of a warp may skip.
    skipped: BTreeSet<BlockId>,
}

impl Divergence {
    pub(crate) fn new(func: &Function, cfg: &Cfg) -> Divergence {
        let mut found = Divergence {
            words: vec![false; func.num_vregs],
            preds: vec![false; func.num_vpreds],
            skipped: BTreeSet::new(),
        };
        let uses = Uses::new(func, cfg);
        let is_end = |block: BlockId| func.block(block).terminator == Terminator::Exit;
        let ways = WaysToEnd::new(func, cfg, is_end, |block| only_ends(func, block));
        let mut seen: BTreeSet<BlockId> = BTreeSet::new();
        loop {
            let mut changed = false;
            for block in &cfg.order {
                for inst in &func.block(*block).insts {
                    let skipped = found.skipped.contains(block) && !uses.only_in(inst, &found.skipped);
                    changed |= found.visit(inst, skipped);
                }
                if let Terminator::Branch(cond, yes, no) = func.block(*block).terminator
                    && found.differs(cond)
                    && seen.insert(*block)
                {
                    found.skipped.extend(between(func, &ways, *block, yes, no));
                    changed = true;
                }
            }
            if !changed {
                return found;
            }
        }
    }

    /// Whether lanes may disagree about a condition.
    pub(crate) fn differs(&self, cond: Cond) -> bool {
        cond.pred().is_some_and(|pred| self.preds[pred.idx()])
    }

    fn visit(&mut self, inst: &Inst, skipped: bool) -> bool {
        let operands = inst.regs_read().iter().any(|reg: &VReg| self.words[reg.idx()])
            || inst.preds_read().iter().any(|pred: &VPred| self.preds[pred.idx()]);
        let source = match &inst.kind {
            InstKind::Word(_, op) => match op {
                WordOp::Special(special) => *special != SpecialReg::WarpId,
                WordOp::SmallDivide(_, from, _) => from.is_none(),
                WordOp::Shuffle(..) | WordOp::Undefined => true,
                // The same bits for all lanes that take part.
                WordOp::Vote(_) => return self.mark(inst, skipped || self.differs(inst.guard)),
                _ => false,
            },
            InstKind::Pred(_, op) => matches!(op, PredOp::Lead(_) | PredOp::Undefined),
            InstKind::Store(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => false,
        };
        self.mark(inst, operands || source || skipped)
    }

    fn mark(&mut self, inst: &Inst, differs: bool) -> bool {
        let slot = match (inst.reg_written(), inst.pred_written()) {
            (Some(reg), _) => &mut self.words[reg.idx()],
            (None, Some(pred)) => &mut self.preds[pred.idx()],
            (None, None) => return false,
        };
        differs && !std::mem::replace(slot, true)
    }
}

/// How often registers and predicates are written, and where they are read.
struct Uses {
    words: Vec<(usize, BTreeSet<BlockId>)>,
    preds: Vec<(usize, BTreeSet<BlockId>)>,
}

impl Uses {
    fn new(func: &Function, cfg: &Cfg) -> Uses {
        let none = (0, BTreeSet::new());
        let mut uses = Uses { words: vec![none.clone(); func.num_vregs], preds: vec![none; func.num_vpreds] };
        for block in &cfg.order {
            let body = func.block(*block);
            for inst in &body.insts {
                inst.reg_written().into_iter().for_each(|reg| uses.words[reg.idx()].0 += 1);
                inst.pred_written().into_iter().for_each(|pred| uses.preds[pred.idx()].0 += 1);
                for reg in inst.regs_read() {
                    uses.words[reg.idx()].1.insert(*block);
                }
                for pred in inst.preds_read() {
                    uses.preds[pred.idx()].1.insert(*block);
                }
            }
            if let Some(pred) = body.terminator.cond().and_then(Cond::pred) {
                uses.preds[pred.idx()].1.insert(*block);
            }
        }
        uses
    }

    /// Whether the instruction is the only one to write its destination, and what it writes stays in the blocks.
    fn only_in(&self, inst: &Inst, blocks: &BTreeSet<BlockId>) -> bool {
        let (writes, reads) = match (inst.reg_written(), inst.pred_written()) {
            (Some(reg), _) => &self.words[reg.idx()],
            (None, Some(pred)) => &self.preds[pred.idx()],
            (None, None) => return true,
        };
        *writes == 1 && inst.guard == Cond::TRUE && reads.is_subset(blocks)
    }
}

/// The blocks that `from` leads to, itself included, without those in `closed`.
pub(crate) fn reachable(func: &Function, from: BlockId, closed: &dyn Fn(BlockId) -> bool) -> BTreeSet<BlockId> {
    let mut seen = BTreeSet::new();
    let mut work = vec![from];
    while let Some(block) = work.pop() {
        if !closed(block) && seen.insert(block) {
            work.extend(func.block(block).terminator.successors());
        }
    }
    seen
}

/// Whether a block does nothing but end the threads, which is part of a branch to it.
fn only_ends(func: &Function, block: BlockId) -> bool {
    let body = func.block(block);
    body.insts.is_empty() && body.terminator == Terminator::Exit
}

/// The blocks between a branch and the place where its sides have met: a block that both lead to, and that every way
/// to an end passes.
fn between(func: &Function, ways: &WaysToEnd, branch: BlockId, yes: BlockId, no: BlockId) -> BTreeSet<BlockId> {
    // Where both sides have a way to an end, what all ways pass is behind both.
    let met = ways.passed(branch).next().filter(|_| ways.has_way(yes) && ways.has_way(no));
    if let Some(met) = met {
        let closed = |block: BlockId| block == met || only_ends(func, block);
        let mut between = reachable(func, yes, &closed);
        between.extend(reachable(func, no, &closed));
        return between;
    }
    let (left, right) =
        (reachable(func, yes, &|block| only_ends(func, block)), reachable(func, no, &|block| only_ends(func, block)));
    if left.is_disjoint(&right) {
        return BTreeSet::new();
    }
    let meets: BTreeSet<BlockId> =
        left.intersection(&right).copied().filter(|block| *block != branch && ways.passes(branch, *block)).collect();
    let closed = |block: BlockId| only_ends(func, block) || meets.contains(&block);
    let mut between = reachable(func, yes, &closed);
    between.extend(reachable(func, no, &closed));
    between
}

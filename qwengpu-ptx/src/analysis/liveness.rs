//! Which registers are live where, thread by thread.
//!
//! A guarded write leaves other threads their old value, so it does not end a live range.
//!
//! A register is followed backwards from the blocks that read it before they write it, so the time is that of
//! reading the code once, plus the size of the sets that are found.

use std::collections::BTreeSet;

use crate::ir::{BlockId, Cond, Function, Inst, VPred, VReg};

use super::cfg::Cfg;

/// A set of registers and predicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RegSet {
    words: BTreeSet<VReg>,
    preds: BTreeSet<VPred>,
}

impl RegSet {
    pub(crate) fn has(&self, reg: VReg) -> bool {
        self.words.contains(&reg)
    }

    pub(crate) fn has_pred(&self, pred: VPred) -> bool {
        self.preds.contains(&pred)
    }

    pub(crate) fn regs(&self) -> impl Iterator<Item = VReg> {
        self.words.iter().copied()
    }

    pub(crate) fn preds(&self) -> impl Iterator<Item = VPred> {
        self.preds.iter().copied()
    }

    /// The set before an instruction, given the set behind it.
    pub(crate) fn step_back(&mut self, inst: &Inst) {
        if inst.guard == Cond::TRUE {
            if let Some(reg) = inst.reg_written() {
                self.words.remove(&reg);
            }
            if let Some(pred) = inst.pred_written() {
                self.preds.remove(&pred);
            }
        }
        self.words.extend(inst.regs_read());
        self.preds.extend(inst.preds_read());
    }
}

/// Live sets at the starts of blocks.
pub(crate) struct Liveness {
    /// By block; ascending.
    words: Vec<Vec<VReg>>,
    preds: Vec<Vec<VPred>>,
}

/// Where one class of registers is read before it is written, and where it is written in all threads.
struct Class {
    /// Register and block, in no order.
    exposed: Vec<(usize, BlockId)>,
    written: Vec<(usize, BlockId)>,
    /// By register: the last block seen to write it, and to read it first.
    last_write: Vec<Option<BlockId>>,
    last_exposed: Vec<Option<BlockId>>,
}

impl Class {
    fn new(count: usize) -> Class {
        Class {
            exposed: Vec::new(),
            written: Vec::new(),
            last_write: vec![None; count],
            last_exposed: vec![None; count],
        }
    }

    fn read(&mut self, idx: usize, block: BlockId) {
        if self.last_write[idx] != Some(block) && self.last_exposed[idx] != Some(block) {
            self.last_exposed[idx] = Some(block);
            self.exposed.push((idx, block));
        }
    }

    fn write(&mut self, idx: usize, block: BlockId) {
        if self.last_write[idx] != Some(block) {
            self.last_write[idx] = Some(block);
            self.written.push((idx, block));
        }
    }

    /// The registers live at the start of each block, ascending.
    fn live_in<T>(mut self, cfg: &Cfg, blocks: usize, id: impl Fn(usize) -> T) -> Vec<Vec<T>> {
        self.exposed.sort_unstable();
        self.written.sort_unstable();
        let mut live: Vec<Vec<T>> = (0..blocks).map(|_| Vec::new()).collect();
        // The register that was last found live at the start of a block, and that was last seen written there.
        let mut found: Vec<Option<usize>> = vec![None; blocks];
        let mut ended: Vec<Option<usize>> = vec![None; blocks];
        let mut written = self.written.iter().peekable();
        let mut work: Vec<BlockId> = Vec::new();
        for uses in self.exposed.chunk_by(|a, b| a.0 == b.0) {
            let reg = uses[0].0;
            while let Some((idx, block)) = written.next_if(|(idx, _)| *idx <= reg) {
                ended[block.idx()] = Some(*idx);
            }
            work.extend(uses.iter().map(|(_, block)| *block));
            for block in &work {
                found[block.idx()] = Some(reg);
                live[block.idx()].push(id(reg));
            }
            while let Some(block) = work.pop() {
                for pred in cfg.preds(block) {
                    if ended[pred.idx()] != Some(reg) && found[pred.idx()] != Some(reg) {
                        found[pred.idx()] = Some(reg);
                        live[pred.idx()].push(id(reg));
                        work.push(*pred);
                    }
                }
            }
        }
        live
    }
}

impl Liveness {
    pub(crate) fn new(func: &Function, cfg: &Cfg) -> Liveness {
        let (mut words, mut preds) = (Class::new(func.num_vregs), Class::new(func.num_vpreds));
        for block in &cfg.order {
            let body = func.block(*block);
            for inst in &body.insts {
                inst.regs_read().into_iter().for_each(|reg| words.read(reg.idx(), *block));
                inst.preds_read().into_iter().for_each(|pred| preds.read(pred.idx(), *block));
                if inst.guard == Cond::TRUE {
                    inst.reg_written().into_iter().for_each(|reg| words.write(reg.idx(), *block));
                    inst.pred_written().into_iter().for_each(|pred| preds.write(pred.idx(), *block));
                }
            }
            if let Some(pred) = body.terminator.cond().and_then(Cond::pred) {
                preds.read(pred.idx(), *block);
            }
        }
        let blocks = func.blocks.len();
        Liveness { words: words.live_in(cfg, blocks, VReg::new), preds: preds.live_in(cfg, blocks, VPred::new) }
    }

    /// The registers live at the start of a block, ascending.
    pub(crate) fn words_in(&self, block: BlockId) -> &[VReg] {
        &self.words[block.idx()]
    }

    /// The predicates live at the start of a block, ascending.
    pub(crate) fn preds_in(&self, block: BlockId) -> &[VPred] {
        &self.preds[block.idx()]
    }

    /// Whether a register is live at the start of a block.
    pub(crate) fn has(&self, block: BlockId, reg: VReg) -> bool {
        self.words_in(block).binary_search(&reg).is_ok()
    }

    /// As [`Liveness::has`], for a predicate.
    pub(crate) fn has_pred(&self, block: BlockId, pred: VPred) -> bool {
        self.preds_in(block).binary_search(&pred).is_ok()
    }

    /// What is live between the last instruction and the terminator.
    pub(crate) fn before_terminator(&self, func: &Function, block: BlockId) -> RegSet {
        let mut live = RegSet::default();
        let terminator = func.block(block).terminator;
        for next in terminator.successors() {
            live.words.extend(self.words_in(next));
            live.preds.extend(self.preds_in(next));
        }
        live.preds.extend(terminator.cond().and_then(Cond::pred));
        live
    }
}

//! A function's blocks become blocks of another function.

use crate::ir::{BlockId, Cond, Function, Inst, InstKind, Terminator, VPred, VReg, Value};

use super::hold_values::{Kept, Slots};

/// A function's blocks and registers under their new numbers.
pub(super) struct Appended {
    pub(super) entry: BlockId,
    pub(super) layout: Vec<BlockId>,
    first_block: usize,
    first_reg: usize,
    first_pred: usize,
}

impl Appended {
    pub(super) fn block(&self, block: BlockId) -> BlockId {
        BlockId::new(self.first_block + block.idx())
    }

    pub(super) fn reg(&self, reg: VReg) -> VReg {
        VReg::new(self.first_reg + reg.idx())
    }

    pub(super) fn pred(&self, pred: VPred) -> VPred {
        VPred::new(self.first_pred + pred.idx())
    }

    fn cond(&self, cond: Cond) -> Cond {
        match cond {
            Cond::Pred { pred, negated } => Cond::Pred { pred: self.pred(pred), negated },
            Cond::Fixed(_) => cond,
        }
    }

    pub(super) fn kept(&self, kept: Kept) -> Kept {
        Kept {
            words: kept.words.into_iter().map(|reg| self.reg(reg)).collect(),
            preds: kept.preds.into_iter().map(|pred| self.pred(pred)).collect(),
        }
    }

    pub(super) fn slots(&self, slots: &Slots) -> Slots {
        slots.renamed(&|reg| self.reg(reg), &|pred| self.pred(pred))
    }

    fn inst(&self, inst: &mut Inst) {
        inst.each_value(&mut |value| {
            if let Value::Reg(reg) = value {
                *reg = self.reg(*reg);
            }
        });
        inst.each_cond(&mut |cond| *cond = self.cond(*cond));
        if let Some(address) = inst.address_mut() {
            address.base = address.base.map(|reg| self.reg(reg));
            address.index = address.index.map(|reg| self.reg(reg));
        }
        match &mut inst.kind {
            InstKind::Word(dst, _) => *dst = self.reg(*dst),
            InstKind::Pred(dst, _) => *dst = self.pred(*dst),
            InstKind::Store(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => {}
        }
    }
}

/// Moves a function's blocks to the kernel; the layout is left to the caller.
pub(super) fn append(kernel: &mut Function, func: Function) -> Appended {
    let entry = func.entry();
    let mut appended = Appended {
        entry,
        layout: Vec::new(),
        first_block: kernel.blocks.len(),
        first_reg: kernel.num_vregs,
        first_pred: kernel.num_vpreds,
    };
    appended.layout = func.layout.iter().map(|block| appended.block(*block)).collect();
    kernel.num_vregs += func.num_vregs;
    kernel.num_vpreds += func.num_vpreds;
    for mut block in func.blocks {
        block.insts.iter_mut().for_each(|inst| appended.inst(inst));
        block.terminator = match block.terminator {
            Terminator::Branch(cond, yes, no) => Terminator::Branch(appended.cond(cond), yes, no),
            other => other,
        }
        .map_targets(|target| appended.block(target));
        kernel.blocks.push(block);
    }
    appended
}

//! Operations move down to their first use, where that frees a register in between.
//!
//! For kernels that would spill. An operation without effect moves inside its block if all it reads is still
//! there at the first use, and read there or later anyway: then its result is the only value whose life changes,
//! and it becomes shorter.

use std::collections::BTreeSet;

use crate::analysis::{Cfg, Liveness};
use crate::ir::{BlockId, Cond, Function, Inst, VReg};

pub(crate) fn delay_definitions(func: &mut Function) {
    let cfg = Cfg::new(func);
    let liveness = Liveness::new(func, &cfg);
    for block in cfg.order {
        let after = liveness.before_terminator(func, block);
        let live_out: BTreeSet<VReg> = after.regs().collect();
        // From the bottom: what an operation feeds has moved before it does.
        for pos in (0..func.block(block).insts.len()).rev() {
            if let Some(target) = target(func, block, pos, &live_out) {
                let insts = &mut func.block_mut(block).insts;
                insts[pos..target].rotate_left(1);
            }
        }
    }
}

/// The position in front of which the operation at `pos` should stand.
fn target(func: &Function, block: BlockId, pos: usize, live_out: &BTreeSet<VReg>) -> Option<usize> {
    let insts = &func.block(block).insts;
    let inst = &insts[pos];
    let (dst, op) = (inst.reg_written()?, inst.unguarded_op()?);
    if !op.is_pure() || op.cond().is_some() || inst.guard != Cond::TRUE {
        return None;
    }
    let touches = |other: &Inst| other.reg_written() == Some(dst) || other.regs_read().contains(&dst);
    let use_at = pos + 1 + insts[pos + 1..].iter().position(touches)?;
    let operands = op.regs();
    let between = &insts[pos + 1..use_at];
    let kept = |reg: &VReg| {
        let read_later = insts[use_at..].iter().any(|other| other.regs_read().contains(reg));
        let overwritten = between.iter().any(|other| other.reg_written() == Some(*reg));
        !overwritten && (read_later || live_out.contains(reg))
    };
    (!between.is_empty() && operands.iter().all(kept)).then_some(use_at)
}

#[cfg(test)]
mod tests {
    use qwengpu_isa::TernaryOp;

    use super::*;
    use crate::ir::{Value, WordOp};

    fn sum(dst: usize, a: usize, b: usize) -> Inst {
        let op = WordOp::Ternary(TernaryOp::Iadd, VReg::new(a).into(), VReg::new(b).into(), Value::ZERO);
        Inst::word(VReg::new(dst), op, 1)
    }

    fn delayed(insts: Vec<Inst>) -> Vec<usize> {
        let mut func = Function::new("k");
        let block = func.new_block();
        func.layout.push(block);
        func.num_vregs = 8;
        func.block_mut(block).insts = insts;
        delay_definitions(&mut func);
        func.block(block).insts.iter().filter_map(Inst::reg_written).map(VReg::idx).collect()
    }

    #[test]
    fn an_operation_moves_to_its_use() {
        // 1 and 2 are made from 0, which is read to the end.
        assert_eq!(delayed(vec![sum(1, 0, 0), sum(2, 0, 0), sum(3, 1, 0), sum(4, 2, 0)]), [1, 3, 2, 4]);
    }

    #[test]
    fn operands_that_change_or_end_hold_it() {
        assert_eq!(delayed(vec![sum(1, 0, 0), sum(0, 5, 5), sum(3, 1, 0)]), [1, 0, 3]);
        assert_eq!(delayed(vec![sum(1, 0, 0), sum(2, 5, 5), sum(3, 1, 2)]), [1, 2, 3]);
    }
}

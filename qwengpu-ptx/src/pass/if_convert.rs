//! Short conditional blocks become guarded instructions.
//!
//! A branch costs an instruction, and a divergent one runs both sides anyway. Guards cost nothing in threads
//! that pass, and one record an instruction when every thread fails. So a block outside loops may be longer
//! than one inside, where a warp that skips it pays every time.

use std::collections::BTreeSet;

use crate::analysis::{Cfg, Liveness, natural_loops};
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, PredOp, Terminator, WordOp};

/// Most instructions converted outside loops.
const MAX_OUTSIDE_LOOPS: usize = 6;
/// Most instructions converted inside loops.
const MAX_INSIDE_LOOPS: usize = 2;

pub(crate) fn if_convert(func: &mut Function) {
    // Every conversion removes a block or empties it.
    while convert_one(func) {
        super::simplify_cfg(func);
    }
}

fn convert_one(func: &mut Function) -> bool {
    let cfg = Cfg::new(func);
    let in_loops: BTreeSet<BlockId> = natural_loops(func, &cfg).into_values().flatten().collect();
    for block in cfg.order.iter().rev() {
        let Terminator::Branch(cond, yes, no) = func.block(*block).terminator else { continue };
        if yes == no {
            continue;
        }
        let limit = if in_loops.contains(block) { MAX_INSIDE_LOOPS } else { MAX_OUTSIDE_LOOPS };
        let fits =
            |side: BlockId| side != *block && cfg.preds(side).len() == 1 && is_convertible(func, side, cond, limit);
        let jumps_to = |side: BlockId| match func.block(side).terminator {
            Terminator::Jump(target) => Some(target),
            Terminator::Branch(..) | Terminator::Exit | Terminator::Return => None,
        };
        for (side, other, guard) in [(yes, no, cond), (no, yes, cond.not())] {
            // if without else
            if fits(side) && jumps_to(side) == Some(other) {
                undefine(func, &cfg, *block, &[side], &[side, other]);
                absorb(func, *block, side, guard);
                func.block_mut(*block).terminator = Terminator::Jump(other);
                return true;
            }
            // a side that ends the threads: only its exit stays behind the branch
            let ends = func.block(side).terminator == Terminator::Exit && !func.block(side).insts.is_empty();
            let together = in_loops.contains(block) && needs_others(func, side);
            if ends && !together && fits(side) {
                undefine(func, &cfg, *block, &[side], &[side, other]);
                absorb(func, *block, side, guard);
                return true;
            }
        }
        // if with else
        let both = func.block(yes).insts.len() + func.block(no).insts.len();
        if let (Some(join), Some(other)) = (jumps_to(yes), jumps_to(no))
            && join == other
            && both <= limit
            && fits(yes)
            && fits(no)
        {
            undefine(func, &cfg, *block, &[yes, no], &[yes, no]);
            absorb(func, *block, yes, cond);
            absorb(func, *block, no, cond.not());
            func.block_mut(*block).terminator = Terminator::Jump(join);
            return true;
        }
    }
    false
}

/// Whether a block behind a loop must wait for the lanes that leave the loop later.
///
/// What it does to memory need not, unless the lanes wait for each other somewhere.
fn needs_others(func: &Function, side: BlockId) -> bool {
    func.block(side).insts.iter().any(|inst| match &inst.kind {
        InstKind::Word(_, WordOp::Shuffle(..) | WordOp::Vote(_)) | InstKind::Pred(_, PredOp::Lead(_)) => true,
        InstKind::Word(_, WordOp::Load(..)) | InstKind::Store(..) => func.orders_warps,
        InstKind::Word(..) | InstKind::Pred(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => false,
    })
}

fn is_convertible(func: &Function, side: BlockId, cond: Cond, limit: usize) -> bool {
    let insts = &func.block(side).insts;
    let allowed = |inst: &Inst| {
        inst.guard == Cond::TRUE
            && !matches!(inst.kind, InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_))
            && (inst.pred_written().is_none() || inst.pred_written() != cond.pred())
    };
    insts.iter().filter(|inst| !inst.is_undefined()).count() <= limit && insts.iter().all(allowed)
}

/// Marks what the sides write and nobody can have read before as undefined, so that its life starts here.
///
/// A guarded write alone would let the register live since the start of the kernel.
fn undefine(func: &mut Function, cfg: &Cfg, block: BlockId, sides: &[BlockId], ways: &[BlockId]) {
    let liveness = Liveness::new(func, cfg);
    let used_by_branch = func.block(block).terminator.cond().and_then(Cond::pred);
    let mut made: Vec<Inst> = Vec::new();
    for side in sides {
        for inst in &func.block(*side).insts {
            let line = inst.line;
            let live = |ways: &[BlockId], has: &dyn Fn(BlockId) -> bool| ways.iter().any(|way| has(*way));
            let start = match (inst.reg_written(), inst.pred_written()) {
                (Some(reg), _) if !live(ways, &|way| liveness.live_in(way).has(reg)) => {
                    Inst::word(reg, WordOp::Undefined, line)
                }
                (None, Some(pred))
                    if used_by_branch != Some(pred) && !live(ways, &|way| liveness.live_in(way).has_pred(pred)) =>
                {
                    Inst::pred(pred, PredOp::Undefined, line)
                }
                _ => continue,
            };
            if !made.contains(&start) {
                made.push(start);
            }
        }
    }
    func.block_mut(block).insts.extend(made);
}

fn absorb(func: &mut Function, block: BlockId, side: BlockId, guard: Cond) {
    let insts = std::mem::take(&mut func.block_mut(side).insts);
    // Under a guard nothing becomes undefined in the other threads; `undefine` has marked what does.
    let kept = insts.into_iter().filter(|inst| !inst.is_undefined());
    let guarded = kept.map(|inst| Inst { guard, ..inst });
    func.block_mut(block).insts.extend(guarded);
}

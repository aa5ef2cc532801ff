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
    // Every sweep but the last converts something, so that blocks become fewer or empty. The first stops early:
    // the passes before may have left blocks that are simpler than they look.
    let mut most = 1;
    loop {
        let cfg = Cfg::new(func);
        if !Sweep::new(func, &cfg).run(func, &cfg, most) {
            return;
        }
        super::simplify_cfg(func);
        most = usize::MAX;
    }
}

/// One way over the blocks, inner ones before those that lead to them.
///
/// What is live where blocks begin does not change: what a side wrote in all threads it then writes under a guard,
/// behind a mark that ends its life just as well.
struct Sweep {
    liveness: Liveness,
    in_loops: BTreeSet<BlockId>,
    /// How many edges lead to each block.
    num_preds: Vec<usize>,
}

impl Sweep {
    fn new(func: &Function, cfg: &Cfg) -> Sweep {
        let in_loops = natural_loops(func, cfg).into_values().flatten().collect();
        let num_preds = (0..func.blocks.len()).map(|idx| cfg.preds(BlockId::new(idx)).len()).collect();
        Sweep { liveness: Liveness::new(func, cfg), in_loops, num_preds }
    }

    /// Converts what it can, up to `most` branches; whether there was anything.
    fn run(&mut self, func: &mut Function, cfg: &Cfg, most: usize) -> bool {
        let mut converted = 0;
        for block in cfg.order.iter().rev() {
            while self.convert(func, *block) {
                converted += 1;
                self.follow(func, *block);
                let body = func.block(*block);
                // A block left empty is bypassed, which changes what leads to it.
                let is_left = body.insts.is_empty() && body.terminator.cond().is_none();
                if is_left || converted == most {
                    return true;
                }
            }
        }
        converted > 0
    }

    /// Tidies up what `simplify_cfg` would, behind one block.
    fn follow(&mut self, func: &mut Function, block: BlockId) {
        let is_exit = |func: &Function, id: BlockId| {
            func.block(id).insts.is_empty() && func.block(id).terminator == Terminator::Exit
        };
        match func.block(block).terminator {
            Terminator::Branch(_, yes, no) if is_exit(func, yes) && is_exit(func, no) => {
                self.num_preds[yes.idx()] -= 1;
                self.num_preds[no.idx()] -= 1;
                func.block_mut(block).terminator = Terminator::Exit;
            }
            Terminator::Jump(next) if is_exit(func, next) => {
                self.num_preds[next.idx()] -= 1;
                func.block_mut(block).terminator = Terminator::Exit;
            }
            Terminator::Jump(next) if next != block && next != func.entry() && self.num_preds[next.idx()] == 1 => {
                let tail = func.block_mut(next);
                let insts = std::mem::take(&mut tail.insts);
                let (terminator, line) = (std::mem::replace(&mut tail.terminator, Terminator::Exit), tail.line);
                self.num_preds[next.idx()] = 0;
                let head = func.block_mut(block);
                head.insts.extend(insts);
                head.terminator = terminator;
                head.line = line;
            }
            Terminator::Jump(_) | Terminator::Branch(..) | Terminator::Exit | Terminator::Return => {}
        }
    }

    /// Converts the branch at the end of a block, if it can.
    fn convert(&mut self, func: &mut Function, block: BlockId) -> bool {
        let Terminator::Branch(cond, yes, no) = func.block(block).terminator else { return false };
        if yes == no {
            return false;
        }
        let in_loop = self.in_loops.contains(&block);
        let limit = if in_loop { MAX_INSIDE_LOOPS } else { MAX_OUTSIDE_LOOPS };
        let fits =
            |side: BlockId| side != block && self.num_preds[side.idx()] == 1 && is_convertible(func, side, cond, limit);
        let jumps_to = |side: BlockId| match func.block(side).terminator {
            Terminator::Jump(target) => Some(target),
            Terminator::Branch(..) | Terminator::Exit | Terminator::Return => None,
        };
        for (side, other, guard) in [(yes, no, cond), (no, yes, cond.not())] {
            // if without else
            if fits(side) && jumps_to(side) == Some(other) {
                self.undefine(func, block, &[side], &[side, other]);
                absorb(func, block, side, guard);
                self.num_preds[side.idx()] = 0;
                self.num_preds[other.idx()] -= 1;
                func.block_mut(block).terminator = Terminator::Jump(other);
                return true;
            }
            // a side that ends the threads: only its exit stays behind the branch
            let ends = func.block(side).terminator == Terminator::Exit && !func.block(side).insts.is_empty();
            let together = in_loop && needs_others(func, side);
            if ends && !together && fits(side) {
                self.undefine(func, block, &[side], &[side, other]);
                absorb(func, block, side, guard);
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
            self.undefine(func, block, &[yes, no], &[yes, no]);
            absorb(func, block, yes, cond);
            absorb(func, block, no, cond.not());
            self.num_preds[yes.idx()] = 0;
            self.num_preds[no.idx()] = 0;
            self.num_preds[join.idx()] -= 1;
            func.block_mut(block).terminator = Terminator::Jump(join);
            return true;
        }
        false
    }

    /// Marks what the sides write and nobody can have read before as undefined, so that its life starts here.
    ///
    /// A guarded write alone would let the register live since the start of the kernel.
    fn undefine(&self, func: &mut Function, block: BlockId, sides: &[BlockId], ways: &[BlockId]) {
        let liveness = &self.liveness;
        let used_by_branch = func.block(block).terminator.cond().and_then(Cond::pred);
        let mut made: Vec<Inst> = Vec::new();
        for side in sides {
            for inst in &func.block(*side).insts {
                let line = inst.line;
                let start = match (inst.reg_written(), inst.pred_written()) {
                    (Some(reg), _) if !ways.iter().any(|way| liveness.has(*way, reg)) => {
                        Inst::word(reg, WordOp::Undefined, line)
                    }
                    (None, Some(pred))
                        if used_by_branch != Some(pred) && !ways.iter().any(|way| liveness.has_pred(*way, pred)) =>
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

fn absorb(func: &mut Function, block: BlockId, side: BlockId, guard: Cond) {
    let insts = std::mem::take(&mut func.block_mut(side).insts);
    // Under a guard nothing becomes undefined in the other threads; `undefine` has marked what does.
    let kept = insts.into_iter().filter(|inst| !inst.is_undefined());
    let guarded = kept.map(|inst| Inst { guard, ..inst });
    func.block_mut(block).insts.extend(guarded);
}

//! Threads that end without another barrier end before the others of their warp go on to one.
//!
//! A barrier faults while a live lane of the warp is somewhere else. So where lanes part, some towards a barrier
//! and some towards their end, the latter's blocks stand in front of all others: the machine runs the lanes
//! with the smallest program counter first. Branches on which a warp agrees leave the layout as it is, and so
//! does a branch around a barrier, which is an error: what comes behind the barrier is reached either way.

use std::collections::BTreeSet;

use crate::analysis::{Cfg, Divergence, WaysToEnd, reachable};
use crate::ir::{BlockId, Function, InstKind, Terminator};

pub(crate) fn place_ends(func: &mut Function) {
    let is_barrier = |block: &BlockId| func.block(*block).insts.iter().any(|inst| inst.kind == InstKind::Barrier);
    let barriers: BTreeSet<BlockId> = func.layout.iter().copied().filter(is_barrier).collect();
    if barriers.is_empty() {
        return;
    }
    let cfg = Cfg::new(func);
    let mut waiting_blocks = barriers;
    let mut work: Vec<BlockId> = waiting_blocks.iter().copied().collect();
    while let Some(block) = work.pop() {
        work.extend(cfg.preds(block).iter().filter(|pred| waiting_blocks.insert(**pred)));
    }
    let waits = |block: BlockId| waiting_blocks.contains(&block);
    let only_exits =
        |block: BlockId| func.block(block).insts.is_empty() && func.block(block).terminator == Terminator::Exit;
    let parts = |block: &BlockId| match func.block(*block).terminator {
        Terminator::Branch(_, yes, no) => waits(yes) != waits(no) && !only_exits(yes) && !only_exits(no),
        Terminator::Jump(_) | Terminator::Exit | Terminator::Return => false,
    };
    if !cfg.order.iter().any(parts) {
        return;
    }
    let divergence = Divergence::new(func, &cfg);
    let ways = WaysToEnd::new(func, &cfg, |block| func.block(block).terminator == Terminator::Exit, |_| false);
    let mut early: BTreeSet<BlockId> = BTreeSet::new();
    for block in &cfg.order {
        let Terminator::Branch(cond, yes, no) = func.block(*block).terminator else { continue };
        if !divergence.differs(cond) {
            continue;
        }
        for (ending, waiting) in [(yes, no), (no, yes)] {
            if waits(waiting) && !waits(ending) {
                let side = reachable(func, ending, &|_| false);
                let (passed, open): (Vec<BlockId>, Vec<BlockId>) =
                    side.into_iter().partition(|end| ways.passes(waiting, *end));
                early.extend(open);
                if !passed.is_empty() {
                    let behind = reachable(func, waiting, &|other| other == *block);
                    early.extend(passed.into_iter().filter(|end| !behind.contains(end)));
                }
            }
        }
    }
    // An exit alone is part of the branch.
    early.retain(|block| !only_exits(*block));
    if early.is_empty() {
        return;
    }
    if !cfg.preds(func.entry()).is_empty() {
        // The kernel begins with a loop: its first block stands behind the early ones.
        let front = func.new_block();
        func.block_mut(front).terminator = Terminator::Jump(func.entry());
        func.layout.insert(0, front);
    }
    let entry = func.entry();
    let (first, rest): (Vec<BlockId>, Vec<BlockId>) =
        func.layout.iter().copied().filter(|block| *block != entry).partition(|block| early.contains(block));
    func.layout = [vec![entry], first, rest].concat();
}

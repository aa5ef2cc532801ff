//! Unreachable blocks go, empty ones are bypassed, straight lines become one block.

use crate::analysis::Cfg;
use crate::ir::{BlockId, Function, InstKind, Terminator};

pub(crate) fn simplify_cfg(func: &mut Function) {
    // Every round but the last removes a block, so the number of rounds is bounded.
    loop {
        let cfg = Cfg::new(func);
        func.layout.retain(|block| cfg.is_reachable(*block));
        cut_behind_traps(func);
        bypass_empty_blocks(func);
        let cfg = Cfg::new(func);
        func.layout.retain(|block| cfg.is_reachable(*block));
        if !merge_lines(func, &cfg) {
            return;
        }
    }
}

/// Nothing runs behind a trap.
fn cut_behind_traps(func: &mut Function) {
    for block in func.layout.clone() {
        let block = func.block_mut(block);
        let trap = block
            .insts
            .iter()
            .position(|inst| matches!(inst.kind, InstKind::Trap(_)) && inst.guard == crate::ir::Cond::TRUE);
        if let Some(pos) = trap {
            block.insts.truncate(pos + 1);
            block.terminator = Terminator::Exit;
        }
    }
}

/// Where a branch to `block` ends up, past empty blocks that only jump.
fn destination(func: &Function, block: BlockId) -> BlockId {
    let mut block = block;
    for _ in 0..func.layout.len() {
        let body = func.block(block);
        match body.terminator {
            Terminator::Jump(next) if body.insts.is_empty() => block = next,
            Terminator::Jump(_) | Terminator::Branch(..) | Terminator::Exit | Terminator::Return => break,
        }
    }
    block
}

fn bypass_empty_blocks(func: &mut Function) {
    for block in func.layout.clone() {
        let terminator = func.block(block).terminator;
        let terminator = terminator.map_targets(|target| destination(func, target));
        func.block_mut(block).terminator = match terminator {
            Terminator::Branch(_, yes, no) if yes == no => Terminator::Jump(yes),
            Terminator::Jump(target) if is_exit(func, target) => Terminator::Exit,
            Terminator::Branch(_, yes, no) if is_exit(func, yes) && is_exit(func, no) => Terminator::Exit,
            other => other,
        };
    }
}

/// Whether a block does nothing but exit: a jump there is an exit itself.
fn is_exit(func: &Function, block: BlockId) -> bool {
    let body = func.block(block);
    body.insts.is_empty() && body.terminator == Terminator::Exit
}

/// Merges blocks that only follow each other; whether there were any.
fn merge_lines(func: &mut Function, cfg: &Cfg) -> bool {
    // The block that a block only leads to and that only it leads to.
    let follower = |func: &Function, block: BlockId| match func.block(block).terminator {
        Terminator::Jump(next) if next != block && next != func.entry() && cfg.preds(next).len() == 1 => Some(next),
        Terminator::Jump(_) | Terminator::Branch(..) | Terminator::Exit | Terminator::Return => None,
    };
    let mut follows = vec![false; func.blocks.len()];
    for next in func.layout.iter().filter_map(|block| follower(func, *block)) {
        follows[next.idx()] = true;
    }
    let heads: Vec<BlockId> = func.layout.iter().copied().filter(|block| !follows[block.idx()]).collect();
    // Reachable blocks that only follow each other begin with one that does not follow.
    for block in &heads {
        while let Some(next) = follower(func, *block) {
            let tail = func.block_mut(next);
            let insts = std::mem::take(&mut tail.insts);
            let (terminator, line) = (tail.terminator, tail.line);
            let head = func.block_mut(*block);
            head.insts.extend(insts);
            head.terminator = terminator;
            head.line = line;
        }
    }
    let merged = heads.len() < func.layout.len();
    func.layout = heads;
    merged
}

//! Operations that give the same value in every round of a loop move in front of it.
//!
//! Only operations without effect on plain registers move, and only a few a loop: each one moved holds a
//! register all through the loop.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::{Cfg, Defs, natural_loops};
use crate::ir::{BlockId, Cond, Function, Inst, InstKind, Terminator, VReg, WordOp};

/// Most operations moved in front of one loop.
const MAX_HOISTED: usize = 5;

pub(crate) fn hoist_invariants(func: &mut Function) {
    let cfg = Cfg::new(func);
    let loops = natural_loops(func, &cfg);
    // Inner loops first: what leaves an inner loop may leave the outer one.
    let mut order: Vec<(BlockId, BTreeSet<BlockId>)> = loops.into_iter().collect();
    order.sort_by_key(|(head, body)| (body.len(), *head));
    let mut around: Vec<Vec<usize>> = vec![Vec::new(); func.blocks.len()];
    for (idx, (_, body)) in order.iter().enumerate() {
        body.iter().for_each(|block| around[block.idx()].push(idx));
    }
    // What is plain stays so: a plain operation moves to where all its uses are still behind it.
    let mut hoist = Hoist { defs: Defs::new(func, &cfg), cfg, fronts: BTreeMap::new() };
    for idx in 0..order.len() {
        let (head, body) = &order[idx];
        let head = *head;
        if let Some(front) = hoist.empty_loop(func, head, body) {
            // A block between the loops is part of the outer ones.
            for outer in around[head.idx()].iter().filter(|outer| **outer > idx) {
                order[*outer].1.insert(front);
            }
        }
    }
    let Hoist { fronts, .. } = hoist;
    let with_front = |block: BlockId| fronts.get(&block).copied().into_iter().chain([block]);
    func.layout = func.layout.iter().copied().flat_map(with_front).collect();
}

struct Hoist {
    cfg: Cfg,
    defs: Defs,
    /// New blocks, by the head of the loop that each leads to.
    fronts: BTreeMap<BlockId, BlockId>,
}

impl Hoist {
    /// The blocks of a loop as control reaches them; a new one stands in front of the head it leads to.
    fn ordered(&self, func: &Function, body: &BTreeSet<BlockId>) -> Vec<BlockId> {
        let place = |block: &BlockId| match (self.cfg.rank(*block), func.block(*block).terminator) {
            (Some(rank), _) => Some((rank, 1)),
            (None, Terminator::Jump(head)) => self.cfg.rank(head).map(|rank| (rank, 0)),
            (None, Terminator::Branch(..) | Terminator::Exit | Terminator::Return) => None,
        };
        let mut blocks: Vec<BlockId> = body.iter().copied().collect();
        blocks.sort_by_key(place);
        blocks
    }

    /// Moves what it can out of a loop; the block in front of the loop, if it is a new one.
    fn empty_loop(&mut self, func: &mut Function, head: BlockId, body: &BTreeSet<BlockId>) -> Option<BlockId> {
        let defs = &self.defs;
        let mut outside: Vec<Inst> = Vec::new();
        let mut moved: BTreeSet<VReg> = BTreeSet::new();
        let mut written: BTreeSet<VReg> = BTreeSet::new();
        for block in body {
            written.extend(func.block(*block).insts.iter().filter_map(Inst::reg_written));
        }
        for block in self.ordered(func, body) {
            for inst in &func.block(block).insts {
                let InstKind::Word(dst, op) = &inst.kind else { continue };
                let candidate = inst.guard == Cond::TRUE && op.is_pure() && op.cond().is_none() && defs.is_plain(*dst);
                let stable = |reg: &VReg| defs.is_plain(*reg) && (!written.contains(reg) || moved.contains(reg));
                let cheap_copy = matches!(op, WordOp::Move(crate::ir::Value::Reg(_)));
                if candidate && !cheap_copy && outside.len() < MAX_HOISTED && op.regs().iter().all(stable) {
                    outside.push(inst.clone());
                    moved.insert(*dst);
                }
            }
        }
        if outside.is_empty() {
            return None;
        }
        for block in body {
            func.block_mut(*block).insts.retain(|inst| inst.reg_written().is_none_or(|dst| !moved.contains(&dst)));
        }
        let entering: Vec<BlockId> = self.cfg.preds(head).iter().copied().filter(|pred| !body.contains(pred)).collect();
        match entering[..] {
            [only] if func.block(only).terminator == Terminator::Jump(head) => {
                func.block_mut(only).insts.extend(outside);
                None
            }
            _ => {
                let front = func.new_block();
                func.block_mut(front).terminator = Terminator::Jump(head);
                self.fronts.insert(head, front);
                for pred in entering {
                    let terminator = func.block(pred).terminator;
                    func.block_mut(pred).terminator =
                        terminator.map_targets(|target| if target == head { front } else { target });
                }
                func.block_mut(front).insts.extend(outside);
                Some(front)
            }
        }
    }
}

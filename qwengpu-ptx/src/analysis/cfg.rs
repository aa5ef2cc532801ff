//! Predecessors, reverse post-order, loops.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{BlockId, Function};

use super::dominators::Dominators;

/// The control-flow graph of the blocks that can be reached.
pub(crate) struct Cfg {
    /// Reachable blocks in reverse post-order, entry first.
    pub(crate) order: Vec<BlockId>,
    /// Position in `order`; `None` for unreachable blocks.
    rank: Vec<Option<usize>>,
    preds: Vec<Vec<BlockId>>,
    dominators: Dominators,
}

impl Cfg {
    pub(crate) fn new(func: &Function) -> Cfg {
        let count = func.blocks.len();
        let mut seen = vec![false; count];
        let mut post = Vec::new();
        // An explicit stack: input decides the depth.
        let entry = func.entry();
        let mut stack = vec![(entry, successors(func, entry))];
        seen[entry.idx()] = true;
        while let Some((block, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(next) if !seen[next.idx()] => {
                    seen[next.idx()] = true;
                    let after = successors(func, next);
                    stack.push((next, after));
                }
                Some(_) => {}
                None => {
                    post.push(*block);
                    stack.pop();
                }
            }
        }
        post.reverse();
        let order = post;
        let mut rank = vec![None; count];
        for (idx, block) in order.iter().enumerate() {
            rank[block.idx()] = Some(idx);
        }
        let mut preds = vec![Vec::new(); count];
        for block in &order {
            for next in func.block(*block).terminator.successors() {
                preds[next.idx()].push(*block);
            }
        }
        let ranked = |block: &BlockId| -> Vec<usize> {
            func.block(*block).terminator.successors().filter_map(|next| rank[next.idx()]).collect()
        };
        let dominators = Dominators::new(&order.iter().map(ranked).collect::<Vec<_>>());
        Cfg { order, rank, preds, dominators }
    }

    pub(crate) fn preds(&self, block: BlockId) -> &[BlockId] {
        &self.preds[block.idx()]
    }

    pub(crate) fn is_reachable(&self, block: BlockId) -> bool {
        self.rank[block.idx()].is_some()
    }

    /// Position in the order; none for unreachable blocks and those made later.
    pub(crate) fn rank(&self, block: BlockId) -> Option<usize> {
        self.rank.get(block.idx()).copied().flatten()
    }

    /// The immediate dominator, none for the entry and unreachable blocks.
    pub(crate) fn idom(&self, block: BlockId) -> Option<BlockId> {
        self.order.get(self.dominators.idom(self.rank(block)?)?).copied()
    }

    /// Whether every path to `below` passes `above`.
    pub(crate) fn dominates(&self, above: BlockId, below: BlockId) -> bool {
        match (self.rank(above), self.rank(below)) {
            (Some(above), Some(below)) => self.dominators.dominates(above, below),
            _ => false,
        }
    }
}

fn successors(func: &Function, block: BlockId) -> Vec<BlockId> {
    func.block(block).terminator.successors().collect()
}

/// The natural loops: each header with its blocks, header included.
pub(crate) fn natural_loops(func: &Function, cfg: &Cfg) -> BTreeMap<BlockId, BTreeSet<BlockId>> {
    let mut loops: BTreeMap<BlockId, BTreeSet<BlockId>> = BTreeMap::new();
    for tail in &cfg.order {
        for head in func.block(*tail).terminator.successors() {
            if !cfg.dominates(head, *tail) {
                continue;
            }
            let body = loops.entry(head).or_insert_with(|| BTreeSet::from([head]));
            let mut work = vec![*tail];
            while let Some(block) = work.pop() {
                if body.insert(block) {
                    work.extend(cfg.preds(block));
                }
            }
        }
    }
    loops
}

//! Predecessors, reverse post-order, dominators, loops.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{BlockId, Function};

/// The control-flow graph of the blocks that can be reached.
pub(crate) struct Cfg {
    /// Reachable blocks in reverse post-order, entry first.
    pub(crate) order: Vec<BlockId>,
    /// Position in `order`; `None` for unreachable blocks.
    rank: Vec<Option<usize>>,
    preds: Vec<Vec<BlockId>>,
    /// Immediate dominator by rank; the entry's is itself.
    idom: Vec<usize>,
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
        let mut cfg = Cfg { order, rank, preds, idom: Vec::new() };
        cfg.find_dominators();
        cfg
    }

    /// Cooper, Harvey and Kennedy's iteration over reverse post-order.
    fn find_dominators(&mut self) {
        let unknown = usize::MAX;
        let mut idom = vec![unknown; self.order.len()];
        if let Some(first) = idom.first_mut() {
            *first = 0;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (idx, block) in self.order.iter().enumerate().skip(1) {
                let mut best = unknown;
                for pred in &self.preds[block.idx()] {
                    let Some(pred) = self.rank[pred.idx()] else { continue };
                    if idom[pred] == unknown {
                        continue;
                    }
                    best = if best == unknown { pred } else { meet(&idom, best, pred) };
                }
                if best != idom[idx] {
                    idom[idx] = best;
                    changed = true;
                }
            }
        }
        self.idom = idom;
    }

    pub(crate) fn preds(&self, block: BlockId) -> &[BlockId] {
        &self.preds[block.idx()]
    }

    pub(crate) fn is_reachable(&self, block: BlockId) -> bool {
        self.rank[block.idx()].is_some()
    }

    /// The immediate dominator, none for the entry and unreachable blocks.
    pub(crate) fn idom(&self, block: BlockId) -> Option<BlockId> {
        match self.rank[block.idx()] {
            None | Some(0) => None,
            Some(rank) => self.order.get(self.idom[rank]).copied(),
        }
    }

    /// Whether every path to `below` passes `above`.
    pub(crate) fn dominates(&self, above: BlockId, below: BlockId) -> bool {
        let (Some(above), Some(mut below)) = (self.rank[above.idx()], self.rank[below.idx()]) else {
            return false;
        };
        while below > above {
            below = self.idom[below];
        }
        below == above
    }
}

fn successors(func: &Function, block: BlockId) -> Vec<BlockId> {
    func.block(block).terminator.successors().collect()
}

fn meet(idom: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while a > b {
            a = idom[a];
        }
        while b > a {
            b = idom[b];
        }
    }
    a
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

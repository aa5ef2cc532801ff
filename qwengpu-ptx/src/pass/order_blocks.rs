//! Blocks in an order in which threads that part come together again.
//!
//! The machine runs the threads with the smallest program counter. They meet again at a join if the join
//! stands behind every block that leads to it; so blocks stand in topological order, and the blocks of a loop
//! stand together, its exits behind them.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::{Cfg, natural_loops};
use crate::ir::{BlockId, Function, Terminator};

/// Most instructions of a loop test that is repeated at the end of the loop.
const MAX_ROTATED: usize = 4;

pub(crate) fn order_blocks(func: &mut Function) {
    rotate_loops(func);
    super::simplify_cfg(func);
    // The order of linked functions is more than the graph of their blocks tells.
    if !func.is_linked {
        place_blocks(func);
    }
}

/// The order alone, for a function that is going to be linked.
pub(crate) fn place_blocks(func: &mut Function) {
    let cfg = Cfg::new(func);
    let loops = natural_loops(func, &cfg);
    let all: BTreeSet<BlockId> = cfg.order.iter().copied().collect();
    let rank: BTreeMap<BlockId, usize> = func.layout.iter().enumerate().map(|(idx, id)| (*id, idx)).collect();
    let mut order = Vec::with_capacity(all.len());
    let region = Region { func, loops: &loops, rank: &rank };
    region.place(&all, func.entry(), &mut order);
    func.layout = order;
}

/// A jump back to a test at the top of a loop becomes the test itself.
fn rotate_loops(func: &mut Function) {
    let cfg = Cfg::new(func);
    for (head, body) in natural_loops(func, &cfg) {
        let test = func.block(head).clone();
        let leaves = match test.terminator {
            Terminator::Branch(_, yes, no) => body.contains(&yes) != body.contains(&no),
            Terminator::Jump(_) | Terminator::Exit | Terminator::Return => false,
        };
        if !leaves || test.insts.len() > MAX_ROTATED {
            continue;
        }
        for tail in &body {
            if *tail != head && func.block(*tail).terminator == Terminator::Jump(head) {
                let block = func.block_mut(*tail);
                block.insts.extend(test.insts.iter().cloned());
                block.terminator = test.terminator;
                block.line = test.line;
            }
        }
    }
}

struct Region<'f> {
    func: &'f Function,
    loops: &'f BTreeMap<BlockId, BTreeSet<BlockId>>,
    /// Position in the old layout, which decides between equals.
    rank: &'f BTreeMap<BlockId, usize>,
}

impl Region<'_> {
    /// Places the blocks of a region that `entry` leads to, each inner loop as if it were one block.
    fn place(&self, blocks: &BTreeSet<BlockId>, entry: BlockId, order: &mut Vec<BlockId>) {
        // The largest loop of the region around each block.
        let mut node: BTreeMap<BlockId, BlockId> = blocks.iter().map(|id| (*id, *id)).collect();
        // Loops are disjoint or one in the other: those whose head is inside are.
        let mut inner: Vec<(&BlockId, &BTreeSet<BlockId>)> =
            blocks.iter().filter(|head| **head != entry).filter_map(|head| self.loops.get_key_value(head)).collect();
        inner.sort_by_key(|(head, body)| (body.len(), **head));
        for (head, body) in &inner {
            for block in *body {
                node.insert(*block, **head);
            }
        }
        let members = |head: BlockId| -> Vec<BlockId> {
            match self.loops.get(&head) {
                Some(body) if head != entry => body.iter().copied().collect(),
                _ => vec![head],
            }
        };
        let mut seen: BTreeSet<BlockId> = BTreeSet::from([entry]);
        let mut stack = vec![(entry, self.next_nodes(entry, &members(entry), &node, entry))];
        let mut post = Vec::new();
        while let Some((head, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(next) if seen.insert(next) => {
                    let after = self.next_nodes(next, &members(next), &node, entry);
                    stack.push((next, after));
                }
                Some(_) => {}
                None => {
                    post.push(*head);
                    stack.pop();
                }
            }
        }
        for head in post.into_iter().rev() {
            let body = members(head);
            if body.len() > 1 {
                self.place(&body.into_iter().collect(), head, order);
            } else {
                order.push(head);
            }
        }
    }

    /// Where control goes from a node inside the region; the last one visited stands next in the order.
    fn next_nodes(
        &self,
        head: BlockId,
        members: &[BlockId],
        node: &BTreeMap<BlockId, BlockId>,
        entry: BlockId,
    ) -> Vec<BlockId> {
        let mut next: Vec<BlockId> = members
            .iter()
            .flat_map(|block| self.func.block(*block).terminator.successors())
            .filter_map(|target| node.get(&target).copied())
            .filter(|target| *target != entry && *target != head)
            .collect();
        let ends = |block: &BlockId| self.func.block(*block).terminator == Terminator::Exit;
        // Popped from the back: ends first, so that they stand last.
        next.sort_by_key(|block| (ends(block), self.rank.get(block).copied()));
        next.dedup();
        next
    }
}

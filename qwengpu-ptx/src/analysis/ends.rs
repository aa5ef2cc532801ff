//! Which blocks every way from a block to an end passes.

use crate::ir::{BlockId, Function};

use super::cfg::Cfg;
use super::dominators::Dominators;

/// The post-dominators of blocks, as far as certain ends are concerned.
pub(crate) struct WaysToEnd {
    /// By block: its node in the graph of edges turned round, whose node 0 leads to the ends. None for blocks from
    /// which no end is reached.
    node: Vec<Option<usize>>,
    /// The block of each node but node 0.
    blocks: Vec<BlockId>,
    tree: Dominators,
}

impl WaysToEnd {
    /// The ways to the blocks that are ends, without those through closed blocks.
    pub(crate) fn new(
        func: &Function,
        cfg: &Cfg,
        is_end: impl Fn(BlockId) -> bool,
        is_closed: impl Fn(BlockId) -> bool,
    ) -> WaysToEnd {
        let mut node = vec![None; func.blocks.len()];
        let mut blocks: Vec<BlockId> = Vec::new();
        let mut edges: Vec<Vec<usize>> = vec![Vec::new()];
        let mut visit = |block: BlockId, blocks: &mut Vec<BlockId>| {
            *node[block.idx()].get_or_insert_with(|| {
                blocks.push(block);
                blocks.len()
            })
        };
        for block in cfg.order.iter().filter(|block| is_end(**block) && !is_closed(**block)) {
            let at = visit(*block, &mut blocks);
            edges[0].push(at);
        }
        let mut next = 0;
        while let Some(block) = blocks.get(next).copied() {
            next += 1;
            let before = cfg.preds(block).iter().filter(|pred| !is_closed(**pred));
            edges.push(before.map(|pred| visit(*pred, &mut blocks)).collect());
        }
        WaysToEnd { node, blocks, tree: Dominators::new(&edges) }
    }

    /// Whether a way leads from the block to an end.
    pub(crate) fn has_way(&self, block: BlockId) -> bool {
        self.node[block.idx()].is_some()
    }

    /// The other blocks that every way from a block to an end passes, the next first.
    pub(crate) fn passed(&self, block: BlockId) -> impl Iterator<Item = BlockId> {
        let above = |node: &usize| self.tree.idom(*node).filter(|above| *above != 0);
        let first = self.node[block.idx()].and_then(|node| above(&node));
        std::iter::successors(first, above).map(|node| self.blocks[node - 1])
    }

    /// Whether every way from one block to an end passes another, if there is a way.
    pub(crate) fn passes(&self, from: BlockId, through: BlockId) -> bool {
        match (self.node[from.idx()], self.node[through.idx()]) {
            (None, _) => true,
            (Some(from), Some(through)) => self.tree.dominates(through, from),
            (Some(_), None) => false,
        }
    }
}

//! Rows that may have a `silu` that isn't exactly zero, found without looking at most of the others.
//!
//! Far below zero `silu` underflows to zero. The rows of an address decoder are all held down there by a bias, and of a
//! thousand rows that the same columns reach one gets through. As a tree of shared beginnings they are searched by
//! branch and bound: where what is left to add can't lift any row below a node, the node is left.

use std::collections::{BTreeMap, VecDeque};

use super::blocks::{Blocks, NONE};
use super::norm::Normed;
use crate::matrix::{SparseMatrix, low_32};

/// `silu` is zero below -89; the rest is for the rounding of results.
const SILENT: f32 = -96.0;
/// Share of its terms that rounding may move a sum by.
const ROUNDING: f32 = 1.0 / 65_536.0;

/// Fewest rows with the same columns that are worth a search.
const MANY_ROWS: usize = 24;

/// Rows that have all their columns in common, as trees: one for each such group of a block.
///
/// A tree's level is a column. Columns in which the rows differ least come first.
#[derive(Debug, Clone)]
pub(crate) struct Tries {
    groups: Vec<Group>,
    /// Where a block's groups begin.
    starts: Vec<u32>,
    /// By group and level.
    levels: Vec<Level>,
    nodes: Vec<Node>,
    /// Weights of nodes, level by level.
    weights: Vec<f32>,
    shared: u32,
    /// By level: this input, and what this level and later ones can add at most.
    inputs: Vec<(f32, f32)>,
    stack: Vec<(u32, f32)>,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    root: u32,
    /// A range of `levels`.
    start: u32,
    end: u32,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    col: u32,
    /// The smallest and the largest weight.
    least: f32,
    most: f32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// Its first level and its weights there and on the next ones, a range of `weights`.
    level: u32,
    start: u32,
    end: u32,
    /// A range of nodes; none below a leaf.
    first_child: u32,
    end_child: u32,
    /// A leaf's row.
    row: u32,
    /// Smallest and largest weight of the shared column below.
    bias: (f32, f32),
}

/// A row while trees are built: its weights by level, the shared column's weight, its number.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
struct Branch {
    weights: Vec<f32>,
    bias: f32,
    row: u32,
}

impl Tries {
    /// The trees of these blocks; `weight` is what stands in front of the silu.
    pub(crate) fn new(weight: &SparseMatrix, blocks: &Blocks) -> Self {
        // By block and columns.
        let mut groups: BTreeMap<(u32, Vec<u32>), Vec<u32>> = BTreeMap::new();
        for row in (0..low_32(weight.rows())).filter(|&row| blocks.of_row[row as usize] != NONE) {
            let cols = weight.row(row as usize).0.iter().copied().filter(|&col| col != blocks.shared);
            groups.entry((blocks.of_row[row as usize], cols.collect())).or_default().push(row);
        }
        let mut tries = Self {
            groups: Vec::new(),
            starts: vec![0],
            levels: Vec::new(),
            nodes: Vec::new(),
            weights: Vec::new(),
            shared: blocks.shared,
            inputs: Vec::new(),
            stack: Vec::new(),
        };
        for ((block, _), rows) in
            groups.into_iter().filter(|((_, cols), rows)| !cols.is_empty() && rows.len() >= MANY_ROWS)
        {
            tries.starts.resize(block as usize + 1, low_32(tries.groups.len()));
            tries.add_group(weight, &rows);
        }
        tries.starts.resize(blocks.len() + 1, low_32(tries.groups.len()));
        tries.inputs = vec![(0.0, 0.0); tries.groups.iter().map(|g| (g.end - g.start) as usize).max().unwrap_or(0)];
        tries
    }

    /// The rows that are searched.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().filter(|node| node.first_child == node.end_child).map(|node| node.row)
    }

    /// Adds a tree of rows with the same columns, unless their weights are too different to be shared.
    fn add_group(&mut self, weight: &SparseMatrix, rows: &[u32]) {
        let shared = self.shared;
        let entries = |row: u32| {
            let (cols, weights) = weight.row(row as usize);
            cols.iter().copied().zip(weights.iter().copied()).filter(move |&(col, _)| col != shared)
        };
        let lists: Vec<Vec<f32>> = rows.iter().map(|&row| entries(row).map(|(_, w)| w).collect()).collect();
        // The columns by their place in a row, with the number of different weights.
        let mut levels: Vec<(usize, usize, Level)> = Vec::new();
        for (place, (col, _)) in entries(rows[0]).enumerate() {
            let mut weights: Vec<f32> = lists.iter().map(|list| list[place]).collect();
            weights.sort_by(f32::total_cmp);
            weights.dedup();
            let (least, most) = (weights[0], weights[weights.len() - 1]);
            levels.push((weights.len(), place, Level { col, least, most }));
        }
        let different: usize = levels.iter().map(|&(different, ..)| different).sum();
        if different * 2 > rows.len() * levels.len() {
            return;
        }
        levels.sort_by_key(|&(different, place, _)| (different, place));
        let start = low_32(self.levels.len());
        self.levels.extend(levels.iter().map(|&(.., level)| level));
        let bias = |row: u32| {
            let (cols, weights) = weight.row(row as usize);
            cols.binary_search(&shared).map_or(0.0, |place| weights[place])
        };
        let branch = |(&row, list): (&u32, &Vec<f32>)| {
            let weights = levels.iter().map(|&(_, place, _)| list[place]).collect();
            Branch { weights, bias: bias(row), row }
        };
        let mut branches: Vec<Branch> = rows.iter().zip(&lists).map(branch).collect();
        branches.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        self.groups.push(Group { root: low_32(self.nodes.len()), start, end: low_32(self.levels.len()) });
        self.grow(&branches);
    }

    /// Builds a tree from sorted rows, level by level.
    #[expect(clippy::float_cmp, reason = "rows share a node if their weights are the same")]
    fn grow(&mut self, branches: &[Branch]) {
        let mut queue = VecDeque::from([(self.nodes.len(), 0..branches.len(), 0)]);
        self.nodes.push(Node::default());
        while let Some((node, range, level)) = queue.pop_front() {
            let group = &branches[range.clone()];
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let pairs = first.weights[level..].iter().zip(&last.weights[level..]);
            let below = level + pairs.take_while(|(a, b)| a == b).count();
            let start = low_32(self.weights.len());
            self.weights.extend_from_slice(&first.weights[level..below]);
            let biases = group.iter().map(|branch| branch.bias);
            let first_child = low_32(self.nodes.len());
            if group.len() > 1 {
                let mut begin = range.start;
                // Rows that differ by their bias at most are leaves next to each other.
                let goes_on = |a: &Branch, b: &Branch| a.weights.get(below).is_some_and(|a| *a == b.weights[below]);
                for part in group.chunk_by(goes_on) {
                    queue.push_back((self.nodes.len(), begin..begin + part.len(), below));
                    self.nodes.push(Node::default());
                    begin += part.len();
                }
            }
            self.nodes[node] = Node {
                level: low_32(level),
                start,
                end: low_32(self.weights.len()),
                first_child,
                end_child: low_32(self.nodes.len()),
                row: first.row,
                bias: (biases.clone().fold(f32::INFINITY, f32::min), biases.fold(f32::NEG_INFINITY, f32::max)),
            };
        }
    }

    /// Visits each searched row of a block that may have a result, once.
    pub(crate) fn search(&mut self, block: u32, x: &Normed<'_>, mut visit: impl FnMut(u32)) {
        let groups = self.starts[block as usize] as usize..self.starts[block as usize + 1] as usize;
        if groups.is_empty() {
            return;
        }
        let bias = x.get(self.shared);
        let Self { groups: all, levels, nodes, weights, inputs, stack, .. } = self;
        for group in &all[groups] {
            let mut terms = 0.0;
            let mut at_most = 0.0;
            let levels = &levels[group.start as usize..group.end as usize];
            for (level, input) in levels.iter().zip(inputs.iter_mut()).rev() {
                let value = x.get(level.col);
                if value != 0.0 {
                    let (least, most) = (level.least * value, level.most * value);
                    terms += least.abs().max(most.abs());
                    at_most += least.max(most);
                }
                *input = (value, at_most);
            }
            let inputs = &inputs[..levels.len()];
            // What the shared column adds below a node at most, less what a row needs, as if rounding only ever helped.
            let lift = |node: &Node| {
                let (least, most) = (node.bias.0 * bias, node.bias.1 * bias);
                least.max(most) + (least.abs().max(most.abs()) + terms) * ROUNDING - SILENT
            };
            stack.clear();
            if at_most + lift(&nodes[group.root as usize]) > 0.0 {
                stack.push((group.root, 0.0));
            }
            while let Some((node, mut sum)) = stack.pop() {
                let node = &nodes[node as usize];
                let own = &weights[node.start as usize..node.end as usize];
                for (&weight, &(value, _)) in own.iter().zip(&inputs[node.level as usize..]) {
                    sum += weight * value;
                }
                let level = node.level as usize + own.len();
                let behind = inputs.get(level).map_or(0.0, |&(_, at_most)| at_most);
                if sum + behind + lift(node) <= 0.0 {
                    continue;
                }
                if node.first_child == node.end_child {
                    visit(node.row);
                }
                stack.extend((node.first_child..node.end_child).map(|child| (child, sum)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::tests::sparse;
    use super::super::norm::RmsNorm;
    use super::super::vector::Stream;
    use super::*;
    use crate::activation::silu;
    use crate::engine::Precision;

    proptest! {
        /// Whatever a search leaves out is exactly zero, and it visits nothing twice.
        #[test]
        fn nothing_is_missed(
            // Four columns give fifteen groups.
            weight in sparse(400, 5, 1500).prop_map(|m| m.map(|_, _, w| 32.0 * w)),
            tokens in prop::collection::vec(sparse(1, 5, 8), 1..4),
        ) {
            let blocks = Blocks::new(&[&weight], 0);
            let mut tries = Tries::new(&weight, &blocks);
            let norm = RmsNorm::new(&[0.0; 5], 1e-6, Precision::F32);
            let mut stream = Stream::new(5);
            for token in tokens {
                stream.load(&token, 0);
                let x = norm.stream(&mut stream);
                for block in 0..low_32(blocks.len()) {
                    let mut found = Vec::new();
                    tries.search(block, &x, |row| found.push(row));
                    found.sort_unstable();
                    prop_assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
                    prop_assert!(found.iter().all(|&row| blocks.of_row[row as usize] == block));
                    for row in tries.rows().filter(|&row| blocks.of_row[row as usize] == block) {
                        let (cols, weights) = weight.row(row as usize);
                        let sum: f32 = cols.iter().zip(weights).map(|(&col, w)| w * x.get(col)).sum();
                        prop_assert!(silu(sum) == 0.0 || found.contains(&row), "row {row} with {sum}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_decoder_is_searched_along_one_way() {
        // 64 rows over 6 columns: row i is above zero for the input i in binary, else at -128 or below.
        let entries = (0..64_u32).flat_map(|row| {
            let ones: f32 = (0..6).filter(|bit| row >> bit & 1 == 1).map(|_| 256.0).sum();
            let bias = (row, 0, 128.0 - ones);
            let bits = (0..6).map(move |bit| (row, 1 + bit, if row >> bit & 1 == 1 { 256.0 } else { -256.0 }));
            bits.chain([bias])
        });
        let weight = SparseMatrix::from_triplets(64, 7, entries).expect("entries");
        let blocks = Blocks::new(&[&weight], 0);
        let mut tries = Tries::new(&weight, &blocks);
        // A norm of ones.
        let norm = RmsNorm::new(&[0.0; 7], 0.0, Precision::F32);
        let mut stream = Stream::new(7);
        let token = SparseMatrix::from_dense(1, 7, &[1.0; 7]).expect("a token");
        stream.load(&token, 0);
        let x = norm.stream(&mut stream);
        let mut found = Vec::new();
        tries.search(0, &x, |row| found.push(row));
        assert_eq!(found, [63]);
        let mut rows: Vec<u32> = tries.rows().collect();
        rows.sort_unstable();
        assert!(rows.into_iter().eq(0..64));
    }

    #[test]
    fn rows_that_share_no_weights_are_not_searched() {
        let entries = (0..64_u32).flat_map(|row| (0..6).map(move |col| (row, col, (6 * row + col + 1) as f32)));
        let weight = SparseMatrix::from_triplets(64, 6, entries).expect("entries");
        let tries = Tries::new(&weight, &Blocks::new(&[&weight], 0));
        assert_eq!(tries.rows().count(), 0);
    }
}

//! Rows that may have a `silu` that isn't exactly zero, found without looking at most of the others.
//!
//! Far below zero `silu` underflows to zero. The rows of an address decoder are all held down there by a bias, and of a
//! thousand rows that the same columns reach one gets through. As a tree of shared beginnings they are searched by
//! branch and bound: where what is left to add can't lift any row below a node, the node is left.

use std::collections::VecDeque;

use super::blocks::{Blocks, NONE};
use super::memo::Pair;
use super::norm::Normed;
use crate::matrix::{SparseMatrix, low_32};

/// `silu` is zero below -89; the rest is for the rounding of results.
const SILENT: f32 = -96.0;
/// Share of its terms that rounding may move a sum by.
const ROUNDING: f32 = 1.0 / 65_536.0;

/// The rows of blocks as trees. Columns are ranked block by block, the fullest of a block first.
#[derive(Debug, Clone)]
pub(crate) struct Tries {
    /// By block, the root.
    roots: Vec<u32>,
    nodes: Vec<Node>,
    /// Entries of nodes: ranks, ascending on every way down, and weights.
    entries: Vec<(u32, f32)>,
    /// By column.
    ranks: Vec<u32>,
    /// Where a block's ranks begin.
    starts: Vec<u32>,
    /// By rank, the smallest and the largest weight, zero included.
    extremes: Vec<(f32, f32)>,
    /// By rank: this input.
    inputs: Vec<f32>,
    /// By rank: what columns from here on can add at most.
    at_most: Vec<f32>,
    shared: u32,
    stack: Vec<(u32, f32)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// A range of `entries`.
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

/// A row while trees are built: its entries by rank, the shared column's weight, its number.
struct Branch {
    entries: Vec<(u32, f32)>,
    bias: f32,
    row: u32,
}

impl Tries {
    /// The trees of these blocks; `weight` is what stands in front of the silu.
    pub(crate) fn new(weight: &SparseMatrix, blocks: &Blocks, includes: impl Fn(u32) -> bool) -> Self {
        let columns = weight.transpose();
        let mut by_rank: Vec<u32> = Vec::new();
        blocks.columns.for_each(|col| by_rank.push(col));
        let fullness = |col: u32| columns.row(col as usize).0.len();
        by_rank.sort_by_key(|&col| (blocks.of_col[col as usize], std::cmp::Reverse(fullness(col)), col));
        let mut ranks = vec![NONE; weight.cols()];
        for (rank, &col) in (0..).zip(&by_rank) {
            ranks[col as usize] = rank;
        }
        let extremes = by_rank.iter().map(|&col| {
            let weights = columns.row(col as usize).1.iter();
            weights.fold((0.0_f32, 0.0_f32), |(least, most), &w| (least.min(w), most.max(w)))
        });
        let mut branches: Vec<Vec<Branch>> = (0..blocks.len()).map(|_| Vec::new()).collect();
        for row in (0..low_32(weight.rows())).filter(|&row| blocks.of_row[row as usize] != NONE) {
            let block = blocks.of_row[row as usize];
            if includes(block) {
                branches[block as usize].push(branch(weight, row, &ranks, blocks.shared));
            }
        }
        let mut tries = Self {
            roots: Vec::new(),
            nodes: Vec::new(),
            entries: Vec::new(),
            ranks,
            starts: blocks.starts.clone(),
            extremes: extremes.collect(),
            inputs: vec![0.0; by_rank.len()],
            at_most: vec![0.0; by_rank.len() + 1],
            shared: blocks.shared,
            stack: Vec::new(),
        };
        for branches in &mut branches {
            let bits = |b: &Branch| b.entries.iter().map(|&(rank, w)| (rank, w.to_bits())).collect::<Vec<_>>();
            branches.sort_by_cached_key(|b| (bits(b), b.row));
            tries.roots.push(low_32(tries.nodes.len()));
            tries.grow(branches);
        }
        tries
    }

    /// Builds a tree from sorted rows, level by level.
    fn grow(&mut self, branches: &[Branch]) {
        let same = |a: (u32, f32), b: (u32, f32)| a.0 == b.0 && a.1.to_bits() == b.1.to_bits();
        let mut queue = VecDeque::from([(self.nodes.len(), 0..branches.len(), 0)]);
        self.nodes.push(Node::default());
        while let Some((node, range, depth)) = queue.pop_front() {
            let group = &branches[range.clone()];
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let pairs = first.entries[depth..].iter().zip(&last.entries[depth..]);
            let below = match group.len() {
                1 => first.entries.len(),
                _ => depth + pairs.take_while(|(a, b)| same(**a, **b)).count(),
            };
            let start = low_32(self.entries.len());
            self.entries.extend_from_slice(&first.entries[depth..below]);
            let biases = group.iter().map(|branch| branch.bias);
            let first_child = low_32(self.nodes.len());
            if group.len() > 1 {
                let mut begin = range.start;
                let goes_on = |a: &Branch, b: &Branch| match (a.entries.get(below), b.entries.get(below)) {
                    (Some(&a), Some(&b)) => same(a, b),
                    _ => false,
                };
                for part in group.chunk_by(goes_on) {
                    queue.push_back((self.nodes.len(), begin..begin + part.len(), below));
                    self.nodes.push(Node::default());
                    begin += part.len();
                }
            }
            self.nodes[node] = Node {
                start,
                end: low_32(self.entries.len()),
                first_child,
                end_child: low_32(self.nodes.len()),
                row: first.row,
                bias: (biases.clone().fold(f32::INFINITY, f32::min), biases.fold(f32::NEG_INFINITY, f32::max)),
            };
        }
    }

    /// Visits each row of a block that may have a result, once. `inputs` are the block's active columns.
    pub(crate) fn search(&mut self, block: u32, inputs: &[Pair], x: &Normed<'_>, mut visit: impl FnMut(u32)) {
        let (start, end) = (self.starts[block as usize] as usize, self.starts[block as usize + 1] as usize);
        let root = self.roots[block as usize];
        let bias = x.get(self.shared);
        let mut terms = 0.0;
        for &(col, _) in inputs {
            let (rank, value) = (self.ranks[col as usize] as usize, x.get(col));
            let (least, most) = self.extremes[rank];
            self.inputs[rank] = value;
            terms += (least * value).abs() + (most * value).abs();
        }
        self.at_most[end] = 0.0;
        for rank in (start..end).rev() {
            let ((least, most), value) = (self.extremes[rank], self.inputs[rank]);
            // Behind the block's last rank others may have left something, so the bound starts there as zero.
            let behind = if rank + 1 == end { 0.0 } else { self.at_most[rank + 1] };
            self.at_most[rank] = behind + (least * value).max(most * value).max(0.0);
        }
        let Self { nodes, entries, inputs: values, at_most, stack, .. } = self;
        let behind = |rank: usize| if rank + 1 == end { 0.0 } else { at_most[rank + 1] };
        // The most that the shared column may add below a node, as if rounding only ever helped.
        let lift = |node: &Node| {
            let (least, most) = (node.bias.0 * bias, node.bias.1 * bias);
            least.max(most) + (least.abs().max(most.abs()) + terms) * ROUNDING - SILENT
        };
        stack.clear();
        stack.push((root, 0.0));
        while let Some((node, mut sum)) = stack.pop() {
            let node = nodes[node as usize];
            for &(rank, weight) in &entries[node.start as usize..node.end as usize] {
                sum += weight * values[rank as usize];
            }
            if node.first_child == node.end_child {
                if sum + lift(&node) > 0.0 {
                    visit(node.row);
                }
                continue;
            }
            for child in node.first_child..node.end_child {
                let next = &nodes[child as usize];
                let bound = match entries[next.start as usize..next.end as usize].first() {
                    Some(&(rank, weight)) => sum + weight * values[rank as usize] + behind(rank as usize),
                    None => sum,
                };
                if bound + lift(next) > 0.0 {
                    stack.push((child, sum));
                }
            }
        }
        for &(col, _) in inputs {
            self.inputs[self.ranks[col as usize] as usize] = 0.0;
        }
    }
}

fn branch(weight: &SparseMatrix, row: u32, ranks: &[u32], shared: u32) -> Branch {
    let (cols, weights) = weight.row(row as usize);
    let mut branch = Branch { entries: Vec::new(), bias: 0.0, row };
    for (&col, &w) in cols.iter().zip(weights) {
        if col == shared {
            branch.bias = w;
        } else {
            branch.entries.push((ranks[col as usize], w));
        }
    }
    branch.entries.sort_unstable_by_key(|&(rank, _)| rank);
    branch
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
            weight in sparse(30, 10, 150).prop_map(|m| m.map(|_, _, w| 32.0 * w)),
            tokens in prop::collection::vec(sparse(1, 10, 10), 1..4),
        ) {
            let blocks = Blocks::new(&[&weight], 0);
            let mut tries = Tries::new(&weight, &blocks, |_| true);
            let norm = RmsNorm::new(&[0.0; 10], 1e-6, Precision::F32);
            let mut stream = Stream::new(10);
            for token in tokens {
                stream.load(&token, 0);
                let x = norm.stream(&mut stream);
                for block in (0..low_32(blocks.len())).filter(|&block| blocks.of_row.contains(&block)) {
                    let mut inputs = Vec::new();
                    x.for_each_raw(&blocks.columns, |col, value| inputs.push((col, value.to_bits())));
                    inputs.retain(|&(col, _)| blocks.of_col[col as usize] == block);
                    let mut found = Vec::new();
                    tries.search(block, &inputs, &x, |row| found.push(row));
                    found.sort_unstable();
                    prop_assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
                    prop_assert!(found.iter().all(|&row| blocks.of_row[row as usize] == block));
                    for row in (0..30).filter(|&row| blocks.of_row[row as usize] == block) {
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
            let ones = row.count_ones() as i16;
            let bias = (row, 0, f32::from(128 - 256 * ones));
            let bits = (0..6).map(move |bit| (row, 1 + bit, if row >> bit & 1 == 1 { 256.0 } else { -256.0 }));
            bits.chain([bias])
        });
        let weight = SparseMatrix::from_triplets(64, 7, entries).expect("entries");
        let blocks = Blocks::new(&[&weight], 0);
        let mut tries = Tries::new(&weight, &blocks, |_| true);
        // A norm of ones.
        let norm = RmsNorm::new(&[0.0; 7], 0.0, Precision::F32);
        let mut stream = Stream::new(7);
        let token = SparseMatrix::from_dense(1, 7, &[1.0; 7]).expect("a token");
        stream.load(&token, 0);
        let x = norm.stream(&mut stream);
        let inputs: Vec<Pair> = (1..7).map(|col| (col, 1.0_f32.to_bits())).collect();
        let mut found = Vec::new();
        tries.search(0, &inputs, &x, |row| found.push(row));
        assert_eq!(found, [63]);
    }
}

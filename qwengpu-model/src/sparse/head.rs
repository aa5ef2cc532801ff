//! The way from the final norm to logits, and to the largest of them without computing all.

use super::bits::Bits;
use super::norm::Normed;
use super::vector::Inputs;
use super::whole::Whole;
use crate::engine::Precision;
use crate::matrix::{SparseMatrix, low_32};

/// `lm_head`, by row, by column and as a tree.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    rows: SparseMatrix,
    columns: SparseMatrix,
    tree: Tree,
    /// Answers by what logits depend on.
    answers: Whole,
    precision: Precision,
}

impl Head {
    /// `weight` is `[vocab, hidden]`.
    pub(crate) fn new(weight: &SparseMatrix, precision: Precision) -> Self {
        let rows = weight.map(|_, _, value| precision.round(value));
        let columns = rows.transpose();
        let tree = Tree::new(&rows, &columns);
        let mut used = Bits::new(columns.rows());
        rows.entries().for_each(|(_, col, _)| used.set(col));
        Self { rows, columns, tree, answers: Whole::new(&used), precision }
    }

    /// All logits `[vocab]`. `x` is sorted.
    pub(crate) fn logits(&self, x: &Inputs, out: &mut [f32]) {
        out.fill(0.0);
        for (col, value) in x.iter() {
            let (rows, weights) = self.columns.row(col as usize);
            for (&row, &weight) in rows.iter().zip(weights) {
                out[row as usize] += weight * value;
            }
        }
        out.iter_mut().for_each(|logit| *logit = self.precision.round(*logit));
    }

    /// The id of the largest logit, the first of equals. `normed` is room for the input.
    pub(crate) fn argmax(&mut self, x: &Normed<'_>, normed: &mut Inputs) -> u32 {
        let Self { rows, tree, precision, answers, .. } = self;
        let answer = answers.get(x, |answer| {
            x.write(normed);
            let row = tree.search(normed, *precision, |row| precision.round(normed.dot_row(rows, row as usize)));
            answer.push((row, 0));
        });
        answer.first().map_or(0, |&(row, _)| row)
    }
}

/// The rows of a matrix as a tree of shared beginnings, for a search by branch and bound.
///
/// Columns are sorted into groups of which no row has two, as the values of one field are, and ranked group by group.
/// Each row is the list of its entries by rank; rows that begin alike share a path. Below a node only later groups
/// matter, so the sum of each group's largest contribution bounds every row below it.
#[derive(Debug, Clone)]
struct Tree {
    /// The root first; the children of a node are next to each other.
    nodes: Vec<Node>,
    ranks: Vec<u32>,
    weights: Vec<f32>,
    /// By column; columns without entries have no rank.
    rank_of: Vec<Option<u32>>,
    /// Smallest and largest weight of a column, zero included, by rank.
    extremes: Vec<(f32, f32)>,
    /// The current input, by rank.
    inputs: Vec<f32>,
    /// By rank, the first rank of the next group.
    next_group: Vec<u32>,
    /// What this rank or a later one of its group, and all later groups, could add at most.
    at_most: Vec<f32>,
    stack: Vec<Pending>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// Entries behind those of the nodes above: a range of `ranks` and `weights`.
    entries: (u32, u32),
    below: Below,
}

#[derive(Debug, Clone, Copy)]
enum Below {
    Row(u32),
    Nodes(u32, u32),
}

/// A node to look at.
#[derive(Debug, Clone, Copy)]
struct Pending {
    node: u32,
    /// Sum of the entries above it.
    sum: f32,
    /// No row below it has a larger sum.
    bound: f32,
}

impl Tree {
    fn new(rows: &SparseMatrix, columns: &SparseMatrix) -> Self {
        let groups = exclusive_groups(columns);
        let by_rank: Vec<usize> = groups.iter().flatten().copied().collect();
        let mut next_group = Vec::with_capacity(by_rank.len());
        for group in &groups {
            let end = low_32(next_group.len() + group.len());
            next_group.extend(group.iter().map(|_| end));
        }
        let mut rank_of = vec![None; columns.rows()];
        for (rank, &col) in (0..).zip(&by_rank) {
            rank_of[col] = Some(rank);
        }
        let extremes = by_rank.iter().map(|&col| {
            let weights = columns.row(col).1.iter();
            weights.fold((0.0_f32, 0.0_f32), |(least, most), &w| (least.min(w), most.max(w)))
        });
        let extremes: Vec<_> = extremes.collect();

        let list = |row: usize| -> Vec<(u32, f32)> {
            let (cols, weights) = rows.row(row);
            let entries = cols.iter().zip(weights).filter_map(|(&col, &w)| Some((rank_of[col as usize]?, w)));
            let mut entries: Vec<_> = entries.collect();
            entries.sort_unstable_by_key(|&(rank, _)| rank);
            entries
        };
        let mut lists: Vec<(Vec<(u32, f32)>, u32)> = (0..rows.rows()).map(|row| (list(row), low_32(row))).collect();
        let key = |list: &[(u32, f32)]| -> Vec<(u32, u32)> { list.iter().map(|&(r, w)| (r, w.to_bits())).collect() };
        lists.sort_by_cached_key(|(list, row)| (key(list), *row));
        // Of equal rows only the first can be the answer.
        lists.dedup_by(|later, earlier| key(&later.0) == key(&earlier.0));

        let mut tree = Self {
            nodes: Vec::new(),
            ranks: Vec::new(),
            weights: Vec::new(),
            rank_of,
            next_group,
            at_most: vec![0.0; extremes.len() + 1],
            inputs: vec![0.0; extremes.len()],
            extremes,
            stack: Vec::new(),
        };
        tree.grow(&lists);
        tree
    }

    /// Builds the nodes from sorted rows, level by level.
    fn grow(&mut self, lists: &[(Vec<(u32, f32)>, u32)]) {
        const PENDING: Node = Node { entries: (0, 0), below: Below::Nodes(0, 0) };
        self.nodes.push(PENDING);
        // (node, its rows, number of entries above it)
        let mut queue = std::collections::VecDeque::from([(0, 0..lists.len(), 0)]);
        while let Some((node, range, depth)) = queue.pop_front() {
            let group = &lists[range.clone()];
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let shared = first.0[depth..].iter().zip(&last.0[depth..]).take_while(|(a, b)| same(**a, **b)).count();
            let below_depth = depth + shared;
            let start = low_32(self.ranks.len());
            for &(rank, weight) in &first.0[depth..below_depth] {
                self.ranks.push(rank);
                self.weights.push(weight);
            }
            let entries = (start, low_32(self.ranks.len()));
            let below = if group.len() == 1 {
                Below::Row(first.1)
            } else {
                let first_child = self.nodes.len();
                let mut begin = range.start;
                for part in group.chunk_by(|a, b| match (a.0.get(below_depth), b.0.get(below_depth)) {
                    (Some(&a), Some(&b)) => same(a, b),
                    _ => false,
                }) {
                    queue.push_back((self.nodes.len(), begin..begin + part.len(), below_depth));
                    self.nodes.push(PENDING);
                    begin += part.len();
                }
                Below::Nodes(low_32(first_child), low_32(self.nodes.len()))
            };
            self.nodes[node] = Node { entries, below };
        }
    }

    /// The first row of the largest `logit`; `logit` computes a row's.
    #[expect(clippy::float_cmp, reason = "equal logits go to the first row")]
    fn search(&mut self, x: &Inputs, precision: Precision, logit: impl Fn(u32) -> f32) -> u32 {
        if x.iter().all(|(col, _)| self.rank_of[col as usize].is_none()) {
            return 0; // all logits are zero
        }
        let slack = self.set_inputs(x, precision);
        let mut best = (f32::NEG_INFINITY, 0);
        self.stack.clear();
        self.stack.push(Pending { node: 0, sum: 0.0, bound: f32::INFINITY });
        while let Some(Pending { node, mut sum, bound }) = self.stack.pop() {
            if bound + slack < best.0 {
                continue;
            }
            let Some(&Node { entries, below }) = self.nodes.get(node as usize) else { continue };
            let (first, end) = match below {
                Below::Row(row) => {
                    let value = logit(row);
                    if value > best.0 || (value == best.0 && row < best.1) {
                        best = (value, row);
                    }
                    continue;
                }
                Below::Nodes(first, end) => (first, end),
            };
            let entries = entries.0 as usize..entries.1 as usize;
            for (&rank, &weight) in self.ranks[entries.clone()].iter().zip(&self.weights[entries]) {
                sum += weight * self.inputs[rank as usize];
            }
            // The most promising child goes on top.
            let mut top = (f32::NEG_INFINITY, self.stack.len());
            for child in first..end {
                let bound = sum + self.bound_of(child);
                if bound + slack >= best.0 {
                    if bound > top.0 {
                        top = (bound, self.stack.len());
                    }
                    self.stack.push(Pending { node: child, sum, bound });
                }
            }
            if let Some(last) = self.stack.len().checked_sub(1).filter(|&last| last > top.1) {
                self.stack.swap(top.1, last);
            }
        }
        for (col, _) in x.iter() {
            if let Some(rank) = self.rank_of[col as usize] {
                self.inputs[rank as usize] = 0.0;
            }
        }
        best.1
    }

    /// What a node's entries, and those below, could add at most.
    #[inline]
    fn bound_of(&self, node: u32) -> f32 {
        let (start, end) = self.nodes[node as usize].entries;
        if start == end {
            return 0.0; // a row that ends where its siblings go on
        }
        let rank = self.ranks[start as usize] as usize;
        self.weights[start as usize] * self.inputs[rank] + self.at_most[self.next_group[rank] as usize]
    }

    /// Takes the input by rank; returns how far a bound may be off by rounding.
    fn set_inputs(&mut self, x: &Inputs, precision: Precision) -> f32 {
        let mut total = 0.0;
        let mut count = 0.0;
        for (col, value) in x.iter() {
            if let Some(rank) = self.rank_of[col as usize] {
                let (least, most) = self.extremes[rank as usize];
                total += (most - least) * value.abs();
                count += 1.0;
                self.inputs[rank as usize] = value;
            }
        }
        let mut rank = self.inputs.len();
        while rank > 0 {
            let end = rank;
            let mut most_of_group = 0.0_f32;
            while rank > 0 && self.next_group[rank - 1] as usize == end {
                rank -= 1;
                let (value, (least, most)) = (self.inputs[rank], self.extremes[rank]);
                most_of_group = most_of_group.max(least * value).max(most * value);
                self.at_most[rank] = self.at_most[end] + most_of_group;
            }
        }
        let rounding = match precision {
            Precision::F32 => 0.0,
            Precision::Bf16 => 1.0 / 128.0,
        };
        total * (rounding + 2.0 * count * f32::EPSILON)
    }
}

/// Sorts columns with entries into groups such that no row has entries in two columns of a group.
///
/// Greedy: each group starts with the fullest column left and takes every further one that fits, fullest first.
fn exclusive_groups(columns: &SparseMatrix) -> Vec<Vec<usize>> {
    const BITS: usize = u64::BITS as usize;
    let words = columns.cols().div_ceil(BITS);
    let len = |col: usize| columns.row(col).0.len();
    let mut left: Vec<usize> = (0..columns.rows()).filter(|&col| len(col) > 0).collect();
    left.sort_by_key(|&col| std::cmp::Reverse(len(col)));
    let mut groups = Vec::new();
    while !left.is_empty() {
        let mut taken_rows = vec![0_u64; words];
        let mut group = Vec::new();
        left.retain(|&col| {
            let rows = columns.row(col).0;
            let fits = rows.iter().all(|&row| taken_rows[row as usize / BITS] >> (row as usize % BITS) & 1 == 0);
            if fits {
                for &row in rows {
                    taken_rows[row as usize / BITS] |= 1 << (row as usize % BITS);
                }
                group.push(col);
            }
            !fits
        });
        groups.push(group);
    }
    groups
}

fn same(a: (u32, f32), b: (u32, f32)) -> bool {
    a.0 == b.0 && a.1.to_bits() == b.1.to_bits()
}

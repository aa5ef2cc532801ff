//! The largest row of a linear map, without computing every row.
//!
//! Rows are words over (column, weight), and words that end alike share their ends: all rows together are an acyclic
//! automaton, small where the rows are products of fields, as the tokens of a vocabulary are. The best way from each
//! of its nodes to an end is known after one pass over the nodes; with it as a bound, a search leaves every other way.

use std::collections::BTreeMap;

use super::vector::Inputs;
use crate::engine::Precision;
use crate::matrix::{SparseMatrix, low_32};

/// The rows of a matrix as an automaton.
#[derive(Debug, Clone)]
pub(crate) struct Lattice {
    /// A node is a range of edges; children come before parents, the end of all ways first.
    nodes: Vec<(u32, u32)>,
    edges: Vec<Edge>,
    /// Rows in the order of their ways; of equal rows the first.
    rows: Vec<u32>,
    /// By column; columns without entries have no rank.
    rank_of: Vec<Option<u32>>,
    /// Largest magnitude of a column's weights, by rank.
    magnitudes: Vec<f32>,
    /// The current input by rank; a zero behind them.
    inputs: Vec<f32>,
    /// By node, the largest sum on a way to the end.
    best: Vec<f32>,
    stack: Vec<(u32, f32, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Edge {
    rank: u32,
    weight: f32,
    child: u32,
    /// How many ways the edges before it have.
    skipped: u32,
}

/// A row while the automaton is built: its entries in the order of ranks, and its number.
type Word = (Vec<(u32, f32)>, u32);

impl Lattice {
    pub(crate) fn new(rows: &SparseMatrix) -> Self {
        let columns = rows.transpose();
        // Columns whose weights differ come last: a common end needs equal weights.
        let is_varied = |col: usize| {
            let weights = columns.row(col).1;
            weights.windows(2).any(|pair| pair[0].to_bits() != pair[1].to_bits())
        };
        let mut by_rank: Vec<usize> = (0..columns.rows()).filter(|&col| !columns.row(col).0.is_empty()).collect();
        by_rank.sort_by_cached_key(|&col| (is_varied(col), std::cmp::Reverse(columns.row(col).0.len())));
        let mut rank_of = vec![None; columns.rows()];
        for (rank, &col) in (0..).zip(&by_rank) {
            rank_of[col] = Some(rank);
        }
        let first_varied = low_32(by_rank.partition_point(|&col| !is_varied(col)));
        let magnitude = |&col: &usize| columns.row(col).1.iter().fold(0.0_f32, |most, &w| most.max(w.abs()));

        let mut words: Vec<Word> = (0..rows.rows())
            .map(|row| {
                let (cols, weights) = rows.row(row);
                let entries = cols.iter().zip(weights).filter_map(|(&col, &w)| Some((rank_of[col as usize]?, w)));
                let mut entries: Vec<_> = entries.collect();
                entries.sort_unstable_by_key(|&(rank, _)| rank);
                (entries, low_32(row))
            })
            .collect();
        // Rows with the same varied columns come together, so that the ways part there before anything else.
        let key = |word: &Word| {
            let varied: Vec<u32> = word.0.iter().map(|&(rank, _)| rank).filter(|&rank| rank >= first_varied).collect();
            let entries: Vec<(u32, u32)> = word.0.iter().map(|&(rank, w)| (rank, w.to_bits())).collect();
            (varied, entries)
        };
        words.sort_by_cached_key(|word| (key(word), word.1));
        words.dedup_by(|later, earlier| key(later) == key(earlier));

        let no_rank = low_32(by_rank.len());
        let mut builder = Builder { no_rank, ..Builder::default() };
        builder.intern(&[]); // the end
        let mut classes = Vec::new();
        for class in words.chunk_by(|a, b| key(a).0 == key(b).0) {
            let child = builder.words(class);
            classes.push(Edge { rank: no_rank, weight: 0.0, child, skipped: 0 });
        }
        builder.intern(&classes);
        Self {
            best: vec![0.0; builder.nodes.len()],
            nodes: builder.nodes,
            edges: builder.edges,
            rows: words.into_iter().map(|(_, row)| row).collect(),
            rank_of,
            magnitudes: by_rank.iter().map(magnitude).collect(),
            inputs: vec![0.0; by_rank.len() + 1],
            stack: Vec::new(),
        }
    }

    /// The first row of the largest `logit`; `logit` computes a row's, and rounds it.
    #[expect(clippy::float_cmp, reason = "equal logits go to the first row")]
    pub(crate) fn search(&mut self, x: &Inputs, precision: Precision, logit: impl Fn(u32) -> f32) -> u32 {
        let Self { nodes, edges, rows, rank_of, magnitudes, inputs, best, stack } = self;
        let (mut total, mut count) = (0.0, 0.0);
        for (col, value) in x.iter() {
            if let Some(rank) = rank_of[col as usize] {
                total += magnitudes[rank as usize] * value.abs();
                count += 1.0;
                inputs[rank as usize] = value;
            }
        }
        if count == 0.0 {
            return 0; // all logits are zero
        }
        let rounding = match precision {
            Precision::F32 => 0.0,
            Precision::Bf16 => 1.0 / 128.0,
        };
        // How far a sum here may be from a logit, and the other way round.
        let slack = 2.0 * total * (rounding + 2.0 * count * f32::EPSILON);
        for (node, &(start, end)) in nodes.iter().enumerate().skip(1) {
            let mut most = f32::NEG_INFINITY;
            for edge in &edges[start as usize..end as usize] {
                let way = edge.weight * inputs[edge.rank as usize] + best[edge.child as usize];
                most = if way > most { way } else { most };
            }
            best[node] = most;
        }
        let root = low_32(nodes.len() - 1);
        let mut found = (f32::NEG_INFINITY, 0);
        let mut least = best[root as usize] - slack;
        stack.clear();
        stack.push((root, 0.0, 0));
        while let Some((node, sum, index)) = stack.pop() {
            if node == 0 {
                let row = rows[index as usize];
                let value = logit(row);
                if value > found.0 || (value == found.0 && row < found.1) {
                    found = (value, row);
                    least = least.max(value - slack);
                }
                continue;
            }
            let (start, end) = nodes[node as usize];
            for edge in &edges[start as usize..end as usize] {
                let sum = sum + edge.weight * inputs[edge.rank as usize];
                if sum + best[edge.child as usize] >= least {
                    stack.push((edge.child, sum, index + edge.skipped));
                }
            }
        }
        for (col, _) in x.iter() {
            if let Some(rank) = rank_of[col as usize] {
                inputs[rank as usize] = 0.0;
            }
        }
        found.1
    }
}

/// Adds sorted words and keeps each distinct set of ends once.
#[derive(Debug, Default)]
struct Builder {
    nodes: Vec<(u32, u32)>,
    edges: Vec<Edge>,
    /// By node, how many ways lead to the end.
    ways: Vec<u32>,
    known: BTreeMap<Vec<(u32, u32, u32)>, u32>,
    /// Of edges that add nothing.
    no_rank: u32,
}

impl Builder {
    /// The node of these edges.
    fn intern(&mut self, edges: &[Edge]) -> u32 {
        let key: Vec<_> = edges.iter().map(|edge| (edge.rank, edge.weight.to_bits(), edge.child)).collect();
        if let Some(&node) = self.known.get(&key) {
            return node;
        }
        let start = low_32(self.edges.len());
        let mut ways = 0;
        for &edge in edges {
            self.edges.push(Edge { skipped: ways, ..edge });
            ways += self.ways[edge.child as usize];
        }
        let node = low_32(self.nodes.len());
        self.nodes.push((start, low_32(self.edges.len())));
        self.ways.push(if edges.is_empty() { 1 } else { ways });
        self.known.insert(key, node);
        node
    }

    /// The node of words that are sorted and all different.
    fn words(&mut self, words: &[Word]) -> u32 {
        // The edges of the nodes along the last word; the last edge of each leads to the next.
        let mut path: Vec<Vec<Edge>> = vec![Vec::new()];
        let mut last: &[(u32, f32)] = &[];
        for (word, _) in words {
            let shared =
                word.iter().zip(last).take_while(|(a, b)| a.0 == b.0 && a.1.to_bits() == b.1.to_bits()).count();
            self.close(&mut path, shared + 1);
            for &(rank, weight) in &word[shared..] {
                if let Some(edges) = path.last_mut() {
                    edges.push(Edge { rank, weight, child: 0, skipped: 0 });
                }
                path.push(Vec::new());
            }
            if let Some(edges) = path.last_mut() {
                edges.push(Edge { rank: self.no_rank, weight: 0.0, child: 0, skipped: 0 });
            }
            last = word;
        }
        self.close(&mut path, 1);
        let edges = path.pop().unwrap_or_default();
        self.intern(&edges)
    }

    /// Finishes the nodes behind the first `len` of a path.
    fn close(&mut self, path: &mut Vec<Vec<Edge>>, len: usize) {
        while path.len() > len {
            let node = path.pop().map_or(0, |edges| self.intern(&edges));
            if let Some(edge) = path.last_mut().and_then(|edges| edges.last_mut()) {
                edge.child = node;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::tests::sparse;
    use super::*;
    use crate::engine::argmax;

    proptest! {
        /// Against all logits; few columns and small integers, so that there are equal ones.
        #[test]
        fn like_computing_all(
            weight in prop_oneof![sparse(60, 6, 90), sparse(60, 10, 400), sparse(8, 3, 4)],
            tokens in prop::collection::vec(prop::collection::vec(-3..4_i8, 10), 1..6),
            is_rounded in any::<bool>(),
        ) {
            let precision = if is_rounded { Precision::Bf16 } else { Precision::F32 };
            let mut lattice = Lattice::new(&weight);
            for token in tokens {
                let mut x = Inputs::new(weight.cols());
                // In bf16 1.015625 is the last number before 1.0234375.
                (0..).zip(&token[..weight.cols()]).for_each(|(col, &value)| x.set(col, f32::from(value) * 1.015_625));
                let logit = |row: u32| precision.round(x.dot_row(&weight, row as usize));
                let logits: Vec<f32> = (0..low_32(weight.rows())).map(logit).collect();
                prop_assert_eq!(lattice.search(&x, precision, logit), argmax(&logits));
            }
        }
    }

    #[test]
    fn fields_share_their_ends() {
        // 1024 rows of ten bits, and a column whose weight is larger the fewer bits there are.
        let entries = (0..1024_u32).flat_map(|row| {
            let bits = (0..10).filter(move |bit| row >> bit & 1 == 1).map(move |bit| (row, 1 + bit, 2.0));
            bits.chain([(row, 0, 11.0 - row.count_ones() as f32)])
        });
        let weight = SparseMatrix::from_triplets(1024, 11, entries).expect("entries");
        let mut lattice = Lattice::new(&weight);
        assert!(lattice.nodes.len() < 80, "{} nodes", lattice.nodes.len());
        let mut x = Inputs::new(11);
        [0, 1, 4, 9].into_iter().for_each(|col| x.set(col, 1.0));
        let computed = std::cell::Cell::new(0);
        let found = lattice.search(&x, Precision::F32, |row| {
            computed.set(computed.get() + 1);
            x.dot_row(&weight, row as usize)
        });
        assert_eq!((found, computed.get()), (0b1_0000_1001, 1));
    }
}

//! Which rows may have a `silu` that isn't exactly zero, found without computing their sums.
//!
//! Far below zero `silu` underflows to zero. In compiled weights nearly every row is held down there by a bias from one
//! constant channel, until enough inputs raise it. So only contributions that raise a row are added up, and only rows
//! that are raised far enough are computed: what lowers a row can't make a zero into something else.

use super::blocks::{Blocks, NONE};
use super::memo::Pair;
use super::norm::Normed;
use super::packed::{Entry, Lists, Packed, with_lists};
use crate::matrix::{SparseMatrix, low_32};

/// `silu` is zero below -89; the rest is for the rounding of sums.
const SILENT: f32 = -96.0;
/// Share of a bias that rounding may move a sum by.
const ROUNDING: f32 = 1.0 / 65_536.0;

/// Finds candidates among the rows of a matrix, block by block.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    /// By column, the entries above zero and those below.
    above: Packed,
    below: Packed,
    bias_col: u32,
    bias_column: Vec<(u32, f32)>,
    /// Rows with entries, block by block, and where each block's begin.
    of_block: Vec<u32>,
    starts: Vec<u32>,
    /// The bias column's input that what follows belongs to.
    bias: f32,
    rows: Vec<Row>,
    /// Rows that no bias holds down, block by block, and where each block's begin.
    free: Vec<u32>,
    free_starts: Vec<u32>,
}

/// A row while inputs are added up.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Zero between runs.
    sum: f32,
    /// What the sum must exceed.
    limit: f32,
}

impl Screen {
    /// `weight` is `[out, in]`; the shared column of the blocks is taken for the bias.
    pub(crate) fn new(weight: &SparseMatrix, blocks: &Blocks) -> Self {
        let columns = weight.transpose();
        let others = |keep: fn(f32) -> bool| {
            let kept = columns.map(|col, _, w| if keep(w) && col != blocks.shared { w } else { 0.0 });
            Packed::rows(&[&kept])
        };
        let (rows, values) = columns.row(blocks.shared as usize);
        let is_row = |&row: &u32| !weight.row(row as usize).0.is_empty() && blocks.of_row[row as usize] != NONE;
        let mut of_block: Vec<u32> = (0..low_32(weight.rows())).filter(is_row).collect();
        of_block.sort_by_key(|&row| blocks.of_row[row as usize]);
        let start = |block| of_block.partition_point(|&row| (blocks.of_row[row as usize] as usize) < block);
        let mut screen = Self {
            above: others(|w| w > 0.0),
            below: others(|w| w < 0.0),
            bias_col: blocks.shared,
            bias_column: rows.iter().copied().zip(values.iter().copied()).collect(),
            starts: (0..=blocks.len()).map(|block| low_32(start(block))).collect(),
            of_block,
            bias: 0.0,
            rows: vec![Row { sum: 0.0, limit: 0.0 }; weight.rows()],
            free: Vec::new(),
            free_starts: Vec::new(),
        };
        screen.set_bias(0.0);
        screen
    }

    /// Lists each row of a block that may have a result, once. `inputs` are the block's active columns.
    #[inline]
    #[expect(clippy::float_cmp, reason = "limits are those of exactly this value")]
    pub(crate) fn run(&mut self, block: u32, inputs: &[Pair], x: &Normed<'_>, candidates: &mut Vec<u32>) {
        let bias = x.get(self.bias_col);
        if bias != self.bias {
            self.set_bias(bias);
        }
        candidates.clear();
        let free = self.free_starts[block as usize] as usize..self.free_starts[block as usize + 1] as usize;
        candidates.extend_from_slice(&self.free[free]);
        // Contributions only rise, so a row passes its limit once.
        with_lists!(&self.above, above => with_lists!(&self.below, below => {
            for &(col, _) in inputs {
                match x.get(col) {
                    value if value > 0.0 => raise(above, col, value, &mut self.rows, candidates),
                    value => raise(below, col, value, &mut self.rows, candidates),
                }
            }
            for &(col, _) in inputs {
                match x.get(col) {
                    value if value > 0.0 => clear(above, col, &mut self.rows),
                    _ => clear(below, col, &mut self.rows),
                }
            }
        }));
    }

    fn set_bias(&mut self, bias: f32) {
        self.bias = bias;
        self.rows.fill(Row { sum: 0.0, limit: SILENT });
        for &(row, weight) in &self.bias_column {
            let sum = weight * bias;
            self.rows[row as usize].limit = SILENT - sum - sum.abs() * ROUNDING;
        }
        self.free.clear();
        self.free_starts.clear();
        self.free_starts.push(0);
        for block in self.starts.windows(2) {
            let rows = self.of_block[block[0] as usize..block[1] as usize].iter().copied();
            self.free.extend(rows.filter(|&row| self.rows[row as usize].limit < 0.0));
            self.free_starts.push(low_32(self.free.len()));
        }
    }
}

#[inline(always)]
fn raise<E: Entry>(columns: &Lists<E>, col: u32, value: f32, rows: &mut [Row], candidates: &mut Vec<u32>) {
    for &entry in columns.get(col as usize) {
        let row = &mut rows[entry.place()];
        let before = row.sum;
        row.sum = before + entry.value() * value;
        // The first of these fails for nearly every entry.
        if row.sum > row.limit && before <= row.limit {
            candidates.push(low_32(entry.place()));
        }
    }
}

#[inline(always)]
fn clear<E: Entry>(columns: &Lists<E>, col: u32, rows: &mut [Row]) {
    for &entry in columns.get(col as usize) {
        rows[entry.place()].sum = 0.0;
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
        /// Whatever a screen leaves out is exactly zero, and it lists nothing twice.
        #[test]
        fn nothing_is_missed(
            weight in sparse(30, 16, 120).prop_map(|m| m.map(|_, _, w| 32.0 * w)),
            tokens in prop::collection::vec(sparse(1, 16, 10), 1..4),
        ) {
            let blocks = Blocks::new(&[&weight], 0);
            let mut screen = Screen::new(&weight, &blocks);
            let norm = RmsNorm::new(&[0.0; 16], 1e-6, Precision::F32);
            let mut stream = Stream::new(16);
            for token in tokens {
                stream.load(&token, 0);
                let x = norm.stream(&mut stream);
                for block in 0..low_32(blocks.len()) {
                    let mut inputs = Vec::new();
                    x.for_each_raw(&blocks.columns, |col, value| inputs.push((col, value.to_bits())));
                    inputs.retain(|&(col, _)| blocks.of_col[col as usize] == block);
                    let mut candidates = Vec::new();
                    screen.run(block, &inputs, &x, &mut candidates);
                    candidates.sort_unstable();
                    prop_assert!(candidates.is_sorted_by(|a, b| a < b), "{candidates:?}");
                    for row in (0..30).filter(|&row| blocks.of_row[row as usize] == block) {
                        let (cols, weights) = weight.row(row as usize);
                        let sum: f32 = cols.iter().zip(weights).map(|(&col, w)| w * x.get(col)).sum();
                        prop_assert!(silu(sum) == 0.0 || candidates.contains(&row), "row {row} with {sum}");
                    }
                }
            }
        }
    }
}

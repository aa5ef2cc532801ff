//! The `silu` of a linear map, a block of rows at a time.
//!
//! Most blocks are computed by column: active columns scatter to the rows they reach, so nothing is multiplied by zero. Sums begin with what the
//! shared column contributes, the bias; what it gives on its own is known for the rows that no active column reaches.
//! Rows that have all their columns in common with many others are searched instead.

use super::blocks::{Blocks, NONE};
use super::memo::Pair;
use super::norm::Normed;
use super::packed::{Entry, Packed, with_lists};
use super::trie::Tries;
use crate::activation::silu;
use crate::engine::Precision;
use crate::matrix::{SparseMatrix, low_32};

/// `silu(factor (W x))` with a factor for each row.
#[derive(Debug, Clone)]
pub(crate) struct Activations {
    /// By column, without the shared one.
    columns: Packed,
    weight: Packed,
    /// Of rows that have all their columns in common with many others.
    tries: Tries,
    shared: u32,
    /// The shared column's weights by row.
    bias_weights: Vec<f32>,
    factors: Vec<f32>,
    precision: Precision,
    /// The shared column's value that what follows belongs to.
    bias: f32,
    rows: Vec<Row>,
    /// Rows that were reached.
    reached: Vec<u32>,
    run: u32,
    /// Rows of blocks that aren't searched, in the blocks' order, and where each block's begin.
    of_block: Vec<u32>,
    starts: Vec<u32>,
    /// Those of them whose bias alone gives a result, that result, and where each block's begin.
    lively: Vec<(u32, f32)>,
    lively_starts: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    sum: f32,
    /// The run that the sum belongs to.
    run: u32,
    bias: f32,
}

impl Activations {
    /// `weight` is `[out, in]`; the blocks are those of all its rows with a factor. All of it is rounded.
    pub(crate) fn new(weight: &SparseMatrix, factors: Vec<f32>, blocks: &Blocks, precision: Precision) -> Self {
        let tries = Tries::new(&weight.map(|row, _, w| w * factors[row as usize]), blocks);
        let mut is_used: Vec<bool> = blocks.of_row.iter().map(|&block| block != NONE).collect();
        tries.rows().for_each(|row| is_used[row as usize] = false);
        let is_used = |row: u32| is_used[row as usize];
        let columns = weight.map(|row, col, w| if col != blocks.shared && is_used(row) { w } else { 0.0 }).transpose();
        let mut bias_weights = vec![0.0; weight.rows()];
        for (row, col, w) in weight.entries() {
            if col == blocks.shared {
                bias_weights[row as usize] = w;
            }
        }
        let mut of_block: Vec<u32> = (0..low_32(weight.rows())).filter(|&row| is_used(row)).collect();
        of_block.sort_by_key(|&row| blocks.of_row[row as usize]);
        let start = |block| of_block.partition_point(|&row| (blocks.of_row[row as usize] as usize) < block);
        let starts: Vec<u32> = (0..=blocks.len()).map(|block| low_32(start(block))).collect();
        Self {
            tries,
            weight: Packed::rows(&[weight]),
            columns: Packed::rows(&[&columns]),
            shared: blocks.shared,
            bias_weights,
            factors,
            precision,
            bias: 0.0,
            rows: vec![Row { sum: 0.0, run: 0, bias: 0.0 }; weight.rows()],
            reached: Vec::with_capacity(weight.rows()),
            run: 0,
            of_block,
            lively: Vec::new(),
            lively_starts: vec![0; starts.len()],
            starts,
        }
    }

    /// Visits each row of a block whose result isn't zero. `inputs` are the block's active columns.
    #[inline]
    #[expect(clippy::float_cmp, reason = "what is kept belongs to exactly this value")]
    pub(crate) fn run(&mut self, block: u32, inputs: &[Pair], x: &Normed<'_>, mut visit: impl FnMut(u32, f32)) {
        let bias = x.get(self.shared);
        if bias != self.bias {
            self.set_bias(bias);
        }
        {
            let Self { tries, weight, factors, precision, .. } = self;
            with_lists!(&*weight, weight => tries.search(block, x, |row| {
                let result = activate(weight.dot(row as usize, x), factors[row as usize], *precision);
                if result != 0.0 {
                    visit(row, result);
                }
            }));
        }
        self.run = self.run.wrapping_add(1);
        if self.run == 0 {
            self.rows.iter_mut().for_each(|row| row.run = 0);
            self.run = 1;
        }
        let Self { columns, rows, reached, run, factors, precision, .. } = self;
        reached.clear();
        with_lists!(&*columns, columns => {
            columns.fetch(inputs.iter().map(|&(col, _)| col as usize), 1);
            for &(col, _) in inputs {
                let value = x.get(col);
                for &entry in columns.get(col as usize) {
                    let row = &mut rows[entry.place()];
                    if row.run != *run {
                        row.run = *run;
                        row.sum = row.bias;
                        reached.push(low_32(entry.place()));
                    }
                    row.sum += entry.value() * value;
                }
            }
        });
        for &row in &*reached {
            let result = activate(rows[row as usize].sum, factors[row as usize], *precision);
            if result != 0.0 {
                visit(row, result);
            }
        }
        let lively = self.lively_starts[block as usize] as usize..self.lively_starts[block as usize + 1] as usize;
        for &(row, result) in &self.lively[lively] {
            if rows[row as usize].run != *run {
                visit(row, result);
            }
        }
    }

    /// All of `W x`, by row, rounded.
    pub(crate) fn product(&self, x: &[(u32, f32)]) -> Vec<f32> {
        let mut product = with_lists!(&self.weight, rows => rows.product(x));
        product.iter_mut().for_each(|sum| *sum = self.precision.round(*sum));
        product
    }

    fn set_bias(&mut self, bias: f32) {
        self.bias = bias;
        for (row, &weight) in self.rows.iter_mut().zip(&self.bias_weights) {
            row.bias = weight * bias;
        }
        let Self { rows, factors, precision, lively, lively_starts, of_block, starts, .. } = self;
        let result = |row: u32| activate(rows[row as usize].bias, factors[row as usize], *precision);
        lively.clear();
        for (block, end) in starts.windows(2).zip(&mut lively_starts[1..]) {
            let rows = of_block[block[0] as usize..block[1] as usize].iter().copied();
            lively.extend(rows.map(|row| (row, result(row))).filter(|&(_, result)| result != 0.0));
            *end = low_32(lively.len());
        }
    }
}

#[inline(always)]
fn activate(sum: f32, factor: f32, precision: Precision) -> f32 {
    precision.round(silu(precision.round(factor * precision.round(sum))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::tests::sparse;
    use super::super::norm::RmsNorm;
    use super::super::vector::Stream;
    use super::*;

    proptest! {
        /// All rows' results, each once: near zero, far below it where `silu` is zero, and everything between.
        #[test]
        fn like_row_by_row(
            // The latter have blocks that are searched.
            weight in prop_oneof![sparse(100, 16, 120), sparse(100, 16, 900), sparse(100, 5, 400)]
                .prop_map(|m| m.map(|_, _, w| 16.0 * w)),
            factors in prop::collection::vec(-2..3_i8, 100),
            tokens in prop::collection::vec(sparse(1, 5, 8), 1..4),
        ) {
            let factors: Vec<f32> = factors.into_iter().map(f32::from).collect();
            let used = weight.map(|row, _, w| w * factors[row as usize]);
            let blocks = Blocks::new(&[&used], 0);
            let mut activations = Activations::new(&weight, factors.clone(), &blocks, Precision::F32);
            let norm = RmsNorm::new(&[0.0; 16], 1e-6, Precision::F32);
            let mut stream = Stream::new(weight.cols());
            for token in tokens {
                stream.load(&token, 0);
                let x = norm.stream(&mut stream);
                for block in 0..low_32(blocks.len()) {
                    let mut inputs = Vec::new();
                    x.for_each_raw(&blocks.columns, |col, value| inputs.push((col, value.to_bits())));
                    inputs.retain(|&(col, _)| blocks.of_col[col as usize] == block);
                    let mut results = vec![None; 100];
                    activations.run(block, &inputs, &x, |row, result| {
                        assert!(results[row as usize].replace(result).is_none() && result != 0.0, "row {row}");
                    });
                    for (row, result) in results.into_iter().enumerate() {
                        let (cols, weights) = weight.row(row);
                        let column_zero_first = cols.iter().zip(weights).map(|(&col, w)| w * x.get(col));
                        let expected = activate(column_zero_first.sum(), factors[row], Precision::F32);
                        let expected = if blocks.of_row[row] == block { expected } else { 0.0 };
                        // Zeros of either sign are the same.
                        prop_assert_eq!(result.unwrap_or(0.0).to_bits(), (expected + 0.0).to_bits());
                    }
                }
            }
        }
    }
}

//! The `silu` of a linear map, a block of rows at a time.
//!
//! Most blocks are computed by column: active columns scatter to the rows they reach, so nothing is multiplied by zero.
//! Sums begin with what the shared column contributes, the bias. Rows of a block lie side by side, so that those whose
//! `silu` is exactly zero are passed over eight at a time. Rows that have all their columns in common with many others
//! are searched instead.

use std::cmp::Ordering;

use super::blocks::{Blocks, NONE};
use super::memo::Pair;
use super::norm::Normed;
use super::packed::{Entry, Packed, with_lists};
use super::trie::Tries;
use crate::activation::silu;
use crate::engine::Precision;
use crate::matrix::{SparseMatrix, low_32};

/// Below this `silu` is zero, whatever rounding does in front of it.
const SILENT: f32 = -90.0;
/// Rows that are looked at together.
const LANES: usize = 8;

/// `silu(factor (W x))` with a factor for each row.
#[derive(Debug, Clone)]
pub(crate) struct Activations {
    /// Rows of blocks that aren't searched, in the blocks' order, and where each block's begin.
    rows: Vec<u32>,
    starts: Vec<u32>,
    /// By column, without the shared one; places count the rows of the column's block.
    columns: Packed,
    /// The shared column's weights, and what they contribute at its value, in the order of `rows`.
    bias_weights: Vec<f32>,
    biases: Vec<f32>,
    /// In the order of `rows`.
    factors: Vec<f32>,
    /// The shared column, and its value that the biases belong to.
    shared: u32,
    bias: f32,
    /// A block's sums.
    sums: Vec<f32>,
    searched: Searched,
    precision: Precision,
}

/// Rows that have all their columns in common with many others.
#[derive(Debug, Clone)]
struct Searched {
    tries: Tries,
    /// All rows of the map, and their factors.
    weight: Packed,
    factors: Vec<f32>,
}

impl Activations {
    /// `weight` is `[out, in]`; the blocks are those of all its rows with a factor. All of it is rounded.
    pub(crate) fn new(weight: &SparseMatrix, factors: Vec<f32>, blocks: &Blocks, precision: Precision) -> Self {
        let tries = Tries::new(&weight.map(|row, _, w| w * factors[row as usize]), blocks);
        let mut is_used: Vec<bool> = blocks.of_row.iter().map(|&block| block != NONE).collect();
        tries.rows().for_each(|row| is_used[row as usize] = false);
        let mut rows: Vec<u32> = (0..low_32(weight.rows())).filter(|&row| is_used[row as usize]).collect();
        rows.sort_by_key(|&row| blocks.of_row[row as usize]);
        let start = |block| rows.partition_point(|&row| (blocks.of_row[row as usize] as usize) < block);
        let starts: Vec<u32> = (0..=blocks.len()).map(|block| low_32(start(block))).collect();
        let mut local = vec![NONE; weight.rows()];
        for (place, &row) in (0..).zip(&rows) {
            local[row as usize] = place - starts[blocks.of_row[row as usize] as usize];
        }
        let mut places = vec![0; weight.rows()];
        for (place, &row) in rows.iter().enumerate() {
            places[row as usize] = place;
        }
        let mut bias_weights = vec![0.0; rows.len()];
        let mut entries = Vec::new();
        for (row, col, w) in weight.entries().filter(|&(row, ..)| is_used[row as usize]) {
            if col == blocks.shared {
                bias_weights[places[row as usize]] = w;
            } else {
                entries.push((col, local[row as usize], w));
            }
        }
        let longest = starts.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
        Self {
            columns: Packed::columns(weight.cols(), &entries),
            biases: vec![0.0; rows.len()],
            bias_weights,
            factors: rows.iter().map(|&row| factors[row as usize]).collect(),
            shared: blocks.shared,
            bias: 0.0,
            sums: vec![0.0; longest],
            searched: Searched { tries, weight: Packed::rows(&[weight]), factors },
            rows,
            starts,
            precision,
        }
    }

    /// Visits each row of a block whose result isn't zero. `inputs` are the block's active columns.
    #[inline]
    #[expect(clippy::float_cmp, reason = "what is kept belongs to exactly this value")]
    pub(crate) fn run(&mut self, block: u32, inputs: &[Pair], x: &Normed<'_>, mut visit: impl FnMut(u32, f32)) {
        let Self { rows, starts, columns, bias_weights, biases, factors, shared, bias, sums, searched, precision } =
            self;
        let value = x.get(*shared);
        if value != *bias {
            *bias = value;
            biases.iter_mut().zip(bias_weights).for_each(|(bias, weight)| *bias = *weight * value);
        }
        searched.run(block, x, *precision, &mut visit);
        let rows_of_block = starts[block as usize] as usize..starts[block as usize + 1] as usize;
        let sums = &mut sums[..rows_of_block.len()];
        sums.copy_from_slice(&biases[rows_of_block.clone()]);
        with_lists!(&*columns, columns => {
            columns.fetch(inputs.iter().map(|&(col, _)| col as usize), 1);
            for &(col, _) in inputs {
                let value = x.get(col);
                for &entry in columns.get(col as usize) {
                    sums[entry.place()] += entry.value() * value;
                }
            }
        });
        let (rows, factors) = (&rows[rows_of_block.clone()], &factors[rows_of_block]);
        let lanes = sums.chunks(LANES).zip(factors.chunks(LANES)).zip(rows.chunks(LANES));
        for ((sums, factors), rows) in lanes {
            if is_silent(sums, factors) {
                continue;
            }
            for ((&sum, &factor), &row) in sums.iter().zip(factors).zip(rows) {
                let result = activate(sum, factor, *precision);
                if result != 0.0 {
                    visit(row, result);
                }
            }
        }
    }
}

impl Searched {
    #[inline]
    fn run(&mut self, block: u32, x: &Normed<'_>, precision: Precision, visit: &mut impl FnMut(u32, f32)) {
        let Self { tries, weight, factors } = self;
        with_lists!(&*weight, weight => tries.search(block, x, |row| {
            let result = activate(weight.dot(row as usize, x), factors[row as usize], precision);
            if result != 0.0 {
                visit(row, result);
            }
        }));
    }
}

/// Whether every result is zero for certain.
#[inline(always)]
fn is_silent(sums: &[f32], factors: &[f32]) -> bool {
    // Not a number counts as loud.
    let is_loud = |(&sum, &factor): (&f32, &f32)| {
        let product = sum * factor;
        u32::from(product != 0.0) & u32::from(!matches!(product.partial_cmp(&SILENT), Some(Ordering::Less)))
    };
    sums.iter().zip(factors).map(is_loud).fold(0, |any, is_loud| any | is_loud) == 0
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
                    blocks.columns.words().for_each(|(number, word)| {
                        x.for_each_raw_in(number, word, |col, value| inputs.push((col, value.to_bits())));
                    });
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

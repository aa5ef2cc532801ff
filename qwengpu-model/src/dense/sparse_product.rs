//! The product of a sparse panel with many tokens: each value that isn't zero meets all tokens of a strip at once.
//!
//! The vectors are turned, so that a column has the values of successive tokens. Every sum has the order of the columns
//! and one fused rounding a term, whatever the strips are.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::nonzeros::{Entry, Nonzeros, PANEL_ROWS, SparsePanel};

/// Most tokens of a strip: sums of eight vectors of eight stay in registers.
const STRIP: usize = 64;
/// Strips have a multiple of so many tokens, whole vectors on every processor; those behind the last are zeros.
const UNIT: usize = 16;
/// Rows whose sums are turned back together: as many as a line of the cache has values.
const GROUP: usize = 16;

/// Vectors `[tokens, width]` in strips of tokens, `[width, tokens]` each.
#[derive(Debug)]
pub(crate) struct Strips {
    values: Vec<f32>,
    width: usize,
    tokens: usize,
    /// Tokens of every strip.
    strip: usize,
}

impl Strips {
    pub(crate) fn new(x: &[f32], width: usize) -> Self {
        let tokens = x.len() / width;
        // A strip for every thread at least, where that leaves enough to do for each.
        let strip = tokens.div_ceil(rayon::current_num_threads()).next_multiple_of(UNIT).clamp(UNIT, STRIP);
        let mut values = vec![0.0; tokens.div_ceil(strip) * strip * width];
        values.par_chunks_mut(strip * width).zip(x.par_chunks(strip * width)).for_each(|(turned, x)| {
            // Lines of the cache in both directions.
            for first in (0..width).step_by(GROUP) {
                for (token, x) in x.chunks_exact(width).enumerate() {
                    for (column, &x) in x.iter().enumerate().skip(first).take(GROUP) {
                        turned[column * strip + token] = x;
                    }
                }
            }
        });
        Self { values, width, tokens, strip }
    }

    /// Adds the products with the sparse panels of a weight to `y` `[tokens, rows]`, which has zeros.
    pub(crate) fn multiply(&self, nonzeros: &Nonzeros, y: &mut [f32]) {
        let rows = y.len() / self.tokens;
        self.for_strips(y, rows, |strip, y| {
            self.for_sums(strip, nonzeros, false, |first, sums| {
                for (token, y) in y.chunks_exact_mut(rows).enumerate() {
                    for (y, sums) in y[first..].iter_mut().zip(sums.chunks_exact(self.strip)) {
                        *y = sums[token];
                    }
                }
            });
        });
    }

    /// For each token the row with the largest product, the first of equals, after `round`. All panels must be sparse.
    pub(crate) fn largest(&self, nonzeros: &Nonzeros, round: impl Fn(f32) -> f32 + Sync) -> Vec<u32> {
        let mut ids = vec![0; self.tokens];
        self.for_strips(&mut ids, 1, |strip, ids| {
            let mut best = vec![f32::NEG_INFINITY; self.strip];
            let mut first_best = vec![0_u32; self.strip];
            self.for_sums(strip, nonzeros, true, |first, sums| {
                for (row, sums) in (first..).zip(sums.chunks_exact(self.strip)) {
                    let row = u32::try_from(row).unwrap_or(u32::MAX);
                    for ((best, first_best), &sum) in best.iter_mut().zip(&mut first_best).zip(sums) {
                        let sum = round(sum);
                        let larger = sum > *best;
                        *best = if larger { sum } else { *best };
                        *first_best = if larger { row } else { *first_best };
                    }
                }
            });
            ids.copy_from_slice(&first_best[..ids.len()]);
        });
        ids
    }

    /// Every strip with the part of `y` `[tokens, each]` that is its tokens'.
    fn for_strips<T: Send>(&self, y: &mut [T], each: usize, work: impl Fn(&[f32], &mut [T]) + Sync) {
        let strips = self.values.par_chunks(self.strip * self.width);
        strips.zip(y.par_chunks_mut(self.strip * each)).for_each(|(strip, y)| work(strip, y));
    }

    /// Shows `each` the sums `[rows, tokens]` of a strip with successive rows of the sparse panels, and the number of the
    /// first; rows without entries only with `all_rows`.
    fn for_sums(&self, strip: &[f32], nonzeros: &Nonzeros, all_rows: bool, each: impl FnMut(usize, &[f32])) {
        Arch::new().dispatch(OneStrip { strip, len: self.strip, nonzeros, each, all_rows });
    }
}

/// All sparse panels with one strip.
struct OneStrip<'a, F> {
    /// `[width, tokens]`.
    strip: &'a [f32],
    /// Its tokens.
    len: usize,
    nonzeros: &'a Nonzeros,
    /// Sees the sums `[rows, tokens]` of successive rows, with the number of the first.
    each: F,
    /// Whether rows without entries are seen, too.
    all_rows: bool,
}

impl<F: FnMut(usize, &[f32])> WithSimd for OneStrip<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut sums = vec![0.0; GROUP * self.len];
        for (number, panel) in self.nonzeros.panels.iter().enumerate() {
            let Some(panel) = panel else { continue };
            for first in (0..panel.rows()).step_by(GROUP) {
                let rows = first..(first + GROUP).min(panel.rows());
                if !self.all_rows && panel.entries(rows.clone()).is_empty() {
                    continue;
                }
                let sums = &mut sums[..rows.len() * self.len];
                self.sum(simd, panel, rows, sums);
                (self.each)(number * PANEL_ROWS + first, sums);
            }
        }
    }
}

impl<F> OneStrip<'_, F> {
    /// The sums `[rows, tokens]`.
    #[inline(always)]
    fn sum<S: Simd>(&self, simd: S, panel: &SparsePanel, rows: Range<usize>, sums: &mut [f32]) {
        for (row, sums) in rows.zip(sums.chunks_exact_mut(self.len)) {
            let entries = panel.entries(row..row + 1);
            if entries.is_empty() {
                sums.fill(0.0);
                continue;
            }
            let mut first = 0;
            while first + 8 * S::F32_LANES <= self.len {
                vectors::<S, 8>(simd, entries, self.strip, self.len, first, sums);
                first += 8 * S::F32_LANES;
            }
            while first + 2 * S::F32_LANES <= self.len {
                vectors::<S, 2>(simd, entries, self.strip, self.len, first, sums);
                first += 2 * S::F32_LANES;
            }
            while first < self.len {
                vectors::<S, 1>(simd, entries, self.strip, self.len, first, sums);
                first += S::F32_LANES;
            }
        }
    }
}

/// One row's sums for `V` vectors of tokens.
#[inline(always)]
fn vectors<S: Simd, const V: usize>(
    simd: S,
    entries: &[Entry],
    strip: &[f32],
    len: usize,
    first: usize,
    sums: &mut [f32],
) {
    let mut own = [simd.splat_f32s(0.0); V];
    for entry in entries {
        let (x, _) = S::as_simd_f32s(&strip[entry.column as usize * len + first..][..V * S::F32_LANES]);
        let value = simd.splat_f32s(entry.value);
        for v in 0..V {
            own[v] = simd.mul_add_f32s(value, x[v], own[v]);
        }
    }
    let (sums, _) = S::as_mut_simd_f32s(&mut sums[first..][..V * S::F32_LANES]);
    sums.copy_from_slice(&own);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::weight::{Weight, narrow};
    use super::*;
    use crate::engine::argmax;

    /// Every product in the order of the columns, a fused rounding a term.
    fn expected(values: &[f32], x: &[f32], width: usize) -> Vec<f32> {
        let dot = |row: &[f32], x: &[f32]| row.iter().zip(x).fold(0.0_f32, |sum, (w, &x)| w.mul_add(x, sum));
        x.chunks_exact(width).flat_map(|x| values.chunks_exact(width).map(move |row| dot(row, x))).collect()
    }

    /// Compares what sparse panels give, bit by bit, and says whether all are.
    fn check(weight: &Weight, values: &[f32], x: &[f32]) -> bool {
        let (width, tokens) = (weight.cols, x.len() / weight.cols);
        let expected = expected(values, x, width);
        let Some(nonzeros) = Nonzeros::find(weight) else { return false };
        let strips = Strips::new(x, width);
        let mut y = vec![0.0; tokens * weight.rows];
        strips.multiply(&nonzeros, &mut y);
        for (place, (got, expected)) in y.iter().zip(&expected).enumerate() {
            let row = place % weight.rows;
            let is_sparse = nonzeros.panels[row / PANEL_ROWS].is_some();
            let expected = if is_sparse { *expected } else { 0.0 };
            assert_eq!(got.to_bits(), expected.to_bits(), "row {row}, token {}", place / weight.rows);
        }
        if nonzeros.all_sparse() {
            let ids: Vec<u32> = expected.chunks_exact(weight.rows).map(argmax).collect();
            assert_eq!(strips.largest(&nonzeros, |x| x), ids);
        }
        nonzeros.all_sparse()
    }

    fn check_both(values: &[f32], x: &[f32], rows: usize, width: usize) -> bool {
        let bits: Vec<u16> = values.iter().map(|&value| narrow(value)).collect();
        let rounded: Vec<f32> = bits.iter().map(|&bits| super::super::weight::widen(bits)).collect();
        check(&Weight::bf16(bits, rows, width), &rounded, x);
        check(&Weight::f32(values.to_vec(), rows, width), values, x)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// The order of sums is the same, so the results are: with a sum in f32 of any order they agree to rounding.
        #[test]
        fn zeros_add_nothing(
            (rows, width, x) in (1..300_usize, 1..90_usize, 1..150_usize).prop_flat_map(|(rows, width, tokens)| {
                (Just(rows), Just(width), prop::collection::vec(-2.0..2.0_f32, width * tokens))
            }),
            entries in prop::collection::vec((any::<prop::sample::Index>(), -2.0..2.0_f32), 0..200),
            dense_rows in 0..150_usize,
        ) {
            let mut values = vec![0.0; rows * width];
            entries.into_iter().for_each(|(place, value)| values[place.index(rows * width)] = value);
            if dense_rows < rows {
                values[..dense_rows * width].fill(1.5);
            }
            check_both(&values, &x, rows, width);
        }
    }

    #[test]
    fn the_extremes() {
        let (rows, width) = (2 * PANEL_ROWS + 5, 64);
        let x: Vec<f32> = (0..33 * width).map(|i| f32::from(u8::try_from(i % 7).expect("small")) - 3.0).collect();
        let mut values = vec![0.0; rows * width];
        assert!(check_both(&values, &x, rows, width), "nothing but zeros");
        for place in [0, 77, rows * width - 1] {
            values.fill(0.0);
            values[place] = 2.0;
            assert!(check_both(&values, &x, rows, width), "one value");
        }
        values.fill(1.0);
        assert!(!check_both(&values, &x, rows, width), "no zeros");
        assert!(Nonzeros::find(&Weight::f32(values.clone(), rows, width)).is_none(), "no sparse panel");
        values[PANEL_ROWS * width..2 * PANEL_ROWS * width].fill(0.0);
        let nonzeros = Nonzeros::find(&Weight::f32(values.clone(), rows, width)).expect("a sparse panel");
        assert_eq!(nonzeros.panels.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
        check_both(&values, &x, rows, width);
    }
}

//! Products of a weight with the vectors of a few tokens: one pass over the weight, at the speed of memory.
//!
//! Four rows are read at once, a quarter of a task apart: memory is read at four places, each of which goes on from row to
//! row, and not anew at every row. Every value that is read is multiplied with up to two tokens'. A bf16 weight comes as
//! pairs in words of 32 bits: the odd values of a block are the words with their lower half masked, the even ones the words
//! shifted. The vectors are laid out in that order beforehand, so that nothing is shuffled inside the loop.

use pulp::bytemuck::cast;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::weight::widen;

/// Rows that one task does.
const TASK_ROWS: usize = 64;
/// Rows that are read at once.
const ROWS: usize = 4;

/// What a weight is made of.
pub(crate) trait Element: Copy + Send + Sync {
    /// What is loaded for two vectors of values.
    type Block<S: Simd>: Copy;

    /// The whole blocks of a row.
    fn blocks<S: Simd>(row: &[Self]) -> &[Self::Block<S>];

    /// A block's values: two vectors, in the order of [`arrange`].
    fn widen<S: Simd>(simd: S, block: Self::Block<S>) -> [S::f32s; 2];

    /// One value.
    fn to_f32(self) -> f32;

    /// Whether the two vectors of a block are its even and its odd values, and not its halves.
    const PAIRED: bool;
}

impl Element for f32 {
    type Block<S: Simd> = [S::f32s; 2];
    const PAIRED: bool = false;

    #[inline(always)]
    fn blocks<S: Simd>(row: &[Self]) -> &[Self::Block<S>] {
        S::as_simd_f32s(row).0.as_chunks().0
    }

    #[inline(always)]
    fn widen<S: Simd>(_: S, block: Self::Block<S>) -> [S::f32s; 2] {
        block
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
}

/// The bits of a bf16 value.
impl Element for u16 {
    type Block<S: Simd> = S::u16s;
    const PAIRED: bool = true;

    #[inline(always)]
    fn blocks<S: Simd>(row: &[Self]) -> &[Self::Block<S>] {
        S::as_simd_u16s(row).0
    }

    #[inline(always)]
    fn widen<S: Simd>(simd: S, block: Self::Block<S>) -> [S::f32s; 2] {
        let words: S::u32s = cast(block);
        let even = simd.wrapping_dyn_shl_u32s(words, simd.splat_u32s(16));
        let odd = simd.and_u32s(words, simd.splat_u32s(0xffff_0000));
        [simd.transmute_f32s_u32s(even), simd.transmute_f32s_u32s(odd)]
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        widen(self)
    }
}

/// Vectors `[tokens, width]` in the order in which blocks of a weight come.
pub(crate) fn arrange<W: Element>(x: &[f32], width: usize) -> Vec<f32> {
    let mut arranged = x.to_vec();
    let lanes = Arch::new().dispatch(Lanes);
    if W::PAIRED && lanes > 1 {
        for (row, out) in x.chunks_exact(width).zip(arranged.chunks_exact_mut(width)) {
            for (block, out) in row.chunks_exact(2 * lanes).zip(out.chunks_exact_mut(2 * lanes)) {
                let (even, odd) = out.split_at_mut(lanes);
                for ((pair, even), odd) in block.chunks_exact(2).zip(even).zip(odd) {
                    (*even, *odd) = (pair[0], pair[1]);
                }
            }
        }
    }
    arranged
}

/// `y[out, token]` of a weight `[out, width]` and arranged vectors `[tokens, width]`. The order of each sum depends on the
/// width alone.
pub(crate) fn product<W: Element>(weight: &[W], x: &[f32], width: usize, y: &mut [f32]) {
    let tokens = x.len() / width;
    let tasks = y.par_chunks_mut(TASK_ROWS * tokens).zip(weight.par_chunks(TASK_ROWS * width));
    tasks.for_each(|(y, weight)| Arch::new().dispatch(Product { weight, x, width, tokens, y }));
}

/// The same on one thread, for vectors that need no order: `y[row, token]`, the scalar product of each.
#[inline(always)]
pub(crate) fn dots<S: Simd>(simd: S, rows: &[f32], x: &[f32], width: usize, y: &mut [f32]) {
    Product { weight: rows, x, width, tokens: x.len() / width, y }.with_simd(simd);
}

struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

struct Product<'a, W> {
    weight: &'a [W],
    x: &'a [f32],
    width: usize,
    tokens: usize,
    y: &'a mut [f32],
}

impl<W: Element> WithSimd for Product<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { weight, x, width, tokens, y } = self;
        if S::F32_LANES == 1 {
            return plain(weight, x, width, tokens, y);
        }
        let quarter = weight.len() / width / ROWS;
        let row = |number: usize| &weight[number * width..][..width];
        for first in 0..quarter {
            let numbers: [usize; ROWS] = std::array::from_fn(|r| first + r * quarter);
            rows(simd, numbers.map(row), numbers, x, tokens, y);
        }
        for last in ROWS * quarter..weight.len() / width {
            rows(simd, [row(last)], [last], x, tokens, y);
        }
    }
}

/// Some rows, with their numbers, for all tokens.
#[inline(always)]
fn rows<S: Simd, W: Element, const R: usize>(
    simd: S,
    rows: [&[W]; R],
    numbers: [usize; R],
    x: &[f32],
    tokens: usize,
    y: &mut [f32],
) {
    let width = rows[0].len();
    let mut token = 0;
    while token + 2 <= tokens {
        let sums = tile::<S, W, R, 2>(simd, rows, &x[token * width..]);
        for r in 0..R {
            y[numbers[r] * tokens + token..][..2].copy_from_slice(&sums[r]);
        }
        token += 2;
    }
    if token < tokens {
        let sums = tile::<S, W, R, 1>(simd, rows, &x[token * width..]);
        for r in 0..R {
            y[numbers[r] * tokens + token] = sums[r][0];
        }
    }
}

/// The products of R rows with T vectors.
#[inline(always)]
fn tile<S: Simd, W: Element, const R: usize, const T: usize>(simd: S, rows: [&[W]; R], x: &[f32]) -> [[f32; T]; R] {
    let width = rows[0].len();
    let vectors: [&[f32]; T] = std::array::from_fn(|t| &x[t * width..][..width]);
    let num_blocks = width / (2 * S::F32_LANES);
    let blocks: [&[W::Block<S>]; R] = std::array::from_fn(|r| &W::blocks::<S>(rows[r])[..num_blocks]);
    let factors: [&[[S::f32s; 2]]; T] = std::array::from_fn(|t| &f32::blocks::<S>(vectors[t])[..num_blocks]);
    let mut sums = [[simd.splat_f32s(0.0); T]; R];
    for i in 0..num_blocks {
        for r in 0..R {
            let [first, second] = W::widen(simd, blocks[r][i]);
            for t in 0..T {
                let [x_first, x_second] = factors[t][i];
                sums[r][t] = simd.mul_add_f32s(second, x_second, simd.mul_add_f32s(first, x_first, sums[r][t]));
            }
        }
    }
    let mut results = [[0.0; T]; R];
    let rest = num_blocks * 2 * S::F32_LANES;
    for r in 0..R {
        for t in 0..T {
            results[r][t] = simd.reduce_sum_f32s(sums[r][t]) + scalar_dot(&rows[r][rest..], &vectors[t][rest..]);
        }
    }
    results
}

/// The same without vectors.
fn plain<W: Element>(weight: &[W], x: &[f32], width: usize, tokens: usize, y: &mut [f32]) {
    for (row, y) in weight.chunks_exact(width).zip(y.chunks_exact_mut(tokens)) {
        for (x, y) in x.chunks_exact(width).zip(y) {
            *y = scalar_dot(row, x);
        }
    }
}

#[inline(always)]
fn scalar_dot<W: Element>(row: &[W], x: &[f32]) -> f32 {
    row.iter().zip(x).map(|(&w, x)| w.to_f32() * x).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::weight::narrow;
    use super::*;

    /// Every product by one sum in f64.
    fn expected<W: Element>(weight: &[W], x: &[f32], width: usize) -> Vec<f64> {
        let dot = |row: &[W], x: &[f32]| row.iter().zip(x).map(|(&w, &x)| f64::from(w.to_f32()) * f64::from(x)).sum();
        weight.chunks_exact(width).flat_map(|row| x.chunks_exact(width).map(move |x| dot(row, x))).collect()
    }

    fn check<W: Element>(weight: &[W], x: &[f32], width: usize) -> Result<(), TestCaseError> {
        let rows = weight.len() / width;
        let mut y = vec![f32::NAN; rows * (x.len() / width)];
        product(weight, &arrange::<W>(x, width), width, &mut y);
        for (got, expected) in y.iter().zip(expected(weight, x, width)) {
            // Up to 300 products below 4, each sum off by half an ulp of 1200 at most.
            prop_assert!((f64::from(*got) - expected).abs() < 1e-2, "{got} and {expected}");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn products_are_sums(
            (width, x, w) in (1..300_usize, 1..9_usize, 1..140_usize).prop_flat_map(|(width, tokens, rows)| {
                let values = |len| prop::collection::vec(-2.0..2.0_f32, len);
                (Just(width), values(width * tokens), values(width * rows))
            }),
        ) {
            check(&w, &x, width)?;
            let bits: Vec<u16> = w.iter().map(|&w| narrow(w)).collect();
            check(&bits, &x, width)?;
        }
    }

    #[test]
    fn every_weight_meets_its_own_factor() {
        // One weight and one factor at a time: what is not arranged alike gives zero.
        const WIDTH: usize = 70;
        for place in 0..WIDTH {
            let mut row = vec![0_u16; WIDTH];
            row[place] = narrow(3.0);
            let mut x = vec![0.0; WIDTH];
            x[place] = 2.0;
            let mut y = [0.0];
            product(&row, &arrange::<u16>(&x, WIDTH), WIDTH, &mut y);
            assert_eq!(y[0].to_bits(), 6.0_f32.to_bits(), "place {place}");
        }
    }
}

//! Sums of scaled rows, kept in registers while the rows pass.

use pulp::Simd;

/// Vectors of a result that are in registers at a time, over all of its rows.
const HELD: usize = 8;

/// For each of the `T` rows of `y` `[T, width]`, adds its factors times the rows `[factors, width]`, in order.
#[inline(always)]
pub(crate) fn add_rows<S: Simd, const T: usize>(
    simd: S,
    y: &mut [f32],
    factors: [&[f32]; T],
    rows: &[f32],
    width: usize,
) {
    let mut done = 0;
    if S::F32_LANES > 1 {
        while done + HELD / T * S::F32_LANES <= width {
            if T == 1 {
                strip::<S, T, HELD>(simd, y, factors, rows, width, done);
            } else {
                strip::<S, T, { HELD / 2 }>(simd, y, factors, rows, width, done);
            }
            done += HELD / T * S::F32_LANES;
        }
        while done + S::F32_LANES <= width {
            strip::<S, T, 1>(simd, y, factors, rows, width, done);
            done += S::F32_LANES;
        }
    }
    for (y, factors) in y.chunks_exact_mut(width).zip(factors) {
        for (&factor, row) in factors.iter().zip(rows.chunks_exact(width)) {
            for (y, &x) in y[done..].iter_mut().zip(&row[done..]) {
                *y += factor * x;
            }
        }
    }
}

/// The same for `V` vectors of the results, from column `first`.
#[inline(always)]
fn strip<S: Simd, const T: usize, const V: usize>(
    simd: S,
    y: &mut [f32],
    factors: [&[f32]; T],
    rows: &[f32],
    width: usize,
    first: usize,
) {
    let strip = first..first + V * S::F32_LANES;
    let mut sums = [[simd.splat_f32s(0.0); V]; T];
    for t in 0..T {
        let (held, _) = S::as_simd_f32s(&y[t * width..][strip.clone()]);
        sums[t].copy_from_slice(held);
    }
    let count = factors[0].len();
    for (i, row) in rows.chunks_exact(width).take(count).enumerate() {
        let (row, _) = S::as_simd_f32s(&row[strip.clone()]);
        for t in 0..T {
            let factor = simd.splat_f32s(factors[t][i]);
            for v in 0..V {
                sums[t][v] = simd.mul_add_f32s(factor, row[v], sums[t][v]);
            }
        }
    }
    for t in 0..T {
        let (held, _) = S::as_mut_simd_f32s(&mut y[t * width..][strip.clone()]);
        held.copy_from_slice(&sums[t]);
    }
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, WithSimd};

    use super::*;

    struct Both<'a>(&'a mut [f32], [&'a [f32]; 2], &'a [f32], usize);

    impl WithSimd for Both<'_> {
        type Output = ();

        fn with_simd<S: Simd>(self, simd: S) {
            let Self(y, factors, rows, width) = self;
            let (pair, single) = y.split_at_mut(2 * width);
            add_rows(simd, pair, factors, rows, width);
            add_rows(simd, single, [factors[0]], rows, width);
        }
    }

    #[test]
    fn every_width_is_summed_whole() {
        for width in 1..200_usize {
            let values = |count: usize, step: usize| -> Vec<f32> {
                (0..count).map(|i| f32::from(u8::try_from(i * step % 7).expect("small"))).collect()
            };
            let (rows, factors) = (values(5 * width, 3), values(10, 5));
            let begin = values(3 * width, 2);
            let mut y = begin.clone();
            Arch::new().dispatch(Both(&mut y, [&factors[..5], &factors[5..]], &rows, width));
            for (place, (&got, &begin)) in y.iter().zip(&begin).enumerate() {
                let own = if place / width == 1 { &factors[5..] } else { &factors[..5] };
                let sum: f32 = own.iter().zip(rows.chunks(width)).map(|(f, row)| f * row[place % width]).sum();
                // Small integers: exact in any order.
                assert_eq!(got.to_bits(), (begin + sum).to_bits(), "width {width}, place {place}");
            }
        }
    }
}

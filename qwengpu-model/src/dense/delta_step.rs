//! One token of the gated delta rule: `recurrent_step`, with columns of the state that stay in registers and cache.

use pulp::{Arch, Simd, WithSimd};

use crate::delta_rule::Token;

/// Vectors of columns that are done together: with 128 rows they fit the first cache.
const HELD: usize = 4;

/// Changes the state `[dk, dv]` of a head, and writes what is read to `out` `[dv]`.
pub(crate) fn step(state: &mut [f32], token: Token<'_>, out: &mut [f32]) {
    Arch::new().dispatch(Step { state, token, out });
}

struct Step<'a> {
    state: &'a mut [f32],
    token: Token<'a>,
    out: &'a mut [f32],
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { state, token, out } = self;
        let width = token.value.len();
        let mut done = 0;
        if S::F32_LANES > 1 {
            while done + HELD * S::F32_LANES <= width {
                columns::<S, HELD>(simd, state, token, out, done);
                done += HELD * S::F32_LANES;
            }
            while done + S::F32_LANES <= width {
                columns::<S, 1>(simd, state, token, out, done);
                done += S::F32_LANES;
            }
        }
        for (column, out) in out.iter_mut().enumerate().skip(done) {
            let rows = || state.iter().skip(column).step_by(width);
            let kept: f32 = rows().zip(token.key).map(|(s, k)| token.decay * s * k).sum();
            let delta = (token.value[column] - kept) * token.beta;
            let mut read = 0.0;
            let factors = token.key.iter().zip(token.query);
            for (s, (k, q)) in state.iter_mut().skip(column).step_by(width).zip(factors) {
                *s = token.decay * *s + k * delta;
                read += *s * q;
            }
            *out = read;
        }
    }
}

/// `V` vectors of columns from `first` on. The decayed state is computed twice and written once.
#[inline(always)]
fn columns<S: Simd, const V: usize>(simd: S, state: &mut [f32], token: Token<'_>, out: &mut [f32], first: usize) {
    let width = token.value.len();
    let strip = first..first + V * S::F32_LANES;
    let decay = simd.splat_f32s(token.decay);
    let mut kept = [simd.splat_f32s(0.0); V];
    for (row, &k) in state.chunks_exact(width).zip(token.key) {
        let (row, _) = S::as_simd_f32s(&row[strip.clone()]);
        let k = simd.splat_f32s(k);
        for v in 0..V {
            kept[v] = simd.mul_add_f32s(simd.mul_f32s(decay, row[v]), k, kept[v]);
        }
    }
    let (values, _) = S::as_simd_f32s(&token.value[strip.clone()]);
    let beta = simd.splat_f32s(token.beta);
    let mut deltas = kept;
    for v in 0..V {
        deltas[v] = simd.mul_f32s(simd.sub_f32s(values[v], kept[v]), beta);
    }
    let mut reads = [simd.splat_f32s(0.0); V];
    for ((row, &k), &q) in state.chunks_exact_mut(width).zip(token.key).zip(token.query) {
        let (row, _) = S::as_mut_simd_f32s(&mut row[strip.clone()]);
        let (k, q) = (simd.splat_f32s(k), simd.splat_f32s(q));
        for v in 0..V {
            row[v] = simd.mul_add_f32s(k, deltas[v], simd.mul_f32s(decay, row[v]));
            reads[v] = simd.mul_add_f32s(row[v], q, reads[v]);
        }
    }
    let (out, _) = S::as_mut_simd_f32s(&mut out[strip]);
    out.copy_from_slice(&reads);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::delta_rule::{l2_normalize, recurrent_step};

    proptest! {
        #[test]
        fn columns_together_are_columns(
            (dv, state, query, key, value) in (1..20_usize, 1..80_usize).prop_flat_map(|(dk, dv)| {
                let values = |len| prop::collection::vec(-2.0..2.0_f32, len);
                (Just(dv), values(dk * dv), values(dk), values(dk), values(dv))
            }),
            decay in prop_oneof![Just(1.0_f32), 0.0..1.0_f32],
            beta in 0.0..1.0_f32,
        ) {
            let mut key = key;
            l2_normalize(&mut key);
            let token = Token { query: &query, key: &key, value: &value, decay, beta };
            let (mut expected_state, mut expected) = (state.clone(), vec![0.0; dv]);
            recurrent_step(&mut expected_state, token, &mut expected);
            let (mut state, mut out) = (state, vec![f32::NAN; dv]);
            step(&mut state, token, &mut out);
            // Sums of up to 20 products below 20.
            for (a, b) in state.iter().zip(&expected_state).chain(out.iter().zip(&expected)) {
                prop_assert!((a - b).abs() < 1e-4, "{a} and {b}");
            }
        }
    }
}

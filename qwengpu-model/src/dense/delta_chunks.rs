//! The gated delta rule of one head by chunks of tokens: the function of `recurrent_step`, in products of matrices.

use pulp::{Arch, Simd, WithSimd};

use super::accumulate::add_rows;
use super::kernel::dots;

/// Most tokens in a chunk.
pub(crate) const CHUNK: usize = 64;

/// Successive tokens of one head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens<'a> {
    /// `[tokens, dk]`.
    pub(crate) queries: &'a [f32],
    /// `[tokens, dk]`.
    pub(crate) keys: &'a [f32],
    /// `[tokens, dv]`.
    pub(crate) values: &'a [f32],
    /// `[tokens]`: log of the decays.
    pub(crate) log_decays: &'a [f32],
    /// `[tokens]`: write strengths.
    pub(crate) betas: &'a [f32],
    /// Key dimension.
    pub(crate) dk: usize,
    /// Value dimension.
    pub(crate) dv: usize,
}

/// Any number of tokens, in chunks of 64 on top of `state` `[dk, dv]`; writes what is read to `out` `[tokens, dv]`.
pub(crate) fn chunked(state: &mut [f32], tokens: Tokens<'_>, out: &mut [f32]) {
    let Tokens { dk, dv, .. } = tokens;
    let (keys, queries) = (tokens.keys.chunks(CHUNK * dk), tokens.queries.chunks(CHUNK * dk));
    let (values, outs) = (tokens.values.chunks(CHUNK * dv), out.chunks_mut(CHUNK * dv));
    let scalars = tokens.log_decays.chunks(CHUNK).zip(tokens.betas.chunks(CHUNK));
    for ((((keys, queries), values), (log_decays, betas)), out) in keys.zip(queries).zip(values).zip(scalars).zip(outs)
    {
        let tokens = Tokens { queries, keys, values, log_decays, betas, dk, dv };
        Arch::new().dispatch(OneChunk { state, tokens, out });
    }
}

/// At most 64 tokens. With `c` the cumulative log decay and `D[i, j] = exp(c_i - c_j)`: solves
/// `(I + strict_lower(beta k k^T * D)) [U W] = [beta v, beta k exp(c)]`, then `V = U - W S`,
/// `o = exp(c) q S + lower(q k^T * D) V` and `S = exp(c_last) S + (k exp(c_last - c))^T V`.
struct OneChunk<'a> {
    state: &'a mut [f32],
    tokens: Tokens<'a>,
    out: &'a mut [f32],
}

impl WithSimd for OneChunk<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { state, tokens: Tokens { queries, keys, values, log_decays, betas, dk, dv }, out } = self;
        let len = betas.len();
        if keys.iter().chain(queries).all(|&value| value == 0.0) {
            // Nothing is written or read: every sum below is of zeros.
            let decay = log_decays.iter().sum::<f32>().exp();
            state.iter_mut().for_each(|s| *s *= decay);
            out.fill(0.0);
            return;
        }
        let cumulative: Vec<f32> = log_decays
            .iter()
            .scan(0.0, |sum, &g| {
                *sum += g;
                Some(*sum)
            })
            .collect();
        let last = cumulative.last().copied().unwrap_or(0.0);
        // Both `[token, earlier token]`; behind the diagonal they mean nothing.
        let mut writes = vec![0.0; len * len]; // -beta k k^T * D
        let mut reads = vec![0.0; len * len]; // q k^T * D
        dots(simd, keys, keys, dk, &mut writes);
        dots(simd, queries, keys, dk, &mut reads);
        for i in 0..len {
            for j in 0..=i {
                let decay = (cumulative[i] - cumulative[j]).exp();
                writes[i * len + j] *= -betas[i] * decay;
                reads[i * len + j] *= decay;
            }
        }
        let mut corrections = values.to_vec(); // U, then V
        let mut old_reads = keys.to_vec(); // W, then -W
        for i in 0..len {
            let weights = [&writes[i * len..][..i]];
            let (solved, rest) = corrections.split_at_mut(i * dv);
            rest[..dv].iter_mut().for_each(|u| *u *= betas[i]);
            add_rows(simd, &mut rest[..dv], weights, solved, dv);
            let (solved, rest) = old_reads.split_at_mut(i * dk);
            let factor = betas[i] * cumulative[i].exp();
            rest[..dk].iter_mut().for_each(|w| *w *= factor);
            add_rows(simd, &mut rest[..dk], weights, solved, dk);
        }
        old_reads.iter_mut().for_each(|w| *w = -*w);
        add_product(simd, &mut corrections, &old_reads, state, dv);
        let mut decayed = queries.to_vec(); // q exp(c)
        for (q, &c) in decayed.chunks_exact_mut(dk).zip(&cumulative) {
            let decay = c.exp();
            q.iter_mut().for_each(|q| *q *= decay);
        }
        out.fill(0.0);
        add_product(simd, out, &decayed, state, dv);
        for (i, out) in out.chunks_exact_mut(dv).enumerate() {
            add_rows(simd, out, [&reads[i * len..][..=i]], &corrections, dv);
        }
        let left: Vec<f32> = cumulative.iter().map(|&c| (last - c).exp()).collect();
        let turned: Vec<f32> = // [dk, tokens]: k exp(c_last - c)
            (0..dk).flat_map(|k| keys.iter().skip(k).step_by(dk).zip(&left)).map(|(k, left)| k * left).collect();
        let decay = last.exp();
        state.iter_mut().for_each(|s| *s *= decay);
        add_product(simd, state, &turned, &corrections, dv);
    }
}

/// `y += a b` for `y` `[rows, width]` and `b` `[inner, width]`.
#[inline(always)]
fn add_product<S: Simd>(simd: S, y: &mut [f32], a: &[f32], b: &[f32], width: usize) {
    let inner = b.len() / width;
    let (a_pairs, a_rest) = a.split_at(a.len() / (2 * inner) * (2 * inner));
    let (y_pairs, y_rest) = y.split_at_mut(a_pairs.len() / inner * width);
    for (y, a) in y_pairs.chunks_exact_mut(2 * width).zip(a_pairs.chunks_exact(2 * inner)) {
        let (first, second) = a.split_at(inner);
        add_rows(simd, y, [first, second], b, width);
    }
    if !a_rest.is_empty() {
        add_rows(simd, y_rest, [a_rest], b, width);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::delta_rule::{Token, l2_normalize, recurrent_step};

    /// Random tokens of one head.
    #[derive(Debug, Clone)]
    struct Case {
        dk: usize,
        dv: usize,
        queries: Vec<f32>,
        keys: Vec<f32>,
        values: Vec<f32>,
        log_decays: Vec<f32>,
        betas: Vec<f32>,
        state: Vec<f32>,
    }

    fn cases() -> impl Strategy<Value = Case> {
        (1..40_usize, 1..80_usize, 1..150_usize).prop_flat_map(|(dk, dv, tokens)| {
            let values = |len, size: f32| prop::collection::vec(-size..size, len);
            (
                values(tokens * dk, 2.0),
                values(tokens * dk, 2.0),
                values(tokens * dv, 2.0),
                prop::collection::vec(prop_oneof![Just(0.0_f32), -3.0..0.0_f32, Just(-120.0)], tokens),
                prop::collection::vec(prop_oneof![Just(0.0_f32), 0.0..1.0_f32, Just(1.0)], tokens),
                values(dk * dv, 1.0),
            )
                .prop_map(move |(mut queries, mut keys, values, log_decays, betas, state)| {
                    queries.chunks_exact_mut(dk).for_each(l2_normalize);
                    keys.chunks_exact_mut(dk).for_each(l2_normalize);
                    Case { dk, dv, queries, keys, values, log_decays, betas, state }
                })
        })
    }

    #[test]
    fn a_head_without_keys_only_decays() {
        // More than one chunk.
        let (log_decays, betas, values) = (vec![-0.01; CHUNK + 6], vec![0.5; CHUNK + 6], vec![3.0; 2 * (CHUNK + 6)]);
        let nothing = vec![0.0; 3 * (CHUNK + 6)];
        let (queries, keys) = (&nothing[..], &nothing[..]);
        let mut state = vec![1.0, -2.0, 3.0, 0.0, 5.0, 6.0];
        let mut out = vec![7.0; values.len()];
        let tokens = Tokens { queries, keys, values: &values, log_decays: &log_decays, betas: &betas, dk: 3, dv: 2 };
        chunked(&mut state, tokens, &mut out);
        assert!(out.iter().all(|&read| read == 0.0));
        for (state, before) in state.iter().zip([1.0, -2.0, 3.0, 0.0, 5.0, 6.0]) {
            // The log decays of 70 tokens in two sums, each exact to some ulps.
            assert!((state - before * (-0.7_f32).exp()).abs() < 1e-5, "{state}");
        }
    }

    proptest! {
        #[test]
        fn chunks_and_steps_agree(case in cases()) {
            let Case { dk, dv, queries, keys, values, log_decays, betas, state } = case;
            let mut by_steps = state.clone();
            let mut expected = vec![0.0; values.len()];
            for (t, out) in expected.chunks_exact_mut(dv).enumerate() {
                let token = Token {
                    query: &queries[t * dk..(t + 1) * dk],
                    key: &keys[t * dk..(t + 1) * dk],
                    value: &values[t * dv..(t + 1) * dv],
                    decay: log_decays[t].exp(),
                    beta: betas[t],
                };
                recurrent_step(&mut by_steps, token, out);
            }
            let mut by_chunks = state;
            let mut got = vec![0.0; values.len()];
            let tokens = Tokens {
                queries: &queries, keys: &keys, values: &values, log_decays: &log_decays, betas: &betas, dk, dv,
            };
            chunked(&mut by_chunks, tokens, &mut got);
            // Values below 2 in rows that may all be written by one direction of key: sums stay below 2^8.
            for (a, b) in got.iter().zip(&expected).chain(by_chunks.iter().zip(&by_steps)) {
                prop_assert!((a - b).abs() < 1e-3, "{a} and {b}");
            }
        }
    }
}

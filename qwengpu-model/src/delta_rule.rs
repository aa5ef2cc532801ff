//! The gated delta rule of one head, in f32: a token at a time, and by chunks. Both compute the same function.
//!
//! A state `S` is `[dk, dv]`, row-major. With decay `a = exp(g)` and write strength `beta`, a token does
//! `S = a S`, `S += k (beta (v - S^T k))^T`, and then reads `o = S^T q`. Keys and queries come normalised, queries
//! divided by `sqrt(dk)`.

use crate::activation::L2_EPS;

/// Most tokens in a chunk.
pub(crate) const CHUNK: usize = 64;

/// `y += a x`.
#[inline]
pub(crate) fn add_scaled(y: &mut [f32], a: f32, x: &[f32]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// Scalar product in eight running sums.
#[inline]
pub(crate) fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    let (x_blocks, x_rest) = x.as_chunks::<8>();
    let (y_blocks, y_rest) = y.as_chunks::<8>();
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    let rest: f32 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}

/// `x / |x|`, in place.
pub(crate) fn l2_normalize(x: &mut [f32]) {
    let inverse = 1.0 / (dot(x, x) + L2_EPS).sqrt();
    x.iter_mut().for_each(|value| *value *= inverse);
}

/// One token of one head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    /// `[dk]`.
    pub(crate) query: &'a [f32],
    /// `[dk]`.
    pub(crate) key: &'a [f32],
    /// `[dv]`.
    pub(crate) value: &'a [f32],
    /// `exp(g)`.
    pub(crate) decay: f32,
    /// Write strength.
    pub(crate) beta: f32,
}

/// One step; writes the read value to `out` `[dv]`.
pub(crate) fn recurrent_step(state: &mut [f32], token: Token<'_>, out: &mut [f32]) {
    let dv = token.value.len();
    // What the decayed state holds for the key; then the correction.
    out.fill(0.0);
    for (row, &k) in state.chunks_exact_mut(dv).zip(token.key) {
        for (s, memory) in row.iter_mut().zip(out.iter_mut()) {
            *s *= token.decay;
            *memory += *s * k;
        }
    }
    for (delta, &v) in out.iter_mut().zip(token.value) {
        *delta = (v - *delta) * token.beta;
    }
    let delta = out.to_vec();
    out.fill(0.0);
    for ((row, &k), &q) in state.chunks_exact_mut(dv).zip(token.key).zip(token.query) {
        for ((s, &delta), read) in row.iter_mut().zip(&delta).zip(out.iter_mut()) {
            *s += k * delta;
            *read += *s * q;
        }
    }
}

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

/// Any number of tokens, in chunks of 64 on top of `state`; writes what is read to `out` `[tokens, dv]`.
pub(crate) fn chunked(state: &mut [f32], tokens: Tokens<'_>, out: &mut [f32]) {
    let Tokens { dk, dv, .. } = tokens;
    let (keys, queries) = (tokens.keys.chunks(CHUNK * dk), tokens.queries.chunks(CHUNK * dk));
    let (values, outs) = (tokens.values.chunks(CHUNK * dv), out.chunks_mut(CHUNK * dv));
    let scalars = tokens.log_decays.chunks(CHUNK).zip(tokens.betas.chunks(CHUNK));
    for ((((keys, queries), values), (log_decays, betas)), out) in keys.zip(queries).zip(values).zip(scalars).zip(outs)
    {
        one_chunk(state, Tokens { queries, keys, values, log_decays, betas, dk, dv }, out);
    }
}

/// At most 64 tokens. With `c` the cumulative log decay and `D[i, j] = exp(c_i - c_j)`: solves
/// `(I + strict_lower(beta k k^T * D)) [U W] = [beta v, beta k exp(c)]`, then `V = U - W S`,
/// `o = exp(c) q S + lower(q k^T * D) V` and `S = exp(c_last) S + (k exp(c_last - c))^T V`.
fn one_chunk(state: &mut [f32], tokens: Tokens<'_>, out: &mut [f32]) {
    let Tokens { queries, keys, values, log_decays, betas, dk, dv } = tokens;
    let key = |i: usize| &keys[i * dk..(i + 1) * dk];
    let cumulative: Vec<f32> = log_decays
        .iter()
        .scan(0.0, |sum, &g| {
            *sum += g;
            Some(*sum)
        })
        .collect();
    let mut corrections = values.to_vec(); // U, then V
    let mut old_reads = keys.to_vec(); // W
    for (i, (&c, &beta)) in cumulative.iter().zip(betas).enumerate() {
        let (solved_u, rest) = corrections.split_at_mut(i * dv);
        let u = &mut rest[..dv];
        let (solved_w, rest) = old_reads.split_at_mut(i * dk);
        let w = &mut rest[..dk];
        u.iter_mut().for_each(|u| *u *= beta);
        w.iter_mut().for_each(|w| *w *= beta * c.exp());
        for (j, &c_j) in cumulative[..i].iter().enumerate() {
            let weight = -beta * dot(key(i), key(j)) * (c - c_j).exp();
            add_scaled(u, weight, &solved_u[j * dv..(j + 1) * dv]);
            add_scaled(w, weight, &solved_w[j * dk..(j + 1) * dk]);
        }
    }
    for (v, w) in corrections.chunks_exact_mut(dv).zip(old_reads.chunks_exact(dk)) {
        for (row, &w) in state.chunks_exact(dv).zip(w) {
            add_scaled(v, -w, row);
        }
    }
    for (i, ((out, q), &c)) in out.chunks_exact_mut(dv).zip(queries.chunks_exact(dk)).zip(&cumulative).enumerate() {
        out.fill(0.0);
        for (row, &q) in state.chunks_exact(dv).zip(q) {
            add_scaled(out, q * c.exp(), row);
        }
        for (j, &c_j) in cumulative[..=i].iter().enumerate() {
            add_scaled(out, dot(q, key(j)) * (c - c_j).exp(), &corrections[j * dv..(j + 1) * dv]);
        }
    }
    let last = cumulative.last().copied().unwrap_or(0.0);
    state.iter_mut().for_each(|s| *s *= last.exp());
    for ((k, v), &c) in keys.chunks_exact(dk).zip(corrections.chunks_exact(dv)).zip(&cumulative) {
        for (row, &k) in state.chunks_exact_mut(dv).zip(k) {
            add_scaled(row, k * (last - c).exp(), v);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        (1..12_usize, 1..12_usize, 1..150_usize).prop_flat_map(|(dk, dv, tokens)| {
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

    #[test]
    fn a_full_write_replaces_a_row_and_is_seen_by_the_same_token() {
        let mut state = vec![1.0, 2.0, 3.0, 4.0];
        let mut out = vec![0.0; 2];
        let token = Token { query: &[0.0, 1.0], key: &[0.0, 1.0], value: &[7.0, 8.0], decay: 1.0, beta: 1.0 };
        recurrent_step(&mut state, token, &mut out);
        assert_eq!(state, [1.0, 2.0, 7.0, 8.0]);
        assert_eq!(out, [7.0, 8.0]);
    }
}

//! The gated delta rule of one head, in f32, a token at a time.
//!
//! A state `S` is `[dk, dv]`, row-major. With decay `a = exp(g)` and write strength `beta`, a token does
//! `S = a S`, `S += k (beta (v - S^T k))^T`, and then reads `o = S^T q`. Keys and queries come normalised, queries
//! divided by `sqrt(dk)`.

use crate::activation::L2_EPS;

/// `y += a x`.
#[inline(always)]
pub(crate) fn add_scaled(y: &mut [f32], a: f32, x: &[f32]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// Scalar product in eight running sums.
#[inline(always)]
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

/// One step; writes the read value to `out` `[dv]`. The rule as it stands above, for the engines' faster ways to be
/// compared with.
#[cfg(test)]
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

#[cfg(test)]
mod tests {
    use super::*;

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

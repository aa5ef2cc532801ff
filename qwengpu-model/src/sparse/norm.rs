//! Root mean square norms of sparse vectors.

use super::bits::Bits;
use super::vector::{Inputs, Stream};
use crate::delta_rule::dot;
use crate::engine::Precision;

/// `x / rms(x) * (1 + w)`, one rounding at the end.
#[derive(Debug, Clone)]
pub(crate) struct RmsNorm {
    one_plus_weight: Vec<f32>,
    eps: f32,
    precision: Precision,
}

impl RmsNorm {
    pub(crate) fn new(weight: &[f32], eps: f64, precision: Precision) -> Self {
        let one_plus_weight = weight.iter().map(|&w| 1.0 + precision.round(w)).collect();
        Self { one_plus_weight, eps: single(eps), precision }
    }

    /// Of the residual stream, for who looks at it.
    #[inline]
    pub(crate) fn stream<'a>(&'a self, stream: &'a mut Stream) -> Normed<'a> {
        let inverse = inverse_rms(single(stream.squares()), stream.values().len(), self.eps);
        Normed { norm: self, values: stream.values(), active: stream.active(), inverse }
    }

    /// What becomes of a column's value.
    #[inline(always)]
    pub(crate) fn value(&self, col: u32, raw: f32, inverse: f32) -> f32 {
        self.precision.round(raw * inverse * self.one_plus_weight[col as usize])
    }

    /// Of a short dense vector, in place.
    pub(crate) fn dense(&self, x: &mut [f32]) {
        let inverse = inverse_rms(dot(x, x), x.len(), self.eps);
        for (x, &weight) in x.iter_mut().zip(&self.one_plus_weight) {
            *x = self.precision.round(*x * inverse * weight);
        }
    }
}

/// The residual stream behind a norm; values are normed when somebody reads them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Normed<'a> {
    norm: &'a RmsNorm,
    values: &'a [f32],
    active: &'a Bits,
    inverse: f32,
}

impl Normed<'_> {
    /// The value of a column.
    #[inline(always)]
    pub(crate) fn get(&self, col: u32) -> f32 {
        self.norm.value(col, self.values[col as usize], self.inverse)
    }

    /// The value of a column before the norm.
    #[inline(always)]
    pub(crate) fn raw(&self, col: u32) -> f32 {
        self.values[col as usize]
    }

    /// What the norm multiplies with, but for its weights.
    #[inline(always)]
    pub(crate) fn inverse(&self) -> f32 {
        self.inverse
    }

    /// Visits the columns of one word of a set where they aren't zero before the norm, ascending.
    #[inline(always)]
    pub(crate) fn for_each_raw_in(&self, number: u32, word: u64, mut visit: impl FnMut(u32, f32)) {
        self.active.for_each_in(number, word, |col| visit(col, self.raw(col)));
    }

    /// Writes everything down.
    pub(crate) fn write(&self, out: &mut Inputs) {
        out.clear();
        self.active.for_each(|col| out.set(col, self.get(col)));
    }
}

/// `1 / sqrt(mean(x^2) + eps)` from the sum of squares of `width` values.
#[inline]
pub(crate) fn inverse_rms(squares: f32, width: usize, eps: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "a width, below 2^24")]
    let mean = squares / width as f32;
    1.0 / (mean + eps).sqrt()
}

/// The nearest f32.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the reference computes with an f32 epsilon and f32 means")]
pub(crate) fn single(value: f64) -> f32 {
    value as f32
}

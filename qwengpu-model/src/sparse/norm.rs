//! Root mean square norms of sparse vectors.

use super::vector::{Inputs, Stream};
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

    /// Of the residual stream.
    pub(crate) fn stream(&self, stream: &mut Stream, out: &mut Inputs) {
        stream.compact();
        let values = stream.values();
        let inverse = self.inverse_rms(stream.listed().iter().map(|&i| values[i as usize]));
        out.clear();
        for &i in stream.listed() {
            let normed = values[i as usize] * inverse * self.one_plus_weight[i as usize];
            out.set(i, self.precision.round(normed));
        }
    }

    /// Of a short dense vector, in place.
    pub(crate) fn dense(&self, x: &mut [f32]) {
        let inverse = self.inverse_rms(x.iter().copied());
        for (x, &weight) in x.iter_mut().zip(&self.one_plus_weight) {
            *x = self.precision.round(*x * inverse * weight);
        }
    }

    fn inverse_rms(&self, values: impl Iterator<Item = f32>) -> f32 {
        inverse_rms(values, self.one_plus_weight.len(), self.eps)
    }
}

/// `1 / sqrt(mean(x^2) + eps)`, the mean over `width` values of which the non-zero ones are given.
#[inline]
pub(crate) fn inverse_rms(values: impl Iterator<Item = f32>, width: usize, eps: f32) -> f32 {
    // Two sums, so that additions need not wait for each other.
    let mut sums = [0.0; 2];
    for (i, value) in values.enumerate() {
        sums[i % 2] += value * value;
    }
    #[expect(clippy::cast_precision_loss, reason = "a width, below 2^24")]
    let mean = (sums[0] + sums[1]) / width as f32;
    1.0 / (mean + eps).sqrt()
}

/// The nearest f32.
#[expect(clippy::cast_possible_truncation, reason = "the reference computes with an f32 epsilon")]
pub(crate) fn single(value: f64) -> f32 {
    value as f32
}

//! Root mean square norms of sparse vectors.

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

    /// Of the residual stream.
    pub(crate) fn stream(&self, stream: &mut Stream, out: &mut Inputs) {
        let values = stream.values();
        // Four sums, so that additions need not wait for each other.
        let mut sums = [0.0; 4];
        let (quads, rest) = stream.listed().as_chunks::<4>();
        for quad in quads {
            for (sum, &i) in sums.iter_mut().zip(quad) {
                *sum += values[i as usize] * values[i as usize];
            }
        }
        for (sum, &i) in sums.iter_mut().zip(rest) {
            *sum += values[i as usize] * values[i as usize];
        }
        let squares = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        let inverse = inverse_rms(squares, values.len(), self.eps);
        out.clear();
        stream.visit(|i, value| {
            let normed = value * inverse * self.one_plus_weight[i as usize];
            out.set(i, self.precision.round(normed));
        });
    }

    /// Of a short dense vector, in place.
    pub(crate) fn dense(&self, x: &mut [f32]) {
        let inverse = inverse_rms(dot(x, x), x.len(), self.eps);
        for (x, &weight) in x.iter_mut().zip(&self.one_plus_weight) {
            *x = self.precision.round(*x * inverse * weight);
        }
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
#[expect(clippy::cast_possible_truncation, reason = "the reference computes with an f32 epsilon")]
pub(crate) fn single(value: f64) -> f32 {
    value as f32
}

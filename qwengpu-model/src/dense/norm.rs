//! Root mean square norms, computed in f32.

use super::ops;
use super::source::Source;
use crate::activation::silu;
use crate::delta_rule::dot;
use crate::engine::Precision;
use crate::error::Error;

/// `x / rms(x) * (1 + w)`, one rounding at the end.
#[derive(Debug, Clone)]
pub(crate) struct RmsNorm {
    one_plus_weight: Vec<f32>,
    /// What the sum of squares is divided by.
    divisor: usize,
    eps: f32,
    precision: Precision,
}

impl RmsNorm {
    /// Of the residual stream.
    pub(crate) fn residual(source: &Source<'_>, name: &str) -> Result<Self, Error> {
        Ok(Self { divisor: source.norm_width, ..Self::load(source, name, source.config.hidden_size)? })
    }

    /// Of `width` values.
    pub(crate) fn load(source: &Source<'_>, name: &str, width: usize) -> Result<Self, Error> {
        let one_plus_weight = source.vector(name, width)?.into_iter().map(|w| 1.0 + w).collect();
        Ok(Self { one_plus_weight, divisor: width, eps: eps(source), precision: source.precision })
    }

    /// In place, `[rows, width]`.
    pub(crate) fn apply(&self, x: &mut [f32]) {
        ops::for_rows(x, self.one_plus_weight.len(), |_, row| {
            let inverse = inverse_rms(row, self.divisor, self.eps);
            for (x, &weight) in row.iter_mut().zip(&self.one_plus_weight) {
                *x = self.precision.round(*x * inverse * weight);
            }
        });
    }
}

/// The norm of what a head reads, with its output gate: `w * (o / rms(o)) * silu(z)`.
#[derive(Debug, Clone)]
pub(crate) struct GatedRmsNorm {
    weight: Vec<f32>,
    eps: f32,
    precision: Precision,
}

impl GatedRmsNorm {
    pub(crate) fn load(source: &Source<'_>, name: &str, width: usize) -> Result<Self, Error> {
        Ok(Self { weight: source.vector(name, width)?, eps: eps(source), precision: source.precision })
    }

    /// `o` in place, `z` beside it, `[heads, head dim]`; rounds `o`, and then after each of the three factors.
    pub(crate) fn apply(&self, o: &mut [f32], z: &[f32]) {
        let width = self.weight.len();
        let round = |x| self.precision.round(x);
        ops::for_rows(o, width, |row, o| {
            o.iter_mut().for_each(|o| *o = round(*o));
            let inverse = inverse_rms(o, width, self.eps);
            let z = &z[row * width..][..width];
            for ((o, &weight), &z) in o.iter_mut().zip(&self.weight).zip(z) {
                *o = round(round(round(*o * inverse) * weight) * silu(z));
            }
        });
    }
}

#[expect(clippy::cast_possible_truncation, reason = "norms are computed in f32")]
fn eps(source: &Source<'_>) -> f32 {
    source.config.rms_norm_eps as f32
}

fn inverse_rms(x: &[f32], divisor: usize, eps: f32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "a head's or the residual stream's width, below 2^24")]
    let divisor = divisor as f32;
    1.0 / (dot(x, x) / divisor + eps).sqrt()
}

//! Root mean square norms, computed in f32.

use candle_core::{D, Device, Tensor};

use super::ops;
use super::source::Source;
use crate::activation::silu;
use crate::engine::Precision;
use crate::error::Error;

/// `x / rms(x) * (1 + w)`, one rounding at the end.
#[derive(Debug, Clone)]
pub(crate) struct RmsNorm {
    one_plus_weight: Tensor,
    /// What the sum of squares is divided by.
    divisor: usize,
    eps: f64,
    precision: Precision,
}

impl RmsNorm {
    /// Of the residual stream.
    pub(crate) fn residual(source: &Source<'_>, name: &str) -> Result<Self, Error> {
        Ok(Self { divisor: source.norm_width, ..Self::load(source, name, source.config.hidden_size)? })
    }

    /// Of `width` values.
    pub(crate) fn load(source: &Source<'_>, name: &str, width: usize) -> Result<Self, Error> {
        let weight: Vec<f32> = source.vector(name, width)?.into_iter().map(|w| 1.0 + w).collect();
        let one_plus_weight = Tensor::from_vec(weight, width, &Device::Cpu)?;
        Ok(Self { one_plus_weight, divisor: width, eps: source.config.rms_norm_eps, precision: source.precision })
    }

    /// Over the last dimension.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        let normed = unit_rms(x, self.divisor, self.eps)?.broadcast_mul(&self.one_plus_weight)?;
        Ok(ops::round(normed, self.precision)?)
    }
}

/// The norm of what a head reads, with its output gate: `w * (o / rms(o)) * silu(z)`.
#[derive(Debug, Clone)]
pub(crate) struct GatedRmsNorm {
    weight: Tensor,
    eps: f64,
    precision: Precision,
}

impl GatedRmsNorm {
    pub(crate) fn load(source: &Source<'_>, name: &str, width: usize) -> Result<Self, Error> {
        let weight = Tensor::from_vec(source.vector(name, width)?, width, &Device::Cpu)?;
        Ok(Self { weight, eps: source.config.rms_norm_eps, precision: source.precision })
    }

    /// `o` and `z` are `[heads, head dim]`; rounds `o`, and then after each of the three factors.
    pub(crate) fn forward(&self, o: Tensor, z: &Tensor) -> Result<Tensor, Error> {
        let round = |x| ops::round(x, self.precision);
        let width = o.dim(D::Minus1)?;
        let normed = round(unit_rms(&round(o)?, width, self.eps)?)?;
        let weighted = round(normed.broadcast_mul(&self.weight)?)?;
        Ok(round((weighted * ops::map(z, silu)?)?)?)
    }
}

fn unit_rms(x: &Tensor, divisor: usize, eps: f64) -> candle_core::Result<Tensor> {
    #[expect(clippy::cast_precision_loss, reason = "a head's or the residual stream's width, below 2^24")]
    let divisor = Tensor::new(divisor as f32, x.device())?;
    let mean = x.sqr()?.sum_keepdim(D::Minus1)?.broadcast_div(&divisor)?;
    let inverse = (mean + eps)?.sqrt()?.recip()?;
    x.broadcast_mul(&inverse)
}

//! The short convolution in front of the delta rule: every channel sees its own last few values.

use candle_core::{Device, Tensor};

use super::ops;
use super::source::Source;
use crate::activation::silu;
use crate::engine::Precision;
use crate::error::Error;

/// Depthwise causal convolution, then `silu`.
#[derive(Debug, Clone)]
pub(crate) struct ShortConv {
    /// One `[1, channels]` for each tap, this token's last.
    taps: Vec<Tensor>,
    precision: Precision,
}

impl ShortConv {
    pub(crate) fn load(source: &Source<'_>, name: &str, channels: usize, kernel: usize) -> Result<Self, Error> {
        let weight = source.vector(name, channels * kernel)?;
        let tap = |j: usize| {
            let tap: Vec<f32> = weight.iter().skip(j).step_by(kernel).copied().collect();
            Tensor::from_vec(tap, (1, channels), &Device::Cpu)
        };
        Ok(Self { taps: (0..kernel).map(tap).collect::<Result<_, _>>()?, precision: source.precision })
    }

    /// Number of taps.
    pub(crate) fn kernel(&self) -> usize {
        self.taps.len()
    }

    /// `x` is `[tokens, channels]`, as is the result; `history` keeps the last inputs `[kernel, channels]`, zeros at first.
    pub(crate) fn forward(&self, x: &Tensor, history: &mut Vec<f32>) -> Result<Tensor, Error> {
        let (tokens, kernel) = (x.dim(0)?, self.taps.len());
        let before = ops::tensor(std::mem::take(history), kernel, x.dim(1)?)?;
        let inputs = Tensor::cat(&[&before, x], 0)?; // [kernel + tokens, channels]
        let mut sum = inputs.narrow(0, 1, tokens)?.broadcast_mul(&self.taps[0])?;
        for (j, tap) in self.taps.iter().enumerate().skip(1) {
            sum = (sum + inputs.narrow(0, j + 1, tokens)?.broadcast_mul(tap)?)?;
        }
        *history = ops::to_vec(&inputs.narrow(0, tokens, kernel)?)?;
        let rounded = ops::round(sum, self.precision)?;
        Ok(ops::map(&rounded, |x| self.precision.round(silu(x)))?)
    }
}

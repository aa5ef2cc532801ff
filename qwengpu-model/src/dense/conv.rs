//! The short convolution in front of the delta rule: every channel sees its own last few values.

use super::ops;
use super::source::Source;
use crate::activation::silu;
use crate::engine::Precision;
use crate::error::Error;

/// Depthwise causal convolution, then `silu`.
#[derive(Debug, Clone)]
pub(crate) struct ShortConv {
    /// `[kernel, channels]`, this token's tap last.
    taps: Vec<f32>,
    channels: usize,
    precision: Precision,
}

impl ShortConv {
    pub(crate) fn load(source: &Source<'_>, name: &str, channels: usize, kernel: usize) -> Result<Self, Error> {
        let weight = source.vector(name, channels * kernel)?; // [channels, kernel]
        let taps = (0..kernel).flat_map(|j| weight.iter().skip(j).step_by(kernel)).copied().collect();
        Ok(Self { taps, channels, precision: source.precision })
    }

    /// Values that a history has.
    pub(crate) fn history_len(&self) -> usize {
        self.taps.len()
    }

    /// One stream's `x` `[tokens, channels]`; `out` gets as much. `history` keeps the last inputs `[kernel, channels]`,
    /// zeros at first.
    pub(crate) fn forward(&self, x: &[f32], history: &mut Vec<f32>, out: &mut [f32]) {
        let (width, kept) = (self.channels, self.taps.len());
        history.extend_from_slice(x); // [kernel + tokens, channels]
        let inputs = &history[width..];
        ops::for_rows(out, width, |token, out| {
            out.fill(0.0);
            let rows = inputs[token * width..].chunks_exact(width);
            for (tap, row) in self.taps.chunks_exact(width).zip(rows) {
                for ((out, &tap), &x) in out.iter_mut().zip(tap).zip(row) {
                    *out += x * tap;
                }
            }
            for out in out {
                *out = self.precision.round(silu(self.precision.round(*out)));
            }
        });
        history.drain(..history.len() - kept);
    }
}

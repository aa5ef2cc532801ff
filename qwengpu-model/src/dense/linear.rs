//! Linear maps without bias: f32 sums, one rounding.

use candle_core::{CpuStorage, DType, Storage, Tensor};
use half::bf16;
use pulp::Arch;
use rayon::prelude::*;

use super::ops;
use super::source::Source;
use crate::engine::Precision;
use crate::error::Error;

/// Up to this many tokens a loop over the weights beats the general product.
const FEW_TOKENS: usize = 4;
/// Rows of a bf16 weight that are widened at a time.
const WIDENED_ROWS: usize = 1024;
/// Rows that one task of the loop over the weights does.
const TASK_ROWS: usize = 64;

/// `y = x W^T`, W `[out, in]` in the compute dtype.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    weight: Tensor,
    precision: Precision,
}

impl Linear {
    pub(crate) fn load(source: &Source<'_>, name: &str, out_dim: usize, in_dim: usize) -> Result<Self, Error> {
        Ok(Self { weight: source.matrix(name, out_dim, in_dim)?, precision: source.precision })
    }

    pub(crate) fn from_tensor(weight: Tensor, precision: Precision) -> Self {
        Self { weight, precision }
    }

    /// `[tokens, in]` to `[tokens, out]`.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        let tokens = x.dim(0)?;
        let y = if tokens <= FEW_TOKENS {
            self.few(&ops::to_vec(x)?, tokens)?
        } else if self.weight.dtype() == DType::F32 {
            x.matmul(&self.weight.t()?)?
        } else {
            let rows = self.weight.dim(0)?;
            let blocks = (0..rows).step_by(WIDENED_ROWS).map(|start| {
                let block = self.weight.narrow(0, start, WIDENED_ROWS.min(rows - start))?;
                x.matmul(&block.to_dtype(DType::F32)?.t()?)
            });
            Tensor::cat(&blocks.collect::<candle_core::Result<Vec<_>>>()?, 1)?
        };
        Ok(ops::round(y, self.precision)?)
    }

    /// One pass over the weights, every row for all tokens.
    fn few(&self, x: &[f32], tokens: usize) -> Result<Tensor, Error> {
        let (rows, width) = self.weight.dims2()?;
        let (storage, layout) = self.weight.storage_and_layout();
        let start = layout.start_offset();
        let range = start..start + rows * width;
        let mut by_row = vec![0.0; rows * tokens]; // [out, tokens]
        match &*storage {
            Storage::Cpu(CpuStorage::F32(weight)) => product(&weight[range], x, width, tokens, &mut by_row, |w| w),
            Storage::Cpu(CpuStorage::BF16(weight)) => product(&weight[range], x, width, tokens, &mut by_row, widen),
            _ => return Err(candle_core::Error::Msg("a weight must be f32 or bf16 on the CPU".to_owned()).into()),
        }
        let by_row = Tensor::from_vec(by_row, (rows, tokens), self.weight.device())?;
        Ok(by_row.t()?.contiguous()?)
    }
}

#[inline(always)]
fn widen(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

fn product<T: Copy + Sync>(
    weight: &[T],
    x: &[f32],
    width: usize,
    tokens: usize,
    y: &mut [f32],
    widen: impl Fn(T) -> f32 + Copy + Sync,
) {
    let arch = Arch::new();
    y.par_chunks_mut(TASK_ROWS * tokens).zip(weight.par_chunks(TASK_ROWS * width)).for_each(|(y, weight)| {
        arch.dispatch(|| {
            for (y, row) in y.chunks_exact_mut(tokens).zip(weight.chunks_exact(width)) {
                for (y, x) in y.iter_mut().zip(x.chunks_exact(width)) {
                    *y = widening_dot(row, x, widen);
                }
            }
        });
    });
}

/// Scalar product in 32 running sums.
#[inline(always)]
fn widening_dot<T: Copy>(w: &[T], x: &[f32], widen: impl Fn(T) -> f32) -> f32 {
    const SUMS: usize = 32;
    let mut sums = [0.0; SUMS];
    let (w_blocks, w_rest) = w.as_chunks::<SUMS>();
    let (x_blocks, x_rest) = x.as_chunks::<SUMS>();
    for (w, x) in w_blocks.iter().zip(x_blocks) {
        for i in 0..SUMS {
            sums[i] += widen(w[i]) * x[i];
        }
    }
    let rest: f32 = w_rest.iter().zip(x_rest).map(|(&w, x)| widen(w) * x).sum();
    let mut width = SUMS / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0] + rest
}

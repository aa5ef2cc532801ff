//! Linear maps without bias: f32 sums, one rounding.

use std::cell::OnceCell;

use candle_core::{CpuStorage, Device, Storage, Tensor};
use rayon::prelude::*;

use super::device::device;
use super::kernel::{arrange, product};
use super::nonzeros::{Nonzeros, PANEL_ROWS};
use super::ops::round_all;
use super::source::Source;
use super::sparse_product::Strips;
use super::weight::Weight;
use crate::engine::Precision;
use crate::error::Error;
use crate::load::Values;

/// Up to this many tokens a pass over the weights beats the general product.
const FEW_TOKENS: usize = 24;

/// Vectors `[tokens, width]` on their way through one or more maps, in the forms that these ask for.
#[derive(Debug)]
pub(crate) struct Input {
    x: Vec<f32>,
    width: usize,
    tokens: usize,
    skips_zeros: bool,
    /// In the order of a weight's blocks.
    arranged: OnceCell<Vec<f32>>,
    strips: OnceCell<Strips>,
    tensor: OnceCell<Tensor>,
}

impl Input {
    /// One token meets every weight; more of them leave out the zeros of weights that are mostly zeros.
    pub(crate) fn new(x: Vec<f32>, width: usize) -> Self {
        let tokens = x.len() / width;
        let (arranged, strips, tensor) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { x, width, tokens, skips_zeros: tokens > 1, arranged, strips, tensor }
    }

    /// The same for tokens that were many in the layers before, and may be one.
    pub(crate) fn skipping_zeros(x: Vec<f32>, width: usize) -> Self {
        Self { skips_zeros: true, ..Self::new(x, width) }
    }

    fn arranged(&self, precision: Precision) -> &[f32] {
        match precision {
            Precision::F32 => &self.x,
            Precision::Bf16 => self.arranged.get_or_init(|| arrange::<u16>(&self.x, self.width)),
        }
    }

    fn strips(&self) -> &Strips {
        self.strips.get_or_init(|| Strips::new(&self.x, self.width))
    }

    fn tensor(&self) -> Result<&Tensor, Error> {
        match self.tensor.get() {
            Some(tensor) => Ok(tensor),
            None => {
                let tensor = Tensor::from_slice(&self.x, (self.tokens, self.width), device()?)?;
                Ok(self.tensor.get_or_init(|| tensor))
            }
        }
    }
}

/// `y = x W^T`, W `[out, in]` in the compute dtype.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    weight: Weight,
    precision: Precision,
}

impl Linear {
    pub(crate) fn load(source: &Source<'_>, name: &str, out_dim: usize, in_dim: usize) -> Result<Self, Error> {
        Ok(Self::new(source.matrix(name, out_dim, in_dim)?, source.precision))
    }

    pub(crate) fn new(weight: Weight, precision: Precision) -> Self {
        Self { weight, precision }
    }

    /// `[tokens, in]` to `[tokens, out]`.
    pub(crate) fn forward(&self, input: &Input) -> Result<Vec<f32>, Error> {
        let nonzeros = if input.skips_zeros { self.weight.nonzeros() } else { None };
        let mut y = match nonzeros {
            Some(nonzeros) => self.without_zeros(nonzeros, input)?,
            None if input.tokens <= FEW_TOKENS => self.few(input.arranged(self.precision), input.tokens),
            None => {
                let mut y = vec![0.0; input.tokens * self.weight.rows];
                self.panels(input.tensor()?, |_| true, &mut y)?;
                y
            }
        };
        round_all(&mut y, self.precision);
        Ok(y)
    }

    /// For each token the row with the largest result, the first of equals; none where only the results can tell.
    pub(crate) fn largest(&self, input: &Input) -> Option<Vec<u32>> {
        let nonzeros = if input.skips_zeros { self.weight.nonzeros()? } else { return None };
        let round = |x| self.precision.round(x);
        nonzeros.all_sparse().then(|| match self.precision {
            Precision::F32 => input.strips().largest(nonzeros, |x| x),
            Precision::Bf16 => input.strips().largest(nonzeros, round),
        })
    }

    /// One pass over the weight, every row for all tokens.
    fn few(&self, x: &[f32], tokens: usize) -> Vec<f32> {
        let Weight { rows, cols, .. } = self.weight;
        let mut by_row = vec![0.0; rows * tokens]; // [out, tokens]
        match self.weight.values() {
            Values::F32(weight) => product(weight, x, cols, &mut by_row),
            Values::Bf16(weight) => product(weight, x, cols, &mut by_row),
        }
        if tokens == 1 {
            return by_row;
        }
        (0..tokens).flat_map(|token| by_row.iter().skip(token).step_by(tokens)).copied().collect()
    }

    /// Sparse panels without their zeros, the others by the general product.
    fn without_zeros(&self, nonzeros: &Nonzeros, input: &Input) -> Result<Vec<f32>, Error> {
        let mut y = vec![0.0; input.tokens * self.weight.rows];
        input.strips().multiply(nonzeros, &mut y);
        if !nonzeros.all_sparse() {
            self.panels(input.tensor()?, |panel| nonzeros.panels[panel].is_none(), &mut y)?;
        }
        Ok(y)
    }

    /// The general product, for some rows of the weight in f32 at a time; writes the wanted panels of `y` `[tokens, out]`.
    fn panels(&self, x: &Tensor, is_wanted: impl Fn(usize) -> bool + Sync, y: &mut [f32]) -> Result<(), Error> {
        let Weight { rows, cols, .. } = self.weight;
        let device = x.device();
        let starts: Vec<usize> = (0..rows).step_by(PANEL_ROWS).collect();
        let multiply = |&start: &usize| {
            if !is_wanted(start / PANEL_ROWS) {
                return Ok(None);
            }
            let count = PANEL_ROWS.min(rows - start);
            let mut panel = Vec::with_capacity(count * cols);
            self.weight.widen_rows(start, count, &mut panel);
            let panel = Tensor::from_vec(panel, (count, cols), device)?;
            x.matmul(&panel.t()?)?.to_device(&Device::Cpu).map(Some)
        };
        let panels: Vec<Option<Tensor>> = if device.is_cpu() {
            starts.par_iter().map(multiply).collect::<Result<_, candle_core::Error>>()?
        } else {
            // A device has one queue; threads would only contend for it.
            starts.iter().map(multiply).collect::<Result<_, candle_core::Error>>()?
        };
        let guards: Vec<_> =
            panels.iter().map(|panel| panel.as_ref().map(|panel| panel.storage_and_layout().0)).collect();
        let panels = guards.iter().map(|storage| storage.as_ref().map(|storage| values(storage)).transpose());
        let panels: Vec<Option<&[f32]>> = panels.collect::<Result<_, Error>>()?;
        y.par_chunks_mut(rows).enumerate().for_each(|(token, y)| {
            for (y, panel) in y.chunks_mut(PANEL_ROWS).zip(&panels) {
                if let Some(panel) = panel {
                    y.copy_from_slice(&panel[token * y.len()..][..y.len()]);
                }
            }
        });
        Ok(())
    }
}

fn values(storage: &Storage) -> Result<&[f32], Error> {
    match storage {
        Storage::Cpu(CpuStorage::F32(values)) => Ok(values),
        _ => Err(candle_core::Error::Msg("a product of f32 on the CPU is none of that".to_owned()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::weight::narrow;
    use super::*;

    /// Small integers: every way gives them exactly.
    #[test]
    fn all_ways_give_the_same() {
        let (rows, cols) = (5 * PANEL_ROWS / 2, 37);
        let dense: Vec<f32> = (0..rows * cols).map(|i| f32::from(u8::try_from(i * 7 % 11).expect("small"))).collect();
        // A sparse panel between two that aren't, and sparse ones alone.
        let mut mixed = dense.clone();
        mixed[PANEL_ROWS * cols..2 * PANEL_ROWS * cols].fill(0.0);
        mixed[(PANEL_ROWS + 9) * cols + 5] = 3.0;
        let sparse = mixed.iter().enumerate().map(|(i, &w)| if i % 41 == 0 { w } else { 0.0 }).collect();
        [dense, mixed, sparse].into_iter().for_each(|weights| check_ways(weights, rows, cols));
    }

    fn check_ways(weights: Vec<f32>, rows: usize, cols: usize) {
        let bits = weights.iter().map(|&w| narrow(w)).collect();
        let maps = [
            Linear::new(Weight::f32(weights, rows, cols), Precision::F32),
            Linear::new(Weight::bf16(bits, rows, cols), Precision::Bf16),
        ];
        for map in maps {
            let tokens = FEW_TOKENS + 5;
            let x: Vec<f32> = (0..tokens * cols).map(|i| f32::from(u8::try_from(i * 5 % 3).expect("small"))).collect();
            let input = |x: &[f32]| Input::new(x.to_vec(), cols);
            let at_once = map.forward(&input(&x)).expect("a product");
            let by_token: Vec<f32> = x.chunks(cols).flat_map(|x| map.forward(&input(x)).expect("a product")).collect();
            let in_pairs: Vec<f32> =
                x.chunks(2 * cols).flat_map(|x| map.forward(&input(x)).expect("a product")).collect();
            assert_eq!(at_once, by_token);
            assert_eq!(at_once, in_pairs);
            assert!(at_once.iter().any(|&y| y > 0.0));
        }
    }
}

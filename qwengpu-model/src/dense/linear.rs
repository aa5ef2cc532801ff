//! Linear maps without bias: f32 sums, one rounding.

use candle_core::{CpuStorage, Device, Storage, Tensor};
use rayon::prelude::*;

use super::kernel::{arrange, product};
use super::ops::round_all;
use super::source::Source;
use super::weight::Weight;
use crate::engine::Precision;
use crate::error::Error;
use crate::load::Values;

/// Up to this many tokens a pass over the weights beats the general product.
const FEW_TOKENS: usize = 24;
/// Rows of a weight that a task multiplies at a time: in f32 they stay in the cache.
const PANEL_ROWS: usize = 128;

/// Vectors `[tokens, width]` on their way through one or more maps.
#[derive(Debug)]
pub(crate) struct Input {
    tokens: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// In the order of a weight's blocks.
    Few(Vec<f32>),
    Many(Tensor),
}

impl Input {
    /// For maps of this precision.
    pub(crate) fn new(x: Vec<f32>, width: usize, precision: Precision) -> Result<Self, Error> {
        let tokens = x.len() / width;
        let form = match precision {
            _ if tokens > FEW_TOKENS => Form::Many(Tensor::from_vec(x, (tokens, width), &Device::Cpu)?),
            Precision::F32 => Form::Few(x),
            Precision::Bf16 => Form::Few(arrange::<u16>(&x, width)),
        };
        Ok(Self { tokens, form })
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
        let mut y = match &input.form {
            Form::Few(x) => self.few(x, input.tokens),
            Form::Many(x) => self.many(x, input.tokens)?,
        };
        round_all(&mut y, self.precision);
        Ok(y)
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

    /// The general product, for some rows of the weight in f32 at a time.
    fn many(&self, x: &Tensor, tokens: usize) -> Result<Vec<f32>, Error> {
        let Weight { rows, cols, .. } = self.weight;
        let starts: Vec<usize> = (0..rows).step_by(PANEL_ROWS).collect();
        let multiply = |&start: &usize| {
            let count = PANEL_ROWS.min(rows - start);
            let mut panel = Vec::with_capacity(count * cols);
            self.weight.widen_rows(start, count, &mut panel);
            x.matmul(&Tensor::from_vec(panel, (count, cols), &Device::Cpu)?.t()?)
        };
        let panels: Vec<Tensor> = starts.par_iter().map(multiply).collect::<Result<_, candle_core::Error>>()?;
        let guards: Vec<_> = panels.iter().map(|panel| panel.storage_and_layout().0).collect();
        let panels: Vec<&[f32]> = guards.iter().map(|storage| values(storage)).collect::<Result<_, Error>>()?;
        let mut y = vec![0.0; tokens * rows];
        y.par_chunks_mut(rows).enumerate().for_each(|(token, y)| {
            for (y, panel) in y.chunks_mut(PANEL_ROWS).zip(&panels) {
                y.copy_from_slice(&panel[token * y.len()..][..y.len()]);
            }
        });
        Ok(y)
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
    fn both_ways_give_the_same() {
        let (rows, cols) = (3 * PANEL_ROWS / 2, 37);
        let weights: Vec<f32> = (0..rows * cols).map(|i| f32::from(u8::try_from(i * 7 % 11).expect("small"))).collect();
        let bits = weights.iter().map(|&w| narrow(w)).collect();
        let maps = [
            Linear::new(Weight::f32(weights, rows, cols), Precision::F32),
            Linear::new(Weight::bf16(bits, rows, cols), Precision::Bf16),
        ];
        for map in maps {
            let tokens = FEW_TOKENS + 5;
            let x: Vec<f32> = (0..tokens * cols).map(|i| f32::from(u8::try_from(i * 5 % 3).expect("small"))).collect();
            let input = |x: &[f32]| Input::new(x.to_vec(), cols, map.precision).expect("an input");
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

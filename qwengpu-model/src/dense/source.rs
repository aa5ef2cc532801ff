//! Where a dense engine's tensors come from: a checkpoint, or sparse weights in memory.

use candle_core::{Device, Tensor};
use half::bf16;

use crate::config::Config;
use crate::engine::Precision;
use crate::error::{Error, LoadError};
use crate::load::TensorValues;
use crate::part::View;
use crate::weights::{SparseWeights, TensorRef};

/// Hands out tensors by their name behind the prefix, in the compute dtype.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    tensors: Tensors<'a>,
    pub(crate) config: &'a Config,
    pub(crate) precision: Precision,
    /// What the norms of the residual stream divide by.
    pub(crate) norm_width: usize,
}

#[derive(Debug, Clone, Copy)]
enum Tensors<'a> {
    Checkpoint(View<'a>),
    Weights(&'a SparseWeights),
}

impl<'a> Source<'a> {
    pub(crate) fn checkpoint(view: View<'a>, precision: Precision) -> Self {
        Self { tensors: Tensors::Checkpoint(view), config: view.config(), precision, norm_width: view.norm_width() }
    }

    pub(crate) fn weights(weights: &'a SparseWeights, precision: Precision) -> Self {
        let config = &weights.config;
        Self { tensors: Tensors::Weights(weights), config, precision, norm_width: config.hidden_size }
    }

    /// A matrix in the compute dtype.
    pub(crate) fn matrix(&self, name: &str, rows: usize, cols: usize) -> Result<Tensor, Error> {
        let missing = || LoadError::Missing { name: name.to_owned(), expected: vec![rows, cols] };
        let shape = (rows, cols);
        let tensor = match (self.tensors, self.precision) {
            (Tensors::Checkpoint(checkpoint), Precision::F32) => Tensor::from_vec(
                checkpoint.get(name).ok_or_else(missing)?.collect(TensorValues::to_f32),
                shape,
                &Device::Cpu,
            ),
            (Tensors::Checkpoint(checkpoint), Precision::Bf16) => Tensor::from_vec(
                checkpoint.get(name).ok_or_else(missing)?.collect(TensorValues::to_bf16),
                shape,
                &Device::Cpu,
            ),
            (Tensors::Weights(weights), precision) => {
                let dense = match weights.get(name).ok_or_else(missing)? {
                    TensorRef::Matrix(matrix) => matrix.to_dense(),
                    TensorRef::Vector(vector) => vector.to_vec(),
                };
                match precision {
                    Precision::F32 => Tensor::from_vec(dense, shape, &Device::Cpu),
                    Precision::Bf16 => {
                        let rounded: Vec<_> = dense.into_iter().map(bf16::from_f32).collect();
                        Tensor::from_vec(rounded, shape, &Device::Cpu)
                    }
                }
            }
        };
        Ok(tensor?)
    }

    /// A vector's values, rounded to the compute dtype.
    pub(crate) fn vector(&self, name: &str, len: usize) -> Result<Vec<f32>, Error> {
        let missing = || LoadError::Missing { name: name.to_owned(), expected: vec![len] };
        let mut values = match self.tensors {
            Tensors::Checkpoint(checkpoint) => checkpoint.get(name).ok_or_else(missing)?.collect(TensorValues::to_f32),
            Tensors::Weights(weights) => match weights.get(name).ok_or_else(missing)? {
                TensorRef::Matrix(matrix) => matrix.to_dense(),
                TensorRef::Vector(vector) => vector.to_vec(),
            },
        };
        values.iter_mut().for_each(|value| *value = self.precision.round(*value));
        Ok(values)
    }
}

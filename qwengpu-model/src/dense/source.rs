//! Where a dense engine's tensors come from: a checkpoint, or sparse weights in memory.

use super::weight::{Weight, narrow};
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

    /// A matrix in the compute dtype; where the checkpoint has that dtype, it stays in the file.
    pub(crate) fn matrix(&self, name: &str, rows: usize, cols: usize) -> Result<Weight, Error> {
        let missing = || LoadError::Missing { name: name.to_owned(), expected: vec![rows, cols] };
        match self.tensors {
            Tensors::Checkpoint(checkpoint) => {
                let slice = checkpoint.get(name).ok_or_else(missing)?;
                let kept = slice.keep().filter(|mapped| mapped.precision() == self.precision);
                if let Some(weight) = kept.and_then(|mapped| Weight::mapped(mapped, rows, cols)) {
                    return Ok(weight);
                }
                Ok(match self.precision {
                    Precision::F32 => Weight::f32(slice.collect(TensorValues::to_f32), rows, cols),
                    Precision::Bf16 => Weight::bf16(slice.collect(TensorValues::to_bf16), rows, cols),
                })
            }
            Tensors::Weights(weights) => {
                let dense = match weights.get(name).ok_or_else(missing)? {
                    TensorRef::Matrix(matrix) => matrix.to_dense(),
                    TensorRef::Vector(vector) => vector.to_vec(),
                };
                Ok(match self.precision {
                    Precision::F32 => Weight::f32(dense, rows, cols),
                    Precision::Bf16 => Weight::bf16(dense.into_iter().map(narrow).collect(), rows, cols),
                })
            }
        }
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

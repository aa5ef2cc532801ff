//! What a model remembers of one stream of tokens.

use super::attention::FullMemory;
use super::layer::Layer;
use super::linear_attention::LinearMemory;
use crate::cache::{Cache, LayerCache};
use crate::config::Config;
use crate::error::Error;
use crate::rows::SparseRows;

/// The memory of a layer.
#[derive(Debug, Clone)]
pub(crate) enum Memory {
    Linear(LinearMemory),
    Full(FullMemory),
}

impl Memory {
    pub(crate) fn linear(&mut self) -> Option<&mut LinearMemory> {
        match self {
            Self::Linear(memory) => Some(memory),
            Self::Full(_) => None,
        }
    }

    pub(crate) fn full(&mut self) -> Option<&mut FullMemory> {
        match self {
            Self::Full(memory) => Some(memory),
            Self::Linear(_) => None,
        }
    }
}

/// A stream: what each layer remembers, and the number of tokens.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) layers: Vec<Memory>,
    pub(crate) position: usize,
}

impl Stream {
    pub(crate) fn empty(layers: &[Layer]) -> Self {
        Self { layers: layers.iter().map(Layer::empty_memory).collect(), position: 0 }
    }

    /// No stream at all, in the place of one that is somewhere else.
    pub(crate) fn nothing() -> Self {
        Self { layers: Vec::new(), position: 0 }
    }

    pub(crate) fn save(&self, config: &Config) -> Cache {
        let kernel = config.linear_conv_kernel_dim;
        let layers = self.layers.iter().map(|layer| match layer {
            Memory::Linear(memory) => LayerCache::Linear {
                conv: SparseRows::from_dense(kernel, &transpose(&memory.history, kernel, config.conv_dim())),
                recurrent: SparseRows::from_dense(config.linear_value_head_dim, &memory.state),
            },
            Memory::Full(memory) => LayerCache::Full { keys: memory.keys.concat(), values: memory.values.concat() },
        });
        Cache { position: self.position, layers: layers.collect() }
    }

    /// A stream that goes on from a cache.
    pub(crate) fn from_cache(cache: &Cache, config: &Config) -> Result<Self, Error> {
        cache.check(config)?;
        let (conv_dim, kernel) = (config.conv_dim(), config.linear_conv_kernel_dim);
        let split = |all: &[f32]| -> Vec<Vec<f32>> {
            let heads = config.num_key_value_heads;
            let len = all.len() / heads;
            (0..heads).map(|head| all[head * len..(head + 1) * len].to_vec()).collect()
        };
        let layers = cache.layers.iter().map(|cache| match cache {
            LayerCache::Linear { conv, recurrent } => {
                let history = transpose(&conv.to_dense(), conv_dim, kernel);
                Memory::Linear(LinearMemory { history, state: recurrent.to_dense() })
            }
            LayerCache::Full { keys, values } => Memory::Full(FullMemory { keys: split(keys), values: split(values) }),
        });
        Ok(Self { layers: layers.collect(), position: cache.position })
    }

    /// The state of a value head.
    pub(crate) fn recurrent_state(&self, config: &Config, layer: usize, head: usize) -> Result<&[f32], Error> {
        let missing = Error::NoRecurrentState { layer, head };
        match self.layers.get(layer) {
            Some(Memory::Linear(memory)) => memory.state.chunks_exact(config.state_len()).nth(head).ok_or(missing),
            Some(Memory::Full(_)) | None => Err(missing),
        }
    }
}

/// `[rows, cols]` to `[cols, rows]`.
fn transpose(values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..cols).flat_map(|col| (0..rows).map(move |row| values[row * cols + col])).collect()
}

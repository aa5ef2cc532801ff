//! What a model remembers between forwards, in a form that no engine owns.

use crate::config::{Config, LayerType};
use crate::error::Error;
use crate::rows::SparseRows;

/// Everything a model remembers of the tokens so far: clone it to fork a run, restore it into any engine.
///
/// What is zero takes no room in states and convolutions. Values are f32; those of a bf16 engine are exactly representable in bf16, but for the recurrent states.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// Tokens consumed.
    pub position: usize,
    /// One for each layer.
    pub layers: Vec<LayerCache>,
}

/// What a layer remembers.
#[derive(Debug, Clone, PartialEq)]
pub enum LayerCache {
    /// Of a `linear_attention` layer.
    Linear {
        /// `[conv_dim, kernel]`: the last outputs of `in_proj_qkv`, the newest last, zeros before the first token.
        conv: SparseRows,
        /// `[value heads * key head dim, value head dim]`.
        recurrent: SparseRows,
    },
    /// Of a `full_attention` layer.
    Full {
        /// `[kv heads, position, head dim]`: after norm and rotation.
        keys: Vec<f32>,
        /// `[kv heads, position, head dim]`.
        values: Vec<f32>,
    },
}

impl Cache {
    /// The cache before the first token.
    #[must_use]
    pub fn empty(config: &Config) -> Self {
        let layers = config.layer_types.iter().map(|layer_type| match layer_type {
            LayerType::LinearAttention => LayerCache::Linear {
                conv: SparseRows::zeros(config.conv_dim(), config.linear_conv_kernel_dim),
                recurrent: SparseRows::zeros(
                    config.linear_num_value_heads * config.linear_key_head_dim,
                    config.linear_value_head_dim,
                ),
            },
            LayerType::FullAttention => LayerCache::Full { keys: Vec::new(), values: Vec::new() },
        });
        Self { position: 0, layers: layers.collect() }
    }

    /// Checks that the cache fits a model.
    ///
    /// # Errors
    /// Names the first buffer that doesn't.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        if self.layers.len() != config.num_hidden_layers() {
            return Err(Error::CacheLayers { expected: config.num_hidden_layers(), got: self.layers.len() });
        }
        let kv = self.position * config.num_key_value_heads * config.head_dim;
        let conv_len = config.conv_dim() * config.linear_conv_kernel_dim;
        let state = config.linear_num_value_heads * config.state_len();
        let (kernel, dv) = (config.linear_conv_kernel_dim, config.linear_value_head_dim);
        for (layer, (cache, layer_type)) in self.layers.iter().zip(&config.layer_types).enumerate() {
            let parts = match (cache, layer_type) {
                (LayerCache::Linear { conv, recurrent }, LayerType::LinearAttention) => {
                    let widths = [("conv", kernel, conv.width()), ("recurrent", dv, recurrent.width())];
                    if let Some((part, expected, got)) = widths.into_iter().find(|(_, expected, got)| expected != got) {
                        return Err(Error::CacheWidth { layer, part, expected, got });
                    }
                    [("conv", conv_len, conv.len()), ("recurrent", state, recurrent.len())]
                }
                (LayerCache::Full { keys, values }, LayerType::FullAttention) => {
                    [("keys", kv, keys.len()), ("values", kv, values.len())]
                }
                (LayerCache::Linear { .. }, LayerType::FullAttention) => [("keys", kv, 0), ("values", kv, 0)],
                (LayerCache::Full { .. }, LayerType::LinearAttention) => {
                    [("conv", conv_len, 0), ("recurrent", state, 0)]
                }
            };
            for (part, expected, got) in parts {
                if expected != got {
                    return Err(Error::CacheShape { layer, part, expected, got });
                }
            }
        }
        Ok(())
    }
}

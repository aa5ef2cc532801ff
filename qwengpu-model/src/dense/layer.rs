//! A layer: mixer and MLP, each behind a norm and added to the residual stream.

use candle_core::Tensor;

use super::attention::{FullAttention, FullMemory};
use super::linear_attention::{LinearAttention, LinearMemory, Path};
use super::mlp::Mlp;
use super::norm::RmsNorm;
use super::ops;
use super::source::Source;
use crate::config::LayerType;
use crate::engine::Precision;
use crate::error::Error;
use crate::names::in_layer;

/// What mixes tokens, together with what it remembers of them.
#[derive(Debug, Clone)]
pub(crate) enum Mixer {
    Linear(LinearAttention, LinearMemory),
    Full(FullAttention, FullMemory),
}

#[derive(Debug, Clone)]
pub(crate) struct Layer {
    input_layernorm: RmsNorm,
    pub(crate) mixer: Mixer,
    post_attention_layernorm: RmsNorm,
    mlp: Mlp,
    precision: Precision,
}

impl Layer {
    pub(crate) fn load(source: &Source<'_>, layer: usize, layer_type: LayerType) -> Result<Self, Error> {
        let mixer = match layer_type {
            LayerType::LinearAttention => {
                let mixer = LinearAttention::load(source, layer)?;
                let memory = mixer.empty_memory();
                Mixer::Linear(mixer, memory)
            }
            LayerType::FullAttention => {
                let mixer = FullAttention::load(source, layer)?;
                let memory = mixer.empty_memory();
                Mixer::Full(mixer, memory)
            }
        };
        Ok(Self {
            input_layernorm: RmsNorm::residual(source, &in_layer(layer, "input_layernorm.weight"))?,
            mixer,
            post_attention_layernorm: RmsNorm::residual(source, &in_layer(layer, "post_attention_layernorm.weight"))?,
            mlp: Mlp::load(source, layer)?,
            precision: source.precision,
        })
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        match &mut self.mixer {
            Mixer::Linear(mixer, memory) => *memory = mixer.empty_memory(),
            Mixer::Full(mixer, memory) => *memory = mixer.empty_memory(),
        }
    }

    /// Adds what the mixer says to the residual stream `[tokens, hidden]`.
    pub(crate) fn mix(&mut self, h: &Tensor, position: usize, path: Path) -> Result<Tensor, Error> {
        let x = self.input_layernorm.forward(h)?;
        let y = match &mut self.mixer {
            Mixer::Linear(mixer, memory) => mixer.forward(&x, memory, path)?,
            Mixer::Full(mixer, memory) => mixer.forward(&x, memory, position)?,
        };
        Ok(ops::round((h + y)?, self.precision)?)
    }

    /// Adds what the MLP says.
    pub(crate) fn apply_mlp(&self, h: &Tensor) -> Result<Tensor, Error> {
        let y = self.mlp.forward(&self.post_attention_layernorm.forward(h)?)?;
        Ok(ops::round((h + y)?, self.precision)?)
    }
}

//! A layer: mixer and MLP, each behind a norm and added to the residual stream.

use super::attention::{FullAttention, FullMemory};
use super::linear::Input;
use super::linear_attention::{LinearAttention, LinearMemory, Path};
use super::mlp::Mlp;
use super::norm::RmsNorm;
use super::ops;
use super::source::Source;
use super::stream::{Memory, Stream};
use crate::config::LayerType;
use crate::engine::Precision;
use crate::error::Error;
use crate::names::in_layer;

/// What mixes tokens.
#[derive(Debug, Clone)]
enum Mixer {
    Linear(LinearAttention),
    Full(FullAttention),
}

#[derive(Debug, Clone)]
pub(crate) struct Layer {
    number: usize,
    width: usize,
    input_layernorm: RmsNorm,
    mixer: Mixer,
    post_attention_layernorm: RmsNorm,
    mlp: Mlp,
    precision: Precision,
}

impl Layer {
    pub(crate) fn load(source: &Source<'_>, layer: usize, layer_type: LayerType) -> Result<Self, Error> {
        Ok(Self {
            number: layer,
            width: source.config.hidden_size,
            input_layernorm: RmsNorm::residual(source, &in_layer(layer, "input_layernorm.weight"))?,
            mixer: match layer_type {
                LayerType::LinearAttention => Mixer::Linear(LinearAttention::load(source, layer)?),
                LayerType::FullAttention => Mixer::Full(FullAttention::load(source, layer)?),
            },
            post_attention_layernorm: RmsNorm::residual(source, &in_layer(layer, "post_attention_layernorm.weight"))?,
            mlp: Mlp::load(source, layer)?,
            precision: source.precision,
        })
    }

    pub(crate) fn empty_memory(&self) -> Memory {
        match &self.mixer {
            Mixer::Linear(mixer) => Memory::Linear(mixer.empty_memory()),
            Mixer::Full(mixer) => Memory::Full(mixer.empty_memory()),
        }
    }

    /// Adds what the mixer says to the residual streams `[tokens, hidden]`; every stream has as many tokens.
    pub(crate) fn mix(&self, h: &mut [f32], streams: &mut [&mut Stream], path: Path) -> Result<(), Error> {
        let x = self.input(h, &self.input_layernorm);
        let memories =
            streams.iter_mut().filter_map(|stream| Some((stream.layers.get_mut(self.number)?, stream.position)));
        let y = match &self.mixer {
            Mixer::Linear(mixer) => {
                let mut own: Vec<&mut LinearMemory> = memories.filter_map(|(memory, _)| memory.linear()).collect();
                mixer.forward(&x, &mut own, path)?
            }
            Mixer::Full(mixer) => {
                let own = memories.filter_map(|(memory, position)| Some((memory.full()?, position)));
                let mut own: Vec<(&mut FullMemory, usize)> = own.collect();
                mixer.forward(&x, &mut own)?
            }
        };
        ops::add(h, &y, self.precision);
        Ok(())
    }

    /// Adds what the MLP says.
    pub(crate) fn apply_mlp(&self, h: &mut [f32]) -> Result<(), Error> {
        let y = self.mlp.forward(&self.input(h, &self.post_attention_layernorm))?;
        ops::add(h, &y, self.precision);
        Ok(())
    }

    fn input(&self, h: &[f32], norm: &RmsNorm) -> Input {
        let mut x = h.to_vec();
        norm.apply(&mut x);
        Input::new(x, self.width)
    }
}

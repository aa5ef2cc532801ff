//! A layer: mixer and MLP, each behind a norm and added to the residual stream.

use super::attention::{AttentionScratch, FullAttention, FullMemory};
use super::linear_attention::{LinearAttention, LinearMemory, LinearScratch};
use super::mlp::Mlp;
use super::norm::RmsNorm;
use super::vector::{Inputs, Stream, Sums};
use crate::config::Config;
use crate::engine::Precision;
use crate::weights::{LayerWeights, MixerWeights};

/// What mixes tokens, together with what it remembers of them.
#[derive(Debug, Clone)]
pub(crate) enum Mixer {
    Linear(Box<LinearAttention>, LinearMemory),
    Full(Box<FullAttention>, FullMemory),
}

/// What a layer remembers.
#[derive(Debug, Clone)]
pub(crate) enum Memory {
    Linear(LinearMemory),
    Full(FullMemory),
}

#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) input_layernorm: RmsNorm,
    pub(crate) mixer: Mixer,
    post_attention_layernorm: RmsNorm,
    mlp: Mlp,
}

/// Buffers for one token, shared by all layers.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    pub(crate) normed: Inputs,
    block: Sums,
    linear: LinearScratch,
    attention: AttentionScratch,
}

impl Scratch {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            normed: Inputs::new(config.hidden_size),
            block: Sums::new(config.hidden_size),
            linear: LinearScratch::new(config),
            attention: AttentionScratch::new(config),
        }
    }
}

impl Layer {
    /// `shared` is a column that reaches most rows.
    pub(crate) fn new(weights: &LayerWeights, config: &Config, shared: u32, precision: Precision) -> Self {
        let norm = |weight: &[f32]| RmsNorm::new(weight, config.rms_norm_eps, precision);
        let mixer = match &weights.mixer {
            MixerWeights::Linear(weights) => {
                let mixer = Box::new(LinearAttention::new(weights, config, shared, precision));
                let memory = mixer.empty_memory();
                Mixer::Linear(mixer, memory)
            }
            MixerWeights::Full(weights) => {
                let mixer = Box::new(FullAttention::new(weights, config, precision));
                let memory = mixer.empty_memory();
                Mixer::Full(mixer, memory)
            }
        };
        Self {
            input_layernorm: norm(&weights.input_layernorm),
            mixer,
            post_attention_layernorm: norm(&weights.post_attention_layernorm),
            mlp: Mlp::new(weights, shared, precision),
        }
    }

    /// What it remembers before the first token.
    pub(crate) fn empty_memory(&self) -> Memory {
        match &self.mixer {
            Mixer::Linear(mixer, _) => Memory::Linear(mixer.empty_memory()),
            Mixer::Full(mixer, _) => Memory::Full(mixer.empty_memory()),
        }
    }

    /// Takes another memory, of a layer like this, for its own.
    pub(crate) fn exchange(&mut self, memory: &mut Memory) {
        match (&mut self.mixer, memory) {
            (Mixer::Linear(_, own), Memory::Linear(other)) => std::mem::swap(own, other),
            (Mixer::Full(_, own), Memory::Full(other)) => std::mem::swap(own, other),
            (Mixer::Linear(..), Memory::Full(_)) | (Mixer::Full(..), Memory::Linear(_)) => {}
        }
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        match &mut self.mixer {
            Mixer::Linear(_, memory) => {
                memory.history.clear();
                memory.state.clear();
            }
            Mixer::Full(mixer, memory) => *memory = mixer.empty_memory(),
        }
    }

    /// Adds what the mixer says to the residual stream.
    pub(crate) fn mix(&mut self, stream: &mut Stream, position: usize, scratch: &mut Scratch, precision: Precision) {
        let Scratch { normed, block, linear, attention } = scratch;
        let x = self.input_layernorm.stream(stream);
        match &mut self.mixer {
            Mixer::Linear(mixer, memory) => mixer.forward(&x, memory, linear, block),
            Mixer::Full(mixer, memory) if !memory.is_zero => {
                x.write(normed);
                mixer.forward(normed, memory, position, attention, block);
            }
            Mixer::Full(..) => {} // a mean of zeros
        }
        stream.add(block, precision);
    }

    /// Adds what the MLP says.
    pub(crate) fn apply_mlp(&mut self, stream: &mut Stream, precision: Precision) {
        let x = self.post_attention_layernorm.stream(stream);
        let sums = self.mlp.forward(&x);
        stream.add_pairs(sums, precision);
    }
}

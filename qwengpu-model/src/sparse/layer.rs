//! A layer: mixer and MLP, each behind a norm and added to the residual stream.

use super::attention::{AttentionScratch, FullAttention, FullMemory};
use super::linear_attention::{HeadLists, LinearAttention, LinearMemory};
use super::mlp::Mlp;
use super::norm::RmsNorm;
use super::projection::Accumulator;
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

#[derive(Debug, Clone)]
pub(crate) struct Layer {
    input_layernorm: RmsNorm,
    pub(crate) mixer: Mixer,
    post_attention_layernorm: RmsNorm,
    mlp: Mlp,
}

/// Buffers for one token, shared by all layers.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    pub(crate) normed: Inputs,
    sums: Accumulator,
    candidates: Vec<u32>,
    conv_sums: Sums,
    block: Sums,
    lists: HeadLists,
    attention: AttentionScratch,
}

impl Scratch {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            normed: Inputs::new(config.hidden_size),
            sums: Accumulator::new(config.conv_dim().max(config.intermediate_size)),
            candidates: Vec::with_capacity(config.intermediate_size),
            conv_sums: Sums::new(config.conv_dim()),
            block: Sums::new(config.hidden_size),
            lists: HeadLists::new(config),
            attention: AttentionScratch::new(config),
        }
    }
}

impl Layer {
    pub(crate) fn new(weights: &LayerWeights, config: &Config, precision: Precision) -> Self {
        let norm = |weight: &[f32]| RmsNorm::new(weight, config.rms_norm_eps, precision);
        let mixer = match &weights.mixer {
            MixerWeights::Linear(weights) => {
                let mixer = Box::new(LinearAttention::new(weights, config, precision));
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
            mlp: Mlp::new(weights, precision),
        }
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        match &mut self.mixer {
            Mixer::Linear(_, memory) => {
                memory.history.clear();
                memory.state.fill(0.0);
                memory.is_live.fill(false);
            }
            Mixer::Full(mixer, memory) => *memory = mixer.empty_memory(),
        }
    }

    /// Adds what the mixer says to the residual stream.
    pub(crate) fn mix(&mut self, stream: &mut Stream, position: usize, scratch: &mut Scratch, precision: Precision) {
        let Scratch { normed, sums, conv_sums, block, lists, attention, .. } = scratch;
        self.input_layernorm.stream(stream, normed);
        match &mut self.mixer {
            Mixer::Linear(mixer, memory) => mixer.forward(normed, memory, lists, sums, conv_sums, block),
            Mixer::Full(mixer, memory) => mixer.forward(normed, memory, position, attention, block),
        }
        stream.add(block, precision);
    }

    /// Adds what the MLP says.
    pub(crate) fn apply_mlp(&mut self, stream: &mut Stream, scratch: &mut Scratch, precision: Precision) {
        let Scratch { normed, sums, candidates, block, .. } = scratch;
        self.post_attention_layernorm.stream(stream, normed);
        self.mlp.forward(normed, candidates, sums, block);
        stream.add(block, precision);
    }
}

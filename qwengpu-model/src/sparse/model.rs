//! The whole sparse model as an [`Engine`].

use std::path::Path;

use super::batch::{self, SparseBatch};
use super::head::Head;
use super::layer::{Layer, Mixer, Scratch};
use super::norm::RmsNorm;
use super::vector::Stream;
use crate::batch::Batch;
use crate::cache::{Cache, LayerCache};
use crate::config::Config;
use crate::engine::{Engine, Precision, check_tokens};
use crate::error::Error;
use crate::matrix::SparseMatrix;
use crate::part::Part;
use crate::probe::{Probe, Site};
use crate::weights::{MixerWeights, SparseWeights};

/// Never multiplies a zero; one token at a time, on one core, without allocation.
///
/// The same function as [`DenseEngine`](crate::DenseEngine) for any weights, fast where most weights and activations
/// are zero. The delta rule always takes its recurrent way. Clone it to fork a run.
#[derive(Debug, Clone)]
pub struct SparseEngine {
    config: Config,
    precision: Precision,
    embed_tokens: SparseMatrix,
    layers: Vec<Layer>,
    norm: RmsNorm,
    head: Head,
    stream: Stream,
    scratch: Scratch,
    position: usize,
    logits: Vec<f32>,
}

impl SparseEngine {
    /// Loads a checkpoint directory, tensor by tensor; only non-zeros are kept.
    ///
    /// # Errors
    /// As [`SparseWeights::from_dir`].
    pub fn from_dir(dir: &Path, precision: Precision) -> Result<Self, Error> {
        Ok(Self::build(&SparseWeights::from_dir(dir)?, precision))
    }

    /// Loads a part of a checkpoint directory, in its full widths: what is zero costs nothing.
    ///
    /// # Errors
    /// As [`SparseWeights::from_part`].
    pub fn from_part(dir: &Path, part: &Part, precision: Precision) -> Result<Self, Error> {
        Ok(Self::build(&SparseWeights::from_part(dir, part)?, precision))
    }

    /// Takes weights from memory.
    ///
    /// # Errors
    /// If they don't fit their configuration.
    pub fn from_weights(weights: &SparseWeights, precision: Precision) -> Result<Self, Error> {
        weights.validate()?;
        Ok(Self::build(weights, precision))
    }

    fn build(weights: &SparseWeights, precision: Precision) -> Self {
        let config = weights.config.clone();
        let shared = fullest_column(weights);
        Self {
            precision,
            embed_tokens: weights.embed_tokens.map(|_, _, value| precision.round(value)),
            layers: weights.layers.iter().map(|layer| Layer::new(layer, &config, shared, precision)).collect(),
            norm: RmsNorm::new(&weights.norm, config.rms_norm_eps, precision),
            head: Head::new(weights.lm_head.as_ref().unwrap_or(&weights.embed_tokens), precision),
            stream: Stream::new(config.hidden_size),
            scratch: Scratch::new(&config),
            position: 0,
            logits: Vec::new(),
            config,
        }
    }

    /// A stream before its first token.
    pub(crate) fn empty_stream(&self) -> batch::Stream {
        batch::Stream { position: 0, memories: self.layers.iter().map(Layer::empty_memory).collect() }
    }

    /// Takes what a stream remembers for its own memory, and the other way round.
    pub(crate) fn exchange(&mut self, stream: &mut batch::Stream) {
        std::mem::swap(&mut self.position, &mut stream.position);
        self.layers.iter_mut().zip(&mut stream.memories).for_each(|(layer, memory)| layer.exchange(memory));
    }

    /// Takes a token through all layers.
    fn step(&mut self, token: u32) {
        self.stream.load(&self.embed_tokens, token as usize);
        for layer in &mut self.layers {
            layer.mix(&mut self.stream, self.position, &mut self.scratch, self.precision);
            layer.apply_mlp(&mut self.stream, self.precision);
        }
        self.position += 1;
    }

    /// The last token's logits.
    fn compute_logits(&mut self) {
        self.logits.resize(self.config.vocab_size, 0.0);
        self.norm.stream(&mut self.stream).write(&mut self.scratch.normed);
        self.head.logits(&self.scratch.normed, &mut self.logits);
    }

    /// The id of the last token's largest logit.
    fn choose(&mut self) -> u32 {
        let x = self.norm.stream(&mut self.stream);
        self.head.argmax(&x, &mut self.scratch.normed)
    }
}

impl Engine for SparseEngine {
    fn config(&self) -> &Config {
        &self.config
    }

    fn position(&self) -> usize {
        self.position
    }

    fn forward(&mut self, tokens: &[u32]) -> Result<&[f32], Error> {
        check_tokens(tokens, self.config.vocab_size)?;
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        tokens.iter().for_each(|&token| self.step(token));
        self.compute_logits();
        Ok(&self.logits)
    }

    fn argmax(&mut self, tokens: &[u32]) -> Result<u32, Error> {
        check_tokens(tokens, self.config.vocab_size)?;
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        tokens.iter().for_each(|&token| self.step(token));
        Ok(self.choose())
    }

    fn argmax_all(&mut self, tokens: &[u32]) -> Result<Vec<u32>, Error> {
        check_tokens(tokens, self.config.vocab_size)?;
        let after = |&token: &u32| {
            self.step(token);
            self.choose()
        };
        Ok(tokens.iter().map(after).collect())
    }

    fn forward_probed(&mut self, tokens: &[u32], probe: &mut dyn Probe) -> Result<(), Error> {
        check_tokens(tokens, self.config.vocab_size)?;
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        let width = self.config.hidden_size;
        for &token in tokens {
            self.stream.load(&self.embed_tokens, token as usize);
            probe.record(Site::Hidden(0), width, self.stream.values());
            for (i, layer) in self.layers.iter_mut().enumerate() {
                layer.mix(&mut self.stream, self.position, &mut self.scratch, self.precision);
                probe.record(Site::Mixed(i), width, self.stream.values());
                layer.apply_mlp(&mut self.stream, self.precision);
                probe.record(Site::Hidden(i + 1), width, self.stream.values());
            }
            self.position += 1;
            self.compute_logits();
            probe.record(Site::Normed, width, self.scratch.normed.values());
            probe.record(Site::Logits, self.config.vocab_size, &self.logits);
        }
        Ok(())
    }

    fn recurrent_state(&self, layer: usize, head: usize) -> Result<&[f32], Error> {
        let missing = Error::NoRecurrentState { layer, head };
        match self.layers.get(layer).map(|layer| &layer.mixer) {
            Some(Mixer::Linear(_, memory)) => memory.state.of_head(head).ok_or(missing),
            Some(Mixer::Full(..)) | None => Err(missing),
        }
    }

    fn save(&self) -> Cache {
        let kv_len = self.position * self.config.num_key_value_heads * self.config.head_dim;
        let layers = self.layers.iter().map(|layer| match &layer.mixer {
            Mixer::Linear(mixer, memory) => LayerCache::Linear {
                conv: mixer.conv_state(memory, &layer.input_layernorm),
                recurrent: memory.state.rows(),
            },
            Mixer::Full(_, memory) if memory.is_zero => {
                LayerCache::Full { keys: vec![0.0; kv_len], values: vec![0.0; kv_len] }
            }
            Mixer::Full(_, memory) => LayerCache::Full { keys: memory.keys.concat(), values: memory.values.concat() },
        });
        Cache { position: self.position, layers: layers.collect() }
    }

    fn restore(&mut self, cache: &Cache) -> Result<(), Error> {
        cache.check(&self.config)?;
        for (layer, cache) in self.layers.iter_mut().zip(&cache.layers) {
            match (&mut layer.mixer, cache) {
                (Mixer::Linear(_, memory), LayerCache::Linear { conv, recurrent }) => {
                    memory.history.set_rows(conv);
                    memory.state.set_rows(recurrent);
                }
                (Mixer::Full(mixer, memory), LayerCache::Full { keys, values }) => {
                    *memory = mixer.memory_of(keys, values);
                }
                // The check above has refused these.
                (Mixer::Linear(..), LayerCache::Full { .. }) | (Mixer::Full(..), LayerCache::Linear { .. }) => {}
            }
        }
        self.position = cache.position;
        Ok(())
    }

    fn reset(&mut self) {
        self.layers.iter_mut().for_each(Layer::reset);
        self.position = 0;
    }

    /// On its own weights and results that are kept.
    fn batch(&mut self, streams: usize) -> Box<dyn Batch + '_> {
        Box::new(SparseBatch::new(self, streams))
    }
}

/// The column that reaches most rows behind the norms of all layers, as that of a constant which feeds biases does.
fn fullest_column(weights: &SparseWeights) -> u32 {
    let mut counts = vec![0_usize; weights.config.hidden_size];
    for layer in &weights.layers {
        let qkv = match &layer.mixer {
            MixerWeights::Linear(mixer) => Some(&mixer.in_proj_qkv),
            MixerWeights::Full(_) => None,
        };
        for (_, col, _) in qkv.into_iter().chain([&layer.gate_proj]).flat_map(SparseMatrix::entries) {
            counts[col as usize] += 1;
        }
    }
    let first_of_fullest = (0..).zip(counts).max_by_key(|&(col, count)| (count, std::cmp::Reverse(col)));
    first_of_fullest.map_or(0, |(col, _)| col)
}

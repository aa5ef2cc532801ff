//! The whole dense model as an [`Engine`].

use std::path::Path as FilePath;

use candle_core::{DType, Device, Tensor};

use super::attention::FullMemory;
use super::layer::{Layer, Mixer};
use super::linear::Linear;
use super::linear_attention::{LinearMemory, Path};
use super::norm::RmsNorm;
use super::ops;
use super::source::Source;
use crate::cache::{Cache, LayerCache};
use crate::config::Config;
use crate::engine::{Engine, Precision, argmax, check_tokens};
use crate::error::Error;
use crate::load::Checkpoint;
use crate::names::{EMBED_TOKENS, FINAL_NORM, LM_HEAD};
use crate::part::{Part, View};
use crate::probe::{Probe, Site};
use crate::weights::SparseWeights;

/// Tokens that go through all layers together; a multiple of the delta rule's chunk.
const PIECE: usize = 512;

/// Multiplies every weight, as a general engine does. Rounds where the reference rounds.
///
/// Several tokens at once take the chunked way through the delta rule, as does the first token; a single token on top
/// of others takes the recurrent one.
#[derive(Debug)]
pub struct DenseEngine {
    config: Config,
    embed_tokens: Tensor,
    layers: Vec<Layer>,
    norm: RmsNorm,
    lm_head: Linear,
    position: usize,
    logits: Vec<f32>,
}

/// Takes `lm_head`, what the final norm gave for a piece `[tokens, hidden]`, and the probe.
type VisitPiece<'a> = dyn FnMut(&Linear, Tensor, &mut Option<&mut dyn Probe>) -> Result<(), Error> + 'a;

impl DenseEngine {
    /// Loads a checkpoint directory.
    ///
    /// # Errors
    /// If the configuration isn't supported or a tensor is missing, unexpected, or of another shape or dtype.
    pub fn from_dir(dir: &FilePath, precision: Precision) -> Result<Self, Error> {
        let config = Config::from_dir(dir)?;
        let checkpoint = Checkpoint::open(dir, &config)?;
        Self::build(&Source::checkpoint(View::whole(&checkpoint, &config), precision))
    }

    /// Loads a part of a checkpoint directory.
    ///
    /// # Errors
    /// As [`from_dir`](Self::from_dir), for the whole checkpoint; or if it has no such part.
    pub fn from_part(dir: &FilePath, part: &Part, precision: Precision) -> Result<Self, Error> {
        let whole = Config::from_dir(dir)?;
        let checkpoint = Checkpoint::open(dir, &whole)?;
        let config = part.config(&whole)?;
        Self::build(&Source::checkpoint(View::part(&checkpoint, &whole, part, &config), precision))
    }

    /// Takes weights from memory.
    ///
    /// # Errors
    /// If they don't fit their configuration.
    pub fn from_weights(weights: &SparseWeights, precision: Precision) -> Result<Self, Error> {
        weights.validate()?;
        Self::build(&Source::weights(weights, precision))
    }

    fn build(source: &Source<'_>) -> Result<Self, Error> {
        let config = source.config.clone();
        let (v, d) = (config.vocab_size, config.hidden_size);
        let embed_tokens = source.matrix(EMBED_TOKENS, v, d)?;
        let lm_head = match config.tie_word_embeddings {
            true => Linear::from_tensor(embed_tokens.clone(), source.precision),
            false => Linear::load(source, LM_HEAD, v, d)?,
        };
        let layers = config.layer_types.iter().enumerate();
        let layers: Vec<Layer> = layers.map(|(i, &kind)| Layer::load(source, i, kind)).collect::<Result<_, _>>()?;
        let norm = RmsNorm::residual(source, FINAL_NORM)?;
        Ok(Self { config, embed_tokens, layers, norm, lm_head, position: 0, logits: Vec::new() })
    }

    /// Runs all tokens through the layers and the final norm; `visit` sees the normed `[tokens, hidden]` of each piece.
    fn run(
        &mut self,
        tokens: &[u32],
        probe: &mut Option<&mut dyn Probe>,
        visit: &mut VisitPiece<'_>,
    ) -> Result<(), Error> {
        check_tokens(tokens, self.config.vocab_size)?;
        let path = if tokens.len() == 1 && self.position > 0 { Path::Recurrent } else { Path::Chunked };
        let width = self.config.hidden_size;
        for piece in tokens.chunks(PIECE) {
            let ids = Tensor::new(piece, &Device::Cpu)?;
            let mut h = self.embed_tokens.index_select(&ids, 0)?.to_dtype(DType::F32)?;
            record(probe, Site::Hidden(0), width, &h)?;
            for (i, layer) in self.layers.iter_mut().enumerate() {
                h = layer.mix(&h, self.position, path)?;
                record(probe, Site::Mixed(i), width, &h)?;
                h = layer.apply_mlp(&h)?;
                record(probe, Site::Hidden(i + 1), width, &h)?;
            }
            let normed = self.norm.forward(&h)?;
            record(probe, Site::Normed, width, &normed)?;
            visit(&self.lm_head, normed, probe)?;
            self.position += piece.len();
        }
        Ok(())
    }
}

fn record(probe: &mut Option<&mut dyn Probe>, site: Site, width: usize, x: &Tensor) -> Result<(), Error> {
    if let Some(probe) = probe {
        probe.record(site, width, &ops::to_vec(x)?);
    }
    Ok(())
}

impl Engine for DenseEngine {
    fn config(&self) -> &Config {
        &self.config
    }

    fn position(&self) -> usize {
        self.position
    }

    fn forward(&mut self, tokens: &[u32]) -> Result<&[f32], Error> {
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        let mut last = None;
        self.run(tokens, &mut None, &mut |_, normed, _| {
            last = Some(normed.narrow(0, normed.dim(0)? - 1, 1)?);
            Ok(())
        })?;
        if let Some(last) = last {
            self.logits = ops::to_vec(&self.lm_head.forward(&last)?)?;
        }
        Ok(&self.logits)
    }

    fn argmax_all(&mut self, tokens: &[u32]) -> Result<Vec<u32>, Error> {
        let mut ids = Vec::with_capacity(tokens.len());
        let vocab = self.config.vocab_size;
        self.run(tokens, &mut None, &mut |lm_head, normed, _| {
            // A few rows at a time: the logits of a whole piece may be large.
            let rows = normed.dim(0)?;
            for start in (0..rows).step_by(64) {
                let logits = lm_head.forward(&normed.narrow(0, start, 64.min(rows - start))?.contiguous()?)?;
                ids.extend(ops::to_vec(&logits)?.chunks_exact(vocab).map(argmax));
            }
            Ok(())
        })?;
        Ok(ids)
    }

    fn forward_probed(&mut self, tokens: &[u32], probe: &mut dyn Probe) -> Result<(), Error> {
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        let vocab = self.config.vocab_size;
        self.run(tokens, &mut Some(probe), &mut |lm_head, normed, probe| {
            record(probe, Site::Logits, vocab, &lm_head.forward(&normed)?)
        })
    }

    fn recurrent_state(&self, layer: usize, head: usize) -> Result<&[f32], Error> {
        let missing = Error::NoRecurrentState { layer, head };
        match self.layers.get(layer).map(|layer| &layer.mixer) {
            Some(Mixer::Linear(_, memory)) => {
                memory.state.chunks_exact(self.config.state_len()).nth(head).ok_or(missing)
            }
            Some(Mixer::Full(..)) | None => Err(missing),
        }
    }

    fn save(&self) -> Cache {
        let kernel = self.config.linear_conv_kernel_dim;
        let layers = self.layers.iter().map(|layer| match &layer.mixer {
            Mixer::Linear(_, memory) => LayerCache::Linear {
                conv: transpose(&memory.history, kernel, self.config.conv_dim()),
                recurrent: memory.state.clone(),
            },
            Mixer::Full(_, memory) => LayerCache::Full { keys: memory.keys.concat(), values: memory.values.concat() },
        });
        Cache { position: self.position, layers: layers.collect() }
    }

    fn restore(&mut self, cache: &Cache) -> Result<(), Error> {
        cache.check(&self.config)?;
        let (conv_dim, kernel) = (self.config.conv_dim(), self.config.linear_conv_kernel_dim);
        let split = |all: &[f32]| -> Vec<Vec<f32>> {
            let heads = self.config.num_key_value_heads;
            let len = all.len() / heads;
            (0..heads).map(|head| all[head * len..(head + 1) * len].to_vec()).collect()
        };
        for (layer, cache) in self.layers.iter_mut().zip(&cache.layers) {
            match (&mut layer.mixer, cache) {
                (Mixer::Linear(_, memory), LayerCache::Linear { conv, recurrent }) => {
                    let history = transpose(conv, conv_dim, kernel);
                    *memory = LinearMemory { history, state: recurrent.clone() };
                }
                (Mixer::Full(_, memory), LayerCache::Full { keys, values }) => {
                    *memory = FullMemory { keys: split(keys), values: split(values) };
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
}

/// `[rows, cols]` to `[cols, rows]`.
fn transpose(values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..cols).flat_map(|col| (0..rows).map(move |row| values[row * cols + col])).collect()
}

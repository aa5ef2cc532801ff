//! The weights of a whole dense model, and the way of tokens through them.

use super::layer::Layer;
use super::linear::{Input, Linear};
use super::linear_attention::Path;
use super::norm::RmsNorm;
use super::source::Source;
use super::stream::Stream;
use super::weight::Weight;
use crate::config::Config;
use crate::engine::argmax;
use crate::error::Error;
use crate::names::{EMBED_TOKENS, FINAL_NORM, LM_HEAD};
use crate::probe::{Probe, Site};

/// Tokens whose logits are computed together: those of a whole piece may be large.
const LOGIT_ROWS: usize = 64;

/// Weights, which any number of streams share.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) config: Config,
    embed_tokens: Weight,
    pub(crate) layers: Vec<Layer>,
    norm: RmsNorm,
    lm_head: Linear,
}

impl Model {
    pub(crate) fn build(source: &Source<'_>) -> Result<Self, Error> {
        let config = source.config.clone();
        let (v, d) = (config.vocab_size, config.hidden_size);
        let embed_tokens = source.matrix(EMBED_TOKENS, v, d)?;
        let lm_head = match config.tie_word_embeddings {
            true => Linear::new(embed_tokens.clone(), source.precision),
            false => Linear::load(source, LM_HEAD, v, d)?,
        };
        let layers = config.layer_types.iter().enumerate();
        let layers: Vec<Layer> = layers.map(|(i, &kind)| Layer::load(source, i, kind)).collect::<Result<_, _>>()?;
        let norm = RmsNorm::residual(source, FINAL_NORM)?;
        Ok(Self { config, embed_tokens, layers, norm, lm_head })
    }

    /// Runs tokens through the layers and the final norm: `[tokens, hidden]`. Every stream hears as many, one stream's
    /// after the other's.
    pub(crate) fn run(
        &self,
        tokens: &[u32],
        streams: &mut [&mut Stream],
        path: Path,
        probe: &mut Option<&mut dyn Probe>,
    ) -> Result<Vec<f32>, Error> {
        let width = self.config.hidden_size;
        let each = tokens.len() / streams.len().max(1);
        let mut h = Vec::with_capacity(tokens.len() * width);
        tokens.iter().for_each(|&token| self.embed_tokens.widen_rows(token as usize, 1, &mut h));
        record(probe, Site::Hidden(0), width, &h);
        for (i, layer) in self.layers.iter().enumerate() {
            layer.mix(&mut h, streams, path)?;
            record(probe, Site::Mixed(i), width, &h);
            layer.apply_mlp(&mut h)?;
            record(probe, Site::Hidden(i + 1), width, &h);
        }
        self.norm.apply(&mut h);
        record(probe, Site::Normed, width, &h);
        streams.iter_mut().for_each(|stream| stream.position += each);
        Ok(h)
    }

    /// The logits `[tokens, vocab]` of what the final norm gave.
    pub(crate) fn logits(&self, normed: &[f32]) -> Result<Vec<f32>, Error> {
        self.lm_head.forward(&Input::new(normed.to_vec(), self.config.hidden_size))
    }

    /// The same for tokens that were many in the layers.
    pub(crate) fn logits_of_some(&self, normed: &[f32]) -> Result<Vec<f32>, Error> {
        self.lm_head.forward(&Input::skipping_zeros(normed.to_vec(), self.config.hidden_size))
    }

    /// The largest logit's id for each of tokens that were many in the layers.
    pub(crate) fn choices(&self, normed: &[f32]) -> Result<Vec<u32>, Error> {
        let width = self.config.hidden_size;
        if let Some(ids) = self.lm_head.largest(&Input::skipping_zeros(normed.to_vec(), width)) {
            return Ok(ids);
        }
        let mut ids = Vec::with_capacity(normed.len() / width);
        for rows in normed.chunks(LOGIT_ROWS * width) {
            ids.extend(self.logits_of_some(rows)?.chunks_exact(self.config.vocab_size).map(argmax));
        }
        Ok(ids)
    }
}

pub(crate) fn record(probe: &mut Option<&mut dyn Probe>, site: Site, width: usize, x: &[f32]) {
    if let Some(probe) = probe {
        probe.record(site, width, x);
    }
}

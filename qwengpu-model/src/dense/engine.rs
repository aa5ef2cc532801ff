//! One stream on a dense model as an [`Engine`].

use std::num::NonZeroUsize;
use std::path::Path as FilePath;
use std::sync::Arc;

use super::batch::DenseBatch;
use super::linear_attention::Path;
use super::model::{Model, record};
use super::source::Source;
use super::stream::Stream;
use super::threads::Threads;
use crate::batch::Batch;
use crate::cache::Cache;
use crate::config::Config;
use crate::engine::{Engine, Precision, argmax, check_tokens};
use crate::error::Error;
use crate::load::Checkpoint;
use crate::part::{Part, View};
use crate::probe::{Probe, Site};
use crate::weights::SparseWeights;

/// Tokens that go through all layers together; a multiple of the delta rule's chunk.
const PIECE: usize = 512;

/// Multiplies every weight, as a general engine does. Rounds where the reference rounds.
///
/// Weights that a checkpoint has in the compute dtype stay in its files' maps; the files must not change meanwhile.
/// Clones share all weights.
///
/// Several tokens at once take the chunked way through the delta rule, as does the first token; a single token on top
/// of others takes the recurrent one.
#[derive(Debug, Clone)]
pub struct DenseEngine {
    model: Arc<Model>,
    stream: Stream,
    threads: Threads,
    logits: Vec<f32>,
}

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
        let model = Arc::new(Model::build(source)?);
        let stream = Stream::empty(&model.layers);
        Ok(Self { model, stream, threads: Threads::default(), logits: Vec::new() })
    }

    /// An engine on weights and threads that goes on behind a stream.
    pub(crate) fn on(model: Arc<Model>, threads: Threads, stream: Stream) -> Self {
        Self { model, stream, threads, logits: Vec::new() }
    }

    /// What it remembers.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    pub(crate) fn shared(&self) -> (Arc<Model>, Threads) {
        (Arc::clone(&self.model), self.threads.clone())
    }

    /// Runs all tokens through the layers and the final norm; `visit` sees the normed `[tokens, hidden]` of each piece.
    fn run(
        &mut self,
        tokens: &[u32],
        mut probe: Option<&mut dyn Probe>,
        mut visit: impl FnMut(&Model, &[f32], &mut Option<&mut dyn Probe>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { model, stream, .. } = self;
        let path = if tokens.len() == 1 && stream.position > 0 { Path::Recurrent } else { Path::Chunked };
        for piece in tokens.chunks(PIECE) {
            let normed = model.run(piece, &mut [&mut *stream], path, &mut probe)?;
            visit(model, &normed, &mut probe)?;
        }
        Ok(())
    }
}

impl Engine for DenseEngine {
    fn config(&self) -> &Config {
        &self.model.config
    }

    fn position(&self) -> usize {
        self.stream.position
    }

    fn forward(&mut self, tokens: &[u32]) -> Result<&[f32], Error> {
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        check_tokens(tokens, self.model.config.vocab_size)?;
        let width = self.model.config.hidden_size;
        self.logits = self.threads.clone().run(|| {
            let mut last = Vec::new();
            self.run(tokens, None, |_, normed, _| {
                last = normed[normed.len() - width..].to_vec();
                Ok(())
            })?;
            if tokens.len() == 1 { self.model.logits(&last) } else { self.model.logits_of_some(&last) }
        })?;
        Ok(&self.logits)
    }

    fn argmax_all(&mut self, tokens: &[u32]) -> Result<Vec<u32>, Error> {
        check_tokens(tokens, self.model.config.vocab_size)?;
        self.threads.clone().run(|| {
            let mut ids = Vec::with_capacity(tokens.len());
            self.run(tokens, None, |model, normed, _| {
                match tokens.len() {
                    1 => ids.push(argmax(&model.logits(normed)?)),
                    _ => ids.extend(model.choices(normed)?),
                }
                Ok(())
            })?;
            Ok(ids)
        })
    }

    /// On rayon's threads in any case, since a probe may belong to the caller's.
    fn forward_probed(&mut self, tokens: &[u32], probe: &mut dyn Probe) -> Result<(), Error> {
        if tokens.is_empty() {
            return Err(Error::NoTokens);
        }
        check_tokens(tokens, self.model.config.vocab_size)?;
        self.run(tokens, Some(probe), |model, normed, probe| {
            record(probe, Site::Logits, model.config.vocab_size, &model.logits(normed)?);
            Ok(())
        })
    }

    fn recurrent_state(&self, layer: usize, head: usize) -> Result<&[f32], Error> {
        self.stream.recurrent_state(&self.model.config, layer, head)
    }

    fn save(&self) -> Cache {
        self.stream.save(&self.model.config)
    }

    fn restore(&mut self, cache: &Cache) -> Result<(), Error> {
        self.stream = Stream::from_cache(cache, &self.model.config)?;
        Ok(())
    }

    fn reset(&mut self) {
        self.stream = Stream::empty(&self.model.layers);
    }

    fn batch(&mut self, streams: usize) -> Box<dyn Batch + '_> {
        self.reset();
        Box::new(DenseBatch::new(self, streams))
    }

    /// On threads of its own; without this, on rayon's.
    fn set_threads(&mut self, threads: NonZeroUsize) -> Result<(), Error> {
        self.threads = Threads::new(threads)?;
        Ok(())
    }
}

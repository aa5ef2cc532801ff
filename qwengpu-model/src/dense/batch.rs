//! Independent streams on one dense model, a token of each at a time: every read of the weights serves all of them.

use std::sync::Arc;

use super::engine::DenseEngine;
use super::linear_attention::Path;
use super::model::Model;
use super::stream::Stream;
use super::threads::Threads;
use crate::cache::Cache;
use crate::config::Config;
use crate::engine::{argmax, check_batch};
use crate::error::Error;

/// Streams that are decoded in lockstep.
///
/// Each has a memory of its own and computes what a [`DenseEngine`] computes for its tokens, one by one on the recurrent
/// way; only the order of sums may differ with the number of streams. Prompts are heard by an engine, whose cache a
/// stream goes on from.
///
/// ```no_run
/// use qwengpu_model::{DenseBatch, DenseEngine, Engine, Precision};
///
/// let mut engine = DenseEngine::from_dir("checkpoint".as_ref(), Precision::Bf16)?;
/// let mut batch = DenseBatch::new(&engine, 2);
/// for (stream, prompt) in [[1, 2, 3], [4, 5, 6]].iter().enumerate() {
///     engine.reset();
///     engine.forward(prompt)?;
///     batch.restore(stream, &engine.save())?;
/// }
/// let next = batch.argmax(&[Some(7), Some(8)])?;
/// assert_eq!(next.len(), 2);
/// # Ok::<(), qwengpu_model::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DenseBatch {
    model: Arc<Model>,
    streams: Vec<Stream>,
    threads: Threads,
}

impl DenseBatch {
    /// Some empty streams on an engine's weights and threads.
    #[must_use]
    pub fn new(engine: &DenseEngine, streams: usize) -> Self {
        let (model, threads) = engine.shared();
        let streams = vec![Stream::empty(&model.layers); streams];
        Self { model, streams, threads }
    }

    /// The model's dimensions and settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.model.config
    }

    /// Number of streams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there is no stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// A copy of everything that a stream remembers.
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn save(&self, stream: usize) -> Result<Cache, Error> {
        let missing = Error::NoStream { stream, streams: self.streams.len() };
        self.streams.get(stream).map(|own| own.save(&self.model.config)).ok_or(missing)
    }

    /// Lets a stream go on from a cache.
    ///
    /// # Errors
    /// If there is no such stream, or the cache doesn't fit the model.
    pub fn restore(&mut self, stream: usize, cache: &Cache) -> Result<(), Error> {
        let missing = Error::NoStream { stream, streams: self.streams.len() };
        *self.streams.get_mut(stream).ok_or(missing)? = Stream::from_cache(cache, &self.model.config)?;
        Ok(())
    }

    /// Every stream with a token consumes it; the others stay as they are. Returns the logits `[streams with a token,
    /// vocab]`.
    ///
    /// # Errors
    /// If there are not as many entries as streams, no stream has a token, or one is outside the vocabulary.
    pub fn forward(&mut self, tokens: &[Option<u32>]) -> Result<Vec<f32>, Error> {
        let heard = check_batch(tokens, self.streams.len(), self.model.config.vocab_size)?;
        let Self { model, streams, threads } = self;
        threads.run(|| {
            let active = streams.iter_mut().zip(tokens).filter(|(_, token)| token.is_some());
            let mut active: Vec<&mut Stream> = active.map(|(stream, _)| stream).collect();
            let normed = model.run(&heard, &mut active, Path::Recurrent, &mut None)?;
            model.logits(&normed)
        })
    }

    /// The same; returns for each stream with a token the id of its largest logit, the first of equals.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn argmax(&mut self, tokens: &[Option<u32>]) -> Result<Vec<Option<u32>>, Error> {
        let logits = self.forward(tokens)?;
        let mut ids = logits.chunks_exact(self.model.config.vocab_size).map(argmax);
        Ok(tokens.iter().map(|token| token.and_then(|_| ids.next())).collect())
    }
}

//! Independent streams on one dense model, a token of each at a time: every read of the weights serves all of them.

use std::sync::Arc;

use super::engine::DenseEngine;
use super::linear_attention::Path;
use super::model::Model;
use super::stream::Stream;
use super::threads::Threads;
use crate::batch::Batch;
use crate::cache::Cache;
use crate::config::Config;
use crate::engine::{Engine, argmax, check_batch};
use crate::error::Error;

/// Streams that are decoded in lockstep.
///
/// Each has a memory of its own and computes what a [`DenseEngine`] computes for its tokens, one by one on the recurrent
/// way; only the order of sums may differ with the number of streams. Prompts take the engine's way.
///
/// ```no_run
/// use qwengpu_model::{Batch, DenseBatch, DenseEngine, Precision};
///
/// let engine = DenseEngine::from_dir("checkpoint".as_ref(), Precision::Bf16)?;
/// let mut batch = DenseBatch::new(&engine, 2);
/// for (stream, prompt) in [[1, 2, 3], [4, 5, 6]].iter().enumerate() {
///     batch.prefill(stream, prompt)?;
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
        let streams = (0..streams).map(|_| Stream::empty(&model.layers)).collect();
        Self { model, streams, threads }
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

    fn stream(&self, stream: usize) -> Result<&Stream, Error> {
        self.streams.get(stream).ok_or(Error::NoStream { stream, streams: self.streams.len() })
    }

    fn stream_mut(&mut self, stream: usize) -> Result<&mut Stream, Error> {
        let missing = Error::NoStream { stream, streams: self.streams.len() };
        self.streams.get_mut(stream).ok_or(missing)
    }
}

impl Batch for DenseBatch {
    fn config(&self) -> &Config {
        &self.model.config
    }

    fn len(&self) -> usize {
        self.streams.len()
    }

    fn argmax(&mut self, tokens: &[Option<u32>]) -> Result<Vec<Option<u32>>, Error> {
        let logits = self.forward(tokens)?;
        let mut ids = logits.chunks_exact(self.model.config.vocab_size).map(argmax);
        Ok(tokens.iter().map(|token| token.and_then(|_| ids.next())).collect())
    }

    /// Many tokens at once, as an engine hears them.
    fn prefill(&mut self, stream: usize, tokens: &[u32]) -> Result<u32, Error> {
        let (model, threads) = (Arc::clone(&self.model), self.threads.clone());
        let place = self.stream_mut(stream)?;
        let own = std::mem::replace(place, Stream::nothing());
        let mut engine = DenseEngine::on(model, threads, own);
        let result = engine.argmax(tokens);
        *place = engine.into_stream();
        result
    }

    fn recurrent_state(&self, stream: usize, layer: usize, head: usize) -> Result<&[f32], Error> {
        self.stream(stream)?.recurrent_state(&self.model.config, layer, head)
    }

    fn save(&mut self, stream: usize) -> Result<Cache, Error> {
        Ok(self.stream(stream)?.save(&self.model.config))
    }

    fn restore(&mut self, stream: usize, cache: &Cache) -> Result<(), Error> {
        let model = Arc::clone(&self.model);
        let place = self.stream_mut(stream)?;
        *place = Stream::from_cache(cache, &model.config)?;
        Ok(())
    }

    fn reset(&mut self, stream: usize) -> Result<(), Error> {
        let empty = Stream::empty(&self.model.layers);
        *self.stream_mut(stream)? = empty;
        Ok(())
    }
}

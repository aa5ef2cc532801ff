//! Independent streams on one sparse model: what one stream has met is known to all.

use super::layer::Memory;
use super::model::SparseEngine;
use crate::cache::Cache;
use crate::config::Config;
use crate::engine::{Engine, check_batch};
use crate::error::Error;

/// Streams that are decoded in lockstep, with one copy of the weights and of the results that are kept.
///
/// Each computes what a [`SparseEngine`] computes for its tokens, bit for bit. Prompts are heard by an engine, whose
/// cache a stream goes on from.
///
/// ```no_run
/// use qwengpu_model::{Engine, Precision, SparseBatch, SparseEngine};
///
/// let mut engine = SparseEngine::from_dir("checkpoint".as_ref(), Precision::F32)?;
/// engine.forward(&[1, 2, 3])?;
/// let heard = engine.save();
/// let mut batch = SparseBatch::new(engine, 2);
/// batch.restore(0, &heard)?;
/// batch.restore(1, &heard)?;
/// let next = batch.argmax(&[Some(7), Some(8)])?;
/// assert_eq!(next.len(), 2);
/// # Ok::<(), qwengpu_model::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SparseBatch {
    /// Its own memory is empty whenever no stream has its turn.
    engine: SparseEngine,
    streams: Vec<Stream>,
}

/// What a stream remembers.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) position: usize,
    /// One for each layer.
    pub(crate) memories: Vec<Memory>,
}

impl SparseBatch {
    /// Some empty streams on an engine, which is reset.
    #[must_use]
    pub fn new(mut engine: SparseEngine, streams: usize) -> Self {
        engine.reset();
        let streams = vec![engine.empty_stream(); streams];
        Self { engine, streams }
    }

    /// The model's dimensions and settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.engine.config()
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
    pub fn save(&mut self, stream: usize) -> Result<Cache, Error> {
        self.with(stream, |engine| Ok(engine.save()))
    }

    /// Lets a stream go on from a cache.
    ///
    /// # Errors
    /// If there is no such stream, or the cache doesn't fit the model.
    pub fn restore(&mut self, stream: usize, cache: &Cache) -> Result<(), Error> {
        self.with(stream, |engine| engine.restore(cache))
    }

    /// Every stream with a token consumes it; the others stay as they are. Returns for each stream with a token the id
    /// of its largest logit, the first of equals.
    ///
    /// # Errors
    /// If there are not as many entries as streams, no stream has a token, or one is outside the vocabulary; nothing
    /// is consumed then.
    pub fn argmax(&mut self, tokens: &[Option<u32>]) -> Result<Vec<Option<u32>>, Error> {
        check_batch(tokens, self.streams.len(), self.config().vocab_size)?;
        let answer = |(stream, token): (usize, &Option<u32>)| {
            token.map(|token| self.with(stream, |engine| engine.argmax(&[token]))).transpose()
        };
        tokens.iter().enumerate().map(answer).collect()
    }

    /// Does something with the engine while it remembers what a stream remembers.
    fn with<T>(&mut self, stream: usize, turn: impl FnOnce(&mut SparseEngine) -> Result<T, Error>) -> Result<T, Error> {
        let missing = Error::NoStream { stream, streams: self.streams.len() };
        let stream = self.streams.get_mut(stream).ok_or(missing)?;
        self.engine.exchange(stream);
        let result = turn(&mut self.engine);
        self.engine.exchange(stream);
        result
    }
}

//! Independent streams on one sparse model: what one stream has met is known to all.

use std::borrow::BorrowMut;

use super::layer::Memory;
use super::model::SparseEngine;
use crate::batch::Batch;
use crate::cache::Cache;
use crate::config::Config;
use crate::engine::{Engine, check_batch};
use crate::error::Error;

/// Streams that are decoded in lockstep, with one copy of the weights and of the results that are kept.
///
/// Each computes what a [`SparseEngine`] computes for its tokens, bit for bit. The engine is the batch's own, or borrowed.
///
/// ```no_run
/// use qwengpu_model::{Batch, Engine, Precision, SparseBatch, SparseEngine};
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
pub struct SparseBatch<E = SparseEngine> {
    /// Its own memory is empty whenever no stream has its turn.
    engine: E,
    streams: Vec<Stream>,
}

/// What a stream remembers.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) position: usize,
    /// One for each layer.
    pub(crate) memories: Vec<Memory>,
}

impl<E: BorrowMut<SparseEngine>> SparseBatch<E> {
    /// Some empty streams on an engine, which is reset.
    #[must_use]
    pub fn new(mut engine: E, streams: usize) -> Self {
        engine.borrow_mut().reset();
        let streams = (0..streams).map(|_| engine.borrow().empty_stream()).collect();
        Self { engine, streams }
    }

    fn missing(&self, stream: usize) -> Error {
        Error::NoStream { stream, streams: self.streams.len() }
    }

    /// Does something with the engine while it remembers what a stream remembers.
    fn with<T>(&mut self, stream: usize, turn: impl FnOnce(&mut SparseEngine) -> Result<T, Error>) -> Result<T, Error> {
        let missing = self.missing(stream);
        let stream = self.streams.get_mut(stream).ok_or(missing)?;
        let engine = self.engine.borrow_mut();
        engine.exchange(stream);
        let result = turn(engine);
        engine.exchange(stream);
        result
    }
}

impl<E: BorrowMut<SparseEngine>> Batch for SparseBatch<E> {
    fn config(&self) -> &Config {
        self.engine.borrow().config()
    }

    fn len(&self) -> usize {
        self.streams.len()
    }

    fn argmax(&mut self, tokens: &[Option<u32>]) -> Result<Vec<Option<u32>>, Error> {
        check_batch(tokens, self.streams.len(), self.config().vocab_size)?;
        let answer = |(stream, token): (usize, &Option<u32>)| {
            token.map(|token| self.with(stream, |engine| engine.argmax(&[token]))).transpose()
        };
        tokens.iter().enumerate().map(answer).collect()
    }

    fn prefill(&mut self, stream: usize, tokens: &[u32]) -> Result<u32, Error> {
        self.with(stream, |engine| engine.argmax(tokens))
    }

    fn recurrent_state(&self, stream: usize, layer: usize, head: usize) -> Result<&[f32], Error> {
        let stream = self.streams.get(stream).ok_or(self.missing(stream))?;
        let missing = Error::NoRecurrentState { layer, head };
        match stream.memories.get(layer) {
            Some(Memory::Linear(memory)) => memory.state.of_head(head).ok_or(missing),
            Some(Memory::Full(_)) | None => Err(missing),
        }
    }

    fn save(&mut self, stream: usize) -> Result<Cache, Error> {
        self.with(stream, |engine| Ok(engine.save()))
    }

    fn restore(&mut self, stream: usize, cache: &Cache) -> Result<(), Error> {
        self.with(stream, |engine| engine.restore(cache))
    }

    fn reset(&mut self, stream: usize) -> Result<(), Error> {
        self.with(stream, |engine| {
            engine.reset();
            Ok(())
        })
    }
}

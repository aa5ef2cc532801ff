//! A Qwen3.5 model with the compiled weights as an engine.

use std::fmt;

use qwengpu_circuit::StateLocation;
use qwengpu_isa::{Record, RecordTable};

use super::{Engine, Listener, Speaker, decode};
use crate::error::RunError;

/// A model and what a host must know of it.
pub(crate) struct ModelSource {
    /// The model.
    pub(crate) model: Box<dyn qwengpu_model::Engine>,
    /// The records, in the order of their tokens.
    pub(crate) table: RecordTable,
    /// The id of the first record's token.
    pub(crate) first_token: u32,
    /// Where the recurrent states keep the machine's states.
    pub(crate) locations: Vec<StateLocation>,
}

impl fmt::Debug for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSource").field("first_token", &self.first_token).finish_non_exhaustive()
    }
}

/// Runs launches on a model: tokens in, the first of the largest logits out.
#[derive(Debug)]
pub(crate) struct ModelEngine<'a> {
    source: &'a mut ModelSource,
}

impl<'a> ModelEngine<'a> {
    pub(crate) fn new(source: &'a mut ModelSource) -> Self {
        Self { source }
    }

    fn speak(&mut self, heard: &[u32], position: usize) -> Result<Record, RunError> {
        let token = self.source.model.argmax(heard)?;
        let index = token.checked_sub(self.source.first_token);
        index.and_then(|index| self.source.table.record(index)).ok_or(RunError::ForeignToken { token, position })
    }

    fn token(&self, record: Record) -> Result<u32, RunError> {
        let index = self.source.table.get(record).ok_or(RunError::NoRecord(record))?;
        Ok(self.source.first_token + index)
    }
}

impl Speaker for ModelEngine<'_> {
    fn begin(&mut self, prompt: &[Record]) -> Result<Record, RunError> {
        self.source.model.reset();
        let tokens = prompt.iter().map(|&record| self.token(record)).collect::<Result<Vec<_>, _>>()?;
        self.speak(&tokens, 0)
    }

    fn answer(&mut self, record: Record, position: usize) -> Result<Record, RunError> {
        let token = self.token(record)?;
        self.speak(&[token], position)
    }
}

impl Engine for ModelEngine<'_> {
    fn run(&mut self, prompt: &[Record], listener: &mut Listener<'_>) -> Result<(), RunError> {
        decode(self, prompt, listener)
    }

    fn global_memory(&self) -> Result<Vec<u32>, RunError> {
        crate::memory::read(self.source.table.spec(), &self.source.locations, self.source.model.as_ref())
    }
}

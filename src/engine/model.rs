//! A Qwen3.5 model with the compiled weights as an engine.

use std::fmt;

use qwengpu_circuit::StateLocation;
use qwengpu_isa::{Record, RecordTable};
use qwengpu_model::Cache;

use super::{Engine, Listener, Speaker, decode, draft, heard};
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
    /// What the machine has said last and not heard yet.
    pub(crate) unheard: Option<Record>,
    /// Programs with the caches of machines that heard nothing else, the last used last.
    pub(crate) programs: Vec<(Vec<Record>, Cache)>,
}

/// Programs that are kept.
const KEPT_PROGRAMS: usize = 8;

impl ModelSource {
    pub(crate) fn new(
        model: Box<dyn qwengpu_model::Engine>,
        table: RecordTable,
        first_token: u32,
        locations: Vec<StateLocation>,
    ) -> Self {
        Self { model, table, first_token, locations, unheard: None, programs: Vec::new() }
    }
}

impl fmt::Debug for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSource").field("first_token", &self.first_token).finish_non_exhaustive()
    }
}

/// Runs launches on a model: tokens in, the first of the largest logits out.
#[derive(Debug)]
pub(crate) struct ModelEngine<'a> {
    pub(super) source: &'a mut ModelSource,
}

impl<'a> ModelEngine<'a> {
    pub(crate) fn new(source: &'a mut ModelSource) -> Self {
        Self { source }
    }

    pub(super) fn tokens(&self, records: &[Record]) -> Result<Vec<u32>, RunError> {
        let token = |&record: &Record| {
            let index = self.source.table.get(record).ok_or(RunError::NoRecord(record))?;
            Ok(self.source.first_token + index)
        };
        records.iter().map(token).collect()
    }

    /// The record of a token, if it is one.
    pub(super) fn record(&self, token: u32) -> Option<Record> {
        self.source.table.record(token.checked_sub(self.source.first_token)?)
    }
}

impl Speaker for ModelEngine<'_> {
    fn answer(&mut self, records: &[Record], position: usize) -> Result<Record, RunError> {
        let token = self.source.model.argmax(&self.tokens(records)?)?;
        self.record(token).ok_or(RunError::ForeignToken { token, position })
    }

    fn unheard(&mut self) -> &mut Option<Record> {
        &mut self.source.unheard
    }
}

impl Engine for ModelEngine<'_> {
    fn power_on(&mut self, program: &[Record]) -> Result<(), RunError> {
        self.source.unheard = None;
        let ModelSource { model, programs, .. } = &mut *self.source;
        if let Some(kept) = programs.iter().position(|(kept, _)| kept == program) {
            programs[kept..].rotate_left(1);
            return Ok(programs.last().map_or(Ok(()), |(_, cache)| model.restore(cache))?);
        }
        model.reset();
        if program.is_empty() {
            return Ok(());
        }
        let tokens = self.tokens(program)?;
        let ModelSource { model, programs, .. } = &mut *self.source;
        model.forward(&tokens)?;
        if programs.len() == KEPT_PROGRAMS {
            programs.remove(0);
        }
        programs.push((program.to_vec(), model.save()));
        Ok(())
    }

    fn run(&mut self, prompt: &[Record], draft: &[Record], listener: &mut Listener<'_>) -> Result<usize, RunError> {
        if draft.is_empty() {
            return decode(self, prompt, listener).map(|()| 0);
        }
        draft::confirm(self, prompt, draft, listener)
    }

    fn answers(&mut self, prompt: &[Record], spoken: &[Record]) -> Result<Vec<Option<Record>>, RunError> {
        let Some((last, before)) = spoken.split_last() else { return Ok(Vec::new()) };
        let heard = [heard(self, prompt), before.to_vec()].concat();
        let tokens = self.tokens(&heard)?;
        // Nobody asks for the answers in front of these.
        let (unasked, asked) = tokens.split_at(tokens.len().saturating_sub(spoken.len()));
        if !unasked.is_empty() {
            self.source.model.forward(unasked)?;
        }
        let answers = self.source.model.argmax_all(asked)?;
        self.source.unheard = Some(*last);
        Ok(answers.into_iter().map(|token| self.record(token)).collect())
    }

    fn global_memory(&self) -> Result<Vec<u32>, RunError> {
        crate::memory::read(self.source.table.spec(), &self.source.locations, self.source.model.as_ref())
    }
}

//! A model in a batch: each stream is a machine of its own.

use std::fmt;

use qwengpu_circuit::StateLocation;
use qwengpu_isa::Record;
use qwengpu_model::Batch;

use super::model::ModelSource;
use super::programs::Programs;
use super::vocabulary::Vocabulary;
use crate::error::RunError;

/// Machines on the streams of one model.
pub(crate) struct BatchEngine<'a> {
    batch: Box<dyn Batch + 'a>,
    vocabulary: &'a Vocabulary,
    locations: &'a [StateLocation],
    programs: &'a mut Programs,
}

impl fmt::Debug for BatchEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchEngine").field("streams", &self.batch.len()).finish_non_exhaustive()
    }
}

impl<'a> BatchEngine<'a> {
    /// The source's own machine is off afterwards.
    pub(crate) fn new(source: &'a mut ModelSource, streams: usize) -> Self {
        let ModelSource { model, vocabulary, locations, unheard, programs } = source;
        *unheard = None;
        Self { batch: model.batch(streams), vocabulary, locations, programs }
    }

    /// Number of machines.
    pub(crate) fn streams(&self) -> usize {
        self.batch.len()
    }

    /// Forgets everything that a machine has heard, and lets it hear a program.
    pub(crate) fn power_on(&mut self, stream: usize, program: &[Record]) -> Result<(), RunError> {
        if let Some(cache) = self.programs.find(program) {
            return Ok(self.batch.restore(stream, cache)?);
        }
        self.batch.reset(stream)?;
        if program.is_empty() {
            return Ok(());
        }
        self.batch.prefill(stream, &self.vocabulary.tokens(program)?)?;
        self.programs.keep(program, self.batch.save(stream)?);
        Ok(())
    }

    /// Lets a machine hear a prompt; gives the first record that it speaks.
    pub(crate) fn prompt(&mut self, stream: usize, prompt: &[Record]) -> Result<Record, RunError> {
        let token = self.batch.prefill(stream, &self.vocabulary.tokens(prompt)?)?;
        self.vocabulary.record(token).ok_or(RunError::ForeignToken { token, position: 0 })
    }

    /// Lets each machine hear what it has spoken last, if it is to go on, which is the record at the position beside it
    /// counted from 1; gives what each speaks next.
    pub(crate) fn next(
        &mut self,
        heard: &[Option<(Record, usize)>],
    ) -> Result<Vec<Option<Result<Record, RunError>>>, RunError> {
        let token =
            |heard: &Option<(Record, usize)>| heard.map(|(record, _)| self.vocabulary.token(record)).transpose();
        let tokens = heard.iter().map(token).collect::<Result<Vec<_>, _>>()?;
        let answers = self.batch.argmax(&tokens)?.into_iter().zip(heard);
        let record = |(token, heard): (Option<u32>, &Option<(Record, usize)>)| {
            let ((_, position), token) = ((*heard)?, token?);
            Some(self.vocabulary.record(token).ok_or(RunError::ForeignToken { token, position }))
        };
        Ok(answers.map(record).collect())
    }

    /// The words of a machine's global memory.
    pub(crate) fn global_memory(&self, stream: usize) -> Result<Vec<u32>, RunError> {
        let width = self.batch.config().linear_value_head_dim;
        crate::memory::read(self.vocabulary.spec(), self.locations, width, |layer, head| {
            self.batch.recurrent_state(stream, layer, head)
        })
    }
}

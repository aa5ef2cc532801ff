//! A Qwen3.5 model with the compiled weights as an engine.

use std::fmt;

use qwengpu_circuit::StateLocation;
use qwengpu_isa::Record;

use super::programs::Programs;
use super::vocabulary::Vocabulary;
use super::{Engine, Listener, Speaker, decode, draft, heard};
use crate::error::RunError;

/// A model and what a host must know of it.
pub(crate) struct ModelSource {
    /// The model.
    pub(crate) model: Box<dyn qwengpu_model::Engine>,
    /// Which record is which token.
    pub(crate) vocabulary: Vocabulary,
    /// Where the recurrent states keep the machine's states.
    pub(crate) locations: Vec<StateLocation>,
    /// What the machine has said last and not heard yet.
    pub(crate) unheard: Option<Record>,
    /// Programs that need not be heard again.
    pub(crate) programs: Programs,
}

impl ModelSource {
    pub(crate) fn new(
        model: Box<dyn qwengpu_model::Engine>,
        vocabulary: Vocabulary,
        locations: Vec<StateLocation>,
    ) -> Self {
        Self { model, vocabulary, locations, unheard: None, programs: Programs::default() }
    }
}

impl fmt::Debug for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSource").field("spec", self.vocabulary.spec()).finish_non_exhaustive()
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
        self.source.vocabulary.tokens(records)
    }

    /// The record of a token, if it is one.
    pub(super) fn record(&self, token: u32) -> Option<Record> {
        self.source.vocabulary.record(token)
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
        if let Some(cache) = programs.find(program) {
            return Ok(model.restore(cache)?);
        }
        model.reset();
        if program.is_empty() {
            return Ok(());
        }
        let tokens = self.tokens(program)?;
        let ModelSource { model, programs, .. } = &mut *self.source;
        model.forward(&tokens)?;
        programs.keep(program, model.save());
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
        let ModelSource { model, vocabulary, locations, .. } = &*self.source;
        let width = model.config().linear_value_head_dim;
        crate::memory::read(vocabulary.spec(), locations, width, |layer, head| model.recurrent_state(layer, head))
    }
}

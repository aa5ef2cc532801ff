//! A launch under way: what was heard of it, and what comes of that.

use std::ops::ControlFlow;
use std::time::Instant;

use qwengpu_isa::Record;

use crate::driver::Reference;
use crate::error::{Error, RunError};
use crate::kernel::Kernel;
use crate::launch::{Check, Launch, LaunchResult, Outcome};
use crate::layout::Layout;
use crate::trace::{Fault, Position};

/// A launch that a machine speaks.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    launch: &'a Launch,
    layout: Layout,
    prompt: Vec<Record>,
    continues: bool,
    reference: Option<Reference>,
    heard: Heard<'a>,
    begun: Instant,
    prompt_seconds: f64,
}

impl<'a> Running<'a> {
    pub(crate) fn new(
        kernel: &'a Kernel,
        launch: &'a Launch,
        layout: Layout,
        prompt: Vec<Record>,
        reference: Option<Reference>,
        continues: bool,
        start: Position,
    ) -> Self {
        let heard = Heard { kernel, position: start, records: Vec::new(), fault: None, mismatch: None };
        Self { launch, layout, prompt, continues, reference, heard, begun: Instant::now(), prompt_seconds: 0.0 }
    }

    /// Everything that the machine hears, whether it hears it once more or has it already.
    pub(crate) fn prompt(&self) -> &[Record] {
        &self.prompt
    }

    /// Number of records spoken.
    pub(crate) fn position(&self) -> usize {
        self.heard.records.len()
    }

    /// Takes a record; breaks when there is nothing more to hear.
    pub(crate) fn hear(&mut self, record: Record) -> ControlFlow<()> {
        if self.heard.records.is_empty() {
            self.prompt_seconds = self.begun.elapsed().as_secs_f64();
        }
        self.heard.hear(record, self.reference.as_ref());
        let ended = self.heard.has_ended() || self.heard.records.len() >= self.launch.max_tokens;
        if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What the launch gave. `ran` is how many records a draft said beforehand, or why the engine broke down; `memory`
    /// reads global memory.
    pub(crate) fn conclude(
        self,
        ran: Result<usize, RunError>,
        memory: impl FnOnce() -> Result<Vec<u32>, RunError>,
    ) -> Result<LaunchResult, Error> {
        let seconds = self.begun.elapsed().as_secs_f64() - self.prompt_seconds;
        let Self { launch, layout, prompt, continues, reference, mut heard, prompt_seconds, .. } = self;
        let drafted = ran.as_ref().copied().unwrap_or(0);
        let (memory, check) = match (heard.mismatch.take(), ran) {
            // Behind a record that differs, memory means nothing.
            (Some(mismatch), _) => (None, Some(mismatch)),
            (None, Ok(_)) => heard.read(memory, &layout, reference.as_ref())?,
            (None, Err(error)) => (None, Some(heard.broken(error, reference.as_ref())?)),
        };
        let outcome = match (&memory, heard.fault.take()) {
            (None, _) => Outcome::Mismatch,
            (Some(_), Some(fault)) => Outcome::Fault(fault),
            (Some(_), None) if heard.records.last() == Some(&Record::Halt) => Outcome::Finished,
            (Some(_), None) => Outcome::TokenLimit(launch.max_tokens),
        };
        let records = heard.records;
        Ok(LaunchResult {
            buffers: memory.map(|memory| layout.read(&memory, &launch.arguments)).unwrap_or_default(),
            warp_instructions: records.iter().filter(|record| record.starts_instruction()).count(),
            tokens: records.len(),
            drafted,
            records,
            prompt,
            continues,
            seconds,
            prompt_seconds,
            outcome,
            check,
        })
    }
}

/// What was heard of a stream.
#[derive(Debug)]
struct Heard<'a> {
    kernel: &'a Kernel,
    position: Position,
    records: Vec<Record>,
    fault: Option<Fault>,
    mismatch: Option<Check>,
}

impl Heard<'_> {
    fn hear(&mut self, record: Record, reference: Option<&Reference>) {
        if let Some(reference) = reference {
            let position = self.records.len();
            let expected = reference.records.get(position).copied();
            if expected != Some(record) {
                self.mismatch = Some(Check::Record { position, expected, got: record });
            }
        }
        self.records.push(record);
        self.position.follow(record);
        match (&mut self.fault, record) {
            (None, Record::Fault { kind, lane }) => {
                self.fault = Some(Fault::new(self.kernel, self.position, kind, lane));
            }
            (Some(fault), _) => fault.hear(record),
            (None, _) => {}
        }
    }

    fn has_ended(&self) -> bool {
        self.mismatch.is_some() || self.records.last() == Some(&Record::Halt)
    }

    /// Memory at the end of a stream, and the comparison with the reference if there is one.
    fn read(
        &self,
        memory: impl FnOnce() -> Result<Vec<u32>, RunError>,
        layout: &Layout,
        reference: Option<&Reference>,
    ) -> Result<(Option<Vec<u32>>, Option<Check>), RunError> {
        // An engine that was never started has no memory.
        let memory = if self.records.is_empty() { Ok(layout.global.clone()) } else { memory() };
        match memory {
            Ok(memory) => {
                let check = reference.map(|reference| reference.compare_memory(&memory, self.has_ended()));
                Ok((Some(memory), check))
            }
            Err(error) => Ok((None, Some(self.broken(error, reference)?))),
        }
    }

    /// An engine that breaks down is a difference where there is a reference, and an error where there is none.
    fn broken(&self, error: RunError, reference: Option<&Reference>) -> Result<Check, RunError> {
        match reference {
            Some(_) => Ok(Check::Broken { position: self.records.len(), reason: error.to_string() }),
            None => Err(error),
        }
    }
}

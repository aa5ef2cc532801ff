//! Engines: what can speak the records of a launch.

mod batch;
mod draft;
mod interp;
mod model;
mod netlist;
mod programs;
mod vocabulary;

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use qwengpu_isa::Record;

use crate::error::RunError;

pub(crate) use batch::BatchEngine;
pub(crate) use interp::InterpEngine;
pub(crate) use model::{ModelEngine, ModelSource};
pub(crate) use netlist::{NetlistEngine, NetlistHistory};
pub(crate) use vocabulary::Vocabulary;

/// What runs a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineKind {
    /// The interpreter of the instruction set: the reference.
    Interp,
    /// The machine's netlist on plain integers, before it becomes weights.
    Netlist,
    /// The compiled weights; zeros are never multiplied.
    Sparse,
    /// The compiled weights in full matrices, the arithmetic of transformers.
    Dense,
}

impl EngineKind {
    /// Every engine.
    pub const ALL: [Self; 4] = [Self::Interp, Self::Netlist, Self::Sparse, Self::Dense];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interp => "interp",
            Self::Netlist => "netlist",
            Self::Sparse => "sparse",
            Self::Dense => "dense",
        }
    }

    /// Whether it runs weights.
    #[must_use]
    pub const fn is_model(self) -> bool {
        matches!(self, Self::Sparse | Self::Dense)
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == text);
        found.ok_or_else(|| format!("{text:?} is no engine: choose sparse, dense, interp or netlist"))
    }
}

/// Something that hears a prompt and speaks records until its listener has heard enough.
///
/// Its machine goes on between runs, until it is switched on again.
pub(crate) trait Engine: fmt::Debug {
    /// Forgets everything and hears a program.
    fn power_on(&mut self, program: &[Record]) -> Result<(), RunError>;

    /// Hears the prompt of a launch and speaks. A model hears what a draft says it will speak many records at a time, as
    /// long as it would speak them; returns their number.
    fn run(&mut self, prompt: &[Record], draft: &[Record], listener: &mut Listener<'_>) -> Result<usize, RunError>;

    /// Hears a prompt and what is said to have been spoken; gives what it would speak in front of each of these, `None`
    /// for what is no record.
    fn answers(&mut self, prompt: &[Record], spoken: &[Record]) -> Result<Vec<Option<Record>>, RunError>;

    /// The words of global memory after the records that were spoken.
    fn global_memory(&self) -> Result<Vec<u32>, RunError>;
}

/// Takes each record; breaks when it wants no more.
pub(crate) type Listener<'a> = dyn FnMut(Record) -> ControlFlow<()> + 'a;

/// One step of greedy decoding: an engine that hears records and answers with the next.
trait Speaker {
    /// Hears records and answers to the last of them; `position` records were spoken so far.
    fn answer(&mut self, records: &[Record], position: usize) -> Result<Record, RunError>;

    /// What was spoken last and not heard yet.
    fn unheard(&mut self) -> &mut Option<Record>;
}

/// What a speaker hears for a prompt: in front of it, what it has said last.
fn heard(speaker: &mut dyn Speaker, prompt: &[Record]) -> Vec<Record> {
    speaker.unheard().take().into_iter().chain(prompt.iter().copied()).collect()
}

/// The greedy loop: each answer is heard in its turn. The last one stays unheard, in front of the next prompt.
fn decode(speaker: &mut dyn Speaker, prompt: &[Record], listener: &mut Listener<'_>) -> Result<(), RunError> {
    let heard = heard(speaker, prompt);
    let record = speaker.answer(&heard, 0)?;
    decode_from(speaker, record, 0, listener)
}

/// The same, from the record on that the speaker has answered with at `position`.
fn decode_from(
    speaker: &mut dyn Speaker,
    mut record: Record,
    position: usize,
    listener: &mut Listener<'_>,
) -> Result<(), RunError> {
    for position in position + 1.. {
        if listener(record).is_break() {
            *speaker.unheard() = Some(record);
            break;
        }
        record = speaker.answer(&[record], position)?;
    }
    Ok(())
}

//! Engines: what can speak the records of a launch.

mod interp;
mod model;
mod netlist;

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use qwengpu_isa::Record;

use crate::error::RunError;

pub(crate) use interp::InterpEngine;
pub(crate) use model::{ModelEngine, ModelSource};
pub(crate) use netlist::NetlistEngine;

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

/// Something that hears a prompt on a fresh machine and speaks records until its listener has heard enough.
pub(crate) trait Engine: fmt::Debug {
    /// Hears the prompt and speaks.
    fn run(&mut self, prompt: &[Record], listener: &mut Listener<'_>) -> Result<(), RunError>;

    /// The words of global memory after the records that were spoken.
    fn global_memory(&self) -> Result<Vec<u32>, RunError>;
}

/// Takes each record; breaks when it wants no more.
pub(crate) type Listener<'a> = dyn FnMut(Record) -> ControlFlow<()> + 'a;

/// One step of greedy decoding: an engine that hears a record and answers with the next.
trait Speaker {
    /// Forgets everything, hears the prompt, and answers.
    fn begin(&mut self, prompt: &[Record]) -> Result<Record, RunError>;

    /// Hears a record and answers; `position` records were spoken so far.
    fn answer(&mut self, record: Record, position: usize) -> Result<Record, RunError>;
}

/// The greedy loop: each answer is heard in its turn, but for the last one.
fn decode(speaker: &mut dyn Speaker, prompt: &[Record], listener: &mut Listener<'_>) -> Result<(), RunError> {
    let mut record = speaker.begin(prompt)?;
    for position in 1.. {
        if listener(record).is_break() {
            break;
        }
        record = speaker.answer(record, position)?;
    }
    Ok(())
}

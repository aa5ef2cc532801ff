//! A launch and what it gives.

use std::fmt;

use qwengpu_isa::{Dim3, Record};

use crate::argument::{Argument, Buffer};
use crate::trace::Fault;

/// Records after which a launch is cut off, unless it says otherwise.
const DEFAULT_MAX_TOKENS: usize = 1_000_000;

/// One launch of a kernel.
///
/// ```
/// use qwengpu::{Argument, Dim3, Launch};
/// let launch = Launch::new(Dim3::linear(1), Dim3::linear(4))
///     .argument(Argument::buffer(&[1_i32, 2, 3, 4]))
///     .argument(4_i32);
/// assert_eq!(launch.arguments.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// CTAs in each dimension.
    pub grid: Dim3,
    /// Threads of a CTA in each dimension.
    pub block: Dim3,
    /// The arguments, in the kernel's order.
    pub arguments: Vec<Argument>,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Records after which the launch is cut off.
    pub max_tokens: usize,
    /// Whether every record, and memory at the end, is compared with the interpreter's.
    pub check: bool,
    /// What the launch finds in the machine.
    pub start: Start,
    /// Records that a model confirms many at a time.
    pub draft: Draft,
}

/// Records that the machine might speak, for a model to confirm in a few forwards instead of speaking one by one.
///
/// It is the model that decides: at the first record that is not its own arg-max, its own stands, and it speaks the rest
/// by itself. Engines that are no models speak anyhow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Draft {
    /// No draft.
    #[default]
    Nothing,
    /// What the interpreter speaks.
    Interp,
    /// These.
    Records(Vec<Record>),
}

/// What a launch finds in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// Nothing: the machine is switched on for it.
    #[default]
    Fresh,
    /// Program and memory of the launches before it; buffers and the kernel's data are written over them. A program
    /// that is there already is not spoken again.
    Overwrite,
    /// The same, and global memory stays as it is: only sizes and types of buffers count, not their values.
    Keep,
}

impl Launch {
    /// A launch without arguments.
    #[must_use]
    pub const fn new(grid: Dim3, block: Dim3) -> Self {
        Self {
            grid,
            block,
            arguments: Vec::new(),
            shared_bytes: 0,
            max_tokens: DEFAULT_MAX_TOKENS,
            check: false,
            start: Start::Fresh,
            draft: Draft::Nothing,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<Argument>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Compares every record with the interpreter's.
    #[must_use]
    pub const fn checked(mut self) -> Self {
        self.check = true;
        self
    }
}

/// How a launch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The grid has ended.
    Finished,
    /// The kernel faulted.
    Fault(Fault),
    /// The launch was cut off after this many records.
    TokenLimit(usize),
    /// The launch was stopped where it differs from the interpreter; [`LaunchResult::check`] says how.
    Mismatch,
}

/// The result of comparing a launch with the interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// Every record is the same, and so is global memory.
    Equal,
    /// A record differs.
    Record {
        /// Number of records before it.
        position: usize,
        /// What the interpreter speaks; `None` if it has ended.
        expected: Option<Record>,
        /// What the engine speaks.
        got: Record,
    },
    /// The engine broke down, so that what it would have spoken or holds is unknown.
    Broken {
        /// Number of records before.
        position: usize,
        /// How.
        reason: String,
    },
    /// A word of global memory differs at the end.
    Memory {
        /// The word.
        word: usize,
        /// What the interpreter's memory holds.
        expected: u32,
        /// What the engine's memory holds.
        got: u32,
    },
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("every record is the interpreter's"),
            Self::Record { position, expected: Some(expected), got } => {
                write!(f, "record {position} is {got}, the interpreter speaks {expected}")
            }
            Self::Record { position, expected: None, got } => {
                write!(f, "record {position} is {got}, the interpreter has ended")
            }
            Self::Broken { position, reason } => write!(f, "the engine broke down after {position} records: {reason}"),
            Self::Memory { word, expected, got } => {
                write!(f, "word {word} of global memory is {got:#x}, the interpreter's is {expected:#x}")
            }
        }
    }
}

/// What a launch gave.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchResult {
    /// The buffers among the arguments, in order, with their final contents; none after [`Outcome::Mismatch`].
    pub buffers: Vec<Buffer>,
    /// The records that the machine heard in front of the launch.
    pub prompt: Vec<Record>,
    /// Whether the machine went on from the launch before, and was not switched on for this one.
    pub continues: bool,
    /// The records that it spoke, `HALT` included.
    pub records: Vec<Record>,
    /// Warp instructions begun.
    pub warp_instructions: usize,
    /// Tokens spoken: the number of records.
    pub tokens: usize,
    /// Those of them that a draft said beforehand.
    pub drafted: usize,
    /// Seconds from the end of the prompt to the last record.
    pub seconds: f64,
    /// Seconds for the prompt and the first record.
    pub prompt_seconds: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// The comparison with the interpreter, if it was asked for.
    pub check: Option<Check>,
}

impl LaunchResult {
    /// Whether the kernel finished and nothing differs from the interpreter.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.outcome == Outcome::Finished && self.check.as_ref().is_none_or(|check| *check == Check::Equal)
    }

    /// Tokens spoken each second; 0 if none were, or in no time.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 52 bits of the count")]
    pub fn tokens_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.tokens as f64 / self.seconds } else { 0.0 }
    }
}

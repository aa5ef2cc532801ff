//! A machine that is driven by records alone.

use qwengpu_isa::{Axis, ConstIdx, Dim3, LaneMask, MachineSpec, Pc, Record, RecordTable, SpecError};
use thiserror::Error;

use crate::machine::Machine;
use crate::scheduler::Execution;
use crate::trace::Run;

/// Runs a prompt on a machine that has just been switched on.
///
/// # Errors
///
/// Fails if the sizes of the machine are invalid or the prompt is malformed.
pub fn run_stream(spec: MachineSpec, prompt: &[Record], step_limit: u64) -> Result<Run, StreamError> {
    let mut machine = Machine::power_on(spec)?;
    machine.run_prompt(prompt, step_limit)
}

impl Machine {
    /// Hears a prompt and runs the launch it describes to its end, or until `step_limit` warp instructions.
    ///
    /// # Errors
    ///
    /// Fails if the prompt is malformed; the records in front of the error have taken effect.
    pub fn run_prompt(&mut self, prompt: &[Record], step_limit: u64) -> Result<Run, StreamError> {
        self.hear(prompt, step_limit).map(Execution::finish)
    }

    /// Hears a prompt, which must end in `GO`; the execution yields what happens, event by event.
    ///
    /// Its records may come in any order, except that `VAL` follows the record that opens its word.
    ///
    /// # Errors
    ///
    /// Fails if the prompt is malformed; the records in front of the error have taken effect.
    pub fn hear(&mut self, prompt: &[Record], step_limit: u64) -> Result<Execution<'_>, StreamError> {
        let table = RecordTable::new(&self.spec)?;
        let mut open = None;
        let mut threads = None;
        for (position, &record) in prompt.iter().enumerate() {
            let error = |kind| StreamError::Record { position, record, kind };
            if table.get(record).is_none() {
                return Err(error(StreamErrorKind::NotOnThisMachine));
            }
            match record {
                Record::Rom { pc } => {
                    self.rom[pc.index()] = 0;
                    open = Some(OpenWord::Rom(pc));
                }
                Record::Const { index } => {
                    self.constants[index.index()] = 0;
                    open = Some(OpenWord::Constant(index));
                }
                Record::Gmem { word } => {
                    self.memories.global[usize::from(word)] = 0;
                    open = Some(OpenWord::Global(word));
                }
                Record::Val { mask, position: byte_position, byte } => {
                    let word = open.ok_or_else(|| error(StreamErrorKind::NoOpenWord))?;
                    self.set_byte(word, mask, byte_position, byte).map_err(error)?;
                }
                Record::Ntid { axis, value } | Record::Nctaid { axis, value } => {
                    if value == 0 {
                        return Err(error(StreamErrorKind::Zero));
                    }
                    let index = match record {
                        Record::Ntid { .. } => ConstIdx::ntid(axis),
                        _ => ConstIdx::nctaid(axis),
                    };
                    self.constants[index.index()] = value.into();
                }
                Record::Threads { count: 0 } => return Err(error(StreamErrorKind::Zero)),
                Record::Threads { count } => threads = Some(count),
                Record::Go if position + 1 < prompt.len() => return Err(error(StreamErrorKind::NotLast)),
                Record::Go => {
                    let threads = threads.ok_or_else(|| error(StreamErrorKind::NoThreads))?;
                    let grid = self.grid().ok_or_else(|| error(StreamErrorKind::NoGrid))?;
                    return Ok(Execution::new(self, grid, threads, step_limit));
                }
                Record::Exec { .. }
                | Record::ValNext { .. }
                | Record::Ramp { .. }
                | Record::RampNext { .. }
                | Record::Fill { .. }
                | Record::FillNext { .. }
                | Record::MemNext { .. }
                | Record::PredNext { .. }
                | Record::Mem { .. }
                | Record::Pred { .. }
                | Record::Warp { .. }
                | Record::CtaX { .. }
                | Record::CtaY { .. }
                | Record::CtaZ { .. }
                | Record::Release
                | Record::Fault { .. }
                | Record::Halt => return Err(error(StreamErrorKind::NotInPrompt)),
            }
        }
        Err(StreamError::NoGo)
    }

    fn set_byte(&mut self, word: OpenWord, mask: LaneMask, position: u8, byte: u8) -> Result<(), StreamErrorKind> {
        let shift = 8 * u32::from(position);
        let set = |old: u32| old & !(0xff << shift) | u32::from(byte) << shift;
        match (word, mask.bits()) {
            (OpenWord::Rom(pc), half @ (1 | 2)) => {
                let shift = shift + 32 * u32::from(half - 1);
                let old = &mut self.rom[pc.index()];
                *old = *old & !(0xff << shift) | u64::from(byte) << shift;
            }
            (OpenWord::Constant(index), 1) => {
                let old = &mut self.constants[index.index()];
                *old = set(*old);
            }
            (OpenWord::Global(word), 1) => {
                let old = &mut self.memories.global[usize::from(word)];
                *old = set(*old);
            }
            (OpenWord::Rom(_) | OpenWord::Constant(_) | OpenWord::Global(_), _) => return Err(StreamErrorKind::Mask),
        }
        Ok(())
    }

    /// The grid in the constant bank, if each of its dimensions is one the machine can have.
    fn grid(&self) -> Option<Dim3> {
        let size = |axis| {
            let size = u16::try_from(self.constants[ConstIdx::nctaid(axis).index()]).ok()?;
            (1..=self.spec.max_grid).contains(&size).then_some(size)
        };
        Some(Dim3::new(size(Axis::X)?, size(Axis::Y)?, size(Axis::Z)?))
    }
}

/// The word that `VAL` records go to.
#[derive(Debug, Clone, Copy)]
enum OpenWord {
    Rom(Pc),
    Constant(ConstIdx),
    Global(u16),
}

/// A prompt that makes no launch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The sizes of the machine are invalid.
    #[error("invalid machine: {0}")]
    Spec(#[from] SpecError),
    /// A record is wrong where it stands.
    #[error("record {position} {record}: {kind}")]
    Record {
        /// Index of the record.
        position: usize,
        /// The record.
        record: Record,
        /// What is wrong.
        kind: StreamErrorKind,
    },
    /// The prompt has no `GO`.
    #[error("prompt ends without <|go|>")]
    NoGo,
}

/// Why a record is wrong where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamErrorKind {
    /// The machine has no such record.
    #[error("the machine has no such record")]
    NotOnThisMachine,
    /// The record is only spoken, never heard.
    #[error("not a record of a prompt")]
    NotInPrompt,
    /// A `VAL` before any word is open.
    #[error("no word is open")]
    NoOpenWord,
    /// A `VAL` with a mask that means no half of the open word.
    #[error("mask means no half of the open word")]
    Mask,
    /// A dimension or a number of threads that is zero.
    #[error("expected a positive number")]
    Zero,
    /// Records follow `GO`.
    #[error("expected the end of the prompt after it")]
    NotLast,
    /// `GO` without `THREADS`.
    #[error("number of threads is not set")]
    NoThreads,
    /// `GO` without a grid.
    #[error("grid is not set, or too large")]
    NoGrid,
}

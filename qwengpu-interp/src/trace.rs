//! What happened, for people: events with their records, faults, outcomes and counts.

use std::fmt;

use qwengpu_isa::{Dim3, FaultKind, Instruction, LaneMask, Pc, Record};

/// A step of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A CTA starts.
    Cta {
        /// Its position.
        cta: Dim3,
        /// The components of the position that changed, ending in `CTAX`.
        records: Vec<Record>,
    },
    /// Another warp runs, or the same again after a barrier.
    Warp {
        /// The warp.
        warp: u8,
    },
    /// The barrier releases all warps.
    Release,
    /// A warp executes an instruction.
    Instruction(InstructionTrace),
    /// The grid has ended.
    Halt,
}

impl Event {
    /// The records of the event.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        match self {
            Self::Cta { records, .. } => records.clone(),
            Self::Warp { warp } => vec![Record::Warp { warp: *warp }],
            Self::Release => vec![Record::Release],
            Self::Instruction(trace) => trace.records.clone(),
            Self::Halt => vec![Record::Halt],
        }
    }

    /// Number of records of the event.
    #[must_use]
    pub fn num_records(&self) -> usize {
        match self {
            Self::Cta { records, .. } => records.len(),
            Self::Instruction(trace) => trace.records.len(),
            Self::Warp { .. } | Self::Release | Self::Halt => 1,
        }
    }
}

/// An instruction as one warp executed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionTrace {
    /// The CTA.
    pub cta: Dim3,
    /// The warp.
    pub warp: u8,
    /// Where the instruction is.
    pub pc: Pc,
    /// Its word.
    pub word: u64,
    /// The instruction; `None` if the word is none.
    pub instruction: Option<Instruction>,
    /// The active lanes.
    pub active: LaneMask,
    /// The active lanes whose guard is true; all active lanes if the word is no instruction.
    pub exec: LaneMask,
    /// What the exec lanes did, ascending; empty after a fault.
    pub lanes: Vec<LaneTrace>,
    /// The new value of the destination predicate.
    pub predicate: Option<LaneMask>,
    /// The fault, if it faulted.
    pub fault: Option<Fault>,
    /// The records: `EXEC`, unless the record before has started the instruction, then those of the effect.
    /// The last one may start the next instruction.
    pub records: Vec<Record>,
}

/// What one lane did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneTrace {
    /// The lane.
    pub lane: u8,
    /// The result of the lane, or the value it stored.
    pub value: Option<u32>,
    /// The address it accessed.
    pub address: Option<u32>,
}

impl fmt::Display for InstructionTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} w{} {:3} {}/{} ", self.cta, self.warp, self.pc, self.exec, self.active)?;
        match &self.instruction {
            Some(instruction) => write!(f, "{instruction}")?,
            None => write!(f, "<{:#018x}>", self.word)?,
        }
        for LaneTrace { lane, value, address } in &self.lanes {
            match (value, address) {
                (Some(value), Some(address)) => write!(f, " | {lane}: [{address:#x}] {value:#x}")?,
                (Some(value), None) => write!(f, " | {lane}: {value:#x}")?,
                (None, Some(address)) => write!(f, " | {lane}: [{address:#x}]")?,
                (None, None) => {}
            }
        }
        if let Some(bits) = self.predicate {
            write!(f, " | lanes {bits}")?;
        }
        match &self.fault {
            Some(fault) => write!(f, " | {fault}"),
            None => Ok(()),
        }
    }
}

/// An instruction that could not be executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Why.
    pub kind: FaultKind,
    /// The CTA.
    pub cta: Dim3,
    /// The warp.
    pub warp: u8,
    /// The lowest lane that faulted.
    pub lane: u8,
    /// Where the instruction is.
    pub pc: Pc,
    /// The address that lane accessed, if the instruction is a load or store.
    pub address: Option<u32>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at pc {}, cta {}, warp {}, lane {}", self.kind, self.pc, self.cta, self.warp, self.lane)?;
        match self.address {
            Some(address) => write!(f, ", address {address:#x}"),
            None => Ok(()),
        }
    }
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All threads exited.
    Finished,
    /// An instruction faulted.
    Fault(Fault),
    /// The step limit was reached; no `HALT` was spoken.
    StepLimit,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::Fault(fault) => fault.fmt(f),
            Self::StepLimit => f.write_str("step limit reached"),
        }
    }
}

/// How much an execution did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Instructions executed by warps.
    pub warp_instructions: u64,
    /// Instructions executed by lanes: exec lanes of all warp instructions.
    pub lane_instructions: u64,
    /// Records spoken.
    pub tokens: u64,
}

/// A whole execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Everything the machine spoke.
    pub records: Vec<Record>,
    /// How it ended.
    pub outcome: Outcome,
    /// How much it did.
    pub counts: Counts,
}

//! Records: the tokens the machine hears at a launch and speaks while it runs.

use std::fmt;

use crate::launch::Axis;
use crate::reg::{ConstIdx, LaneMask, Pc};

/// A token of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Record {
    /// The running warp executes the instruction at `pc` in the active lanes.
    Exec {
        /// The active lanes; never empty.
        mask: LaneMask,
        /// The instruction.
        pc: Pc,
    },
    /// A byte of a result. In a prompt, a byte of the open word, which is mask 1, or 2 for the high half of a ROM word.
    Val {
        /// The lanes that have the byte; never empty.
        mask: LaneMask,
        /// Which byte of the word: 0 (least significant) to 3.
        position: u8,
        /// The byte.
        byte: u8,
    },
    /// The store of a lane takes place.
    Mem {
        /// The lane.
        lane: u8,
    },
    /// The new value of the destination predicate in all lanes.
    Pred {
        /// The lanes in which it is true.
        bits: LaneMask,
    },
    /// The following instructions are of this warp.
    Warp {
        /// The warp in its CTA.
        warp: u8,
    },
    /// Sets `ctaid.x`; ends the header of a CTA, which starts.
    CtaX {
        /// The value.
        value: u16,
    },
    /// Sets `ctaid.y`.
    CtaY {
        /// The value.
        value: u16,
    },
    /// Sets `ctaid.z`.
    CtaZ {
        /// The value.
        value: u16,
    },
    /// All warps that wait at the barrier go on.
    Release,
    /// The instruction faults.
    Fault {
        /// Why.
        kind: FaultKind,
        /// The lowest lane that faults.
        lane: u8,
    },
    /// The grid has ended.
    Halt,
    /// Prompt: opens a word of the program memory.
    Rom {
        /// The instruction.
        pc: Pc,
    },
    /// Prompt: opens a word of the constant bank.
    Const {
        /// The word.
        index: ConstIdx,
    },
    /// Prompt: opens a word of global memory.
    Gmem {
        /// The word.
        word: u16,
    },
    /// Prompt: sets `ntid`.
    Ntid {
        /// The dimension.
        axis: Axis,
        /// The value.
        value: u16,
    },
    /// Prompt: sets `nctaid`.
    Nctaid {
        /// The dimension.
        axis: Axis,
        /// The value.
        value: u16,
    },
    /// Prompt: sets the number of threads of a CTA.
    Threads {
        /// The number.
        count: u16,
    },
    /// Prompt: ends it; the machine speaks next.
    Go,
}

/// Why an instruction faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// An address outside every memory.
    OutOfBounds,
    /// An address inside a memory that is no multiple of the access size.
    Misaligned,
    /// A word that is no instruction.
    IllegalInstruction,
    /// A barrier that not all live lanes of the warp reach together.
    BarrierDivergence,
    /// The program traps.
    Trap,
    /// An assertion of the program does not hold.
    Assertion,
    /// The stack of a thread is full.
    StackOverflow,
}

impl FaultKind {
    /// Number of kinds.
    pub const COUNT: u8 = 7;

    /// Every kind, by ascending number.
    pub const ALL: [Self; Self::COUNT as usize] = [
        Self::OutOfBounds,
        Self::Misaligned,
        Self::IllegalInstruction,
        Self::BarrierDivergence,
        Self::Trap,
        Self::Assertion,
        Self::StackOverflow,
    ];

    /// The number in the `FAULT` record.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::OutOfBounds => 0,
            Self::Misaligned => 1,
            Self::IllegalInstruction => 2,
            Self::BarrierDivergence => 3,
            Self::Trap => 4,
            Self::Assertion => 5,
            Self::StackOverflow => 6,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfBounds => "address out of bounds",
            Self::Misaligned => "misaligned address",
            Self::IllegalInstruction => "illegal instruction",
            Self::BarrierDivergence => "barrier in divergent code",
            Self::Trap => "trap",
            Self::Assertion => "failed assertion",
            Self::StackOverflow => "stack overflow",
        })
    }
}

/// The text of the token, such as `<|exec:f:01c|>`: all numbers are hexadecimal.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exec { mask, pc } => write!(f, "<|exec:{mask}:{:03x}|>", pc.get()),
            Self::Val { mask, position, byte } => write!(f, "<|val:{mask}:{position:x}:{byte:02x}|>"),
            Self::Mem { lane } => write!(f, "<|mem:{lane:x}|>"),
            Self::Pred { bits } => write!(f, "<|pred:{bits}|>"),
            Self::Warp { warp } => write!(f, "<|warp:{warp:x}|>"),
            Self::CtaX { value } => write!(f, "<|ctax:{value:02x}|>"),
            Self::CtaY { value } => write!(f, "<|ctay:{value:02x}|>"),
            Self::CtaZ { value } => write!(f, "<|ctaz:{value:02x}|>"),
            Self::Release => f.write_str("<|release|>"),
            Self::Fault { kind, lane } => write!(f, "<|fault:{:x}:{lane:x}|>", kind.number()),
            Self::Halt => f.write_str("<|halt|>"),
            Self::Rom { pc } => write!(f, "<|rom:{:03x}|>", pc.get()),
            Self::Const { index } => write!(f, "<|const:{:02x}|>", index.get()),
            Self::Gmem { word } => write!(f, "<|gmem:{word:02x}|>"),
            Self::Ntid { axis, value } => write!(f, "<|ntid:{axis}:{value:02x}|>"),
            Self::Nctaid { axis, value } => write!(f, "<|nctaid:{axis}:{value:02x}|>"),
            Self::Threads { count } => write!(f, "<|threads:{count:02x}|>"),
            Self::Go => f.write_str("<|go|>"),
        }
    }
}

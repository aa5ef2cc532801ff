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
    /// The last byte of a result, and the start of the next instruction in the same lanes.
    ValNext {
        /// The lanes that have the byte; never empty.
        mask: LaneMask,
        /// Which byte of the word: 0 (least significant) to 3.
        position: u8,
        /// The byte.
        byte: u8,
        /// How far the instruction that starts is behind the last one with a known distance to its `EXEC`.
        parity: Parity,
    },
    /// Byte 0 of a result in all lanes of the warp: `byte` in lane 0, and one more in each further lane.
    Ramp {
        /// The byte of lane 0; that of the last lane is at most 255.
        byte: u8,
    },
    /// The same as the last byte of a result, and the start of the next instruction.
    RampNext {
        /// The byte of lane 0.
        byte: u8,
        /// How far behind the last `EXEC` the instruction is that starts.
        distance: Distance,
    },
    /// Bytes 1 to 3 of a result are 255: a small negative number, but for byte 0.
    Fill {
        /// The lanes; never empty.
        mask: LaneMask,
    },
    /// The same at the end of a result, and the start of the next instruction.
    FillNext {
        /// The lanes; never empty.
        mask: LaneMask,
        /// How far behind the last `EXEC` the instruction is that starts.
        distance: Distance,
    },
    /// The store of a lane takes place.
    Mem {
        /// The lane.
        lane: u8,
    },
    /// The last store of an instruction, and the start of the next instruction in the same lanes.
    MemNext {
        /// The lane.
        lane: u8,
        /// How far behind the last `EXEC` the instruction is that starts.
        distance: Distance,
    },
    /// The new value of the destination predicate in all lanes.
    Pred {
        /// The lanes in which it is true.
        bits: LaneMask,
    },
    /// A destination predicate, and the start of the next instruction in the same lanes.
    PredNext {
        /// The lanes in which it is true.
        bits: LaneMask,
        /// How far behind the last `EXEC` the instruction is that starts.
        distance: Distance,
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

/// How many instructions an instruction is behind the last `EXEC`, if it has none of its own: 1 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Distance(u8);

impl Distance {
    /// The largest.
    pub const MAX: u8 = 7;

    /// A distance from 1 to [`MAX`](Self::MAX).
    #[must_use]
    pub const fn new(distance: u8) -> Option<Self> {
        if distance >= 1 && distance <= Self::MAX { Some(Self(distance)) } else { None }
    }

    /// The number of instructions.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The place in the record table: from 0.
    #[must_use]
    pub const fn index(self) -> u8 {
        self.0 - 1
    }

    /// All, ascending.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..Self::MAX).map(|index| Self(index + 1))
    }
}

/// Whether an instruction is an odd or an even number of instructions behind the last one whose distance was told: that
/// of an `EXEC`, or one that another record than a `VAL` has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parity {
    /// One or three.
    Odd,
    /// Two.
    Even,
}

impl Parity {
    /// Both, in the order of the record table.
    pub const ALL: [Self; 2] = [Self::Odd, Self::Even];

    /// The place in the record table: 0 or 1.
    #[must_use]
    pub const fn index(self) -> u8 {
        match self {
            Self::Odd => 0,
            Self::Even => 1,
        }
    }
}

/// Where a running instruction is: what the records that have started it and those before it say of its distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The distance that was told last, 0 for that of an `EXEC`.
    told: u8,
    /// The number of instructions since, of which only the parities were told.
    since: u8,
}

impl Place {
    /// Of an instruction that an `EXEC` starts.
    pub const EXEC: Self = Self { told: 0, since: 0 };
    /// Most instructions that can follow one another by their parities alone.
    pub const MAX_SINCE: u8 = 3;

    /// The record that tells the same as the last one of an instruction here and starts the instruction behind it, and
    /// where that is; `None` if it needs an `EXEC` of its own.
    #[must_use]
    pub fn next(self, last: Record) -> Option<(Record, Self)> {
        let distance = Distance::new(self.told + self.since + 1)?;
        let told = Self { told: distance.get(), since: 0 };
        Some(match last {
            Record::Val { mask, position, byte } => {
                let parity = match self.since {
                    0 | 2 => Parity::Odd,
                    1 => Parity::Even,
                    _ => return None,
                };
                (Record::ValNext { mask, position, byte, parity }, Self { since: self.since + 1, ..self })
            }
            Record::Ramp { byte } => (Record::RampNext { byte, distance }, told),
            Record::Fill { mask } => (Record::FillNext { mask, distance }, told),
            Record::Mem { lane } => (Record::MemNext { lane, distance }, told),
            Record::Pred { bits } => (Record::PredNext { bits, distance }, told),
            _ => return None,
        })
    }
}

impl Record {
    /// The bits that [`Record::Fill`] sets in a result: its bytes 1 to 3.
    pub const FILLED: u32 = 0xffff_ff00;

    /// Whether a warp instruction starts with the record.
    #[must_use]
    pub const fn starts_instruction(self) -> bool {
        matches!(
            self,
            Self::Exec { .. }
                | Self::ValNext { .. }
                | Self::RampNext { .. }
                | Self::FillNext { .. }
                | Self::MemNext { .. }
                | Self::PredNext { .. }
        )
    }

    /// How far the instruction that the record starts is behind the last `EXEC`, if it tells.
    #[must_use]
    pub const fn distance(self) -> Option<Distance> {
        match self {
            Self::RampNext { distance, .. }
            | Self::FillNext { distance, .. }
            | Self::MemNext { distance, .. }
            | Self::PredNext { distance, .. } => Some(distance),
            _ => None,
        }
    }

    /// The record that tells the same of the instruction that it ends, without starting another.
    #[must_use]
    pub const fn without_next(self) -> Self {
        match self {
            Self::ValNext { mask, position, byte, .. } => Self::Val { mask, position, byte },
            Self::RampNext { byte, .. } => Self::Ramp { byte },
            Self::FillNext { mask, .. } => Self::Fill { mask },
            Self::MemNext { lane, .. } => Self::Mem { lane },
            Self::PredNext { bits, .. } => Self::Pred { bits },
            _ => self,
        }
    }
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

/// `+1` or `+2`: the least distance of the parity.
impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Odd => "+1",
            Self::Even => "+2",
        })
    }
}

/// `+1` to `+7`.
impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}", self.0)
    }
}

/// The text of the token, such as `<|exec:f:01c|>`: all numbers are hexadecimal.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exec { mask, pc } => write!(f, "<|exec:{mask}:{:03x}|>", pc.get()),
            Self::Val { mask, position, byte } => write!(f, "<|val:{mask}:{position:x}:{byte:02x}|>"),
            Self::ValNext { mask, position, byte, parity } => {
                write!(f, "<|val{parity}:{mask}:{position:x}:{byte:02x}|>")
            }
            Self::Ramp { byte } => write!(f, "<|ramp:{byte:02x}|>"),
            Self::RampNext { byte, distance } => write!(f, "<|ramp{distance}:{byte:02x}|>"),
            Self::Fill { mask } => write!(f, "<|fill:{mask}|>"),
            Self::FillNext { mask, distance } => write!(f, "<|fill{distance}:{mask}|>"),
            Self::Mem { lane } => write!(f, "<|mem:{lane:x}|>"),
            Self::MemNext { lane, distance } => write!(f, "<|mem{distance}:{lane:x}|>"),
            Self::Pred { bits } => write!(f, "<|pred:{bits}|>"),
            Self::PredNext { bits, distance } => write!(f, "<|pred{distance}:{bits}|>"),
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

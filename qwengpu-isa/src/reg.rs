//! Registers, predicates, lane masks, and indices into the program and the constant bank.

use std::fmt;

use crate::launch::Axis;
use crate::spec::CONSTANT_WORDS;

/// A register of a lane. `r0` reads zero and ignores writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(u8);

macro_rules! registers {
    ($($name:ident = $index:literal),*) => {
        impl Reg {
            $(
                #[doc = concat!("Register ", $index, ".")]
                pub const $name: Self = Self($index);
            )*

            /// Every register, `r0` first.
            pub const ALL: [Self; 16] = [$(Self::$name),*];
        }
    };
}

registers!(
    R0 = 0,
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R4 = 4,
    R5 = 5,
    R6 = 6,
    R7 = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
    R12 = 12,
    R13 = 13,
    R14 = 14,
    R15 = 15
);

impl Reg {
    /// The register that reads zero: `r0`.
    pub const ZERO: Self = Self::R0;

    /// The register of an index, if it is below 16.
    #[must_use]
    pub const fn new(index: u8) -> Option<Self> {
        if index < 16 { Some(Self(index)) } else { None }
    }

    /// The index, 0 to 15.
    #[must_use]
    pub const fn index(self) -> u8 {
        self.0
    }

    /// Whether this is `r0`.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// A predicate of a lane. `pt` reads true and ignores writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PredReg(u8);

impl PredReg {
    /// Predicate 0.
    pub const P0: Self = Self(0);
    /// Predicate 1.
    pub const P1: Self = Self(1);
    /// Predicate 2.
    pub const P2: Self = Self(2);
    /// Predicate 3.
    pub const P3: Self = Self(3);
    /// Predicate 4.
    pub const P4: Self = Self(4);
    /// Predicate 5.
    pub const P5: Self = Self(5);
    /// Predicate 6.
    pub const P6: Self = Self(6);
    /// The constant true; as a destination it discards the result.
    pub const PT: Self = Self(7);

    /// The predicate of an index, if it is below 8.
    #[must_use]
    pub const fn new(index: u8) -> Option<Self> {
        if index < 8 { Some(Self(index)) } else { None }
    }

    /// The index, 0 to 7.
    #[must_use]
    pub const fn index(self) -> u8 {
        self.0
    }

    /// Whether this is `pt`.
    #[must_use]
    pub const fn is_true(self) -> bool {
        self.0 == Self::PT.0
    }
}

impl fmt::Display for PredReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_true() { f.write_str("pt") } else { write!(f, "p{}", self.0) }
    }
}

/// A predicate as it is read: plain or negated. Guards are read the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PredSource {
    /// The predicate read.
    pub index: PredReg,
    /// Whether its negation is meant.
    pub negated: bool,
}

impl PredSource {
    /// Always true: `pt`.
    pub const TRUE: Self = Self { index: PredReg::PT, negated: false };
    /// Always false: `!pt`.
    pub const FALSE: Self = Self { index: PredReg::PT, negated: true };

    /// The predicate itself.
    #[must_use]
    pub const fn plain(index: PredReg) -> Self {
        Self { index, negated: false }
    }

    /// The negation of the predicate.
    #[must_use]
    pub const fn not(index: PredReg) -> Self {
        Self { index, negated: true }
    }

    /// The opposite of this source.
    #[must_use]
    pub const fn inverted(self) -> Self {
        Self { index: self.index, negated: !self.negated }
    }

    /// The 4-bit field: the index, and 8 if negated.
    #[must_use]
    pub const fn field(self) -> u8 {
        self.index.0 | if self.negated { 8 } else { 0 }
    }

    /// The source of a 4-bit field, if it is below 16.
    #[must_use]
    pub const fn from_field(field: u8) -> Option<Self> {
        if field < 16 { Some(Self { index: PredReg(field & 7), negated: field >= 8 }) } else { None }
    }
}

impl From<PredReg> for PredSource {
    fn from(index: PredReg) -> Self {
        Self::plain(index)
    }
}

impl fmt::Display for PredSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            f.write_str("!")?;
        }
        self.index.fmt(f)
    }
}

/// The predicate an instruction is executed under.
pub type Guard = PredSource;

/// A set of lanes of a warp: bit `l` for lane `l`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LaneMask(u8);

impl LaneMask {
    /// No lane.
    pub const EMPTY: Self = Self(0);

    /// The lanes whose bits are set.
    #[must_use]
    pub const fn new(bits: u8) -> Self {
        Self(bits)
    }

    /// The set of one lane.
    #[must_use]
    pub const fn single(lane: u8) -> Self {
        Self(1 << lane)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether no lane is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a lane is in the set.
    #[must_use]
    pub const fn contains(self, lane: u8) -> bool {
        self.0 & (1 << lane) != 0
    }

    /// This set and one more lane.
    #[must_use]
    pub const fn with(self, lane: u8) -> Self {
        Self(self.0 | 1 << lane)
    }

    /// The lanes in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The lowest lane of the set.
    #[must_use]
    pub const fn lowest(self) -> Option<u8> {
        let mut lane = 0;
        while lane < 8 {
            if self.contains(lane) {
                return Some(lane);
            }
            lane += 1;
        }
        None
    }

    /// The lanes of the set, ascending.
    pub fn lanes(self) -> impl Iterator<Item = u8> {
        (0..8).filter(move |&lane| self.contains(lane))
    }
}

impl FromIterator<u8> for LaneMask {
    fn from_iter<I: IntoIterator<Item = u8>>(lanes: I) -> Self {
        lanes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Display for LaneMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// The index of an instruction in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pc(u16);

impl Pc {
    /// The instruction every CTA starts at.
    pub const ENTRY: Self = Self(0);

    /// The instruction of an index.
    #[must_use]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// The index.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The index, for use with slices.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The instruction behind this one, in a program memory of `rom_words` words (not 0), at whose end it wraps.
    #[must_use]
    pub const fn next(self, rom_words: u16) -> Self {
        Self(self.0.wrapping_add(1) % rom_words)
    }
}

impl TryFrom<usize> for Pc {
    type Error = std::num::TryFromIntError;

    fn try_from(index: usize) -> Result<Self, Self::Error> {
        u16::try_from(index).map(Self)
    }
}

impl fmt::Display for Pc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The index of a word of the constant bank.
///
/// | words      | meaning                                    |
/// |------------|--------------------------------------------|
/// | 0 .. 96    | kernel parameters, by byte offset / 4      |
/// | 96 .. 117  | literal constants of the program           |
/// | 117 .. 120 | `ctaid` x, y, z, written by the machine    |
/// | 120 .. 123 | `ntid` x, y, z, written at launch          |
/// | 123 .. 126 | `nctaid` x, y, z, written at launch        |
/// | 126 .. 128 | reserved                                   |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstIdx(u8);

impl ConstIdx {
    /// Number of words that hold kernel parameters.
    pub const PARAMETER_WORDS: u8 = 96;
    /// First word for literal constants of the program.
    pub const FIRST_LITERAL: Self = Self(96);
    /// Number of words a launch may write: parameters and literals.
    pub const LAUNCH_WORDS: u8 = 117;
    /// `ctaid.x`
    pub const CTAID_X: Self = Self(117);
    /// `ctaid.y`
    pub const CTAID_Y: Self = Self(118);
    /// `ctaid.z`
    pub const CTAID_Z: Self = Self(119);
    /// `ntid.x`
    pub const NTID_X: Self = Self(120);
    /// `ntid.y`
    pub const NTID_Y: Self = Self(121);
    /// `ntid.z`
    pub const NTID_Z: Self = Self(122);
    /// `nctaid.x`
    pub const NCTAID_X: Self = Self(123);
    /// `nctaid.y`
    pub const NCTAID_Y: Self = Self(124);
    /// `nctaid.z`
    pub const NCTAID_Z: Self = Self(125);

    /// The words that have a name in assembly text.
    pub const NAMED: [(Self, &'static str); 9] = [
        (Self::CTAID_X, "ctaid.x"),
        (Self::CTAID_Y, "ctaid.y"),
        (Self::CTAID_Z, "ctaid.z"),
        (Self::NTID_X, "ntid.x"),
        (Self::NTID_Y, "ntid.y"),
        (Self::NTID_Z, "ntid.z"),
        (Self::NCTAID_X, "nctaid.x"),
        (Self::NCTAID_Y, "nctaid.y"),
        (Self::NCTAID_Z, "nctaid.z"),
    ];

    /// The word of an index, if it is inside the bank.
    #[must_use]
    pub fn new(index: u8) -> Option<Self> {
        (u16::from(index) < CONSTANT_WORDS).then_some(Self(index))
    }

    /// The word that holds `ctaid` of an axis.
    #[must_use]
    pub const fn ctaid(axis: Axis) -> Self {
        Self(Self::CTAID_X.0 + axis.index())
    }

    /// The word that holds `ntid` of an axis.
    #[must_use]
    pub const fn ntid(axis: Axis) -> Self {
        Self(Self::NTID_X.0 + axis.index())
    }

    /// The word that holds `nctaid` of an axis.
    #[must_use]
    pub const fn nctaid(axis: Axis) -> Self {
        Self(Self::NCTAID_X.0 + axis.index())
    }

    /// The index, 0 to 127.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The index, for use with slices.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for ConstIdx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(index, _)| index == self) {
            Some((_, name)) => write!(f, "c[{name}]"),
            None => write!(f, "c[{}]", self.0),
        }
    }
}

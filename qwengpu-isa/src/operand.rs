//! Operands that are more than a register: operand B and addresses.

use crate::reg::{ConstIdx, Reg};

/// Operand B: the one that can be a register, an immediate, or a constant word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The value of a register.
    Register(Reg),
    /// A 32-bit value.
    Immediate(u32),
    /// A word of the constant bank.
    Constant(ConstIdx),
}

impl Operand {
    /// A signed immediate, in two's complement.
    #[must_use]
    pub const fn signed(value: i32) -> Self {
        Self::Immediate(value.cast_unsigned())
    }

    /// The register, if it is one.
    #[must_use]
    pub const fn register(self) -> Option<Reg> {
        match self {
            Self::Register(reg) => Some(reg),
            Self::Immediate(_) | Self::Constant(_) => None,
        }
    }
}

/// Operand B of an instruction whose word has a branch target, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShortOperand {
    /// The value of a register.
    Register(Reg),
    /// A value of 16 bits, without a sign.
    Immediate(u16),
    /// A word of the constant bank.
    Constant(ConstIdx),
}

impl ShortOperand {
    /// The operand, if it is no immediate of more than 16 bits.
    #[must_use]
    pub fn new(operand: Operand) -> Option<Self> {
        match operand {
            Operand::Register(reg) => Some(Self::Register(reg)),
            Operand::Immediate(value) => u16::try_from(value).ok().map(Self::Immediate),
            Operand::Constant(index) => Some(Self::Constant(index)),
        }
    }

    /// The same as an operand of any instruction.
    #[must_use]
    pub const fn widen(self) -> Operand {
        match self {
            Self::Register(reg) => Operand::Register(reg),
            Self::Immediate(value) => Operand::Immediate(value as u32),
            Self::Constant(index) => Operand::Constant(index),
        }
    }
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Self::Register(reg)
    }
}

impl From<u32> for Operand {
    fn from(value: u32) -> Self {
        Self::Immediate(value)
    }
}

impl From<ConstIdx> for Operand {
    fn from(index: ConstIdx) -> Self {
        Self::Constant(index)
    }
}

/// A signed byte offset of 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(i32);

impl Offset {
    /// The least offset.
    pub const MIN: i32 = -(1 << 23);
    /// The greatest offset.
    pub const MAX: i32 = (1 << 23) - 1;

    /// An offset, if it fits in 24 bits.
    #[must_use]
    pub const fn new(value: i32) -> Option<Self> {
        if value >= Self::MIN && value <= Self::MAX { Some(Self(value)) } else { None }
    }

    /// The value.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0
    }
}

/// The address of a load or store: `base + 4 * index + constant + offset`, modulo 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// Added as it is.
    pub base: Reg,
    /// Added times four.
    pub index: Reg,
    /// A constant word to add.
    pub constant: Option<ConstIdx>,
    /// A byte offset to add.
    pub offset: Offset,
}

impl Address {
    /// The address in a register.
    #[must_use]
    pub const fn register(base: Reg) -> Self {
        Self { base, index: Reg::ZERO, constant: None, offset: Offset(0) }
    }

    /// The address in a constant word.
    #[must_use]
    pub const fn constant(constant: ConstIdx) -> Self {
        Self { base: Reg::ZERO, index: Reg::ZERO, constant: Some(constant), offset: Offset(0) }
    }

    /// This address and four times a register.
    #[must_use]
    pub const fn with_index(self, index: Reg) -> Self {
        Self { index, ..self }
    }

    /// This address and a constant word.
    #[must_use]
    pub const fn with_constant(self, constant: ConstIdx) -> Self {
        Self { constant: Some(constant), ..self }
    }

    /// This address with another offset.
    #[must_use]
    pub const fn with_offset(self, offset: Offset) -> Self {
        Self { offset, ..self }
    }
}

//! Operands.

use qwengpu_isa::ConstIdx;

use super::entities::{SymbolId, VPred, VReg};

/// A word operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    /// The value of a register.
    Reg(VReg),
    /// A number.
    Imm(u32),
    /// A word of the constant bank: a parameter or a launch dimension.
    Const(ConstIdx),
    /// The address of a variable, plus bytes.
    Symbol(SymbolId, u32),
}

impl Value {
    pub(crate) const ZERO: Value = Value::Imm(0);
    pub(crate) const ONE: Value = Value::Imm(1);

    pub(crate) fn reg(self) -> Option<VReg> {
        match self {
            Value::Reg(reg) => Some(reg),
            Value::Imm(_) | Value::Const(_) | Value::Symbol(..) => None,
        }
    }

    pub(crate) fn imm(self) -> Option<u32> {
        match self {
            Value::Imm(imm) => Some(imm),
            Value::Reg(_) | Value::Const(_) | Value::Symbol(..) => None,
        }
    }
}

impl From<VReg> for Value {
    fn from(reg: VReg) -> Self {
        Value::Reg(reg)
    }
}

/// A condition: a predicate, its complement, or a fixed truth value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cond {
    /// Always or never.
    Fixed(bool),
    /// The predicate, complemented if `negated`.
    Pred { pred: VPred, negated: bool },
}

impl Cond {
    pub(crate) const TRUE: Cond = Cond::Fixed(true);
    pub(crate) const FALSE: Cond = Cond::Fixed(false);

    pub(crate) fn not(self) -> Cond {
        match self {
            Cond::Fixed(truth) => Cond::Fixed(!truth),
            Cond::Pred { pred, negated } => Cond::Pred { pred, negated: !negated },
        }
    }

    /// The complement when `negated`, itself otherwise.
    pub(crate) fn negated_if(self, negated: bool) -> Cond {
        if negated { self.not() } else { self }
    }

    pub(crate) fn pred(self) -> Option<VPred> {
        match self {
            Cond::Pred { pred, .. } => Some(pred),
            Cond::Fixed(_) => None,
        }
    }
}

impl From<VPred> for Cond {
    fn from(pred: VPred) -> Self {
        Cond::Pred { pred, negated: false }
    }
}

/// A byte address: `base + 4 * index + constant + symbol + offset`, modulo 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Address {
    pub(crate) base: Option<VReg>,
    pub(crate) index: Option<VReg>,
    pub(crate) constant: Option<ConstIdx>,
    pub(crate) symbol: Option<SymbolId>,
    pub(crate) offset: u32,
}

impl Address {
    /// The address `value`.
    pub(crate) fn of(value: Value) -> Address {
        let empty = Address::default();
        match value {
            Value::Reg(reg) => Address { base: Some(reg), ..empty },
            Value::Imm(offset) => Address { offset, ..empty },
            Value::Const(constant) => Address { constant: Some(constant), ..empty },
            Value::Symbol(symbol, offset) => Address { symbol: Some(symbol), offset, ..empty },
        }
    }

    pub(crate) fn plus(self, bytes: u32) -> Address {
        Address { offset: self.offset.wrapping_add(bytes), ..self }
    }

    /// The symbol and offset, if the address is nothing else.
    pub(crate) fn fixed_symbol(self) -> Option<(SymbolId, u32)> {
        match self {
            Address { base: None, index: None, constant: None, symbol: Some(symbol), offset } => Some((symbol, offset)),
            _ => None,
        }
    }

    /// The address with `value` in place of the base, if an address can express it.
    pub(crate) fn with_base(self, value: Value) -> Option<Address> {
        let rest = Address { base: None, ..self };
        match value {
            Value::Reg(reg) => Some(Address { base: Some(reg), ..self }),
            Value::Imm(imm) => Some(rest.plus(imm)),
            Value::Const(constant) => self.constant.is_none().then_some(Address { constant: Some(constant), ..rest }),
            Value::Symbol(symbol, offset) => {
                self.symbol.is_none().then_some(Address { symbol: Some(symbol), ..rest }.plus(offset))
            }
        }
    }

    /// The address with `value` in place of the index, if an address can express it.
    pub(crate) fn with_index(self, value: Value) -> Option<Address> {
        let rest = Address { index: None, ..self };
        match value {
            Value::Reg(reg) => Some(Address { index: Some(reg), ..self }),
            Value::Imm(imm) => Some(rest.plus(imm.wrapping_mul(4))),
            Value::Const(_) | Value::Symbol(..) => None,
        }
    }
}

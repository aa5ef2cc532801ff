//! Reading and writing PTX operands.

use crate::ast::{AddressBase, Instruction, Modifier, Name, Operand, ScalarType};
use crate::error::{PtxError, Result};
use crate::fold::{high_word, low_word};
use crate::ir::{Address, Cond, VPred, VReg, Value};
use crate::subset::{self, Support};

use super::Builder;
use super::scope::{Entity, Register, Storage};

/// Whether a register may be wider than the instruction's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The widths must be equal.
    Exact,
    /// `ld`, `st` and `cvt` take wider registers.
    Wider,
}

/// The bits of a value narrower than a word.
fn narrow(bits: u64, width: u32) -> u32 {
    match width {
        8 => low_word(bits & 0xff),
        16 => low_word(bits & 0xffff),
        _ => low_word(bits),
    }
}

/// The operands of an instruction, whose number must be one of `counts`.
pub(super) fn operands<'a>(inst: &'a Instruction, counts: &[usize]) -> Result<&'a [Operand]> {
    if counts.contains(&inst.operands.len()) {
        return Ok(&inst.operands);
    }
    let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
    Err(PtxError::invalid(
        inst.span,
        inst.opcode.to_string(),
        format!("it takes {} operands, {} are given", counts.join(" or "), inst.operands.len()),
    ))
}

impl<'m> Builder<'m> {
    fn wrong(operand: &Operand, reason: impl Into<String>) -> PtxError {
        PtxError::invalid(operand.span(), operand.to_string(), reason)
    }

    /// The register an operand names.
    pub(super) fn register(&mut self, operand: &Operand) -> Result<Register> {
        match operand {
            Operand::Name(name) => match self.lookup(name)? {
                Entity::Register(register) => Ok(register),
                Entity::Vector(_)
                | Entity::Variable(..)
                | Entity::Label(_)
                | Entity::Targets(_)
                | Entity::Function(_) => Err(Self::wrong(operand, "a register is expected")),
            },
            Operand::Component(name, component) => match self.lookup(name)? {
                Entity::Vector(elements) => {
                    let idx = match component.text.as_str() {
                        "x" | "r" => 0,
                        "y" | "g" => 1,
                        "z" | "b" => 2,
                        "w" | "a" => 3,
                        _ => usize::MAX,
                    };
                    elements.get(idx).copied().ok_or_else(|| Self::wrong(operand, "the vector has no such element"))
                }
                Entity::Register(_)
                | Entity::Variable(..)
                | Entity::Label(_)
                | Entity::Targets(_)
                | Entity::Function(_) => Err(Self::wrong(operand, "it is no vector register")),
            },
            Operand::Not(_)
            | Operand::Negative(_)
            | Operand::Offset(..)
            | Operand::Int { .. }
            | Operand::Float { .. }
            | Operand::Address { .. }
            | Operand::Brackets(..)
            | Operand::Vector(..)
            | Operand::List(..)
            | Operand::Pair(..) => Err(Self::wrong(operand, "a register is expected")),
        }
    }

    fn check_width(operand: &Operand, register: Register, ty: ScalarType, fit: Fit) -> Result<()> {
        let fits = match fit {
            Fit::Exact => register.bits == ty.bits(),
            Fit::Wider => register.bits >= ty.bits(),
        };
        if fits && !matches!(register.storage, Storage::Pred(_)) {
            return Ok(());
        }
        let is = match register.storage {
            Storage::Pred(_) => "the register is a predicate".to_owned(),
            Storage::Word(_) | Storage::Pair(..) => format!("the register has {} bits", register.bits),
        };
        Err(Self::wrong(operand, format!("{is}, the instruction works on `{ty}`")))
    }

    /// A vector register's elements, or those of `{a, b}`; a lone operand is one element.
    pub(super) fn elements(&mut self, operand: &'m Operand) -> Result<Vec<Operand>> {
        match operand {
            Operand::Vector(items, _) => Ok(items.clone()),
            Operand::Name(name) if name.text != "_" && !is_special(name) => {
                if let Entity::Vector(elements) = self.lookup(name)? {
                    let names = ["x", "y", "z", "w"];
                    return Ok(names[..elements.len().min(4)]
                        .iter()
                        .map(|text| {
                            Operand::Component(name.clone(), Modifier { text: (*text).to_owned(), span: name.span })
                        })
                        .collect());
                }
                Ok(vec![operand.clone()])
            }
            _ => Ok(vec![operand.clone()]),
        }
    }

    /// The low and high word of a source operand of at most 64 bits, zero-extended from its type.
    ///
    /// The high word is 0 for types of at most 32 bits.
    pub(super) fn read(&mut self, operand: &Operand, ty: ScalarType, fit: Fit) -> Result<(Value, Value)> {
        match operand {
            Operand::Int { value, .. } => {
                let high = if ty.bits() == 64 { high_word(*value) } else { 0 };
                Ok((Value::Imm(narrow(*value, ty.bits())), Value::Imm(high)))
            }
            Operand::Float { bits, width, .. } => {
                if *width != ty.bits() {
                    return Err(Self::wrong(operand, format!("a float constant does not fit `{ty}`")));
                }
                Ok((Value::Imm(low_word(*bits)), Value::Imm(high_word(*bits))))
            }
            Operand::Name(name) if is_special(name) => Ok((self.special_register(name, None)?, Value::ZERO)),
            Operand::Component(name, component) if is_special(name) => {
                Ok((self.special_register(name, Some(component))?, Value::ZERO))
            }
            Operand::Name(name) | Operand::Offset(name, _) => {
                let offset = if let Operand::Offset(_, offset) = operand { *offset } else { 0 };
                match self.lookup(name)? {
                    Entity::Register(register) if offset == 0 => {
                        Self::check_width(operand, register, ty, fit)?;
                        Ok(self.narrowed(register, ty))
                    }
                    Entity::Variable(symbol, start) if ty.bits() >= 32 => {
                        let offset = start.wrapping_add(low_word(offset.cast_unsigned()));
                        Ok((Value::Symbol(symbol, offset), Value::ZERO))
                    }
                    Entity::Function(number) if ty.bits() >= 32 && offset == 0 => {
                        Ok((Value::Imm(super::call::function_address(number)), Value::ZERO))
                    }
                    Entity::Register(_)
                    | Entity::Variable(..)
                    | Entity::Vector(_)
                    | Entity::Label(_)
                    | Entity::Targets(_)
                    | Entity::Function(_) => Err(Self::wrong(operand, "a register or a constant is expected")),
                }
            }
            Operand::Component(..) => {
                let register = self.register(operand)?;
                Self::check_width(operand, register, ty, fit)?;
                Ok(self.narrowed(register, ty))
            }
            Operand::Not(_)
            | Operand::Negative(_)
            | Operand::Address { .. }
            | Operand::Brackets(..)
            | Operand::Vector(..)
            | Operand::List(..)
            | Operand::Pair(..) => Err(Self::wrong(operand, "a register or a constant is expected")),
        }
    }

    fn special_register(&mut self, name: &Name, component: Option<&Modifier>) -> Result<Value> {
        refuse_special(name)?;
        self.special(name, component)
    }

    /// A register's value cut to a type.
    fn narrowed(&mut self, register: Register, ty: ScalarType) -> (Value, Value) {
        match register.storage {
            Storage::Pair(low, high) if ty.bits() == 64 => (low.into(), high.into()),
            Storage::Pair(low, _) | Storage::Word(low) => {
                (self.zero_extend(low.into(), ty.bits().min(register.bits), register.bits), Value::ZERO)
            }
            Storage::Pred(_) => (Value::ZERO, Value::ZERO),
        }
    }

    /// The low `bits` of a value known to be below `2^had`.
    pub(super) fn zero_extend(&mut self, value: Value, bits: u32, had: u32) -> Value {
        if bits >= 32 || bits >= had {
            return value;
        }
        self.and(value, Value::Imm((1 << bits) - 1))
    }

    /// The low `bits` of a value with their sign.
    pub(super) fn sign_extend(&mut self, value: Value, bits: u32) -> Value {
        if bits >= 32 {
            return value;
        }
        let amount = Value::Imm(32 - bits);
        let up = self.shl(value, amount);
        self.shr(qwengpu_isa::Signedness::Signed, up, amount)
    }

    /// A source operand of at most 32 bits, zero-extended.
    pub(super) fn read_word(&mut self, operand: &Operand, ty: ScalarType) -> Result<Value> {
        Ok(self.read(operand, ty, Fit::Exact)?.0)
    }

    /// A source operand of at most 32 bits, extended as its type asks.
    pub(super) fn read_extended(&mut self, operand: &Operand, ty: ScalarType) -> Result<Value> {
        let value = self.read_word(operand, ty)?;
        Ok(if ty.is_signed() { self.sign_extend(value, ty.bits()) } else { value })
    }

    /// A source predicate.
    pub(super) fn read_pred(&mut self, operand: &Operand) -> Result<Cond> {
        match operand {
            Operand::Not(name) => Ok(Cond::from(self.predicate_named(name)?).not()),
            Operand::Name(name) => Ok(self.predicate_named(name)?.into()),
            Operand::Int { value, .. } => Ok(Cond::Fixed(*value != 0)),
            Operand::Component(..)
            | Operand::Negative(_)
            | Operand::Offset(..)
            | Operand::Float { .. }
            | Operand::Address { .. }
            | Operand::Brackets(..)
            | Operand::Vector(..)
            | Operand::List(..)
            | Operand::Pair(..) => Err(Self::wrong(operand, "a predicate is expected")),
        }
    }

    pub(super) fn predicate_named(&mut self, name: &Name) -> Result<VPred> {
        refuse_special(name)?;
        match self.lookup(name)? {
            Entity::Register(Register { storage: Storage::Pred(pred), .. }) => Ok(pred),
            Entity::Register(_)
            | Entity::Vector(_)
            | Entity::Variable(..)
            | Entity::Label(_)
            | Entity::Targets(_)
            | Entity::Function(_) => Err(PtxError::invalid(name.span, &name.text, "a predicate is expected")),
        }
    }

    /// A destination predicate; `None` for the sink `_`.
    pub(super) fn pred_destination(&mut self, operand: &Operand) -> Result<Option<VPred>> {
        match operand {
            Operand::Name(name) if name.text == "_" => Ok(None),
            Operand::Name(name) => Ok(Some(self.predicate_named(name)?)),
            _ => Err(Self::wrong(operand, "a predicate register is expected")),
        }
    }

    /// Writes a value of type `ty` to a register; the bits above a narrow type may be anything.
    pub(super) fn write(&mut self, operand: &Operand, ty: ScalarType, low: Value, high: Value) -> Result<()> {
        self.write_fitting(operand, ty, Fit::Exact, low, high)
    }

    /// As [`Builder::write`]; a register wider than the type gets it extended as the type asks.
    pub(super) fn write_fitting(
        &mut self,
        operand: &Operand,
        ty: ScalarType,
        fit: Fit,
        low: Value,
        high: Value,
    ) -> Result<()> {
        if matches!(operand, Operand::Name(name) if name.text == "_") {
            return Ok(());
        }
        let register = self.register(operand)?;
        Self::check_width(operand, register, ty, fit)?;
        let signed = ty.is_signed();
        let extended = match (ty.bits(), register.bits) {
            (from @ (8 | 16), to) if signed && to > from => self.sign_extend(low, from),
            (from @ (8 | 16), _) => self.zero_extend(low, from, 32),
            _ => low,
        };
        match register.storage {
            Storage::Word(dst) => {
                let value = self.zero_extend(extended, register.bits, 32);
                self.assign(dst, value);
            }
            Storage::Pair(dst_low, dst_high) => {
                let high = match ty.bits() {
                    64 => high,
                    _ if signed => self.shr(qwengpu_isa::Signedness::Signed, extended, Value::Imm(31)),
                    _ => Value::ZERO,
                };
                self.assign_pair(dst_low, dst_high, extended, high);
            }
            Storage::Pred(_) => {}
        }
        Ok(())
    }

    /// Both words at once: neither source is read after a destination is written.
    fn assign_pair(&mut self, dst_low: VReg, dst_high: VReg, low: Value, high: Value) {
        let high = if high == Value::Reg(dst_low) { self.copy(high).into() } else { high };
        self.assign(dst_low, low);
        self.assign(dst_high, high);
    }

    /// The address of `[base + offset]`; only its low 32 bits matter.
    pub(super) fn address(&mut self, operand: &Operand) -> Result<Address> {
        let (base, offset) = match operand {
            Operand::Address { base, offset, .. } => (base, *offset),
            _ => return Err(Self::wrong(operand, "an address in brackets is expected")),
        };
        let base = match base {
            AddressBase::Absolute => Value::ZERO,
            AddressBase::Name(name) => match self.lookup(name)? {
                Entity::Variable(symbol, start) => Value::Symbol(symbol, start),
                Entity::Register(Register { storage: Storage::Pair(low, _), .. })
                | Entity::Register(Register { storage: Storage::Word(low), bits: 32 }) => low.into(),
                Entity::Register(_)
                | Entity::Vector(_)
                | Entity::Label(_)
                | Entity::Targets(_)
                | Entity::Function(_) => {
                    return Err(Self::wrong(operand, "an address is a 64-bit or 32-bit register or a variable"));
                }
            },
        };
        Ok(Address::of(base).plus(low_word(offset.cast_unsigned())))
    }
}

/// Whether the name is that of a special register or constant.
pub(super) fn is_special(name: &Name) -> bool {
    subset::special_register(&name.text).is_some()
}

/// Fails at a special register that this machine does not have.
fn refuse_special(name: &Name) -> Result<()> {
    match subset::special_register(&name.text).map(|row| row.support) {
        Some(Support::Refused(refusal)) => Err(PtxError::unsupported(name.span, &name.text, refusal.reason())),
        Some(Support::Translated(_)) | None => Ok(()),
    }
}

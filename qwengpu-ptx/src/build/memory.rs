//! `ld` and `st`.

use qwengpu_isa::{LoadWidth, StoreWidth};

use crate::ast::{Instruction, Operand, ScalarType, StateSpace};
use crate::error::Result;
use crate::ir::{Address, InstKind, Value, WordOp};

use super::Builder;
use super::decode::Mods;
use super::operand::{Fit, operands};

const SPACES: &[(&str, StateSpace)] = &[
    ("param", StateSpace::Param),
    ("param::entry", StateSpace::Param),
    ("param::func", StateSpace::Param),
    ("global", StateSpace::Global),
    ("shared", StateSpace::Shared),
    ("shared::cta", StateSpace::Shared),
    ("local", StateSpace::Local),
    ("const", StateSpace::Const),
];

/// Cache and ordering words: memory here is one level, and a warp's accesses are in order.
const HINTS: &[&str] = &[
    "volatile", "relaxed", "acquire", "release", "weak", "mmio", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "cta",
    "gpu", "sys", "cluster", "unified", "L1::", "L2::", "level::",
];

/// What `ld` and `st` say besides addresses and registers.
struct Access {
    ty: ScalarType,
    elements: u32,
}

fn access(mods: &mut Mods<'_>) -> Result<Access> {
    mods.choice(SPACES);
    let elements = mods.choice(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = mods.any_type()?;
    mods.ignore_prefixed(HINTS);
    if ty.bits() > 64 || ty.bits() < 8 {
        return Err(mods.unsupported("no access of 8 to 64 bits; use several narrower ones"));
    }
    Ok(Access { ty, elements })
}

impl<'m> Builder<'m> {
    /// The machine's load for a type, one word of it.
    pub(super) fn load_word(&mut self, ty: ScalarType, address: Address) -> Value {
        let width = match (ty.bits(), ty.is_signed()) {
            (8, false) => LoadWidth::U8,
            (8, true) => LoadWidth::S8,
            (16, false) => LoadWidth::U16,
            (16, true) => LoadWidth::S16,
            _ => LoadWidth::B32,
        };
        self.word(WordOp::Load(width, address))
    }

    pub(super) fn store_word(&mut self, ty: ScalarType, address: Address, value: Value) {
        let width = match ty.bits() {
            8 => StoreWidth::U8,
            16 => StoreWidth::U16,
            _ => StoreWidth::B32,
        };
        self.push(self.guard, InstKind::Store(width, address, value));
    }

    pub(super) fn load(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let Access { ty, elements } = access(mods)?;
        let ops = operands(inst, &[2, 3])?;
        let destinations = self.vector(mods, &ops[0], elements)?;
        let address = self.address(&ops[1])?;
        let mut values = Vec::new();
        for idx in 0..elements {
            let at = address.plus(idx * ty.bytes());
            let low = self.load_word(ty, at);
            let high = if ty.bits() == 64 { self.load_word(ty, at.plus(4)) } else { Value::ZERO };
            values.push((low, high));
        }
        for (destination, (low, high)) in destinations.iter().zip(values) {
            self.write_loaded(destination, ty, low, high)?;
        }
        Ok(())
    }

    /// A loaded value is already extended to 32 bits as its type asks.
    fn write_loaded(&mut self, operand: &Operand, ty: ScalarType, low: Value, high: Value) -> Result<()> {
        let widened = match ty {
            ScalarType::S8 | ScalarType::S16 => match self.destination_bits(operand)? {
                32 | 64 => ScalarType::S32,
                _ => ty,
            },
            ScalarType::U8
            | ScalarType::B8
            | ScalarType::U16
            | ScalarType::B16
            | ScalarType::F16
            | ScalarType::Bf16 => match self.destination_bits(operand)? {
                32 | 64 => ScalarType::U32,
                _ => ty,
            },
            _ => ty,
        };
        self.write_fitting(operand, widened, Fit::Wider, low, high)
    }

    fn destination_bits(&mut self, operand: &Operand) -> Result<u32> {
        match operand {
            Operand::Name(name) if name.text == "_" => Ok(32),
            _ => Ok(self.register(operand)?.bits),
        }
    }

    /// The elements of a vector operand, as many as the instruction says.
    fn vector(&mut self, mods: &Mods<'_>, operand: &'m Operand, count: u32) -> Result<Vec<Operand>> {
        let elements = self.elements(operand)?;
        if u32::try_from(elements.len()) == Ok(count) {
            Ok(elements)
        } else {
            Err(mods.invalid(format!("it moves {count} elements, {} are given", elements.len())))
        }
    }

    pub(super) fn store(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let Access { ty, elements } = access(mods)?;
        let ops = operands(inst, &[2, 3])?;
        let sources = self.vector(mods, &ops[1], elements)?;
        let address = self.address(&ops[0])?;
        for (idx, source) in (0..elements).zip(&sources) {
            let at = address.plus(idx * ty.bytes());
            let (low, high) = self.read(source, ty, Fit::Wider)?;
            self.store_word(ty, at, low);
            if ty.bits() == 64 {
                self.store_word(ty, at.plus(4), high);
            }
        }
        Ok(())
    }
}

//! `ld` and `st`.

use qwengpu_isa::{Comparison, LoadWidth, StoreWidth};

use crate::ast::{Instruction, Operand, ScalarType, StateSpace};
use crate::error::Result;
use crate::ir::{Address, InstKind, Terminator, Value, WordOp};

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
    // Every CTA is a cluster of its own.
    ("shared::cluster", StateSpace::Shared),
    ("local", StateSpace::Local),
    ("const", StateSpace::Const),
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
    mods.drop_hints();
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

    /// `st.bulk`: zeros, 8 bytes at a time.
    pub(super) fn store_bulk(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("bulk");
        mods.choice(SPACES);
        mods.drop_hints();
        let ops = operands(inst, &[3])?;
        if !matches!(ops[2], Operand::Int { value: 0, .. }) {
            return Err(mods.invalid("it stores the value 0"));
        }
        let start = self.address(&ops[0])?;
        let start = self.address_value(start);
        let size_type = match &ops[1] {
            Operand::Int { .. } => ScalarType::B32,
            register if self.register(register)?.bits == 64 => ScalarType::B64,
            _ => ScalarType::B32,
        };
        let size = self.read(&ops[1], size_type, Fit::Exact)?.0;
        self.unguarded(|s| {
            let end = s.add(start, size);
            let at = s.copy(start);
            let (test, body, after) = (s.func.new_block(), s.func.new_block(), s.func.new_block());
            s.end_block(Terminator::Jump(test), test);
            let more = s.compare(Comparison::LtU, at.into(), end);
            s.end_block(Terminator::Branch(more, body, after), body);
            let here = Address::of(at.into());
            s.store_word(ScalarType::B32, here, Value::ZERO);
            s.store_word(ScalarType::B32, here.plus(4), Value::ZERO);
            let next = s.add(at.into(), Value::Imm(8));
            s.assign(at, next);
            s.end_block(Terminator::Jump(test), after);
        });
        Ok(())
    }

    /// `createpolicy`: hints are dropped, so any policy will do.
    pub(super) fn cache_policy(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.ignore_rest();
        let ops = operands(inst, &[2, 3, 4])?;
        self.write(&ops[0], ScalarType::B64, Value::ZERO, Value::ZERO)
    }
}

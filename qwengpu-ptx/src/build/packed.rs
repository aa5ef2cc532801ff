//! Sums and extremes of the two halves or four bytes of a word.

use qwengpu_isa::{BinaryOp, Extremum, Signedness};

use crate::ast::{Instruction, ScalarType};
use crate::error::Result;
use crate::ir::Value;

use super::Builder;
use super::decode::Mods;
use super::operand::operands;

/// How a word is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) bits: u32,
    pub(super) sign: Signedness,
}

pub(super) const PACKED: &[(&str, Packed)] = &[
    ("u8x4", Packed { bits: 8, sign: Signedness::Unsigned }),
    ("s8x4", Packed { bits: 8, sign: Signedness::Signed }),
    ("u16x2", Packed { bits: 16, sign: Signedness::Unsigned }),
    ("s16x2", Packed { bits: 16, sign: Signedness::Signed }),
];

impl Packed {
    /// The least and the greatest value of a part, as words.
    pub(super) fn range(self) -> (u32, u32) {
        let ones = u32::MAX >> (32 - self.bits);
        match self.sign {
            Signedness::Signed => (!(ones >> 1), ones >> 1),
            Signedness::Unsigned => (0, ones),
        }
    }

    /// The top bit of every part.
    fn tops(self) -> u32 {
        if self.bits == 8 { 0x8080_8080 } else { 0x8000_8000 }
    }
}

impl<'m> Builder<'m> {
    /// A part, extended.
    pub(super) fn packed_part(&mut self, word: Value, at: u32, packed: Packed) -> Value {
        self.field(word, at, packed.bits, packed.sign == Signedness::Signed)
    }

    /// A value with a range below 32 bits, cut to that of a part.
    pub(super) fn clamp_part(&mut self, value: Value, packed: Packed) -> Value {
        let (least, most) = packed.range();
        let value = self.signed_extremum(Extremum::Min, value, Value::Imm(most));
        self.signed_extremum(Extremum::Max, value, Value::Imm(least))
    }

    /// Parts are below 32 bits, so the signed extreme serves both signednesses.
    pub(super) fn signed_extremum(&mut self, which: Extremum, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Imnmx(which, Signedness::Signed), a, b)
    }

    /// A part's low bits at their place.
    pub(super) fn place_part(&mut self, value: Value, at: u32, bits: u32) -> Value {
        let part = self.zero_extend(value, bits, 32);
        self.shl(part, Value::Imm(at))
    }

    fn by_parts(
        &mut self,
        packed: Packed,
        a: Value,
        b: Value,
        operation: impl Fn(&mut Self, Value, Value) -> Value,
    ) -> Value {
        let mut result = Value::ZERO;
        for at in (0..32).step_by(packed.bits as usize) {
            let x = self.packed_part(a, at, packed);
            let y = self.packed_part(b, at, packed);
            let value = operation(self, x, y);
            let placed = self.place_part(value, at, packed.bits);
            result = self.or(result, placed);
        }
        result
    }

    /// Sums that wrap in each part: the top bits are left out of the sum and joined without a carry.
    fn wrapping_parts(&mut self, packed: Packed, subtract: bool, a: Value, b: Value) -> Value {
        let tops = packed.tops();
        let below = self.and(b, Value::Imm(!tops));
        let differ = self.xor(a, b);
        if subtract {
            let raised = self.or(a, Value::Imm(tops));
            let difference = self.sub(raised, below);
            let same = self.logic(qwengpu_isa::Table2::ANDN, Value::Imm(tops), differ);
            return self.xor(difference, same);
        }
        let rest = self.and(a, Value::Imm(!tops));
        let sum = self.add(rest, below);
        let top = self.and(differ, Value::Imm(tops));
        self.xor(sum, top)
    }

    pub(super) fn packed_sum(
        &mut self,
        inst: &'m Instruction,
        packed: Packed,
        subtract: bool,
        saturates: bool,
    ) -> Result<()> {
        let ops = operands(inst, &[3])?;
        let a = self.read_word(&ops[1], ScalarType::B32)?;
        let b = self.read_word(&ops[2], ScalarType::B32)?;
        let value = if saturates {
            self.by_parts(packed, a, b, |s, x, y| {
                let value = if subtract { s.sub(x, y) } else { s.add(x, y) };
                s.clamp_part(value, packed)
            })
        } else {
            self.wrapping_parts(packed, subtract, a, b)
        };
        self.write(&ops[0], ScalarType::B32, value, Value::ZERO)
    }

    pub(super) fn packed_extremum(
        &mut self,
        inst: &'m Instruction,
        mods: &Mods<'m>,
        packed: Packed,
        which: Extremum,
        relu: bool,
    ) -> Result<()> {
        if relu && packed.sign == Signedness::Unsigned {
            return Err(mods.invalid("`.relu` applies to signed types"));
        }
        let ops = operands(inst, &[3])?;
        let a = self.read_word(&ops[1], ScalarType::B32)?;
        let b = self.read_word(&ops[2], ScalarType::B32)?;
        let value = self.by_parts(packed, a, b, |s, x, y| {
            let value = s.signed_extremum(which, x, y);
            if relu { s.signed_extremum(Extremum::Max, value, Value::ZERO) } else { value }
        });
        self.write(&ops[0], ScalarType::B32, value, Value::ZERO)
    }

    /// `neg.s8x4`
    pub(super) fn packed_negative(&mut self, inst: &'m Instruction) -> Result<()> {
        let ops = operands(inst, &[2])?;
        let a = self.read_word(&ops[1], ScalarType::B32)?;
        let packed = Packed { bits: 8, sign: Signedness::Signed };
        let value = self.wrapping_parts(packed, true, Value::ZERO, a);
        self.write(&ops[0], ScalarType::B32, value, Value::ZERO)
    }
}

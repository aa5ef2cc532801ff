//! `cvt` between integer types.

use qwengpu_isa::{BinaryOp, Comparison, Extremum, Relation, Signedness};

use crate::ast::{Instruction, ScalarType, TypeClass};
use crate::error::Result;
use crate::fold::{high_word, low_word};
use crate::ir::Value;

use super::Builder;
use super::decode::Mods;
use super::operand::{Fit, operands};

/// The largest value of a type, as 64 bits.
fn max_of(ty: ScalarType) -> u64 {
    let ones = u64::MAX >> (64 - ty.bits());
    if ty.is_signed() { ones >> 1 } else { ones }
}

/// The smallest value of a type, sign-extended to 64 bits.
fn min_of(ty: ScalarType) -> u64 {
    if ty.is_signed() { !max_of(ty) } else { 0 }
}

/// The types that `cvt.pack` converts to: bits, and whether they are signed.
const NARROW: &[(&str, (u32, bool))] = &[
    ("u2", (2, false)),
    ("s2", (2, true)),
    ("u4", (4, false)),
    ("s4", (4, true)),
    ("u8", (8, false)),
    ("s8", (8, true)),
    ("u16", (16, false)),
    ("s16", (16, true)),
];

impl<'m> Builder<'m> {
    /// `cvt.pack.sat`: two values clamped to a narrow type, one above the other, and `c` above both.
    fn pack_narrow(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("sat");
        let (bits, signed) = mods.required("a type to convert to", NARROW)?;
        let from = mods.int_type()?;
        if from != ScalarType::S32 {
            return Err(mods.invalid("it packs `.s32` values"));
        }
        let with_rest = bits < 16;
        if with_rest && mods.any_type()? != ScalarType::B32 {
            return Err(mods.invalid("what it shifts up is a `.b32`"));
        }
        let ops = operands(inst, &[if with_rest { 4 } else { 3 }])?;
        let (least, most): (i32, i32) =
            if signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        let mut part = |operand| -> Result<Value> {
            let value = self.read_word(operand, from)?;
            let clamp = |extremum| BinaryOp::Imnmx(extremum, Signedness::Signed);
            let value = self.binary(clamp(Extremum::Min), value, Value::Imm(most.cast_unsigned()));
            let value = self.binary(clamp(Extremum::Max), value, Value::Imm(least.cast_unsigned()));
            Ok(self.zero_extend(value, bits, 32))
        };
        let (a, b) = (part(&ops[1])?, part(&ops[2])?);
        let above = self.shl(a, Value::Imm(bits));
        let mut packed = self.or(above, b);
        if let Some(rest) = ops.get(3) {
            let rest = self.read_word(rest, ScalarType::B32)?;
            let rest = self.shl(rest, Value::Imm(2 * bits));
            packed = self.or(packed, rest);
        }
        self.write(&ops[0], ScalarType::B32, packed, Value::ZERO)
    }

    pub(super) fn cvt(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        if mods.flag("pack") {
            return self.pack_narrow(inst, mods);
        }
        let saturate = mods.flag("sat");
        let to = mods.any_type()?;
        let from = mods.any_type()?;
        if to.class() == TypeClass::Float || from.class() == TypeClass::Float {
            return Err(mods.float());
        }
        let ops = operands(inst, &[2])?;
        let (low, high) = self.read(&ops[1], from, Fit::Wider)?;
        // The exact source value as 64 bits, sign in every bit above.
        let (low, high) = match (from.bits(), from.is_signed()) {
            (64, _) => (low, high),
            (bits, true) => {
                let low = self.sign_extend(low, bits);
                (low, self.shr(Signedness::Signed, low, Value::Imm(31)))
            }
            (_, false) => (low, Value::ZERO),
        };
        let (low, high) = if saturate { self.saturate(from, to, low, high) } else { (low, high) };
        self.write_fitting(&ops[0], to, Fit::Wider, low, high)
    }

    /// Clamps an exact value of type `from` to the range of `to`.
    pub(super) fn saturate(&mut self, from: ScalarType, to: ScalarType, low: Value, high: Value) -> (Value, Value) {
        let above = max_of(from) > max_of(to);
        let below = min_of(from).cast_signed() < min_of(to).cast_signed();
        let signed = from.is_signed();
        let sign = if signed { Signedness::Signed } else { Signedness::Unsigned };
        if from.bits() <= 32 {
            let mut value = low;
            if above {
                let limit = Value::Imm(low_word(max_of(to)));
                value = self.binary(BinaryOp::Imnmx(Extremum::Min, sign), value, limit);
            }
            if below {
                let limit = Value::Imm(low_word(min_of(to)));
                value = self.binary(BinaryOp::Imnmx(Extremum::Max, sign), value, limit);
            }
            let high = if signed { self.shr(sign, value, Value::Imm(31)) } else { Value::ZERO };
            return (value, high);
        }
        let mut value = (low, high);
        for (needed, relation, limit) in [(above, Relation::Gt, max_of(to)), (below, Relation::Lt, min_of(to))] {
            if needed {
                let limit = (Value::Imm(low_word(limit)), Value::Imm(high_word(limit)));
                let out = self.compare_wide(relation, sign, value, limit);
                value = (self.select(out, limit.0, value.0), self.select(out, limit.1, value.1));
            }
        }
        value
    }

    /// A comparison of 64-bit values.
    pub(super) fn compare_wide(
        &mut self,
        relation: Relation,
        sign: Signedness,
        a: (Value, Value),
        b: (Value, Value),
    ) -> crate::ir::Cond {
        let high_equal = self.compare(Comparison::Eq, a.1, b.1);
        match relation {
            Relation::Eq | Relation::Ne => {
                let low_equal = self.compare(Comparison::Eq, a.0, b.0);
                self.both(high_equal, low_equal).negated_if(relation == Relation::Ne)
            }
            Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge => {
                let strict = match relation {
                    Relation::Lt | Relation::Le => Relation::Lt,
                    _ => Relation::Gt,
                };
                let high = self.relate(strict, sign, a.1, b.1);
                let low = self.relate(relation, Signedness::Unsigned, a.0, b.0);
                let decided_low = self.both(high_equal, low);
                self.either(high, decided_low)
            }
        }
    }
}

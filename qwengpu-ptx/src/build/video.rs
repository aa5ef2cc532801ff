//! SIMD video instructions: the same operation on the two halves or four bytes of a word.
//!
//! Their operands in the natural order only; with `.add` the parts' results are summed onto `c`.

use qwengpu_isa::{BinaryOp, Extremum, Relation, Signedness};

use crate::ast::{Instruction, Operand, ScalarType};
use crate::error::Result;
use crate::ir::Value;

use super::Builder;
use super::decode::Mods;
use super::integer::signedness;
use super::operand::operands;

#[derive(Debug, Clone, Copy)]
enum Lanewise {
    Add,
    Subtract,
    Distance,
    Extremum(Extremum),
    Set(Relation),
}

const RELATIONS: &[(&str, Relation)] = &[
    ("eq", Relation::Eq),
    ("ne", Relation::Ne),
    ("lt", Relation::Lt),
    ("le", Relation::Le),
    ("gt", Relation::Gt),
    ("ge", Relation::Ge),
];

impl<'m> Builder<'m> {
    pub(super) fn video(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let (name, count) = mods.opcode().name.text.split_at(mods.opcode().name.text.len() - 1);
        let operation = match name {
            "vadd" => Lanewise::Add,
            "vsub" => Lanewise::Subtract,
            "vabsdiff" => Lanewise::Distance,
            "vmin" => Lanewise::Extremum(Extremum::Min),
            "vmax" => Lanewise::Extremum(Extremum::Max),
            _ => Lanewise::Set(mods.required("a comparison", RELATIONS)?),
        };
        let bits = if count == "2" { 16 } else { 8 };
        let sums = mods.flag("add");
        let saturates = mods.flag("sat");
        let to = if matches!(operation, Lanewise::Set(_)) { ScalarType::U32 } else { mods.int_type()? };
        let (a_ty, b_ty) = (mods.int_type()?, mods.int_type()?);
        let ops = operands(inst, &[4])?;
        if ops.iter().any(|operand| matches!(operand, Operand::Component(..))) {
            return Err(mods.unsupported("a selection of bytes; permute the operand with `prmt` first"));
        }
        let a = self.read_word(&ops[1], ScalarType::B32)?;
        let b = self.read_word(&ops[2], ScalarType::B32)?;
        let mut result = if sums { self.read_word(&ops[3], ScalarType::B32)? } else { Value::ZERO };
        for at in (0..32).step_by(bits as usize) {
            let x = self.field(a, at, bits, a_ty.is_signed());
            let y = self.field(b, at, bits, b_ty.is_signed());
            // A part is far below 32 bits, so signed comparison serves both signednesses.
            let extremum = |s: &mut Self, which, x, y| s.binary(BinaryOp::Imnmx(which, Signedness::Signed), x, y);
            let mut value = match operation {
                Lanewise::Add => self.add(x, y),
                Lanewise::Subtract => self.sub(x, y),
                Lanewise::Extremum(which) => extremum(self, which, x, y),
                Lanewise::Distance => {
                    let high = extremum(self, Extremum::Max, x, y);
                    let low = extremum(self, Extremum::Min, x, y);
                    self.sub(high, low)
                }
                Lanewise::Set(relation) => {
                    let holds = self.relate(relation, Signedness::Signed, x, y);
                    self.select(holds, Value::ONE, Value::ZERO)
                }
            };
            if saturates {
                let ones = u32::MAX >> (32 - bits);
                let (least, most) = match signedness(to) {
                    Signedness::Signed => (!(ones >> 1), ones >> 1),
                    Signedness::Unsigned => (0, ones),
                };
                value = extremum(self, Extremum::Min, value, Value::Imm(most));
                value = extremum(self, Extremum::Max, value, Value::Imm(least));
            }
            result = if sums {
                self.add(result, value)
            } else {
                let part = self.zero_extend(value, bits, 32);
                let placed = self.shl(part, Value::Imm(at));
                self.or(result, placed)
            };
        }
        self.write(&ops[0], ScalarType::B32, result, Value::ZERO)
    }
}

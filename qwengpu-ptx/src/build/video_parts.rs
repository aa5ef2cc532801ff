//! SIMD video instructions: the same operation on the two halves or four bytes of a word.
//!
//! Each part of an operand may be any part of `a` or `b`. A mask says which results count: the others are parts
//! of `c`, or with `.add` are left out of the sum onto `c`.

use qwengpu_isa::{Extremum, Relation, Signedness};

use crate::ast::{Instruction, Operand, ScalarType};
use crate::error::{PtxError, Result};
use crate::ir::Value;

use super::Builder;
use super::decode::Mods;
use super::integer::signedness;
use super::operand::operands;
use super::packed::Packed;

#[derive(Debug, Clone, Copy)]
enum Lanewise {
    Add,
    Subtract,
    Average,
    Distance,
    Extremum(Extremum),
    Set(Relation),
}

/// The comparisons of video instructions.
pub(super) const RELATIONS: &[(&str, Relation)] = &[
    ("eq", Relation::Eq),
    ("ne", Relation::Ne),
    ("lt", Relation::Lt),
    ("le", Relation::Le),
    ("gt", Relation::Gt),
    ("ge", Relation::Ge),
];

/// An operand and the parts its suffix names; a suffix is `b` or `h` and digits.
pub(super) fn split_parts(operand: &Operand) -> (Operand, Option<&str>) {
    match operand {
        Operand::Component(name, parts)
            if parts.text.starts_with(['b', 'h'])
                && parts.text.len() > 1
                && parts.text[1..].bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (Operand::Name(name.clone()), Some(&parts.text))
        }
        other => (other.clone(), None),
    }
}

/// The numbers behind a suffix's letter, that of the lowest part first; all are below `below`.
fn numbers(operand: &Operand, parts: &str, letter: char, below: u32) -> Result<Vec<u32>> {
    let digits = parts.strip_prefix(letter).map(|digits| digits.chars().rev());
    let numbers: Option<Vec<u32>> = digits.and_then(|digits| digits.map(|digit| digit.to_digit(below)).collect());
    numbers.ok_or_else(|| {
        PtxError::invalid(
            operand.span(),
            operand.to_string(),
            format!("parts are `.{letter}` and numbers below {below}"),
        )
    })
}

impl<'m> Builder<'m> {
    pub(super) fn video_parts(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let (name, count) = mods.opcode().name.text.split_at(mods.opcode().name.text.len() - 1);
        let operation = match name {
            "vadd" => Lanewise::Add,
            "vsub" => Lanewise::Subtract,
            "vavrg" => Lanewise::Average,
            "vabsdiff" => Lanewise::Distance,
            "vmin" => Lanewise::Extremum(Extremum::Min),
            "vmax" => Lanewise::Extremum(Extremum::Max),
            _ => Lanewise::Set(mods.required("a comparison", RELATIONS)?),
        };
        let (bits, count, letter) = if count == "2" { (16, 2, 'h') } else { (8, 4, 'b') };
        let sums = mods.flag("add");
        let saturates = mods.flag("sat");
        if sums && saturates {
            return Err(mods.invalid("`.sat` and `.add` exclude each other"));
        }
        let to = if matches!(operation, Lanewise::Set(_)) { ScalarType::U32 } else { mods.int_type()? };
        let types = [mods.int_type()?, mods.int_type()?];
        let ops = operands(inst, &[4])?;
        let (destination, mask) = split_parts(&ops[0]);
        let mask = match mask {
            Some(mask) => numbers(&ops[0], mask, letter, count)?,
            None => (0..count).collect(),
        };
        let mut sources = Vec::new();
        let mut chosen = Vec::new();
        for (operand, first) in [(&ops[1], 0), (&ops[2], count)] {
            let (register, parts) = split_parts(operand);
            sources.push(self.read_word(&register, ScalarType::B32)?);
            let parts = match parts {
                Some(parts) => numbers(operand, parts, letter, 2 * count)?,
                None => (first..first + count).collect(),
            };
            if u32::try_from(parts.len()) != Ok(count) {
                return Err(PtxError::invalid(operand.span(), operand.to_string(), format!("it names {count} parts")));
            }
            chosen.push(parts);
        }
        let c = self.read_word(&ops[3], ScalarType::B32)?;
        let untouched = (0..count).filter(|part| !mask.contains(part));
        let kept = untouched.fold(0, |kept, part| kept | (u32::MAX >> (32 - bits)) << (part * bits));
        let mut result = if sums { c } else { self.and(c, Value::Imm(kept)) };
        for part in mask {
            let mut read = |which: usize| {
                let from = chosen[which][part as usize];
                let word = sources[(from / count) as usize];
                self.packed_part(word, from % count * bits, Packed { bits, sign: signedness(types[which]) })
            };
            let (x, y) = (read(0), read(1));
            let mut value = self.lanewise(operation, x, y);
            if saturates {
                value = self.clamp_part(value, Packed { bits, sign: signedness(to) });
            }
            result = if sums {
                self.add(result, value)
            } else {
                let placed = self.place_part(value, part * bits, bits);
                self.or(result, placed)
            };
        }
        self.write(&destination, ScalarType::B32, result, Value::ZERO)
    }

    fn lanewise(&mut self, operation: Lanewise, x: Value, y: Value) -> Value {
        match operation {
            Lanewise::Add => self.add(x, y),
            Lanewise::Subtract => self.sub(x, y),
            Lanewise::Average => {
                // Half away from zero: a negative sum is not rounded up.
                let sum = self.add(x, y);
                let sign = self.shr(Signedness::Signed, sum, Value::Imm(31));
                let rounded = self.add3(sum, sign, Value::ONE);
                self.shr(Signedness::Signed, rounded, Value::ONE)
            }
            Lanewise::Extremum(which) => self.signed_extremum(which, x, y),
            Lanewise::Distance => {
                let high = self.signed_extremum(Extremum::Max, x, y);
                let low = self.signed_extremum(Extremum::Min, x, y);
                self.sub(high, low)
            }
            Lanewise::Set(relation) => {
                let holds = self.relate(relation, Signedness::Signed, x, y);
                self.select(holds, Value::ONE, Value::ZERO)
            }
        }
    }
}

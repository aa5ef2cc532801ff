//! `prmt`: bytes of two words in a new order.

use qwengpu_isa::{Comparison, Signedness};

use crate::ast::{Instruction, ScalarType};
use crate::error::Result;
use crate::ir::Value;

use super::Builder;
use super::decode::Mods;
use super::operand::operands;

/// The modes, numbered as [`mode_selector`] has them.
const MODES: &[(&str, u32)] = &[("f4e", 0), ("b4e", 1), ("rc8", 2), ("ecl", 3), ("ecr", 4), ("rc16", 5)];

impl<'m> Builder<'m> {
    pub(super) fn prmt(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let mode = mods.choice(MODES);
        let ty = mods.int_type()?;
        let ops = operands(inst, &[4])?;
        let a = self.read_word(&ops[1], ty)?;
        let b = self.read_word(&ops[2], ty)?;
        let selector = self.read_word(&ops[3], ScalarType::B32)?;
        let value = match (mode, selector) {
            (None, Value::Imm(selector)) => self.permute(a, b, selector),
            (Some(mode), Value::Imm(selector)) => self.permute(a, b, mode_selector(mode, selector & 3)),
            (None, _) => self.permute_by(a, b, selector),
            (Some(mode), _) => self.permute_mode(mode, a, b, selector),
        };
        self.write(&ops[0], ty, value, Value::ZERO)
    }

    /// Bytes of `b:a` by the nibbles of a constant; bit 3 of a nibble replicates the byte's sign.
    fn permute(&mut self, a: Value, b: Value, selector: u32) -> Value {
        // Bytes of one source that move equally far share a shift and a mask.
        let mut groups: Vec<(Value, i32, u32)> = Vec::new();
        let mut result = Value::ZERO;
        for (to, at) in (0..4).zip([0u32, 8, 16, 24]) {
            let nibble = selector >> (4 * to) & 0xf;
            let (source, from) = (if nibble & 4 == 0 { a } else { b }, (nibble & 3).cast_signed());
            if nibble & 8 != 0 {
                let top = self.shl(source, Value::Imm(24 - 8 * (nibble & 3)));
                let sign = self.shr(Signedness::Signed, top, Value::Imm(31));
                let byte = self.and(sign, Value::Imm(0xff << at));
                result = self.or(result, byte);
                continue;
            }
            let distance = to - from;
            match groups.iter_mut().find(|(s, d, _)| *s == source && *d == distance) {
                Some((_, _, mask)) => *mask |= 0xff << at,
                None => groups.push((source, distance, 0xff << at)),
            }
        }
        for (source, distance, mask) in groups {
            let amount = Value::Imm(8 * distance.unsigned_abs());
            let moved = if distance < 0 { self.shr_u(source, amount) } else { self.shl(source, amount) };
            let reach = if distance < 0 {
                u32::MAX >> (8 * distance.unsigned_abs())
            } else {
                u32::MAX << (8 * distance.unsigned_abs())
            };
            let kept = if reach == mask { moved } else { self.and(moved, Value::Imm(mask)) };
            result = self.or(result, kept);
        }
        result
    }

    /// A mode whose selector is known only at run time.
    fn permute_mode(&mut self, mode: u32, a: Value, b: Value, selector: Value) -> Value {
        let number = self.and(selector, Value::Imm(3));
        let amount = self.shl(number, Value::Imm(3));
        let forward = |s: &mut Self| s.shift_right_wide(Signedness::Unsigned, (a, b), amount).0;
        match MODES.get(mode as usize).map(|(name, _)| *name) {
            Some("f4e") => forward(self),
            Some("rc8") => {
                let byte = self.shr_u(a, amount);
                let byte = self.and(byte, Value::Imm(0xff));
                self.mul(byte, Value::Imm(0x0101_0101))
            }
            Some("rc16") => {
                let odd = self.and(selector, Value::ONE);
                let amount = self.shl(odd, Value::Imm(4));
                let half = self.shr_u(a, amount);
                let half = self.and(half, Value::Imm(0xffff));
                self.mul(half, Value::Imm(0x0001_0001))
            }
            _ => {
                let mut chosen = Value::Imm(mode_selector(mode, 3));
                for n in 0..3 {
                    let here = self.compare(Comparison::Eq, number, Value::Imm(n));
                    chosen = self.select(here, Value::Imm(mode_selector(mode, n)), chosen);
                }
                self.permute_by(a, b, chosen)
            }
        }
    }

    /// As [`Builder::permute`] for a selector known only at run time.
    fn permute_by(&mut self, a: Value, b: Value, selector: Value) -> Value {
        let mut result = Value::ZERO;
        for at in 0..4 {
            let nibble = self.shr_u(selector, Value::Imm(4 * at));
            let low = self.and(nibble, Value::Imm(7));
            let amount = self.shl(low, Value::Imm(3));
            let byte = self.shift_right_wide(Signedness::Unsigned, (a, b), amount).0;
            let top = self.shl(byte, Value::Imm(24));
            let sign = self.shr(Signedness::Signed, top, Value::Imm(31));
            let replicate = self.and(nibble, Value::Imm(8));
            let replicate = self.compare(Comparison::Ne, replicate, Value::ZERO);
            let chosen = self.select(replicate, sign, byte);
            let chosen = self.and(chosen, Value::Imm(0xff));
            let placed = self.shl(chosen, Value::Imm(8 * at));
            result = self.or(result, placed);
        }
        result
    }
}

/// The selector that the default mode needs to act as another mode does.
fn mode_selector(mode: u32, n: u32) -> u32 {
    let table: [[u32; 4]; 6] = [
        [0x3210, 0x4321, 0x5432, 0x6543],
        [0x5670, 0x6701, 0x7012, 0x0123],
        [0x0000, 0x1111, 0x2222, 0x3333],
        [0x3210, 0x3211, 0x3222, 0x3333],
        [0x0000, 0x1110, 0x2210, 0x3210],
        [0x1010, 0x3232, 0x1010, 0x3232],
    ];
    table[mode as usize % 6][n as usize % 4]
}

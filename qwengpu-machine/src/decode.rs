//! Program memory, and the instruction word taken apart.

use std::collections::BTreeMap;

use qwengpu_circuit::{Builder, Level, Linear, Product, RowChoice, Signal, StateDescription};
use qwengpu_isa::{
    Comparison, Extremum, FaultKind, Fields, LoadWidth, MachineSpec, Opcode, Signedness, StoreWidth, TARGET_SHIFT,
    TrapReason,
};

use crate::inputs::{Inputs, WORD, address_bits};
use crate::intake::Intake;

/// Largest amount of `iscadd`.
pub(crate) const MAX_SCALE: usize = 4;
/// Bits of the byte offset of an address.
const OFFSET_BITS: usize = 24;

/// The fields of the instruction, as bits, and what they ask for.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) guard: Vec<Signal>,
    pub(crate) rd: Vec<Signal>,
    /// The destination of the instruction that a VAL or PRED tells of.
    pub(crate) written: Vec<Signal>,
    pub(crate) ra: Vec<Signal>,
    pub(crate) rb: Vec<Signal>,
    pub(crate) rc: Vec<Signal>,
    pub(crate) sub: Vec<Signal>,
    pub(crate) imm: Vec<Signal>,
    /// One-hot over the opcodes, while an instruction starts. `trap` is not among them.
    op: BTreeMap<u8, Signal>,
    /// A `trap` with a reason other than that it is no instruction.
    pub(crate) traps: Vec<(FaultKind, Signal)>,
    /// A load or store.
    pub(crate) access: Signal,
    /// `iscadd` by 1, 2, ..
    pub(crate) scaled_add: Vec<Signal>,
    /// `setp` and `brc`, by comparison.
    pub(crate) compare: Vec<(Comparison, Signal)>,
    /// `imnmx`, by kind.
    pub(crate) extremum: Vec<(Extremum, Signedness, Signal)>,
    /// A load, by width.
    pub(crate) load: Vec<(LoadWidth, Signal)>,
    /// A store, by width.
    pub(crate) store: Vec<(StoreWidth, Signal)>,
    /// An access of four bytes, and of two.
    pub(crate) aligned: [Signal; 2],
    /// The immediate where operand B or an offset is one (then sign-extended), else 0.
    pub(crate) immediate: Vec<Signal>,
    /// The word of the constant bank.
    pub(crate) constant_index: Vec<Signal>,
    /// Whether a constant is wanted.
    pub(crate) uses_constant: Signal,
    /// Whether `rd` is not r0.
    pub(crate) rd_nonzero: Signal,
    /// Whether the destination predicate is not `pt`.
    pub(crate) pd_kept: Signal,
}

impl Decoded {
    /// 1 while this opcode runs (EXEC only).
    pub(crate) fn is(&self, op: Opcode) -> Signal {
        self.op[&op.number()]
    }

    /// 1 while an opcode with this property runs.
    pub(crate) fn any(&self, property: impl Fn(Opcode) -> bool) -> Linear {
        Linear::sum(Opcode::ALL.iter().filter(|op| property(**op)).filter_map(|op| self.op.get(&op.number()).copied()))
    }

    /// 1 while two words are compared as numbers of this signedness.
    pub(crate) fn asks(&self, signedness: Signedness) -> Linear {
        let comparisons = self.compare.iter().filter(|(of, _)| of.signedness() == signedness).map(|(_, op)| *op);
        let extrema = self.extremum.iter().filter(|(_, of, _)| *of == signedness).map(|(.., op)| *op);
        Linear::sum(comparisons.chain(extrema))
    }

    /// Builds program memory and the decoder.
    pub(crate) fn build(b: &mut Builder, spec: &MachineSpec, inputs: &Inputs, intake: &Intake) -> Self {
        let word = program_memory(b, spec, inputs, intake);
        let field = |full: Fields| -> Vec<Signal> {
            let mask = full.pack();
            (0..2 * WORD).filter(|i| mask >> i & 1 == 1).map(|i| word[i]).collect()
        };
        let none = Fields::default();
        let opcode = field(Fields { opcode: 0x3f, ..none });
        let kind = field(Fields { b_kind: 3, ..none });
        let sub = field(Fields { sub: 15, ..none });
        let imm = field(Fields { imm: u32::MAX, ..none });
        let rd = field(Fields { rd: 15, ..none });
        let memory = opcode[5];
        let exec = inputs.starts;

        b.scope("decode", |b| {
            let op: BTreeMap<u8, Signal> = Opcode::ALL
                .iter()
                .filter(|op| **op != Opcode::Trap)
                .map(|op| {
                    let bit = when(b, op.mnemonic(), exec.into(), &[(&opcode, usize::from(op.number()))]);
                    (op.number(), bit)
                })
                .collect();
            b.exclusive("op", &op.values().copied().collect::<Vec<_>>());
            let with_sub = |b: &mut Builder, op: Opcode, name: String, value: u8| {
                when(b, &name, exec.into(), &[(&opcode, usize::from(op.number())), (&sub, usize::from(value))])
            };
            let traps = TrapReason::ALL
                .into_iter()
                .filter(|reason| *reason != TrapReason::Illegal)
                .map(|reason| {
                    let name = format!("trap_{}", reason.name());
                    (reason.fault(), with_sub(b, Opcode::Trap, name, reason.field()))
                })
                .collect();
            let scaled_add: Vec<Signal> = (1..=MAX_SCALE)
                .map(|s| with_sub(b, Opcode::Iscadd, format!("iscadd{s}"), u8::try_from(s).unwrap_or(0)))
                .collect();
            b.exclusive("iscadd", &scaled_add);
            // The bit in which `brc` differs from `setp` is not looked at.
            let [setp, brc] = [Opcode::Setp, Opcode::Brc].map(|op| usize::from(op.number()));
            let alike = (0..opcode.len()).filter(|i| (setp ^ brc) >> i & 1 == 0);
            let of_both: Vec<(&[Signal], usize)> = alike.map(|i| (&opcode[i..=i], setp >> i & 1)).collect();
            let compare: Vec<(Comparison, Signal)> = Comparison::ALL
                .into_iter()
                .map(|comparison| {
                    let fields = [&of_both[..], &[(&sub[..], usize::from(comparison.field()))]].concat();
                    (comparison, when(b, &format!("compare_{comparison}"), exec.into(), &fields))
                })
                .collect();
            let mut extremum = Vec::new();
            for (signed, signedness) in (0..).zip([Signedness::Unsigned, Signedness::Signed]) {
                for (max, kind) in (0..).zip([Extremum::Min, Extremum::Max]) {
                    let name = format!("imnmx_{kind}_{signedness}");
                    extremum.push((kind, signedness, with_sub(b, Opcode::Imnmx, name, max | signed << 1)));
                }
            }
            let asked = compare.iter().map(|(_, bit)| *bit).chain(extremum.iter().map(|(.., bit)| *bit));
            b.exclusive("compare", &asked.collect::<Vec<_>>());
            let load: Vec<(LoadWidth, Signal)> = LoadWidth::ALL
                .iter()
                .map(|&width| (width, with_sub(b, Opcode::Ld, format!("load_{width}"), width.field())))
                .collect();
            let store: Vec<(StoreWidth, Signal)> = StoreWidth::ALL
                .iter()
                .map(|&width| (width, with_sub(b, Opcode::St, format!("store_{width}"), width.field())))
                .collect();
            b.exclusive("load", &load.iter().map(|(_, bit)| *bit).collect::<Vec<_>>());
            b.exclusive("store", &store.iter().map(|(_, bit)| *bit).collect::<Vec<_>>());
            let word_access = when(b, "word_access", exec + memory - 1, &[(&sub, usize::from(LoadWidth::B32.field()))]);
            let half_access =
                when(b, "half_access", exec + memory - 1, &[(&sub[1..], usize::from(LoadWidth::U16.field() >> 1))]);
            // A step, since it is multiplied by a large factor.
            let access = b.step("access", exec + memory - 2);
            // An immediate operand B has kind 1; the offset of an address is always there.
            let immediate = (0..WORD)
                .map(|i| {
                    let operand = exec + kind[0] - kind[1] - memory + imm[i] - 2;
                    let offset = exec + memory + imm[i.min(OFFSET_BITS - 1)] - 2;
                    let gates = if i < TARGET_SHIFT as usize {
                        vec![operand, offset]
                    } else {
                        // Not where a branch target is: of all that have operand B, only `brc` has both bits 3 and 4.
                        vec![operand.clone() - opcode[4], operand + opcode[4] - opcode[3] - 1, offset]
                    };
                    gated(b, &format!("immediate/bit{i}"), gates)
                })
                .collect();
            let constant = exec + kind[1] - kind[0] - memory - 1;
            let address_constant = exec + memory + kind[0] - 2;
            let constant_index = (0..address_bits(usize::from(spec.constant_words)))
                .map(|i| {
                    let gates =
                        vec![constant.clone() + imm[i] - 1, address_constant.clone() + imm[OFFSET_BITS + i] - 1];
                    gated(b, &format!("constant_index/bit{i}"), gates)
                })
                .collect();
            let uses_constant = gated(b, "uses_constant", vec![constant, address_constant]);
            let written = destination(b, spec, inputs, intake);
            let rd_nonzero = b.step("rd_nonzero", Linear::sum(rd.iter().copied()) - 1);
            let pd_kept = b.step("pd_kept", -Linear::sum(rd[..3].iter().copied()) + 2);
            Self {
                guard: field(Fields { guard: 15, ..none }),
                ra: field(Fields { ra: 15, ..none }),
                rb: field(Fields { rb: 15, ..none }),
                rc: field(Fields { rc: 15, ..none }),
                rd,
                written,
                sub,
                imm,
                op,
                traps,
                access,
                scaled_add,
                compare,
                extremum,
                load,
                store,
                aligned: [word_access, half_access],
                immediate,
                constant_index,
                uses_constant,
                rd_nonzero,
                pd_kept,
            }
        })
    }
}

/// The literals that make `bits` equal `value`: each is 1 when its bit is right.
pub(crate) fn literals(bits: &[Signal], value: usize) -> impl Iterator<Item = Linear> + '_ {
    bits.iter().enumerate().map(move |(i, &bit)| if value >> i & 1 == 1 { bit.into() } else { Linear::from(bit).not() })
}

/// The sum of [`literals`] less their number: 0 when all are right, else negative.
pub(crate) fn equals(bits: &[Signal], value: usize) -> Linear {
    Linear::sum(literals(bits, value)) - i64::try_from(bits.len()).unwrap_or(i64::MAX)
}

/// `enable`, if each field has its value; `enable` is at most 1. A step, since opcodes are multiplied by large factors
/// and must have no noise.
pub(crate) fn when(b: &mut Builder, name: &str, enable: Linear, fields: &[(&[Signal], usize)]) -> Signal {
    let gate = fields.iter().fold(enable, |gate, (bits, value)| gate + equals(bits, *value));
    b.step(name, gate - 1)
}

/// The sum of `relu(gate)` over gates of which at most one is 1.
pub(crate) fn gated(b: &mut Builder, name: &str, gates: Vec<Linear>) -> Signal {
    let terms = gates.into_iter().map(|gate| Product { coefficient: 1, gate, up: Linear::one() }).collect();
    b.products(name, 0..=1, terms)
}

/// The program's words, least significant bit first. The low word arrives in lane 0, the high one in lane 1.
fn program_memory(b: &mut Builder, spec: &MachineSpec, inputs: &Inputs, intake: &Intake) -> Vec<Signal> {
    let used = address_bits(usize::from(spec.rom_words));
    let bits: Vec<Linear> = intake.open_address[..used].iter().map(|&bit| bit.into()).collect();
    let description = StateDescription {
        rows: usize::from(spec.rom_words),
        clear: None,
        write: RowChoice::Address { bits: bits.clone(), enable: intake.open_rom.into() },
        value: intake.assembled[..2].iter().flatten().map(|&bit| bit.into()).collect(),
        level: Level::EveryRow,
    };
    let bits = intake.pc.iter().map(|&bit| bit.into()).collect();
    let query = RowChoice::Address { bits, enable: inputs.starts.into() };
    b.state("rom", description, vec![("fetch", query)]).remove(0)
}

/// The destination of the instruction whose result is told. A record that starts the next instruction fetches that, so
/// the destination has a memory of its own; each row holds the field of the word before it.
fn destination(b: &mut Builder, spec: &MachineSpec, inputs: &Inputs, intake: &Intake) -> Vec<Signal> {
    let mask = Fields { rd: 15, ..Fields::default() }.pack();
    let description = StateDescription {
        rows: usize::from(spec.rom_words),
        clear: None,
        write: RowChoice::Address {
            bits: intake.open_ahead.iter().map(|&bit| bit.into()).collect(),
            enable: intake.open_rom.into(),
        },
        value: (0..WORD).filter(|i| mask >> i & 1 == 1).map(|i| intake.assembled[0][i].into()).collect(),
        level: Level::EveryRow,
    };
    let query = RowChoice::Address {
        bits: intake.behind_told.iter().map(|&bit| bit.into()).collect(),
        enable: intake.open_exec + inputs.is_next + inputs.is_lone_result - 1,
    };
    b.state("destination", description, vec![("told", query)]).remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use qwengpu_isa::FieldUse;

    #[test]
    fn bits_3_and_4_tell_brc_from_all_others_with_operand_b() {
        for op in Opcode::ALL.iter().filter(|op| op.operand_use().b == FieldUse::Operand) {
            assert_eq!(op.number() & 0b11000 == 0b11000, *op == Opcode::Brc, "{op}");
        }
    }
}

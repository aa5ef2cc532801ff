//! Registers, predicates and constants: what an instruction reads.

use qwengpu_circuit::{Builder, Level, Linear, RowChoice, Signal, StateDescription};
use qwengpu_isa::MachineSpec;

use crate::decode::Decoded;
use crate::inputs::{BYTE, Inputs, WORD};
use crate::intake::Intake;

/// The operands of one lane.
#[derive(Debug)]
pub(crate) struct LaneOperands {
    /// Register `ra` as it was read.
    pub(crate) register_a: Vec<Signal>,
    /// Register `rb` as it was read.
    pub(crate) register_b: Vec<Signal>,
    /// Register `rc` as it was read.
    pub(crate) register_c: Vec<Signal>,
    /// Operand A, clean.
    pub(crate) a: Vec<Signal>,
    /// Operand B (register, immediate or constant), clean.
    pub(crate) b: Vec<Signal>,
    /// The guard holds and the lane is active, in EXEC.
    pub(crate) executes: Signal,
    /// The predicate source in the `rc` field.
    pub(crate) predicate_c: Signal,
    /// The predicate source in the `ra` field.
    pub(crate) predicate_a: Signal,
    /// The predicate source in the `rb` field.
    pub(crate) predicate_b: Signal,
    /// The destination predicate as it was.
    pub(crate) predicate_old: Signal,
}

/// The operands of all lanes.
#[derive(Debug)]
pub(crate) struct Operands {
    pub(crate) lanes: Vec<LaneOperands>,
    /// The constant, or 0.
    pub(crate) constant: Vec<Signal>,
}

impl Operands {
    /// Builds the register file, the predicate file and the constant bank.
    pub(crate) fn build(
        b: &mut Builder,
        spec: &MachineSpec,
        inputs: &Inputs,
        intake: &Intake,
        decoded: &Decoded,
    ) -> Self {
        let constant = constant_bank(b, spec, inputs, intake, decoded);
        let predicates = Predicates::build(b, inputs, intake, decoded);
        let lanes = (0..usize::from(spec.lanes))
            .map(|lane| {
                b.scope(format!("operand/lane{lane}"), |b| {
                    let [register_a, register_b, register_c] = registers(b, spec, inputs, intake, decoded, lane);
                    let a = (0..WORD).map(|i| b.step(&format!("a/bit{i}"), register_a[i] - 1)).collect();
                    let operand_b = (0..WORD)
                        .map(|i| {
                            let sum = register_b[i] + decoded.immediate[i] + constant[i];
                            b.step(&format!("b/bit{i}"), sum - 1)
                        })
                        .collect();
                    LaneOperands {
                        register_a,
                        register_b,
                        register_c,
                        a,
                        b: operand_b,
                        executes: predicates.truth(b, "executes", 0, lane, intake.active[lane] * 2),
                        predicate_c: predicates.truth(b, "predicate_c", 1, lane, Linear::from(2)),
                        predicate_b: predicates.truth(b, "predicate_b", 2, lane, Linear::from(2)),
                        predicate_a: predicates.truth(b, "predicate_a", 3, lane, Linear::from(2)),
                        predicate_old: predicates.read[4][lane],
                    }
                })
            })
            .collect();
        Self { lanes, constant }
    }
}

fn address(parts: &[&[Signal]]) -> Vec<Linear> {
    parts.iter().copied().flatten().map(|&bit| bit.into()).collect()
}

/// The registers of one lane: a row for each register of each warp. A VAL that names the lane writes all that has
/// arrived of the result so far, and so does a FILL. Row 0 of a warp is never written, so r0 reads zero.
fn registers(
    b: &mut Builder,
    spec: &MachineSpec,
    inputs: &Inputs,
    intake: &Intake,
    decoded: &Decoded,
    lane: usize,
) -> [Vec<Signal>; 3] {
    let value = intake.assembled[lane].iter().enumerate().map(|(i, &bit)| {
        if i < BYTE {
            return bit.into();
        }
        let filled = b.relu_bit(&format!("filled/bit{i}"), inputs.is_fill - bit);
        b.exclusive(&format!("told/bit{i}"), &[bit, filled]);
        bit + filled
    });
    let value = value.collect();
    let description = StateDescription {
        rows: usize::from(spec.registers) * usize::from(spec.warps),
        clear: None,
        write: RowChoice::Address {
            bits: address(&[&decoded.written, &intake.warp]),
            enable: inputs.is_val + inputs.mask[lane] + intake.open_exec - 2,
        },
        value,
        level: Level::EveryRow,
    };
    let query =
        |field: &[Signal]| RowChoice::Address { bits: address(&[field, &intake.warp]), enable: inputs.starts.into() };
    let queries = vec![("a", query(&decoded.ra)), ("b", query(&decoded.rb)), ("c", query(&decoded.rc))];
    let mut reads = b.state("registers", description, queries).into_iter();
    std::array::from_fn(|_| reads.next().unwrap_or_default())
}

/// Words that are the same for all lanes: parameters, and the launch's dimensions.
fn constant_bank(
    b: &mut Builder,
    spec: &MachineSpec,
    inputs: &Inputs,
    intake: &Intake,
    decoded: &Decoded,
) -> Vec<Signal> {
    b.scope("constant", |b| {
        let enable = b.step("write", intake.open_const + inputs.sets_constant - 1);
        let bits: Vec<Linear> = inputs
            .constant_index
            .iter()
            .zip(&intake.open_address)
            .enumerate()
            .map(|(i, (&index, &open))| b.step(&format!("write_address/bit{i}"), index + open - 1).into())
            .collect();
        let value = (0..WORD)
            .map(|i| match inputs.constant_value.get(i) {
                Some(&bit) => b.step(&format!("write_value/bit{i}"), bit + intake.assembled[0][i] - 1).into(),
                None => intake.assembled[0][i].into(),
            })
            .collect();
        let description = StateDescription {
            rows: usize::from(spec.constant_words),
            clear: None,
            write: RowChoice::Address { bits, enable: enable.into() },
            value,
            level: Level::EveryRow,
        };
        let query = RowChoice::Address {
            bits: decoded.constant_index.iter().map(|&bit| bit.into()).collect(),
            enable: decoded.uses_constant.into(),
        };
        b.state("bank", description, vec![("read", query)]).remove(0)
    })
}

/// The predicate file: a row for each predicate of each warp, a bit for each lane.
struct Predicates {
    /// By port (guard, rc, rb, ra, destination) and lane.
    read: Vec<Vec<Signal>>,
    /// By port: the field names `pt`.
    always: Vec<Signal>,
    /// By port: the field negates.
    negated: Vec<Signal>,
}

impl Predicates {
    fn build(b: &mut Builder, inputs: &Inputs, intake: &Intake, decoded: &Decoded) -> Self {
        let rows = 1 << (3 + intake.warp.len());
        let at = |field: &[Signal], enable: Linear| RowChoice::Address {
            bits: address(&[&field[..3], &intake.warp]),
            enable,
        };
        let fields = [&decoded.guard, &decoded.rc, &decoded.rb, &decoded.ra, &decoded.rd];
        let description = StateDescription {
            rows,
            clear: None,
            write: at(&decoded.written, inputs.is_pred.into()),
            value: inputs.predicate.iter().map(|&bit| bit.into()).collect(),
            level: Level::EveryRow,
        };
        let ports = ["guard", "c", "b", "a", "old"];
        let queries = ports.iter().zip(fields).map(|(&port, field)| (port, at(field, inputs.starts.into()))).collect();
        let read = b.state("predicates", description, queries);
        let always = ports
            .iter()
            .zip(fields)
            .map(|(port, field)| b.and(&format!("predicates/{port}/always"), &field[..3]))
            .collect();
        Self { read, always, negated: fields.iter().map(|field| field[3]).collect() }
    }

    /// Whether the source of a port holds in a lane, if `enable` is 2; else 0. The argument is
    /// `value + 3 * negated`, where the value is at most 2 by its parts and at most 1 in fact.
    fn truth(&self, b: &mut Builder, name: &str, port: usize, lane: usize, enable: Linear) -> Signal {
        let value = self.read[port][lane] + self.always[port] + self.negated[port] * 3;
        b.table(&[name], value + enable * 8 - 16, 0, vec![vec![0, 1, 1, 1, 0, 0]])[0]
    }
}

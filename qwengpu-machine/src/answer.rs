//! The next record: the pieces of a result one by one, then what the control unit decided.

use qwengpu_circuit::{Builder, Linear, Product, Signal};
use qwengpu_isa::{FaultKind, MachineSpec, Opcode, Parity};

use crate::control::{Control, Follows};
use crate::decode::{Decoded, gated};
use crate::inputs::{BYTE, Inputs, Outputs, Told, WORD, WORD_BYTES, fault_kind_bits};
use crate::intake::{Intake, latch};
use crate::memory::AccessFaults;
use crate::operands::Operands;

/// More than any difference of bytes, and no larger than needed, since noise is multiplied by it.
const OFF: i64 = 264;

/// Faults of the warp instruction.
struct Faults {
    /// The lowest faulting lane, one-hot.
    lane: Vec<Signal>,
    /// Whether a lane faults by its access, by an opcode, or at a barrier.
    any: Linear,
    /// By lane: it is the lowest faulting one, and has an address to tell.
    addressed: Vec<Signal>,
    /// What kind it is.
    kinds: Vec<(FaultKind, Signal)>,
}

/// Builds the last part of the machine.
#[expect(clippy::too_many_arguments, reason = "everything meets here")]
pub(crate) fn build(
    b: &mut Builder,
    spec: &MachineSpec,
    inputs: &Inputs,
    intake: &Intake,
    decoded: &Decoded,
    operands: &Operands,
    control: &Control,
    access_faults: &[AccessFaults],
    results: &[Vec<Linear>],
    predicates: &[Signal],
) -> Outputs {
    b.scope("answer", |b| {
        let lanes = usize::from(spec.lanes);
        let faults = collect_faults(b, inputs, intake, decoded, control, access_faults);
        let produces = decoded.any(Opcode::has_rd);
        let written: Vec<Linear> = (0..lanes)
            .map(|lane| {
                let gate =
                    produces.clone() + operands.lanes[lane].executes + decoded.rd_nonzero - 2 - faults.any.clone();
                let written = b.step(&format!("written/lane{lane}"), gate - 1);
                b.exclusive(&format!("spoken/lane{lane}"), &[written, faults.addressed[lane]]);
                written + faults.addressed[lane]
            })
            .collect();
        let clean: Vec<Vec<Signal>> = results
            .iter()
            .enumerate()
            .map(|(lane, bits)| {
                let bit = |(i, sum): (usize, &Linear)| b.step(&format!("result/lane{lane}/bit{i}"), sum.clone() - 1);
                bits.iter().enumerate().map(bit).collect()
            })
            .collect();
        let stores: Vec<Signal> = (0..lanes)
            .map(|lane| {
                let gate = decoded.is(Opcode::St) + operands.lanes[lane].executes - 1 - faults.any.clone();
                b.step(&format!("stores/lane{lane}"), gate - 1)
            })
            .collect();
        let any_executes = Linear::sum(operands.lanes.iter().map(|lane| lane.executes));
        let twice = 2 * i64::from(spec.lanes);
        let sets_predicate = b.step(
            "sets_predicate",
            any_executes + (decoded.any(Opcode::has_pd) + decoded.pd_kept) * twice - (2 * twice + 1),
        );
        let pieces = Pieces::build(b, lanes, &written, &clean);
        let kept = Latched::build(b, inputs, &pieces, &stores, sets_predicate, &clean, predicates, control, &faults);
        speak(b, lanes, inputs, intake, &kept)
    })
}

fn collect_faults(
    b: &mut Builder,
    inputs: &Inputs,
    intake: &Intake,
    decoded: &Decoded,
    control: &Control,
    access: &[AccessFaults],
) -> Faults {
    let traps = Linear::sum(decoded.traps.iter().map(|(_, bit)| *bit));
    let illegal = b.relu_bit("fault/illegal", inputs.starts - decoded.any(|_| true) - traps.clone());
    let whole = traps + illegal + control.barrier_divergence;
    let mut earlier = Linear::zero();
    let mut first = Vec::new();
    let mut faulty = Vec::new();
    for (lane, faults) in access.iter().enumerate() {
        let gates =
            vec![faults.out_of_bounds.into(), faults.misaligned.into(), whole.clone() + intake.active[lane] - 1];
        let count = i64::try_from(gates.len()).unwrap_or(0);
        // At most one of the three can be; the step makes a bit of their sum.
        let terms = gates.into_iter().map(|gate| Product { coefficient: 1, gate, up: Linear::one() }).collect();
        let sum = b.products(&format!("fault/lane{lane}/sum"), 0..=2 * count, terms);
        faulty.push(b.step(&format!("fault/lane{lane}"), sum - 1));
    }
    for (lane, &fault) in faulty.iter().enumerate() {
        first.push(b.relu_bit(&format!("fault/first/lane{lane}"), fault - earlier.clone()));
        earlier += fault;
    }
    b.exclusive("fault/first", &first);
    let addressed = access.iter().zip(&first).enumerate().map(|(lane, (access, &first))| {
        b.relu_bit(&format!("fault/addressed/lane{lane}"), first + access.out_of_bounds + access.misaligned - 1)
    });
    let addressed = addressed.collect();
    let of_first = |b: &mut Builder, name: &str, bits: Vec<Signal>| {
        gated(b, name, first.iter().zip(bits).map(|(&first, bit)| first + bit - 1).collect())
    };
    let out_of_bounds = of_first(b, "fault/out_of_bounds", access.iter().map(|lane| lane.out_of_bounds).collect());
    let misaligned = of_first(b, "fault/misaligned", access.iter().map(|lane| lane.misaligned).collect());
    let mut kinds = vec![
        (FaultKind::OutOfBounds, out_of_bounds),
        (FaultKind::Misaligned, misaligned),
        (FaultKind::IllegalInstruction, illegal),
        (FaultKind::BarrierDivergence, control.barrier_divergence),
    ];
    kinds.extend(&decoded.traps);
    Faults { any: Linear::sum(first.iter().copied()), lane: first, addressed, kinds }
}

/// The pieces of a result: a byte of a lane is sent if it is not zero (the lowest byte always), together with equal
/// bytes of higher lanes. Of lanes whose bytes above the lowest are all ones, these are sent as one.
struct Pieces {
    /// At `byte * lanes + lane`: has to be sent, alone or with a lower lane.
    sends: Vec<Linear>,
    /// By lane: it is written, and its bytes above the lowest are all ones.
    filled: Vec<Signal>,
    /// At `byte * lanes + lane`, for each lower lane: both are written and the bytes are equal, and not sent as one.
    equal: Vec<Vec<Signal>>,
    /// Byte 0 rises by one from lane to lane, and every lane is written.
    ramp: Linear,
}

impl Pieces {
    fn build(b: &mut Builder, lanes: usize, written: &[Linear], results: &[Vec<Signal>]) -> Self {
        let byte_of = |lane: usize, byte: usize| &results[lane][byte * BYTE..(byte + 1) * BYTE];
        let mut sends = Vec::new();
        let mut equal = Vec::new();
        let mut rises = Vec::new();
        let most = i64::try_from(BYTE).unwrap_or(0) + 1;
        let upper_bits = i64::try_from(WORD - BYTE).unwrap_or(0);
        let filled: Vec<Signal> = (0..lanes)
            .map(|lane| {
                let ones = Linear::sum(results[lane][BYTE..].iter().copied());
                b.step(&format!("filled/lane{lane}"), written[lane].clone() + ones - (upper_bits + 1))
            })
            .collect();
        for byte in 0..WORD_BYTES {
            for lane in 0..lanes {
                let name = format!("sends/byte{byte}/lane{lane}");
                sends.push(if byte == 0 {
                    b.relu_bit(&name, written[lane].clone()).into()
                } else {
                    let ones = Linear::sum(byte_of(lane, byte).iter().copied());
                    b.step(&name, written[lane].clone() * most + ones - (most + 1)) - filled[lane]
                });
                equal.push(
                    (0..lane)
                        .map(|lower| {
                            let difference =
                                Linear::from_bits(byte_of(lane, byte)) - Linear::from_bits(byte_of(lower, byte));
                            let off = (written[lane].clone() + &written[lower] - 2) * OFF;
                            let name = format!("equal/byte{byte}/lane{lower}_{lane}");
                            let equal = if byte == 0 && lower + 1 == lane {
                                let rise = format!("ramp/lane{lower}_{lane}");
                                let columns = vec![vec![0, 1, 0, 0], vec![0, 0, 1, 0]];
                                let found = b.plain_table(&[&name, &rise], difference + off, -1, columns);
                                rises.push(b.step(&format!("{rise}/clean"), found[1] - 1));
                                found[0]
                            } else {
                                b.plain_table(&[&name], difference + off, -1, vec![vec![0, 1, 0]])[0]
                            };
                            // Up to three of these are added in front of a step: without their noise.
                            let as_one = if byte == 0 { Linear::zero() } else { filled[lower] + filled[lane] };
                            b.step(&format!("{name}/clean"), equal - as_one - 1)
                        })
                        .collect(),
                );
            }
        }
        let ramp = rises.into_iter().map(|rise| rise - 1).fold(Linear::one(), |all, rise| all + rise);
        Self { sends, filled, equal, ramp }
    }
}

/// Everything that the records of one instruction are made of, kept while they are spoken.
struct Latched {
    sends: Vec<Signal>,
    filled: Vec<Signal>,
    equal: Vec<Vec<Signal>>,
    ramp: Signal,
    stores: Vec<Signal>,
    sets_predicate: Signal,
    /// By lane.
    results: Vec<Vec<Signal>>,
    predicate: Vec<Signal>,
    exec: Signal,
    pc: Vec<Signal>,
    mask: Vec<Signal>,
    follows: Follows,
    warp: Vec<Signal>,
    release: Signal,
    cta: Vec<Signal>,
    cta_value: Vec<Vec<Signal>>,
    halt: Signal,
    fault_lane: Vec<Signal>,
    fault_kinds: Vec<(FaultKind, Signal)>,
}

impl Latched {
    #[expect(clippy::too_many_arguments, reason = "everything is kept in one latch")]
    fn build(
        b: &mut Builder,
        inputs: &Inputs,
        pieces: &Pieces,
        stores: &[Signal],
        sets_predicate: Signal,
        results: &[Vec<Signal>],
        predicate: &[Signal],
        control: &Control,
        faults: &Faults,
    ) -> Self {
        let fault_kinds: Vec<Signal> = faults.kinds.iter().map(|(_, bit)| *bit).collect();
        let mut value: Vec<Signal> = Vec::new();
        let groups: Vec<&[Signal]> = {
            let mut groups: Vec<&[Signal]> = vec![&pieces.filled];
            groups.extend(pieces.equal.iter().map(Vec::as_slice));
            groups.push(stores);
            groups.extend(results.iter().map(Vec::as_slice));
            groups.extend([predicate, &control.pc, &control.mask, &control.warp, &control.cta]);
            groups.extend(control.cta_value.iter().map(Vec::as_slice));
            groups.push(&faults.lane);
            groups.push(&fault_kinds);
            groups
        };
        for group in &groups {
            value.extend_from_slice(group);
        }
        let singles = [sets_predicate, control.exec, control.release, control.halt];
        value.extend(singles);
        let reads = inputs.decides() + inputs.is_piece;
        let mut forms = pieces.sends.clone();
        forms.extend(value.iter().map(|&bit| Linear::from(bit)));
        forms.push(pieces.ramp.clone());
        let follows = control.follows.parity.iter().chain([&control.follows.other]);
        forms.extend(follows.map(|&follows| follows - faults.any.clone()));
        let mut read = latch(b, "kept", inputs.decides(), forms, reads).into_iter();
        let mut take = |count: usize| -> Vec<Signal> { read.by_ref().take(count).collect() };
        let sends = take(pieces.sends.len());
        let filled = take(pieces.filled.len());
        let equal = pieces.equal.iter().map(|bits| take(bits.len())).collect();
        let stores = take(stores.len());
        let results = results.iter().map(|bits| take(bits.len())).collect();
        let predicate = take(predicate.len());
        let (pc, mask) = (take(control.pc.len()), take(control.mask.len()));
        let (warp, cta) = (take(control.warp.len()), take(control.cta.len()));
        let cta_value = control.cta_value.iter().map(|bits| take(bits.len())).collect();
        let fault_lane = take(faults.lane.len());
        let fault_kinds = faults.kinds.iter().map(|(kind, _)| *kind).zip(take(fault_kinds.len())).collect();
        let singles = take(singles.len());
        let ramp = take(1)[0];
        let follows = Follows { parity: take(control.follows.parity.len()), other: take(1)[0] };
        b.exclusive("kept/fault_lane", &fault_lane);
        b.exclusive("kept/warp", &warp);
        Self {
            sends,
            filled,
            equal,
            stores,
            sets_predicate: singles[0],
            results,
            predicate,
            exec: singles[1],
            pc,
            mask,
            warp,
            release: singles[2],
            cta,
            cta_value,
            halt: singles[3],
            ramp,
            follows,
            fault_lane,
            fault_kinds,
        }
    }
}

/// `sum(relu(gate) * up)`, where at most one gate is 1.
fn chosen(b: &mut Builder, name: &str, terms: &[(Linear, Linear)]) -> Signal {
    let terms = terms.iter().map(|(gate, up)| Product { coefficient: 1, gate: gate.clone(), up: up.clone() }).collect();
    b.products(name, 0..=1, terms)
}

/// Chooses the first piece that is left, or what the control unit decided.
fn speak(b: &mut Builder, lanes: usize, inputs: &Inputs, intake: &Intake, kept: &Latched) -> Outputs {
    // Pieces in the order in which they are spoken; each is left if it is due and may follow this record.
    // The fault itself comes first; behind it there may be the pieces of an address.
    let spoken_with = inputs.decides();
    let at_once = |b: &mut Builder, name: String, bit: Signal| b.relu_bit(&name, bit + spoken_with.clone() - 1);
    let faults: Vec<Signal> = kept
        .fault_lane
        .iter()
        .enumerate()
        .map(|(lane, &bit)| at_once(b, format!("fault/now/lane{lane}"), bit))
        .collect();
    b.exclusive("fault/now", &faults);
    let mut left: Vec<Signal> = Vec::new();
    for (piece, &sends) in kept.sends.iter().enumerate() {
        let mut with_lower = Linear::sum(kept.equal[piece].iter().copied());
        if (1..lanes).contains(&piece) {
            // Lanes of a ramp differ, so no lane is with a lower one in two ways.
            with_lower += kept.ramp;
        }
        left.push(b.step(&format!("left/piece{piece}"), sends + inputs.later_val[piece] - 2 - with_lower));
    }
    let any_filled = Linear::sum(kept.filled.iter().copied());
    let most = i64::try_from(lanes).unwrap_or(0);
    left.push(b.step("left/fill", any_filled + Linear::from(inputs.later_fill) * most - (most + 1)));
    for (lane, &stores) in kept.stores.iter().enumerate() {
        left.push(b.step(&format!("left/store{lane}"), stores + inputs.later_mem[lane] - 2));
    }
    left.push(b.step("left/predicate", kept.sets_predicate + inputs.later_pred - 2));
    let fault_now = Linear::sum(faults.iter().copied());
    let mut earlier = fault_now.clone();
    let first: Vec<Linear> = left
        .iter()
        .map(|&left| {
            let gate = left - earlier.clone();
            earlier += left;
            gate
        })
        .collect();
    let (pieces, rest) = first.split_at(kept.sends.len());
    let (filled, rest) = rest.split_at(1);
    let (stores, predicate) = rest.split_at(lanes);
    let faulty = Linear::sum(kept.fault_lane.iter().copied());
    let after = |decision: Signal| decision - earlier.clone() - faulty.clone();
    let one = Linear::one;

    let each = |gates: &[Linear]| gates.iter().map(|gate| (gate.clone(), one())).collect::<Vec<_>>();
    // A ramp is spoken in place of the first piece.
    let mut vals = pieces.to_vec();
    vals[0] = vals[0].clone() - kept.ramp;
    let val = chosen(b, "val", &each(&vals));
    let ramp = chosen(b, "ramp", &each(&[pieces[0].clone() + kept.ramp - 1]));
    let fill = chosen(b, "fill", &each(filled));
    let mem = chosen(b, "mem", &each(stores));
    let pred = chosen(b, "pred", &each(predicate));
    // The last piece that is left starts the instruction that follows.
    let all = Linear::sum(left.iter().copied());
    let last = |piece: usize, follows: Signal| left[piece] * 2 + follows - 1 - all.clone();
    let mut val_next = Vec::new();
    for (parity, &follows) in Parity::ALL.iter().zip(&kept.follows.parity) {
        let mut gates: Vec<Linear> = (0..pieces.len()).map(|piece| last(piece, follows)).collect();
        gates[0] = gates[0].clone() - kept.ramp;
        val_next.push(chosen(b, &format!("val_next{parity}"), &each(&gates)));
    }
    let follows = kept.follows.other;
    let ramp_next = chosen(b, "ramp_next", &each(&[last(0, follows) + kept.ramp - 1]));
    let fill_next = chosen(b, "fill_next", &each(&[last(pieces.len(), follows)]));
    let last_stores: Vec<Linear> = (0..lanes).map(|lane| last(pieces.len() + 1 + lane, follows)).collect();
    let mem_next = chosen(b, "mem_next", &each(&last_stores));
    let pred_next = chosen(b, "pred_next", &each(&[last(left.len() - 1, follows)]));
    let exec = chosen(b, "exec", &[(after(kept.exec), one())]);
    let warp_gates: Vec<Linear> = kept.warp.iter().map(|&warp| after(warp)).collect();
    let warp = chosen(b, "warp", &each(&warp_gates));
    let release = chosen(b, "release", &[(after(kept.release), one())]);
    let fault_gates: Vec<Linear> = faults.iter().map(|&lane| lane.into()).collect();
    let fault = chosen(b, "fault", &each(&fault_gates));
    let halt = chosen(b, "halt", &[(after(kept.halt), one()), (faulty.clone() - earlier.clone(), one())]);
    // The header of a CTA: after GO or an advance of z comes y = 0, after y comes x = 0.
    let started: [Linear; 3] = [inputs.is_cta[1].into(), inputs.is_cta[2].into(), inputs.is_go.into()];
    let cta = (0..kept.cta.len())
        .map(|axis| chosen(b, &format!("cta{axis}"), &[(after(kept.cta[axis]), one()), (started[axis].clone(), one())]))
        .collect();

    let mask = (0..lanes)
        .map(|lane| {
            let mut terms = vec![
                (after(kept.exec), kept.mask[lane].into()),
                (predicate[0].clone(), kept.predicate[lane].into()),
                (filled[0].clone(), kept.filled[lane].into()),
            ];
            for (piece, gate) in pieces.iter().enumerate() {
                let (byte, leader) = (piece / lanes, piece % lanes);
                if lane == leader {
                    terms.push((gate.clone(), one()));
                } else if lane > leader {
                    terms.push((gate.clone(), kept.equal[byte * lanes + lane][leader].into()));
                }
            }
            chosen(b, &format!("mask/lane{lane}"), &terms)
        })
        .collect();
    let binary = |b: &mut Builder, name: &str, bits: usize, gates: &[Linear], number: &dyn Fn(usize) -> usize| {
        (0..bits)
            .map(|bit| {
                let set = gates.iter().enumerate().filter(|(i, _)| number(*i) >> bit & 1 == 1);
                chosen(b, &format!("{name}/bit{bit}"), &set.map(|(_, gate)| (gate.clone(), one())).collect::<Vec<_>>())
            })
            .collect::<Vec<Signal>>()
    };
    let position = binary(b, "position", WORD_BYTES.ilog2() as usize, pieces, &|piece| piece / lanes);
    let mut lane_gates = stores.to_vec();
    lane_gates.extend(fault_gates);
    let lane = binary(b, "lane", lanes.ilog2() as usize, &lane_gates, &|i| i % lanes);
    let byte = (0..BYTE)
        .map(|bit| {
            let mut terms: Vec<(Linear, Linear)> = pieces
                .iter()
                .enumerate()
                .map(|(piece, gate)| {
                    let from = piece / lanes * BYTE + bit;
                    (gate.clone(), kept.results[piece % lanes][from].into())
                })
                .collect();
            for (axis, values) in kept.cta_value.iter().enumerate() {
                terms.push((after(kept.cta[axis]), values[bit].into()));
            }
            chosen(b, &format!("byte/bit{bit}"), &terms)
        })
        .collect();
    let pc = kept
        .pc
        .iter()
        .enumerate()
        .map(|(bit, &of_exec)| {
            let mut terms = vec![(after(kept.exec), of_exec.into())];
            for (warp, gate) in warp_gates.iter().enumerate() {
                if warp >> bit & 1 == 1 {
                    terms.push((gate.clone(), one()));
                }
            }
            chosen(b, &format!("pc/bit{bit}"), &terms)
        })
        .collect();
    let numbers: Vec<usize> = kept.fault_kinds.iter().map(|(kind, _)| usize::from(kind.number())).collect();
    let kind_gates: Vec<Linear> = kept.fault_kinds.iter().map(|&(_, bit)| bit + fault_now.clone() - 1).collect();
    let fault_kind = binary(b, "fault_kind", fault_kind_bits(), &kind_gates, &|i| numbers[i]);
    debug_assert_eq!(kept.results[0].len(), WORD, "a result is a word");
    Outputs {
        val: Told { any: val, next: val_next },
        ramp: Told { any: ramp, next: vec![ramp_next] },
        fill: Told { any: fill, next: vec![fill_next] },
        mem: Told { any: mem, next: vec![mem_next] },
        pred: Told { any: pred, next: vec![pred_next] },
        exec,
        warp,
        cta,
        release,
        fault,
        halt,
        mask,
        position,
        byte,
        pc,
        lane,
        fault_kind,
        distance: intake.distance.clone(),
    }
}

//! Which warp instruction comes next: pcs of lanes, exits, barriers, warps, CTAs.

use std::ops::Range;

use qwengpu_circuit::{Builder, Level, Linear, Product, RowChoice, Signal, StateDescription};
use qwengpu_isa::{MachineSpec, Opcode, Parity, TARGET_SHIFT};

use crate::decode::{Decoded, gated};
use crate::inputs::{BYTE, GRID_ROWS, Inputs};
use crate::intake::{BROADCAST_ROWS, Intake};
use crate::operands::Operands;

/// How the next instruction can be started by the last record of this one, if it can.
#[derive(Debug)]
pub(crate) struct Follows {
    /// By parity, if that is a VAL.
    pub(crate) parity: Vec<Signal>,
    /// If it is another one, which tells the distance.
    pub(crate) other: Signal,
}

/// What the machine would do after this record if nothing of its instruction were left to say.
#[derive(Debug)]
pub(crate) struct Control {
    /// Go on with the warp.
    pub(crate) exec: Signal,
    /// At this pc.
    pub(crate) pc: Vec<Signal>,
    /// In these lanes.
    pub(crate) mask: Vec<Signal>,
    /// The next instruction follows this one in the same lanes, and needs no EXEC.
    pub(crate) follows: Follows,
    /// Switch to a warp, one-hot.
    pub(crate) warp: Vec<Signal>,
    /// Release the barrier.
    pub(crate) release: Signal,
    /// Start the next CTA, by the axis that advances.
    pub(crate) cta: Vec<Signal>,
    /// With this value, by axis.
    pub(crate) cta_value: Vec<Vec<Signal>>,
    /// The grid has ended.
    pub(crate) halt: Signal,
    /// A barrier that some live lanes of the warp don't reach.
    pub(crate) barrier_divergence: Signal,
}

/// One lane of the running warp.
struct LaneContext {
    alive: Signal,
    pc: Vec<Signal>,
}

impl Control {
    /// Builds the scheduler.
    pub(crate) fn build(
        b: &mut Builder,
        spec: &MachineSpec,
        inputs: &Inputs,
        intake: &Intake,
        decoded: &Decoded,
        operands: &Operands,
        branches: &[Signal],
    ) -> Self {
        b.scope("control", |b| {
            let lanes: Vec<LaneContext> = (0..usize::from(spec.lanes))
                .map(|lane| {
                    b.scope(format!("lane{lane}"), |b| {
                        context(b, inputs, intake, decoded, operands, branches[lane], lane)
                    })
                })
                .collect();
            let alive = Linear::sum(lanes.iter().map(|lane| lane.alive));
            let lane_count = i64::from(spec.lanes);
            let barrier = decoded.is(Opcode::Bar);
            // A barrier with live lanes that are not in the mask.
            let missing = alive.clone() - Linear::sum(intake.active.iter().copied());
            let barrier_divergence =
                b.step("barrier_divergence", missing + barrier * (lane_count + 1) - (lane_count + 2));
            let any_alive = b.step("any_alive", alive - 1);
            let next = smallest_pc(b, &lanes);
            let runs = gated(b, "runs", vec![inputs.starts + any_alive - barrier - 1, inputs.is_warp.into()]);
            let (ready, waiting) = warps(b, spec, inputs, intake, decoded, any_alive);
            let mut earlier = Linear::zero();
            let mut warp = Vec::new();
            for (number, &ready) in ready.iter().enumerate() {
                warp.push(b.step(&format!("switch/warp{number}"), ready - earlier.clone() - runs - 1));
                earlier += ready;
            }
            b.exclusive("switch", &warp);
            // Clean, because it is multiplied by more than the number of warps.
            let idle = b.step("idle", -(earlier.clone() + runs));
            let count = i64::from(spec.warps) + 1;
            let release = b.step("release", waiting.clone() - 1 + idle * count - count);
            let end = b.relu_bit("end", inputs.starts - runs - earlier - waiting);
            let follows = follows(b, intake, runs, &lanes, &next);
            let (cta, cta_value, halt) = next_cta(b, inputs, decoded, end);
            Self {
                exec: runs,
                pc: next.pc,
                mask: next.mask,
                follows,
                warp,
                release,
                cta,
                cta_value,
                halt,
                barrier_divergence,
            }
        })
    }
}

/// The pc and life of a lane, updated by its instruction.
fn context(
    b: &mut Builder,
    inputs: &Inputs,
    intake: &Intake,
    decoded: &Decoded,
    operands: &Operands,
    branches: Signal,
    lane: usize,
) -> LaneContext {
    let lane_operands = &operands.lanes[lane];
    let executes = lane_operands.executes;
    let (direct, indirect) = (decoded.is(Opcode::Bra), decoded.is(Opcode::Brx));
    let jumps = b.relu_bit("jumps", direct + indirect + executes - 1);
    let value: Vec<Linear> = intake
        .next_pc
        .iter()
        .enumerate()
        .map(|(i, &next)| {
            let gates = vec![
                direct + executes + decoded.imm[i] - 2,
                indirect + executes + lane_operands.a[i] - 2,
                branches + decoded.imm[TARGET_SHIFT as usize + i] - 1,
                intake.active[lane] + next - jumps - branches - 1,
            ];
            gated(b, &format!("next_pc/bit{i}"), gates).into()
        })
        .collect();
    let here = |enable: Linear| -> RowChoice {
        RowChoice::Rows(intake.warp_one_hot.iter().map(|&warp| enable.clone() + warp - 1).collect())
    };
    // Whether a lane has exited is known long before it is known whether it branches, so that a state of its own lets
    // barriers and faults go on early.
    let mut state = |name: &str, value: Vec<Linear>| {
        let description = StateDescription {
            rows: intake.warp_one_hot.len(),
            clear: Some(inputs.is_cta[0].into()),
            write: here(intake.active[lane].into()),
            value,
            level: Level::EveryRow,
        };
        b.state(name, description, vec![("read", here(inputs.starts + inputs.is_warp))]).remove(0)
    };
    let pc = state("pc", value);
    let exited = state("exited", vec![decoded.is(Opcode::Exit) + executes - 1])[0];
    let count = intake.active.len();
    let gates = intake
        .warp_one_hot
        .iter()
        .enumerate()
        .map(|(warp, &running)| intake.exists[warp * count + lane] + running - 1)
        .collect();
    let exists = gated(b, "exists", gates);
    LaneContext { alive: b.relu_bit("alive", exists - exited), pc }
}

/// The parts in which program counters are compared, lowest first: few bits each, so that differences are small.
fn parts(bits: usize) -> Vec<Range<usize>> {
    const LARGEST: usize = 5;
    let size = bits.div_ceil(bits.div_ceil(LARGEST).max(1)).max(1);
    (0..bits).step_by(size).map(|begin| begin..bits.min(begin + size)).collect()
}

/// Where the warp goes on.
struct Next {
    /// The smallest pc of the live lanes.
    pc: Vec<Signal>,
    /// The lanes that are there.
    mask: Vec<Signal>,
    /// For each lane, how many live lanes have a smaller pc.
    sooner: Vec<Linear>,
}

fn smallest_pc(b: &mut Builder, lanes: &[LaneContext]) -> Next {
    let parts = parts(lanes[0].pc.len());
    let most = 1_i64 << parts.len();
    let mut sooner = vec![Linear::zero(); lanes.len()];
    for upper in 0..lanes.len() {
        for lower in 0..upper {
            let mut order = Linear::zero();
            for (number, part) in parts.iter().enumerate() {
                let [this, other] = [upper, lower].map(|lane| Linear::from_bits(&lanes[lane].pc[part.clone()]));
                let name = format!("order/lane{upper}_{lower}/part{number}");
                order += b.table(&[&name], this - other, -1, vec![vec![-1, 0, 1]])[0] * (1 << number);
            }
            for (this, other, order) in [(upper, lower, order.clone()), (lower, upper, -order)] {
                let name = format!("order/lane{this}_behind_{other}");
                sooner[this] += b.step(&name, order + lanes[other].alive * most - (most + 1));
            }
        }
    }
    let mask: Vec<Signal> = lanes
        .iter()
        .zip(&sooner)
        .enumerate()
        .map(|(lane, (context, sooner))| b.relu_bit(&format!("next/mask/lane{lane}"), context.alive - sooner))
        .collect();
    let pc = (0..lanes[0].pc.len())
        .map(|i| {
            let mut earlier = Linear::zero();
            let mut terms = Vec::new();
            for (lane, &first) in lanes.iter().zip(&mask) {
                terms.push(Product { coefficient: 1, gate: first - earlier.clone(), up: lane.pc[i].into() });
                earlier += first;
            }
            b.products(&format!("next/pc/bit{i}"), 0..=1, terms)
        })
        .collect();
    Next { pc, mask, sooner }
}

/// Whether the warp goes on behind this instruction, in the same lanes and near enough to the last EXEC. Lanes are
/// compared one by one, beside the search for the smallest pc.
fn follows(b: &mut Builder, intake: &Intake, runs: Signal, lanes: &[LaneContext], next: &Next) -> Follows {
    // 0 if each active lane is behind the instruction and runs, and no other lane does; else less.
    let mut same = Linear::zero();
    let count = i64::try_from(lanes.len()).unwrap_or(0);
    for (number, (lane, sooner)) in lanes.iter().zip(&next.sooner).enumerate() {
        let active = intake.active[number];
        for (place, part) in parts(lane.pc.len()).into_iter().enumerate() {
            let off = 1 << (part.len() + 1);
            let difference = Linear::from_bits(&lane.pc[part.clone()]) - Linear::from_bits(&intake.next_pc[part]);
            let name = format!("follows/lane{number}/pc_part{place}");
            same += b.table(&[&name], difference + active * off - off, -1, vec![vec![0, 1, 0]])[0] - active;
        }
        // Whether it runs is an argument of 1 or at most 0, and those of active lanes are behind them.
        let runs = lane.alive - sooner.clone() + active * (count + 1);
        let differs = (1 - count..=count + 2).map(|runs| i64::from(runs > 0 && runs < count + 2)).collect();
        same -= b.table(&[&format!("follows/lane{number}/differs")], runs, 1 - count, vec![differs])[0];
    }
    let follows = runs + same;
    let [low, high] = intake.since_told;
    let last = b.and("follows/last_distance", &intake.distance);
    let odd_or_even = [Linear::from(low).not(), low - high];
    let parity = Parity::ALL
        .iter()
        .zip(odd_or_even)
        .map(|(parity, may)| b.step(&format!("follows/parity{parity}"), follows.clone() + may - last - 2));
    let parity = parity.collect();
    let other = b.step("follows/other", follows - last - 1);
    Follows { parity, other }
}

/// Warps that could run, and the number of those that wait.
fn warps(
    b: &mut Builder,
    spec: &MachineSpec,
    inputs: &Inputs,
    intake: &Intake,
    decoded: &Decoded,
    any_alive: Signal,
) -> (Vec<Signal>, Linear) {
    let count = usize::from(spec.warps);
    // A row for each warp, which fills its own bit, and one for the level; read as a whole.
    let mut flags = |name: &str, clear: Linear, value: Vec<Linear>| -> Vec<Signal> {
        let mut write: Vec<Linear> = intake.warp_one_hot.iter().map(|&warp| warp + inputs.starts - 1).collect();
        write.push(clear.clone());
        write.resize(BROADCAST_ROWS.max((count + 1).next_power_of_two()), Linear::zero());
        let query = RowChoice::Rows(vec![inputs.decides() - inputs.is_warp; write.len()]);
        let description = StateDescription {
            rows: write.len(),
            clear: Some(clear.clone()),
            write: RowChoice::Rows(write),
            value,
            level: Level::When(clear),
        };
        b.state(name, description, vec![("read", query)]).remove(0)
    };
    let warp = &intake.warp_one_hot;
    let finished = warp.iter().map(|&warp| warp - any_alive).collect();
    let finished = flags("finished", inputs.is_cta[0].into(), finished);
    let arrived = warp.iter().map(|&warp| warp + decoded.is(Opcode::Bar) - 1).collect();
    let waiting = flags("waiting", inputs.is_cta[0] + inputs.is_release, arrived);
    let lanes = usize::from(spec.lanes);
    let ready = (0..count)
        .map(|warp| {
            let gate =
                intake.exists[warp * lanes] - finished[warp] - waiting[warp] + (inputs.decides() - inputs.is_warp) - 1;
            b.relu_bit(&format!("ready/warp{warp}"), gate)
        })
        .collect();
    (ready, Linear::sum(waiting))
}

/// After the last warp: the axis that advances and the values, or the end.
fn next_cta(
    b: &mut Builder,
    inputs: &Inputs,
    decoded: &Decoded,
    end: Signal,
) -> (Vec<Signal>, Vec<Vec<Signal>>, Signal) {
    let mut write: Vec<Linear> = inputs.grid_row.iter().map(|&row| row.into()).collect();
    write.push(inputs.is_go.into());
    write.resize(BROADCAST_ROWS, Linear::zero());
    let value = (0..GRID_ROWS * BYTE).map(|i| inputs.grid_row[i / BYTE] + inputs.grid_value[i % BYTE] - 1).collect();
    let description = StateDescription {
        rows: BROADCAST_ROWS,
        clear: None,
        write: RowChoice::Rows(write),
        value,
        level: Level::When(inputs.is_go.into()),
    };
    let query = RowChoice::Rows(vec![decoded.is(Opcode::Exit).into(); BROADCAST_ROWS]);
    let read = b.state("grid", description, vec![("read", query)]).remove(0);
    let rows: Vec<Vec<Signal>> = read.chunks(BYTE).map(<[Signal]>::to_vec).collect();
    let axes = GRID_ROWS / 2;
    let mut before = Linear::from(end);
    let mut cta = Vec::new();
    for axis in 0..axes {
        let difference = Linear::from_bits(&rows[axis]) - Linear::from_bits(&rows[axes + axis]);
        let last = b.plain_table(&[&format!("grid/last{axis}")], difference, -1, vec![vec![0, 1, 0]])[0];
        // Steps, since a difference of bytes is noisy.
        cta.push(b.step(&format!("grid/advance{axis}"), before.clone() - last - 1));
        before = before + last - 1;
    }
    let halt = b.step("grid/halt", before - 1);
    let values = rows.into_iter().take(axes).collect();
    (cta, values, halt)
}

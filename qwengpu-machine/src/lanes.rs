//! What a lane learns of other lanes and of itself: shuffles, ballots, special registers, small division.

use qwengpu_circuit::{Builder, Linear, Product, Signal};
use qwengpu_isa::{Opcode, ShuffleMode, SpecialReg};

use crate::decode::{Decoded, equals};
use crate::inputs::{WORD, address_bits};
use crate::intake::Intake;
use crate::operands::LaneOperands;

/// Bits of a shuffle's distance, and of the dividend of the small division.
const SMALL: usize = 5;
/// Bits of the divisor of the small division.
const DIVISOR: usize = 6;
/// Largest quotient of the small division.
const LARGEST_QUOTIENT: i64 = 31;

/// The lane whose value lane `lane` of `lanes` gets at distance `d`.
fn source_lane(mode: ShuffleMode, lane: usize, d: usize, lanes: usize) -> usize {
    let found = match mode {
        ShuffleMode::Idx => Some(d % lanes),
        ShuffleMode::Up => lane.checked_sub(d),
        ShuffleMode::Down => Some(lane + d),
        ShuffleMode::Bfly => Some(lane ^ d),
    };
    found.filter(|source| *source < lanes).unwrap_or(lane)
}

/// `shfl`, added into each lane's result.
pub(crate) fn shuffle(b: &mut Builder, decoded: &Decoded, lanes: &[LaneOperands], results: &mut [Vec<Linear>]) {
    let count = lanes.len();
    b.scope("shuffle", |b| {
        let modes: Vec<(ShuffleMode, Signal)> = ShuffleMode::ALL
            .iter()
            .map(|&mode| {
                let gate = decoded.is(Opcode::Shfl) + equals(&decoded.sub[..2], usize::from(mode.field()));
                (mode, b.relu_bit(mode.text(), gate))
            })
            .collect();
        for (lane, operands) in lanes.iter().enumerate() {
            let mut sources = vec![Linear::zero(); count];
            let mut all = Vec::new();
            for &(mode, active) in &modes {
                // From `lanes` on, every distance means the lane itself, except for idx, which wraps.
                let used = if mode == ShuffleMode::Idx { address_bits(count) } else { SMALL };
                let most = if mode == ShuffleMode::Idx { count - 1 } else { count };
                let off = 1 << SMALL;
                let argument = Linear::from_bits(&operands.b[..used]) + active * off - off;
                let names: Vec<String> = (0..count).map(|source| format!("lane{lane}/{mode}/from{source}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let columns = (0..count)
                    .map(|source| {
                        let entry = |d| i64::from(source_lane(mode, lane, d, count) == source);
                        std::iter::once(0).chain((0..=most).map(entry)).collect()
                    })
                    .collect();
                for (sum, output) in sources.iter_mut().zip(b.table(&names, argument, -1, columns)) {
                    *sum += output;
                    all.push(output);
                }
            }
            b.exclusive(&format!("lane{lane}/sources"), &all);
            let most = i64::try_from(count * modes.len()).unwrap_or(i64::MAX);
            for (i, sum) in results[lane].iter_mut().enumerate() {
                let terms = sources
                    .iter()
                    .zip(lanes)
                    .map(|(source, from)| Product {
                        coefficient: 1,
                        gate: source.clone() + from.a[i] - 1,
                        up: Linear::one(),
                    })
                    .collect();
                *sum += b.products(&format!("lane{lane}/bit{i}"), 0..=most, terms);
            }
        }
    });
}

/// `vote` and `s2r`, added into each lane's result.
pub(crate) fn identify(
    b: &mut Builder,
    decoded: &Decoded,
    intake: &Intake,
    lanes: &[LaneOperands],
    results: &mut [Vec<Linear>],
) {
    let vote = decoded.is(Opcode::Vote);
    for (lane, operands) in lanes.iter().enumerate() {
        let bit = b.and(&format!("vote/lane{lane}"), &[vote, operands.executes, operands.predicate_c]);
        for result in results.iter_mut() {
            result[lane] += bit;
        }
    }
    let lane_bits = address_bits(lanes.len());
    b.scope("special", |b| {
        for &special in SpecialReg::ALL {
            let gate = decoded.is(Opcode::S2r) + equals(&decoded.sub, usize::from(special.field()));
            let active = b.relu_bit(special.text(), gate);
            if special != SpecialReg::WarpId {
                for (lane, result) in results.iter_mut().enumerate() {
                    for (bit, sum) in result.iter_mut().enumerate().take(lane_bits) {
                        if lane >> bit & 1 == 1 {
                            *sum += active;
                        }
                    }
                }
            }
            let first = match special {
                SpecialReg::LaneId => continue,
                SpecialReg::WarpId => 0,
                SpecialReg::LinearTid => lane_bits,
            };
            for (bit, &warp) in intake.warp.iter().enumerate() {
                let output = b.and(&format!("{special}/warp/bit{bit}"), &[active, warp]);
                for result in results.iter_mut() {
                    result[first + bit] += output;
                }
            }
        }
    });
}

/// `sdiv`, added into each lane's result. The quotient counts the multiples of the divisor that the dividend reaches.
pub(crate) fn small_division(
    b: &mut Builder,
    decoded: &Decoded,
    intake: &Intake,
    lanes: &[LaneOperands],
    results: &mut [Vec<Linear>],
) {
    b.scope("small_division", |b| {
        let op = decoded.is(Opcode::Sdiv);
        let own = b.and("of_thread", &[op, decoded.sub[1]]);
        let modulo = b.and("modulo", &[op, decoded.sub[0]]);
        let quotient = b.relu_bit("quotient", op - decoded.sub[0]);
        let warp: Vec<Signal> = intake
            .warp
            .iter()
            .enumerate()
            .map(|(bit, &warp)| b.and(&format!("warp/bit{bit}"), &[op, decoded.sub[1], warp]))
            .collect();
        let lane_count = i64::try_from(lanes.len()).unwrap_or(i64::MAX);
        for (lane, operands) in lanes.iter().enumerate() {
            b.scope(format!("lane{lane}"), |b| {
                let lane_number = i64::try_from(lane).unwrap_or(i64::MAX);
                let largest_thread = lane_count * (1 << warp.len()) - 1;
                let largest = (1 << SMALL) - 1 + largest_thread;
                let x =
                    Linear::from_bits(&operands.a[..SMALL]) + Linear::from_bits(&warp) * lane_count + own * lane_number;
                let divisor = &operands.b[..DIVISOR];
                let y = Linear::from_bits(divisor);
                let off = 1 << (DIVISOR);
                let reached: Vec<Signal> = (1..=LARGEST_QUOTIENT)
                    .map(|m| b.step(&format!("reaches{m}"), x.clone() - y.clone() * m + op * off - off))
                    .collect();
                let q = Linear::sum(reached.iter().copied());
                let bits = |count: usize, most: i64| -> Vec<Vec<i64>> {
                    (0..count).map(|bit| (0..=most).map(|n| n >> bit & 1).collect()).collect()
                };
                let names: Vec<String> = (0..SMALL).map(|bit| format!("quotient/bit{bit}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let argument = q.clone() + quotient * (LARGEST_QUOTIENT + 1) - (LARGEST_QUOTIENT + 1);
                for (bit, output) in b.table(&names, argument, 0, bits(SMALL, LARGEST_QUOTIENT)).into_iter().enumerate()
                {
                    results[lane][bit] += output;
                }
                // x - m * y for the m that is the quotient, which is reached while m + 1 is not.
                let mut terms = Vec::new();
                let mut below = Linear::one();
                for (m, above) in (0..=LARGEST_QUOTIENT).zip(reached.iter().map(Some).chain([None])) {
                    let above = above.map_or_else(Linear::zero, |&signal| signal.into());
                    let is_quotient = below - above.clone();
                    let gate = x.clone() - y.clone() * m + (is_quotient + modulo - 2) * off;
                    terms.push(Product { coefficient: 1, gate, up: Linear::one() });
                    below = above;
                }
                let remainder = b.products("remainder", 0..=largest, terms);
                let mut cut = operands.a[..SMALL].to_vec();
                cut.extend(divisor);
                cut.extend(&warp);
                cut.extend([op, own, modulo]);
                b.enumerate(&cut, &[remainder]);
                let count = address_bits(usize::try_from(largest + 1).unwrap_or(WORD));
                let names: Vec<String> = (0..count).map(|bit| format!("remainder/bit{bit}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                for (bit, output) in b.table(&names, remainder, 0, bits(count, largest)).into_iter().enumerate() {
                    results[lane][bit] += output;
                }
            });
        }
    });
}

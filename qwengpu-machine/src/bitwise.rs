//! Logic, shifts and bit counts of one lane.

use qwengpu_circuit::{Builder, Linear, Signal};
use qwengpu_isa::Opcode;

use crate::adder::{BASE, digits};
use crate::decode::{Decoded, equals, gated, literals};
use crate::inputs::WORD;
use crate::operands::LaneOperands;

/// `lop` and `lop3`: for each entry of the table, one neuron that is 1 if the operands select the entry and it is 1; and
/// `brev`, so that its bits take no channels of their own.
pub(crate) fn logic(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands) -> Vec<Linear> {
    let (two, three) = (decoded.is(Opcode::Lop), decoded.is(Opcode::Lop3));
    let reverse = decoded.is(Opcode::Brev);
    (0..WORD)
        .map(|i| {
            let mut gates = Vec::new();
            for (entry, &table) in decoded.sub.iter().enumerate() {
                let operands = [lane.b[i], lane.a[i]];
                gates.push(Linear::sum(literals(&operands, entry)) + two + table - 3);
            }
            for (entry, &table) in decoded.imm[..8].iter().enumerate() {
                let operands = [lane.register_c[i], lane.b[i], lane.a[i]];
                gates.push(Linear::sum(literals(&operands, entry)) + three + table - 4);
            }
            gates.push(reverse + lane.b[WORD - 1 - i] - 1);
            gated(b, &format!("logic/bit{i}"), gates).into()
        })
        .collect()
}

/// Bits of the amount that a shift by less than a word has.
const AMOUNT: usize = 5;
/// Bits of the amount that shift by less than a digit.
const FINE: usize = 2;

/// `shl` and `shr`: first by whole digits, then by 0..=3. Three MLP levels after the operands.
pub(crate) fn shifts(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands) -> Vec<Linear> {
    b.scope("shift", |b| {
        let (left, right) = (decoded.is(Opcode::Shl), decoded.is(Opcode::Shr));
        let too_far = Linear::sum(lane.b[AMOUNT..].iter().copied());
        let coarse = |b: &mut Builder, name: &str, op: Signal| -> Vec<Signal> {
            let hot: Vec<Signal> = (0..1 << (AMOUNT - FINE))
                .map(|n| {
                    let gate = equals(&lane.b[FINE..AMOUNT], n) + op - too_far.clone();
                    b.relu_bit(&format!("{name}{n}"), gate)
                })
                .collect();
            b.exclusive(name, &hot);
            hot
        };
        let coarse_left = coarse(b, "left_by_digits", left);
        let coarse_right = coarse(b, "right_by_digits", right);
        let fine: Vec<Signal> = (0..1 << FINE)
            .map(|n| b.relu_bit(&format!("by_bits{n}"), equals(&lane.b[..FINE], n) + left + right))
            .collect();
        b.exclusive("by_bits", &fine);
        let sign = b.and("sign", &[right, decoded.sub[0], lane.a[WORD - 1]]);
        let near = b.relu_bit("near", right - too_far);
        let all_sign = b.relu_bit("all_sign", sign - near);
        let step = 1 << FINE;
        let moved_left: Vec<Signal> = (0..WORD)
            .map(|i| {
                let gates = coarse_left.iter().enumerate().filter(|(n, _)| step * n <= i);
                gated(b, &format!("left/bit{i}"), gates.map(|(n, &hot)| hot + lane.a[i - step * n] - 1).collect())
            })
            .collect();
        let moved_right: Vec<Signal> = (0..WORD + step - 1)
            .map(|i| {
                let mut gates = Vec::new();
                let mut filled = Linear::zero();
                for (n, &hot) in coarse_right.iter().enumerate() {
                    match lane.a.get(i + step * n) {
                        Some(&bit) => gates.push(hot + bit - 1),
                        None => filled += hot,
                    }
                }
                gates.push(filled + sign - 1);
                gated(b, &format!("right/bit{i}"), gates)
            })
            .collect();
        (0..WORD)
            .map(|i| {
                let leftward =
                    fine.iter().enumerate().filter(|(n, _)| *n <= i).map(|(n, &hot)| hot + moved_left[i - n] - 1);
                let rightward = fine.iter().enumerate().map(|(n, &hot)| hot + moved_right[i + n] - 1);
                let left = gated(b, &format!("left_result/bit{i}"), leftward.collect());
                let right = gated(b, &format!("right_result/bit{i}"), rightward.collect());
                left + right + all_sign
            })
            .collect()
    })
}

/// `clz` and `popc`, added into `result`.
pub(crate) fn counts(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands, result: &mut [Linear]) {
    b.scope("count", |b| {
        let width = i64::try_from(WORD).unwrap_or(0);
        let bits = usize::try_from(WORD.ilog2()).unwrap_or(0) + 1;
        let columns = |largest: i64| {
            (0..bits).map(|bit| (0..=largest).map(|n| n >> bit & 1).collect()).collect::<Vec<Vec<i64>>>()
        };
        let name = |kind: &str, bit: usize| format!("{kind}/bit{bit}");

        let popc = decoded.is(Opcode::Popc);
        let names: Vec<String> = (0..bits).map(|bit| name("popc", bit)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let ones = Linear::sum(lane.b.iter().copied()) + popc * (2 * width) - 2 * width;
        for (bit, output) in b.table(&names, ones, 0, columns(width)).into_iter().enumerate() {
            result[bit] += output;
        }

        // Leading zeros of the highest digit that is not zero, plus four for each digit above it. Without the opcode the
        // tables see nothing above zero.
        let clz = decoded.is(Opcode::Clz);
        let mut above = Linear::zero();
        let mut terms = Vec::new();
        for (higher, (place, digit)) in (0..).zip(digits(&lane.b).into_iter().enumerate().rev()) {
            let (length, nonzero) = (format!("clz/digit{place}/length"), format!("clz/digit{place}/nonzero"));
            let columns = vec![
                (0..16_u32).map(|n| 32 - i64::from(n.leading_zeros())).collect(),
                (0..16).map(|n| i64::from(n > 0)).collect(),
            ];
            let argument = digit + clz * (BASE - 1) - (BASE - 1);
            let outputs = b.table(&[&length, &nonzero], argument, 0, columns);
            let gate = outputs[1] + clz - above.clone() - 1;
            terms.push(qwengpu_circuit::Product {
                coefficient: 1,
                gate,
                up: -Linear::from(outputs[0]) + 4 * (higher + 1),
            });
            above += outputs[1];
        }
        terms.push(qwengpu_circuit::Product { coefficient: 1, gate: clz - above, up: Linear::from(width) });
        let total = b.products("clz/total", 0..=width, terms);
        let names: Vec<String> = (0..bits).map(|bit| name("clz", bit)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (bit, output) in b.table(&names, total, 0, columns(width)).into_iter().enumerate() {
            result[bit] += output;
        }
    });
}

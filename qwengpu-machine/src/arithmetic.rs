//! Addition, subtraction and multiplication of one lane.

use qwengpu_circuit::{Builder, Linear, Product, Signal};
use qwengpu_isa::Opcode;

use crate::adder::{BASE, DIGIT, DIGITS, add_carries, add_digits, carry_once, digits};
use crate::decode::Decoded;
use crate::inputs::WORD;
use crate::operands::LaneOperands;

/// `iadd`, `isub`, `iscadd`. Result bits, zero for other opcodes. Four MLP levels after the operands.
pub(crate) fn additions(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands) -> Vec<Linear> {
    let (a, other, c) = (digits(&lane.a), digits(&lane.b), digits(&lane.register_c));
    let scaled: Vec<Vec<Linear>> = (1..=decoded.scaled_add.len())
        .map(|s| {
            let mut bits = vec![Linear::zero(); s];
            bits.extend(lane.a.iter().map(|&bit| Linear::from(bit)));
            digits(&bits[..WORD])
        })
        .collect();
    b.scope("add", |b| {
        // Each place of a - b + c has 16 (the lowest) or 15 added, which is 2^32 over all places.
        let largest = 3 * (BASE - 1) + 1;
        let sums: Vec<Linear> = (0..DIGITS)
            .map(|place| {
                let bias = if place == 0 { BASE } else { BASE - 1 };
                let mut terms = vec![
                    (decoded.is(Opcode::Iadd), a[place].clone() + &other[place] + &c[place]),
                    (decoded.is(Opcode::Isub), a[place].clone() - &other[place] + &c[place] + bias),
                ];
                for (gate, scaled) in decoded.scaled_add.iter().zip(&scaled) {
                    terms.push((*gate, scaled[place].clone() + &other[place] + &c[place]));
                }
                let terms =
                    terms.into_iter().map(|(gate, up)| Product { coefficient: 1, gate: gate.into(), up }).collect();
                b.products(&format!("place{place}"), 0..=largest, terms).into()
            })
            .collect();
        let (digit, carry) = carry_once(b, "carry", &sums, largest, false);
        let most = BASE - 1 + largest / BASE;
        add_digits(b, "adder", &add_carries(&digit, &carry), most)
    })
}

/// `imad`: the low word of a product, plus C. Result bits, zero for other opcodes. Six MLP levels after the operands.
///
/// A is cut into digits of two bits, so that each product with a hexadecimal digit of B is at most 45. Digits at even
/// positions meet B's digits at multiples of four bits; those at odd positions meet digits cut two bits lower, so that
/// all products stand at multiples of four bits.
pub(crate) fn multiply_add(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands) -> Vec<Linear> {
    let op = decoded.is(Opcode::Imad);
    let c = digits(&lane.register_c);
    let aligned = digits(&lane.b);
    let mut shifted_bits = vec![Linear::zero(); 2];
    shifted_bits.extend(lane.b.iter().map(|&bit| Linear::from(bit)));
    let shifted = digits(&shifted_bits[..WORD]);
    b.scope("multiply", |b| {
        let mut addends: Vec<Linear> = vec![Linear::zero(); DIGITS];
        let mut largest = vec![0_i64; DIGITS];
        for (place, digit) in c.iter().enumerate() {
            let term = Product { coefficient: 1, gate: op.into(), up: digit.clone() };
            addends[place] += b.products(&format!("addend{place}"), 0..=BASE - 1, vec![term]);
            largest[place] += BASE - 1;
        }
        for (group, factor, offset) in [("even", &aligned, 0), ("odd", &shifted, DIGIT / 2)] {
            b.scope(group, |b| {
                let (columns, most) = column_sums(b, op, &lane.a, factor, offset);
                let most = most.into_iter().max().unwrap_or(0);
                let (digit, carry) = carry_once(b, "column", &columns, most, true);
                for (place, sum) in add_carries(&digit, &carry).into_iter().enumerate() {
                    addends[place] += sum;
                    largest[place] += BASE - 1 + if place == 0 { 0 } else { most / BASE };
                }
            });
        }
        let most = largest.into_iter().max().unwrap_or(0);
        let (digit, carry) = carry_once(b, "carry", &addends, most, false);
        add_digits(b, "adder", &add_carries(&digit, &carry), BASE - 1 + most / BASE)
    })
}

/// Products of A's two-bit digits at `4 * k + offset` with the digits of `factor`, summed by place.
fn column_sums(b: &mut Builder, op: Signal, a: &[Signal], factor: &[Linear], offset: usize) -> (Vec<Linear>, Vec<i64>) {
    let most = 3 * (BASE - 1);
    let mut columns = vec![Linear::zero(); DIGITS];
    let mut largest = vec![0; DIGITS];
    for k in 0..DIGITS {
        let low = k * DIGIT + offset;
        let pair = Linear::from_bits(&a[low..low + 2]);
        for (j, digit) in factor.iter().enumerate().take(DIGITS - k) {
            let gate = pair.clone() + op * 3 - 3;
            let name = format!("product{k}_{j}");
            let product = b.products(&name, 0..=most, vec![Product { coefficient: 1, gate, up: digit.clone() }]);
            let (digit, carry) = carry_once(b, &name, &[product.into()], most, false);
            columns[k + j] += digit[0];
            largest[k + j] += BASE - 1;
            if let Some(next) = columns.get_mut(k + j + 1) {
                *next += carry[0];
                largest[k + j + 1] += most / BASE;
            }
        }
    }
    (columns, largest)
}

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
        let (digit, carry) = carry_once(b, "carry", &sums, largest);
        let most = BASE - 1 + largest / BASE;
        add_digits(b, "adder", &add_carries(&digit, &carry), most)
    })
}

/// `imad`: the low word of a product, plus C. Result bits, zero for other opcodes. Six MLP levels after the operands.
///
/// A is cut into digits of two bits, so that each product with a hexadecimal digit of B is at most 45. Digits at even
/// positions meet B's digits at multiples of four bits; those at odd positions meet digits cut two bits lower, so that
/// all products stand at multiples of four bits. A place has up to 16 products; they are added in four groups, two of
/// which take a part of C's digit as well. Then no sum is above 79, and dead-zone steps split all of them.
pub(crate) fn multiply_add(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands) -> Vec<Linear> {
    let op = decoded.is(Opcode::Imad);
    let aligned = digits(&lane.b);
    let mut shifted_bits = vec![Linear::zero(); 2];
    shifted_bits.extend(lane.b.iter().map(|&bit| Linear::from(bit)));
    let shifted = digits(&shifted_bits[..WORD]);
    b.scope("multiply", |b| {
        let mut sums = vec![Linear::zero(); DIGITS];
        let mut largest = vec![0; DIGITS];
        let mut groups = Vec::new();
        for (name, factor, offset, c_bits) in
            [("even", &aligned, 0, 0..DIGIT - 1), ("odd", &shifted, DIGIT / 2, DIGIT - 1..DIGIT)]
        {
            b.scope(name, |b| {
                let [mut low, high] = products(b, op, &lane.a, factor, offset);
                for (place, sum) in low.iter_mut().enumerate() {
                    let bits = c_bits.clone().map(|bit| lane.register_c[place * DIGIT + bit] * (1 << bit));
                    let most = c_bits.clone().map(|bit| 1 << bit).sum();
                    let term = Product { coefficient: 1, gate: op.into(), up: Linear::sum(bits) };
                    sum.form += b.products(&format!("addend{place}"), 0..=most, vec![term]);
                    sum.largest += most;
                }
                for (half, group) in [low, high].into_iter().enumerate() {
                    let most = group.iter().map(|sum| sum.largest).max().unwrap_or(0);
                    let forms: Vec<Linear> = group.into_iter().map(|sum| sum.form).collect();
                    let (digit, carry) = carry_once(b, &format!("column{half}"), &forms, most);
                    groups.push((add_carries(&digit, &carry), most));
                }
            });
        }
        for (group, most) in groups {
            for (place, form) in group.into_iter().enumerate() {
                sums[place] += form;
                largest[place] += BASE - 1 + if place == 0 { 0 } else { most / BASE };
            }
        }
        let most = largest.into_iter().max().unwrap_or(0);
        let (digit, carry) = carry_once(b, "carry", &sums, most);
        add_digits(b, "adder", &add_carries(&digit, &carry), BASE - 1 + most / BASE)
    })
}

/// A sum at one place, and the most it can be.
#[derive(Clone, Default)]
struct Column {
    form: Linear,
    largest: i64,
}

/// Products of A's two-bit digits at `4 * k + offset` with the digits of `factor`, summed by place: for the lower half of
/// A's digits, and for the upper.
fn products(b: &mut Builder, op: Signal, a: &[Signal], factor: &[Linear], offset: usize) -> [Vec<Column>; 2] {
    let most = 3 * (BASE - 1);
    let mut columns = [vec![Column::default(); DIGITS], vec![Column::default(); DIGITS]];
    for k in 0..DIGITS {
        let half = &mut columns[2 * k / DIGITS];
        let low = k * DIGIT + offset;
        let pair = Linear::from_bits(&a[low..low + 2]);
        for (j, digit) in factor.iter().enumerate().take(DIGITS - k) {
            let gate = pair.clone() + op * 3 - 3;
            let name = format!("product{k}_{j}");
            let product = b.products(&name, 0..=most, vec![Product { coefficient: 1, gate, up: digit.clone() }]);
            let (digit, carry) = carry_once(b, &name, &[product.into()], most);
            half[k + j].form += digit[0];
            half[k + j].largest += BASE - 1;
            if let Some(next) = half.get_mut(k + j + 1) {
                next.form += carry[0];
                next.largest += most / BASE;
            }
        }
    }
    columns
}

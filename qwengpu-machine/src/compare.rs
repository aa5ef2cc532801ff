//! Comparisons, minima, selection, and the new value of a predicate.

use qwengpu_circuit::{Builder, Linear, Signal};
use qwengpu_isa::{Comparison, Opcode};

use crate::adder::{BASE, DIGITS, digits};
use crate::decode::{Decoded, equals, gated, literals};
use crate::inputs::WORD;
use crate::operands::LaneOperands;

/// How two words compare: A is above B, as signed numbers too, or equals it. All are 0 while nothing is compared.
struct Order {
    equal: Signal,
    equal_signed: Signal,
    above: Signal,
    greater: Signal,
}

/// The order of two words: the sign of each digit's difference, then the sign of each half, then that of the whole, each
/// a sum of signs weighted by powers of two. Signs are kept one higher, so that they are 0 while nothing is compared.
fn order(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands) -> Order {
    let (a, other) = (digits(&lane.a), digits(&lane.b));
    let compares = decoded.is(Opcode::Imnmx) + decoded.is(Opcode::Setp);
    let off = 2 * BASE;
    let sign = |b: &mut Builder, name: &str, difference: Linear| -> Linear {
        b.table(&[name], difference, -1, vec![vec![0, 1, 2]])[0] - 1
    };
    let half = DIGITS / 2;
    let top = DIGITS - 1;
    let mut low = Linear::zero();
    let mut high = Linear::zero();
    for place in 0..top {
        let difference = a[place].clone() - &other[place] + compares.clone() * off - off;
        let sign = sign(b, &format!("digit{place}"), difference) * (1 << (place % half));
        if place < half { low += sign } else { high += sign }
    }
    let difference = a[top].clone() - &other[top] + compares * off - off;
    let top_unsigned = sign(b, "top_unsigned", difference.clone()) * (1 << (top % half));
    let signs = lane.a[WORD - 1] - lane.b[WORD - 1];
    let top_signed = sign(b, "top_signed", difference - signs * BASE) * (1 << (top % half));
    let low = sign(b, "low", low);
    let mut columns = |names: &[&str; 2], half: &str, top: Linear| {
        let whole = sign(b, half, high.clone() + top) * 2 + &low;
        let outputs = b.table(names, whole, -1, vec![vec![0, 0, 1], vec![0, 1, 0]]);
        b.exclusive(half, &outputs);
        outputs
    };
    let unsigned = columns(&["above", "equal"], "high_unsigned", top_unsigned);
    let signed = columns(&["greater", "equal_signed"], "high_signed", top_signed);
    Order { above: unsigned[0], equal: unsigned[1], greater: signed[0], equal_signed: signed[1] }
}

/// What comparisons give in one lane.
pub(crate) struct Compared {
    /// Result bits of `imnmx` and `sel`.
    pub(crate) result: Vec<Linear>,
    /// The new value of the destination predicate, for `setp`, `plop` and `lead`.
    pub(crate) predicate: Signal,
}

/// Builds the comparisons of one lane; `same_below` counts lower lanes that execute `lead` with an equal A.
pub(crate) fn compare(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands, same_below: &Linear) -> Compared {
    b.scope("compare", |b| {
        let order = order(b, decoded, lane);
        let (minmax, select) = (decoded.is(Opcode::Imnmx), decoded.is(Opcode::Sel));
        let mut takes_a = vec![select + lane.predicate_c - 1];
        let mut takes_b = vec![select - lane.predicate_c];
        for mode in 0..4 {
            let (above, equal) =
                if mode & 2 == 0 { (order.above, order.equal) } else { (order.greater, order.equal_signed) };
            let chosen = minmax + equals(&decoded.sub[..2], mode);
            let (when_a, when_b) = ((above + equal).not(), above + equal);
            let (when_a, when_b) = if mode & 1 == 0 { (when_a, when_b) } else { (when_b, when_a) };
            takes_a.push(chosen.clone() + when_a - 1);
            takes_b.push(chosen + when_b - 1);
        }
        let takes_a = gated(b, "takes_a", takes_a);
        let takes_b = gated(b, "takes_b", takes_b);
        b.exclusive("takes", &[takes_a, takes_b]);
        let result = (0..WORD)
            .map(|i| {
                let gates = vec![takes_a + lane.a[i] - 1, takes_b + lane.b[i] - 1];
                gated(b, &format!("taken/bit{i}"), gates).into()
            })
            .collect();

        let executes = lane.executes;
        let mut gates = Vec::new();
        for &(comparison, op) in &decoded.compare {
            let Order { equal, equal_signed, above, greater } = order;
            let holds = match comparison {
                Comparison::Eq => equal.into(),
                Comparison::Ne => Linear::from(equal).not(),
                Comparison::LtU => (above + equal).not(),
                Comparison::LeU => Linear::from(above).not(),
                Comparison::GtU => above.into(),
                Comparison::GeU => above + equal,
                Comparison::LtS => (greater + equal_signed).not(),
                Comparison::LeS => Linear::from(greater).not(),
                Comparison::GtS => greater.into(),
                Comparison::GeS => greater + equal_signed,
            };
            gates.push(holds + op + lane.predicate_c + executes - 3);
        }
        for (entry, &table) in decoded.sub.iter().enumerate() {
            let sources = [lane.predicate_b, lane.predicate_a];
            gates.push(Linear::sum(literals(&sources, entry)) + decoded.is(Opcode::Plop) + table + executes - 4);
        }
        gates.push(decoded.is(Opcode::Lead) + executes - 1 - same_below);
        gates.push(decoded.any(Opcode::has_pd) + lane.predicate_old - executes - 1);
        let predicate = gated(b, "predicate", gates);
        Compared { result, predicate }
    })
}

/// For each lane, how many lower lanes execute `lead` with an equal A.
pub(crate) fn same_below(b: &mut Builder, decoded: &Decoded, lanes: &[LaneOperands]) -> Vec<Linear> {
    let op = decoded.is(Opcode::Lead);
    let words: Vec<Vec<Linear>> = lanes.iter().map(|lane| digits(&lane.a)).collect();
    b.scope("lead", |b| {
        (0..lanes.len())
            .map(|upper| {
                Linear::sum((0..upper).map(|lower| {
                    let name = format!("lane{lower}_{upper}");
                    let equal = (0..DIGITS).map(|place| {
                        let difference = words[upper][place].clone() - &words[lower][place];
                        let name = format!("{name}/digit{place}");
                        // Below zero without the opcode.
                        b.table(&[&name], difference + op * BASE - BASE, -1, vec![vec![0, 1, 0]])[0]
                    });
                    let equal = Linear::sum(equal.collect::<Vec<_>>());
                    let all = i64::try_from(DIGITS).unwrap_or(i64::MAX);
                    b.relu_bit(&format!("{name}/same"), op + lanes[lower].executes + equal - 1 - all)
                }))
            })
            .collect()
    })
}

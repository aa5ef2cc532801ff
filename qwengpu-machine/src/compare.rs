//! Comparisons, minima, selection, and the new value of a predicate.

use qwengpu_circuit::{Builder, Linear, Product, Signal};
use qwengpu_isa::{Extremum, Opcode, Relation, Signedness};

use crate::adder::{BASE, DIGITS, digits};
use crate::decode::{Decoded, gated, literals};
use crate::inputs::WORD;
use crate::operands::LaneOperands;

/// Greatest order of two words.
const MOST: i64 = 3;
/// Orders that are the arguments of one question: those of the next begin behind them.
const ORDERS: i64 = 2 * MOST + 1;

/// How two words compare: from -3 to 3, below zero, zero or above; some number that says nothing while nothing is
/// compared. It is the sign of each digit's difference, then the sign of each half, then that of the whole, each a sum of
/// signs weighted by powers of two. Signs are kept one higher, so that they are 0 while nothing is compared.
fn order(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands) -> Linear {
    let (a, other) = (digits(&lane.a), digits(&lane.b));
    let asks = decoded.is(Opcode::Imnmx) + decoded.is(Opcode::Setp) + decoded.is(Opcode::Brc);
    let (unsigned, signed) = (decoded.asks(Signedness::Unsigned), decoded.asks(Signedness::Signed));
    let off = 2 * BASE;
    let mut sign =
        |name: &str, difference: Linear| -> Linear { b.table(&[name], difference, -1, vec![vec![0, 1, 2]])[0].into() };
    let half = DIGITS / 2;
    let top = DIGITS - 1;
    let (mut low, mut high) = (Linear::zero(), Linear::zero());
    for place in 0..top {
        let difference = a[place].clone() - &other[place] + asks.clone() * off - off;
        let sign = (sign(&format!("digit{place}"), difference) - 1) * (1 << (place % half));
        if place < half { low += sign } else { high += sign }
    }
    let difference = a[top].clone() - &other[top] - off;
    let signs = lane.a[WORD - 1] - lane.b[WORD - 1];
    let top_unsigned = sign("top_unsigned", difference.clone() + unsigned * off);
    let top_signed = sign("top_signed", difference - signs * BASE + signed * off);
    high += (top_unsigned + top_signed - 1) * (1 << (top % half));
    let (low, high) = (sign("low", low) - 1, sign("high", high) - 1);
    high * 2 + low
}

/// What comparisons give in one lane.
pub(crate) struct Compared {
    /// Result bits of `imnmx` and `sel`.
    pub(crate) result: Vec<Linear>,
    /// The new value of the destination predicate, for `setp`, `plop` and `lead`.
    pub(crate) predicate: Signal,
    /// The lane executes `brc` and branches.
    pub(crate) branches: Signal,
}

/// Builds the comparisons of one lane; `same_below` counts lower lanes that execute `lead` with an equal A.
pub(crate) fn compare(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands, same_below: &Linear) -> Compared {
    b.scope("compare", |b| {
        let executes = lane.executes;
        let Answers { sets, branches, takes_a: extremum } = answers(b, decoded, lane);
        let (minmax, select) = (decoded.is(Opcode::Imnmx), decoded.is(Opcode::Sel));
        let takes_a = gated(b, "takes_a", vec![extremum.into(), select + lane.predicate_c - 1]);
        let takes_b = gated(b, "takes_b", vec![minmax - extremum, select - lane.predicate_c]);
        b.exclusive("takes", &[takes_a, takes_b]);
        let result = (0..WORD)
            .map(|i| {
                let gates = vec![takes_a + lane.a[i] - 1, takes_b + lane.b[i] - 1];
                gated(b, &format!("taken/bit{i}"), gates).into()
            })
            .collect();

        let mut gates = vec![sets + decoded.is(Opcode::Setp) - 1];
        for (entry, &table) in decoded.sub.iter().enumerate() {
            let sources = [lane.predicate_b, lane.predicate_a];
            gates.push(Linear::sum(literals(&sources, entry)) + decoded.is(Opcode::Plop) + table + executes - 4);
        }
        gates.push(decoded.is(Opcode::Lead) + executes - 1 - same_below);
        gates.push(decoded.any(Opcode::has_pd) + lane.predicate_old - executes - 1);
        let predicate = gated(b, "predicate", gates);
        Compared { result, predicate, branches }
    })
}

/// What `setp`, `brc` and `imnmx` ask of the order of a lane's operands.
struct Answers {
    /// The comparison of `setp` holds, the conjoined predicate too, and the lane executes it.
    sets: Signal,
    /// The same of `brc`.
    branches: Signal,
    /// `imnmx` takes A.
    takes_a: Signal,
}

/// Of all that may be asked of two words at most one question is, and each has its own part of the arguments of a table.
fn answers(b: &mut Builder, decoded: &Decoded, lane: &LaneOperands) -> Answers {
    let order = order(b, decoded, lane);
    let comparisons = |op: Opcode| -> Vec<(Relation, Linear)> {
        let conditions = decoded.is(op) + lane.predicate_c + lane.executes - 3;
        decoded.compare.iter().map(|&(of, compare)| (of.relation(), conditions.clone() + compare)).collect()
    };
    let extrema: Vec<(Relation, Linear)> = decoded
        .extremum
        .iter()
        .map(|&(kind, _, op)| match kind {
            Extremum::Min => (Relation::Lt, op.into()),
            Extremum::Max => (Relation::Gt, op.into()),
        })
        .collect();
    let sets = answer(b, &order, "setp_imnmx", &[("holds", comparisons(Opcode::Setp)), ("takes_a", extrema)]);
    let branches = answer(b, &order, "brc", &[("holds", comparisons(Opcode::Brc))]);
    Answers { sets: sets[0], branches: branches[0], takes_a: sets[1] }
}

/// One table with a column for each group of questions. A question is a relation and the gate that asks it.
fn answer(b: &mut Builder, order: &Linear, name: &str, groups: &[(&str, Vec<(Relation, Linear)>)]) -> Vec<Signal> {
    b.scope(name, |b| {
        // While nothing is asked, every answer is no.
        let mut columns = vec![vec![0; usize::try_from(ORDERS).unwrap_or(0)]; groups.len()];
        let mut asked = Vec::new();
        let mut begin = 0;
        for (group, (_, questions)) in groups.iter().enumerate() {
            for relation in Relation::ALL {
                let gates = questions.iter().filter(|(of, _)| *of == relation).map(|(_, gate)| gate);
                let count = asked.len();
                asked.extend(gates.map(|gate| Product {
                    coefficient: begin + ORDERS,
                    gate: gate.clone(),
                    up: Linear::one(),
                }));
                if asked.len() == count {
                    continue;
                }
                begin += ORDERS;
                for (number, column) in columns.iter_mut().enumerate() {
                    let holds = |order: i64| number == group && relation.holds(order.cmp(&0));
                    column.extend((-MOST..=MOST).map(|order| i64::from(holds(order))));
                }
            }
        }
        let question = b.products("question", 0..=begin, asked);
        let names: Vec<&str> = groups.iter().map(|(name, _)| *name).collect();
        b.table(&names, order.clone() + question, -MOST, columns)
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

//! Random netlists of tables, products, selections and states: the weights agree with the evaluator wherever the margin
//! pass has no objection, and compiling is deterministic.

#[expect(clippy::cast_precision_loss, reason = "channels and tokens are small numbers")]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part of the simulator")]
mod common;

use proptest::prelude::*;
use qwengpu_circuit::{
    BIT, Builder, CompileOptions, Dtype, Geometry, Level, Linear, Netlist, Product, RowChoice, Signal,
    StateDescription, Token, compile, prove_all,
};

/// One random operation; indices are taken modulo the number of bits that exist.
#[derive(Clone, Debug)]
enum Step {
    And(Vec<(usize, bool)>),
    Xor(usize, usize),
    Table(Vec<usize>, Vec<i64>),
    Mux(usize, usize, usize),
    State { address: Vec<usize>, write: usize, read: usize, value: Vec<usize>, clear: Option<usize> },
}

fn step() -> impl Strategy<Value = Step> {
    let bit = 0..1000_usize;
    prop_oneof![
        proptest::collection::vec((bit.clone(), any::<bool>()), 1..5).prop_map(Step::And),
        (bit.clone(), bit.clone()).prop_map(|(a, b)| Step::Xor(a, b)),
        (proptest::collection::vec(bit.clone(), 1..6), proptest::collection::vec(0..=1_i64, 6))
            .prop_map(|(bits, column)| Step::Table(bits, column)),
        (bit.clone(), bit.clone(), bit.clone()).prop_map(|(c, a, b)| Step::Mux(c, a, b)),
        (
            proptest::collection::vec(bit.clone(), 1..4),
            bit.clone(),
            bit.clone(),
            proptest::collection::vec(bit.clone(), 1..5),
            proptest::option::of(bit)
        )
            .prop_map(|(address, write, read, value, clear)| Step::State {
                address,
                write,
                read,
                value,
                clear
            }),
    ]
}

const INPUTS: usize = 5;

/// A netlist with a token for each combination of the input bits.
fn netlist(steps: &[Step]) -> Netlist {
    let mut builder = Builder::new();
    let inputs = builder.input_bits("input", INPUTS);
    let mut bits = inputs.clone();
    for (number, step) in steps.iter().enumerate() {
        let name = format!("step{number}");
        let at = |i: &usize| bits[i % bits.len()];
        let distinct = |list: &[usize]| -> Vec<Signal> {
            let mut list: Vec<Signal> = list.iter().map(at).collect();
            list.sort();
            list.dedup();
            list
        };
        match step {
            Step::And(literals) => {
                let forms: Vec<Linear> = literals
                    .iter()
                    .map(|(i, positive)| if *positive { at(i).into() } else { Linear::from(at(i)).not() })
                    .collect();
                let bit = builder.and(&name, &forms);
                bits.push(bit);
            }
            Step::Xor(a, b) => {
                let (a, b) = (at(a), at(b));
                let term = |gate: Linear| Product { coefficient: 1, gate, up: Linear::one() };
                let bit = builder.products(&name, BIT, vec![term(a - b), term(b - a)]);
                bits.push(bit);
            }
            Step::Table(list, column) => {
                let sum = Linear::sum(list.iter().map(at));
                let bit = builder.table(&[&name], sum, 0, vec![column.clone()])[0];
                bits.push(bit);
            }
            Step::Mux(c, a, b) => {
                let bit = builder.select(&name, BIT, at(c) - 1, at(a), at(b));
                bits.push(bit);
            }
            Step::State { address, write, read, value, clear } => {
                let address: Vec<Linear> = distinct(address).into_iter().map(Linear::from).collect();
                let choice = |enable: &usize| RowChoice::Address { bits: address.clone(), enable: at(enable).into() };
                let description = StateDescription {
                    rows: 1 << address.len(),
                    clear: clear.as_ref().map(|clear| at(clear).into()),
                    write: choice(write),
                    value: value.iter().map(|i| at(i).into()).collect(),
                    level: Level::EveryRow,
                };
                let read = builder.state(&name, description, vec![("read", choice(read))]).remove(0);
                bits.extend(read);
            }
        }
    }
    for value in 0..1 << INPUTS {
        let set = inputs.iter().enumerate().map(|(i, &input)| (input, value >> i & 1)).collect();
        builder.token(Token { text: format!("{value}"), inputs: set, code: vec![(bits[bits.len() - 1], 1)] });
    }
    for (number, &bit) in bits.iter().enumerate() {
        builder.token(Token { text: format!("say {number}"), inputs: vec![], code: vec![(bit, 1)] });
    }
    builder.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn weights_and_evaluator_agree(
        steps in proptest::collection::vec(step(), 1..14),
        tokens in proptest::collection::vec(0..(1_usize << INPUTS), 1..30),
    ) {
        let netlist = netlist(&steps);
        let geometry = Geometry::new(256, 256, 3, 40);
        let compiled = compile(&netlist, &geometry, &CompileOptions::default()).expect("compiles");
        let again = compile(&netlist, &geometry, &CompileOptions::default()).expect("compiles");
        prop_assert!(compiled == again);
        match prove_all(&netlist, &compiled, &[Dtype::F32, Dtype::Bf16]) {
            Ok(_) => {
                common::check(&netlist, &compiled, &tokens);
            }
            // Bits only, but chains of them may be too noisy as far as proven; nothing else may be refused.
            Err(faults) => {
                for fault in faults {
                    prop_assert!(matches!(fault, qwengpu_circuit::MarginError::Noise { .. }), "{fault}");
                }
            }
        }
    }
}

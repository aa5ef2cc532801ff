//! The margin pass proves what holds, and refuses what may not.

use qwengpu_circuit::{
    BIT, Builder, CompileOptions, Dtype, Geometry, Level, Linear, MarginError, MarginReport, Product, RowChoice,
    Signal, StateDescription, Token, compile, prove,
};

/// Compiles and proves; `spoken` signals are coded so that nothing is dropped.
fn proof(mut builder: Builder, spoken: &[Signal]) -> Result<MarginReport, MarginError> {
    for (number, &signal) in spoken.iter().enumerate() {
        builder.token(Token { text: format!("say {number}"), inputs: vec![], code: vec![(signal, 1)] });
    }
    let netlist = builder.finish();
    let compiled = compile(&netlist, &Geometry::new(1024, 2048, 8, 16), &CompileOptions::default()).expect("compiles");
    prove(&netlist, &compiled, &[Dtype::F32, Dtype::Bf16])
}

fn token(builder: &mut Builder, inputs: &[(Signal, i64)]) {
    let text = format!("{inputs:?}");
    builder.token(Token { text, inputs: inputs.to_vec(), code: vec![] });
}

/// An input with a token for each value.
fn number(builder: &mut Builder, name: &str, range: std::ops::RangeInclusive<i64>) -> Signal {
    let signal = builder.input(name, range.clone());
    for value in range {
        token(builder, &[(signal, value)]);
    }
    signal
}

/// Inputs of which each token sets one.
fn one_hot(builder: &mut Builder, name: &str, count: usize) -> Vec<Signal> {
    let bits = builder.input_bits(name, count);
    for &bit in &bits {
        token(builder, &[(bit, 1)]);
    }
    bits
}

fn relu(gate: impl Into<Linear>) -> Product {
    Product { coefficient: 1, gate: gate.into(), up: Linear::one() }
}

/// Bits read from a state that any token may have written: noisy.
fn noisy_bits(builder: &mut Builder, name: &str, count: usize) -> Vec<Signal> {
    let value = builder.input_bits(&format!("{name}/value"), count);
    for &bit in &value {
        token(builder, &[(bit, 1)]);
    }
    let all: Vec<(Signal, i64)> = value.iter().map(|&bit| (bit, 1)).collect();
    token(builder, &all);
    let description = StateDescription {
        rows: 1,
        clear: None,
        write: RowChoice::Rows(vec![value[0].into()]),
        value: value.iter().map(|&bit| bit.into()).collect(),
        level: Level::EveryRow,
    };
    builder.state(name, description, vec![("read", RowChoice::Rows(vec![value[count - 1].into()]))]).remove(0)
}

#[test]
fn a_table_with_too_wide_an_argument() {
    let table = |largest: i64| {
        let mut builder = Builder::new();
        let x = number(&mut builder, "x", 0..=largest);
        let step = builder.step("step", x - 1);
        proof(builder, &[step])
    };
    assert!(table(64).is_ok());
    let refused = table(65);
    assert!(
        matches!(&refused, Err(MarginError::Exactness { operation, bound: 259, limit: 256, .. }) if operation == "step"),
        "{refused:?}"
    );
}

#[test]
fn a_group_that_is_not_exclusive() {
    let mut builder = Builder::new();
    let bits = one_hot(&mut builder, "x", 3);
    token(&mut builder, &[(bits[0], 1), (bits[2], 1)]);
    builder.exclusive("fine", &bits[..2]);
    builder.exclusive("wrong", &bits);
    let step = builder.step("step", bits[0] + bits[1] + bits[2] - 1);
    let refused = proof(builder, &[step]);
    assert!(
        matches!(&refused, Err(MarginError::Group { group, first, second }) if group == "wrong" && first == "x/bit0" && second == "x/bit2"),
        "{refused:?}"
    );
}

#[test]
fn a_declared_range_that_does_not_hold() {
    let sum = |exclusive: bool| {
        let mut builder = Builder::new();
        let x = one_hot(&mut builder, "x", 2);
        if !exclusive {
            token(&mut builder, &[(x[0], 1), (x[1], 1)]);
        }
        let sum = builder.products("sum", BIT, vec![relu(x[0]), relu(x[1])]);
        proof(builder, &[sum])
    };
    assert!(sum(true).is_ok());
    let refused = sum(false);
    assert!(
        matches!(&refused, Err(MarginError::Range { signal, high: 2, declared_high: 1, .. }) if signal == "sum"),
        "{refused:?}"
    );
}

#[test]
fn a_plain_step_whose_argument_is_too_noisy() {
    let table = |factor: i64| {
        let mut builder = Builder::new();
        let bits = noisy_bits(&mut builder, "kept", 4);
        let weights = [1, 2, 4, 8].map(|weight| weight * factor);
        let sum = bits.iter().zip(weights).fold(Linear::zero(), |sum, (&bit, weight)| sum + bit * weight);
        // Noise is amplified by a product before it comes to the table.
        let product =
            builder.products("product", 0..=240, vec![Product { coefficient: 1, gate: bits[0] * 16, up: sum }]);
        let square = builder.plain_table(&["steep"], product, 0, vec![vec![0, 200, 0, 200]])[0];
        let steeper = builder.plain_table(&["steeper"], square, 0, vec![vec![0, 200, 0, 200]])[0];
        proof(builder, &[steeper])
    };
    let refused = table(1);
    assert!(matches!(&refused, Err(MarginError::Noise { dtype: Dtype::F32, .. })), "{refused:?}");
}

#[test]
fn forms_with_too_many_bits_or_products_too_large() {
    let mut builder = Builder::new();
    let x = number(&mut builder, "x", 0..=20);
    let product = builder.products("product", 0..=400, vec![Product { coefficient: 1, gate: x.into(), up: x.into() }]);
    let refused = proof(builder, &[product]);
    assert!(
        matches!(&refused, Err(MarginError::Exactness { what: "gate times up projection", bound: 400, .. })),
        "{refused:?}"
    );
}

#[test]
fn conjunctions_exclude_each_other_by_their_literals() {
    let mut builder = Builder::new();
    let x = number(&mut builder, "x", 0..=15);
    let names = ["b0", "b1", "b2", "b3"];
    let bits = builder.table(&names, x, 0, (0..4).map(|bit| (0..16).map(|n| n >> bit & 1).collect()).collect());
    let literal =
        |bit: usize, value: usize| if value >> bit & 1 == 1 { bits[bit].into() } else { Linear::from(bits[bit]).not() };
    let minterms: Vec<Signal> = (0..16)
        .map(|value| builder.and(&format!("is{value}"), &(0..4).map(|bit| literal(bit, value)).collect::<Vec<_>>()))
        .collect();
    builder.exclusive("minterms", &minterms);
    // A choice between values by the minterms: their products count once.
    let terms =
        minterms.iter().zip(0..).map(|(&gate, i)| Product { coefficient: i, gate: gate.into(), up: Linear::one() });
    let chosen = builder.products("chosen", 0..=15, terms.collect());
    let report = proof(builder, &[chosen]).expect("proven");
    assert_eq!(report.groups, 1);
    assert!(report.dtypes[0].noisiest.is_empty(), "inputs and tables of them have no noise");
}

#[test]
fn priorities_are_exclusive_and_groups_survive_a_state() {
    let mut builder = Builder::new();
    let wants = builder.input_bits("wants", 4);
    for value in 0..16_i64 {
        let inputs: Vec<(Signal, i64)> = wants.iter().zip(0..).map(|(&want, i)| (want, value >> i & 1)).collect();
        token(&mut builder, &inputs);
    }
    let write = builder.input("write", BIT);
    token(&mut builder, &[(write, 1), (wants[1], 1)]);
    let mut earlier = Linear::zero();
    let mut first = Vec::new();
    for (i, &want) in wants.iter().enumerate() {
        first.push(builder.relu_bit(&format!("first{i}"), want - earlier.clone()));
        earlier += want;
    }
    builder.exclusive("first", &first);
    let description = StateDescription {
        rows: 2,
        clear: None,
        write: RowChoice::Address { bits: vec![wants[0].into()], enable: write.into() },
        value: first.iter().map(|&bit| bit.into()).collect(),
        level: Level::EveryRow,
    };
    let query = RowChoice::Address { bits: vec![wants[1].into()], enable: write.not_linear() };
    let read = builder.state("kept", description, vec![("read", query)]).remove(0);
    builder.exclusive("kept", &read);
    let any = builder.products("any", BIT, read.iter().map(|&bit| relu(bit)).collect());
    proof(builder, &[any]).expect("proven");
}

trait NotLinear {
    fn not_linear(self) -> Linear;
}

impl NotLinear for Signal {
    fn not_linear(self) -> Linear {
        Linear::from(self).not()
    }
}

#[test]
fn states_that_could_be_written_or_read_wrongly() {
    // Two rows at once.
    let mut builder = Builder::new();
    let x = builder.input_bits("x", 2);
    token(&mut builder, &[(x[0], 1), (x[1], 1)]);
    let description = |write: Vec<Linear>, level: Level| StateDescription {
        rows: write.len(),
        clear: None,
        write: RowChoice::Rows(write),
        value: vec![Linear::one()],
        level,
    };
    let rows = description(vec![x[0].into(), x[1].into()], Level::EveryRow);
    let read =
        builder.state("rows", rows, vec![("read", RowChoice::Rows(vec![x[0].into(), Linear::zero()]))]).remove(0);
    let refused = proof(builder, &read);
    assert!(
        matches!(&refused, Err(MarginError::State { what, .. }) if what.contains("written at once")),
        "{refused:?}"
    );

    // Two rows of a class that may hold the same bit.
    let mut builder = Builder::new();
    let x = one_hot(&mut builder, "x", 4);
    let rows = description(x.iter().map(|&bit| bit.into()).collect(), Level::When(x[0].into()));
    let read = builder.state("rows", rows, vec![("all", RowChoice::Rows(vec![Linear::one(); 4]))]).remove(0);
    let refused = proof(builder, &read);
    assert!(matches!(&refused, Err(MarginError::State { what, .. }) if what.contains("read together")), "{refused:?}");

    // A number of rows that is no power of four.
    let mut builder = Builder::new();
    let x = one_hot(&mut builder, "x", 2);
    let rows = description(x.iter().map(|&bit| bit.into()).collect(), Level::When(x[0].into()));
    let read = builder.state("rows", rows, vec![("all", RowChoice::Rows(vec![Linear::one(); 2]))]).remove(0);
    let refused = proof(builder, &read);
    assert!(matches!(&refused, Err(MarginError::State { what, .. }) if what.contains("power of four")), "{refused:?}");

    // A row form of 2.
    let mut builder = Builder::new();
    let x = one_hot(&mut builder, "x", 1);
    let rows = description(vec![x[0] * 2], Level::EveryRow);
    let read = builder.state("rows", rows, vec![("read", RowChoice::Rows(vec![x[0].into()]))]).remove(0);
    let refused = proof(builder, &read);
    assert!(matches!(&refused, Err(MarginError::State { what, .. }) if what.contains("may be 2")), "{refused:?}");
}

#[test]
fn rows_read_together_with_one_level() {
    let mut builder = Builder::new();
    let x = one_hot(&mut builder, "x", 4);
    let value = x[..3].iter().map(|&bit| bit.into()).collect();
    let description = StateDescription {
        rows: 4,
        clear: Some(x[3].into()),
        write: RowChoice::Rows(x.iter().map(|&bit| bit.into()).collect()),
        value,
        level: Level::When(x[3].into()),
    };
    let read = builder.state("rows", description, vec![("all", RowChoice::Rows(vec![Linear::one(); 4]))]).remove(0);
    let report = proof(builder, &read).expect("proven");
    assert_eq!(report.assumptions, ["rows: no row is read before the row that carries the level is written"]);
}

#[test]
fn enumeration_proves_what_rules_do_not() {
    let remainder = |hint: bool| {
        let mut builder = Builder::new();
        let x = builder.input("x", 0..=15);
        let y = builder.input("y", 1..=5);
        let reached: Vec<Signal> = (1..=15).map(|m| builder.step(&format!("reaches{m}"), x - y * m)).collect();
        let q = Linear::sum(reached.iter().copied());
        let terms = vec![relu(x), Product { coefficient: -1, gate: q, up: y.into() }];
        let remainder = builder.products("remainder", 0..=4, terms);
        if hint {
            builder.enumerate(&[x, y], &[remainder]);
        }
        for value in 0..=15 {
            for divisor in 1..=5 {
                let text = format!("{value}/{divisor}");
                builder.token(Token { text, inputs: vec![(x, value), (y, divisor)], code: vec![(remainder, 1)] });
            }
        }
        proof(builder, &[])
    };
    assert!(matches!(remainder(false), Err(MarginError::Range { .. })));
    let proven = remainder(true);
    assert!(proven.is_ok(), "{proven:?}");
}

#[test]
fn inputs_that_a_token_leaves_at_zero() {
    let mut builder = Builder::new();
    let x = builder.input("x", 1..=2);
    token(&mut builder, &[(x, 2)]);
    let step = builder.step("step", x - 1);
    let refused = proof(builder, &[step]);
    assert!(
        matches!(&refused, Err(MarginError::Range { signal, low: 0, declared_low: 1, .. }) if signal == "x"),
        "{refused:?}"
    );
}

#[test]
fn squares_of_the_residual_stream() {
    let mut builder = Builder::new();
    let x = number(&mut builder, "x", 0..=1);
    let names: Vec<String> = (0..300).map(|i| format!("large{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let large = builder.table(&names, x, 0, vec![vec![0, 255]; 300]);
    let refused = proof(builder, &large);
    assert!(matches!(&refused, Err(MarginError::Squares { .. })), "{refused:?}");
}

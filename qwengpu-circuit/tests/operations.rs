//! Each kind of operation, compiled alone: the weights must agree with the evaluator on every channel, in f32 and bf16.

#[expect(clippy::cast_precision_loss, reason = "channels and tokens are small numbers")]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part of the simulator")]
mod common;

use common::{Dtype, Simulator, check};
use qwengpu_circuit::{
    Builder, CompileOptions, Compiled, Geometry, Level, Linear, Netlist, Product, RowChoice, Signal, StateDescription,
    Token, compile, prove,
};

fn small() -> Geometry {
    Geometry::new(1024, 512, 4, 12)
}

fn compiled(netlist: &Netlist) -> Compiled {
    let compiled = compile(netlist, &small(), &CompileOptions::default()).expect("compiles");
    let proof = prove(netlist, &compiled, &[qwengpu_circuit::Dtype::F32, qwengpu_circuit::Dtype::Bf16]);
    assert!(proof.is_ok(), "{}", proof.expect_err("refused"));
    compiled
}

/// A token for each value of `x`, spoken when `y` has the same value.
fn tokens_of(builder: &mut Builder, x: Signal, values: std::ops::RangeInclusive<i64>) -> usize {
    let count = values.clone().count();
    for value in values {
        builder.token(Token { text: format!("x={value}"), inputs: vec![(x, value)], code: vec![] });
    }
    count
}

/// Makes signals that tokens speak of, so that they are not dropped.
fn speak(builder: &mut Builder, signals: &[Signal]) {
    for (number, &signal) in signals.iter().enumerate() {
        builder.token(Token { text: format!("say {number}"), inputs: vec![], code: vec![(signal, 1)] });
    }
}

#[test]
fn tables_with_dead_zones_and_plain() {
    let mut builder = Builder::new();
    let x = builder.input("x", -70..=60);
    let count = tokens_of(&mut builder, x, -70..=60);
    let parity: Vec<i64> = (0..64).map(|n| n % 2).collect();
    let low: Vec<i64> = (0..64).map(|n| n % 16).collect();
    let carry: Vec<i64> = (0..64).map(|n| n / 16).collect();
    let falling: Vec<i64> = (0..64).map(|n| 200 - 3 * n).collect();
    let dead = builder.table(
        &["parity", "low", "carry", "falling"],
        x,
        0,
        vec![parity.clone(), low.clone(), carry.clone(), falling],
    );
    let short = builder.table(&["signed", "sign"], x * 1, -2, vec![vec![-2, -1, 0, 1, 2], vec![-1, -1, 0, 1, 1]]);
    let plain = builder.plain_table(&["plain/parity", "plain/low"], x, 0, vec![parity, low]);
    let step = builder.step("step", x - 7);
    speak(&mut builder, &[dead, short, plain, vec![step]].concat());
    let netlist = builder.finish();
    let compiled = compiled(&netlist);
    check(&netlist, &compiled, &(0..count).collect::<Vec<_>>());
    // Parity needs every step; low is a slope with a step at 16, 32, 48.
    assert!(compiled.report.layers[0].neurons < 400, "{}", compiled.report);
}

#[test]
fn products_with_signs_and_coefficients() {
    let mut builder = Builder::new();
    let x = builder.input("x", 0..=15);
    let bits = builder.table(
        &["b0", "b1", "b2", "b3"],
        x,
        0,
        (0..4).map(|bit| (0..16).map(|n| n >> bit & 1).collect()).collect(),
    );
    let and = builder.and("and", &bits[..2]);
    let product = builder.products(
        "xy",
        -30..=30,
        vec![
            Product { coefficient: 2, gate: bits[0].into(), up: Linear::from(x) - 7 },
            Product { coefficient: -1, gate: bits[3] - bits[0], up: Linear::from(x) },
        ],
    );
    let square = builder.products("square", 0..=225, vec![Product { coefficient: 1, gate: x.into(), up: x.into() }]);
    let xor = builder.products(
        "xor",
        0..=1,
        vec![
            Product { coefficient: 1, gate: bits[1] - bits[2], up: Linear::one() },
            Product { coefficient: 1, gate: bits[2] - bits[1], up: Linear::one() },
        ],
    );
    let count = tokens_of(&mut builder, x, 0..=15);
    speak(&mut builder, &[and, product, square, xor]);
    let netlist = builder.finish();
    check(&netlist, &compiled(&netlist), &(1..count).collect::<Vec<_>>());
}

#[test]
fn select_by_sign() {
    let mut builder = Builder::new();
    let x = builder.input("x", -40..=0);
    let y = builder.products("y", 0..=40, vec![Product { coefficient: 1, gate: -Linear::from(x), up: Linear::one() }]);
    let chosen = builder.select("chosen", 0..=60, x + 20, Linear::from(1), Linear::from(0));
    let wide = builder.select("wide", 0..=60, x, y + 20, y + 1);
    let count = tokens_of(&mut builder, x, -40..=0);
    speak(&mut builder, &[chosen, wide]);
    let netlist = builder.finish();
    check(&netlist, &compiled(&netlist), &(0..count).collect::<Vec<_>>());
}

/// A memory with tokens `W row value`, `R row` and optionally `C`.
struct Memory {
    netlist: Netlist,
    rows: usize,
    values: usize,
}

impl Memory {
    fn new(rows: usize, width: usize, clear: bool, ports: usize) -> Self {
        let mut builder = Builder::new();
        let bits = rows.next_power_of_two().trailing_zeros() as usize;
        let address = builder.input_bits("address", bits);
        let value = builder.input_bits("value", 6);
        let [write, read, clears] = ["write", "read", "clear"].map(|name| builder.input(name, 0..=1));
        let at = |enable: Signal| RowChoice::Address {
            bits: address.iter().map(|&bit| bit.into()).collect(),
            enable: enable.into(),
        };
        let description = StateDescription {
            rows,
            clear: clear.then(|| clears.into()),
            write: at(write),
            value: (0..width)
                .map(|i| if i % 7 == 3 { Linear::from(value[i % 6]).not() } else { value[i % 6].into() })
                .collect(),
            level: Level::EveryRow,
        };
        let names: Vec<String> = (0..ports).map(|port| format!("port{port}")).collect();
        let queries = names.iter().map(|name| (name.as_str(), at(read))).collect();
        let read_bits = builder.state("memory", description, queries);
        speak(&mut builder, &read_bits.concat());
        let start = |number: usize, signals: &[Signal], set: &mut Vec<(Signal, i64)>| {
            set.extend(signals.iter().enumerate().map(|(i, &signal)| (signal, i64::from(number >> i & 1 == 1))));
        };
        let values = 64;
        for row in 0..rows {
            for number in 0..values {
                let mut inputs = vec![(write, 1), (read, i64::from(number % 2 == 0))];
                start(row, &address, &mut inputs);
                start(number, &value, &mut inputs);
                builder.token(Token { text: format!("W{row}={number}"), inputs, code: vec![] });
            }
        }
        for row in 0..rows {
            let mut inputs = vec![(read, 1)];
            start(row, &address, &mut inputs);
            builder.token(Token { text: format!("R{row}"), inputs, code: vec![] });
        }
        builder.token(Token { text: "clear".into(), inputs: vec![(clears, 1)], code: vec![] });
        let netlist = builder.finish();
        Self { netlist, rows, values }
    }

    fn stream(&self, length: usize) -> Vec<usize> {
        let first = self.netlist.tokens().len() - self.rows * (self.values + 1) - 1;
        let mut state = 12345_usize;
        let mut dice = |sides: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % sides
        };
        (0..length)
            .map(|_| match dice(8) {
                0..4 => first + dice(self.rows) * self.values + dice(self.values),
                4..7 => first + self.rows * self.values + dice(self.rows),
                _ => self.netlist.tokens().len() - 1,
            })
            .collect()
    }
}

#[test]
fn a_state_of_one_head() {
    let memory = Memory::new(5, 20, false, 2);
    let compiled = compiled(&memory.netlist);
    check(&memory.netlist, &compiled, &memory.stream(60));
    assert_eq!(compiled.locations.len(), 2);
}

#[test]
fn a_state_that_can_be_cleared() {
    let memory = Memory::new(4, 6, true, 1);
    check(&memory.netlist, &compiled(&memory.netlist), &memory.stream(80));
}

#[test]
fn a_state_of_two_banks_and_two_slices() {
    let memory = Memory::new(140, 130, false, 1);
    let compiled = compiled(&memory.netlist);
    assert_eq!(compiled.locations[0].heads, vec![vec![0, 1], vec![2, 3]]);
    check(&memory.netlist, &compiled, &memory.stream(25));
}

/// Rows that are read four at a time: each has its own columns, the last one the level.
#[test]
fn a_state_read_many_rows_at_once() {
    let mut builder = Builder::new();
    let row: Vec<Signal> = (0..4).map(|i| builder.input(&format!("row{i}"), 0..=1)).collect();
    let bit = builder.input_bits("bit", 3);
    let read = builder.input("read", 0..=1);
    builder.exclusive("row", &row);
    let description = StateDescription {
        rows: 4,
        clear: Some(row[3].into()),
        write: RowChoice::Rows(row.iter().map(|&row| row.into()).collect()),
        value: (0..9).map(|i| row[i / 3] + bit[i % 3] - 1).collect(),
        level: Level::When(row[3].into()),
    };
    let out = builder.state("rows", description, vec![("all", RowChoice::Rows(vec![read.into(); 4]))]).remove(0);
    speak(&mut builder, &out);
    let first = 9;
    for (which, &row) in row.iter().enumerate() {
        for number in 0..8 {
            let mut inputs = vec![(row, 1), (read, number & 1)];
            inputs.extend(bit.iter().enumerate().map(|(i, &bit)| (bit, number >> i & 1)));
            builder.token(Token { text: format!("W{which}={number}"), inputs, code: vec![] });
        }
    }
    builder.token(Token { text: "read".into(), inputs: vec![(read, 1)], code: vec![] });
    let netlist = builder.finish();
    let reading = first + 32;
    let stream = [
        first + 24,
        first + 5,
        reading,
        first + 10,
        first + 19,
        reading,
        first + 6,
        reading,
        first + 24,
        reading,
        first + 23,
        reading,
    ];
    check(&netlist, &compiled(&netlist), &stream);
}

#[test]
fn language_tokens_change_nothing() {
    let memory = Memory::new(4, 6, true, 1);
    let compiled = compiled(&memory.netlist);
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let mut simulator = Simulator::new(&compiled.tensors, dtype);
        for token in memory.stream(20) {
            simulator.run(Some(token));
        }
        let before = simulator.states.clone();
        for _ in 0..6 {
            let traces = simulator.run(None);
            assert!(traces.iter().all(|trace| trace.mixed.iter().chain(&trace.out).all(|&value| value == 0.0)));
        }
        assert!(before == simulator.states, "{dtype:?}");
    }
}

#[test]
fn the_same_netlist_gives_the_same_tensors() {
    let one = compiled(&Memory::new(12, 9, true, 3).netlist);
    let two = compiled(&Memory::new(12, 9, true, 3).netlist);
    assert!(one == two);
    let matrices = one.tensors.layers.iter().flat_map(|layer| layer.matrices().map(|(_, matrix)| matrix));
    for matrix in matrices.chain([&one.tensors.embedding, &one.tensors.lm_head]) {
        let sorted = matrix.entries.windows(2).all(|pair| (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1));
        let inside =
            matrix.entries.iter().all(|&(row, col, _)| (row as usize) < matrix.rows && (col as usize) < matrix.cols);
        let exact = matrix
            .entries
            .iter()
            .all(|&(_, _, value)| value != 0.0 && Dtype::Bf16.round(value).to_bits() == value.to_bits());
        assert!(sorted && inside && exact);
    }
}

/// More signals than channels: dead ones are erased and their channels used again, over several layers.
#[test]
fn channels_are_used_again() {
    let mut builder = Builder::new();
    let x = builder.input("x", 0..=39);
    let count = tokens_of(&mut builder, x, 0..=39);
    let mut sum = Linear::from(x);
    let mut first = x;
    for (place, stage) in (0..6).enumerate() {
        let ups: Vec<String> = (0..40).map(|i| format!("stage{stage}/at{i}")).collect();
        let names: Vec<&str> = ups.iter().map(String::as_str).collect();
        // A one-hot of the sum, then another sum of it: 40 signals a stage, each with its own coefficient.
        let columns = (0..40).map(|i| (0..40).map(|n| i64::from(n == i)).collect()).collect();
        let hot = builder.table(&names, sum, 0, columns);
        sum = hot.iter().zip(0..).fold(Linear::zero(), |sum, (&bit, i)| sum + bit * ((7 * i + 3 + stage) % 40));
        first = hot[(5 * place + 1) % 40];
    }
    let last = builder.step("last", sum - 20);
    let signed = builder.table(&["signed"], first, 0, vec![vec![-3, 5]])[0];
    let end = builder.step("end", signed + last);
    speak(&mut builder, &[end]);
    let netlist = builder.finish();
    let geometry = Geometry::new(64, 300, 1, 12);
    let compiled = compile(&netlist, &geometry, &CompileOptions::default()).expect("compiles");
    assert!(compiled.schedule.num_erased() > 100, "{}", compiled.report);
    check(&netlist, &compiled, &(0..count).collect::<Vec<_>>());
}

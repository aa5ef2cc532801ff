//! A subleq computer: one instruction, `memory[b] -= memory[a]; if the result is <= 0, go to c`.
//!
//! The token `@pc` executes the instruction at `pc`; the token after it, `b=value`, reports and performs the store, and
//! leads to the next `@pc`. Values are four bits in two's complement. The program is a state's rows, as is the memory:
//! `P pc a b c` tokens write the one, `b=value` tokens the other. The compiled weights are run here by a few lines of
//! matrix arithmetic, and must say what the evaluator says.

use qwengpu_circuit::{
    BIT, Builder, CompileOptions, Dtype, Evaluator, Geometry, Level, Linear, Netlist, Product, RowChoice, Signal,
    StateDescription, Token, compile, prove,
};

#[path = "../tests/common/mod.rs"]
#[expect(clippy::cast_precision_loss, reason = "channels and tokens are small numbers")]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "the example uses a part of the simulator")]
mod common;

const WIDTH: usize = 4;
const CELLS: usize = 4;
const PROGRAM: usize = 4;
const ADDRESS: usize = 2;

/// The tokens, by number.
struct Machine {
    netlist: Netlist,
}

impl Machine {
    fn execute(pc: usize) -> usize {
        pc
    }
    fn store(cell: usize, value: i64) -> usize {
        PROGRAM + cell * (1 << WIDTH) + usize::try_from(value.rem_euclid(1 << WIDTH)).unwrap_or(0)
    }
    fn instruction(pc: usize, [a, b, c]: [usize; 3]) -> usize {
        PROGRAM + CELLS * (1 << WIDTH) + ((pc * CELLS + a) * CELLS + b) * PROGRAM + c
    }
}

fn bits(forms: &[Signal]) -> Vec<Linear> {
    forms.iter().map(|&bit| bit.into()).collect()
}

fn build() -> Machine {
    let mut b = Builder::new();
    let [is_execute, is_store, is_program] = ["execute", "store", "program"].map(|name| b.input(name, BIT));
    let pc = b.input_bits("pc", ADDRESS);
    let cell = b.input_bits("cell", ADDRESS);
    let value = b.input_bits("value", WIDTH);
    let fields = b.input_bits("fields", 3 * ADDRESS);

    let program = StateDescription {
        rows: PROGRAM,
        clear: None,
        write: RowChoice::Address { bits: bits(&pc), enable: is_program.into() },
        value: bits(&fields),
        level: Level::EveryRow,
    };
    let fetch = RowChoice::Address { bits: bits(&pc), enable: is_execute.into() };
    let instruction = b.state("program", program, vec![("fetch", fetch)]).remove(0);
    let (a, rest) = instruction.split_at(ADDRESS);
    let (target, goal) = rest.split_at(ADDRESS);

    let memory = StateDescription {
        rows: CELLS,
        clear: None,
        write: RowChoice::Address { bits: bits(&cell), enable: is_store.into() },
        value: bits(&value),
        level: Level::EveryRow,
    };
    let at = |address: &[Signal]| RowChoice::Address { bits: bits(address), enable: is_execute.into() };
    let read = b.state("memory", memory, vec![("a", at(a)), ("b", at(target))]);

    // b - a + 16 while executing, 0 otherwise: 1..=31; the upper half of its sixteen values is negative or wraps.
    let difference = Linear::from_bits(&read[1]) - Linear::from_bits(&read[0]) + 16;
    let sum =
        b.products("difference", 0..=31, vec![Product { coefficient: 1, gate: is_execute.into(), up: difference }]);
    let entry = |bit: usize| (0..32).map(|n| n >> bit & 1).collect();
    let mut columns: Vec<Vec<i64>> = (0..WIDTH).map(entry).collect();
    columns.push((0..32).map(|n| i64::from(n % 16 == 0 || n % 16 >= 8)).collect());
    let result = b.table(&["result/bit0", "result/bit1", "result/bit2", "result/bit3", "jumps"], sum, 0, columns);

    // What the store token leads to is decided in the execute token and kept: the next pc.
    let jumps = result[WIDTH];
    let next: Vec<Linear> = (0..ADDRESS)
        .map(|bit| {
            let plus_one = Linear::from_bits(&pc) + 1;
            let count = (0..=PROGRAM).map(|n| i64::try_from(n >> bit & 1).unwrap_or(0)).collect();
            let follows = b.table(&[&format!("follows/bit{bit}")], plus_one, 0, vec![count])[0];
            let taken = Product { coefficient: 1, gate: jumps + goal[bit] - 1, up: Linear::one() };
            let not_taken = Product { coefficient: 1, gate: follows - jumps, up: Linear::one() };
            b.products(&format!("next/bit{bit}"), BIT, vec![taken, not_taken]).into()
        })
        .collect();
    let kept = StateDescription {
        rows: 1,
        clear: None,
        write: RowChoice::Rows(vec![is_execute.into()]),
        value: next,
        level: Level::EveryRow,
    };
    let next = b.state("next", kept, vec![("read", RowChoice::Rows(vec![is_store.into()]))]).remove(0);

    // Codes: a field bit that is set counts 2 if the output is set; the kind outweighs them and makes up for ones.
    let code = |kind: Signal, fields: &[(&[Signal], usize)]| -> Vec<(Signal, i64)> {
        let mut code = vec![(kind, 32)];
        for &(signals, number) in fields {
            for (i, &signal) in signals.iter().enumerate() {
                if number >> i & 1 == 1 {
                    code.push((signal, 2));
                    code[0].1 -= 1;
                }
            }
        }
        code
    };
    let says_store =
        b.products("says/store", BIT, vec![Product { coefficient: 1, gate: is_execute.into(), up: Linear::one() }]);
    let says_execute =
        b.products("says/execute", BIT, vec![Product { coefficient: 1, gate: is_store.into(), up: Linear::one() }]);
    let set = |signals: &[Signal], number: usize| -> Vec<(Signal, i64)> {
        signals.iter().enumerate().filter(|(i, _)| number >> i & 1 == 1).map(|(_, &signal)| (signal, 1)).collect()
    };
    for number in 0..PROGRAM {
        let inputs = [vec![(is_execute, 1)], set(&pc, number)].concat();
        b.token(Token { text: format!("@{number}"), inputs, code: code(says_execute, &[(&next, number)]) });
    }
    for at in 0..CELLS {
        for number in 0..1 << WIDTH {
            let inputs = [vec![(is_store, 1)], set(&cell, at), set(&value, number)].concat();
            let code = code(says_store, &[(target, at), (&result[..WIDTH], number)]);
            b.token(Token { text: format!("{at}={number}"), inputs, code });
        }
    }
    for at in 0..PROGRAM {
        for word in 0..CELLS * CELLS * PROGRAM {
            let (a, target, goal) = (word / PROGRAM / CELLS, word / PROGRAM % CELLS, word % PROGRAM);
            let packed = a | target << ADDRESS | goal << (2 * ADDRESS);
            let inputs = [vec![(is_program, 1)], set(&pc, at), set(&fields, packed)].concat();
            b.token(Token { text: format!("P{at} {a} {target} {goal}"), inputs, code: vec![] });
        }
    }
    Machine { netlist: b.finish() }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let machine = build();
    let netlist = &machine.netlist;
    let compiled = compile(netlist, &Geometry::new(1024, 512, 4, 16), &CompileOptions::default())?;
    println!("{}", compiled.report);
    println!("{}", prove(netlist, &compiled, &[Dtype::F32, Dtype::Bf16])?);

    // Cell 1 counts down by cell 0 until it is 0; then the program stays at 3, subtracting cell 2 (zero) from itself.
    let mut stream = vec![
        Machine::store(0, 1),
        Machine::store(1, 3),
        Machine::instruction(0, [0, 1, 2]),
        Machine::instruction(1, [2, 2, 0]),
        Machine::instruction(2, [2, 2, 3]),
        Machine::instruction(3, [2, 2, 3]),
    ];
    let prompt = stream.len();
    stream.push(Machine::execute(0));
    let mut evaluator = Evaluator::new(netlist);
    for &token in &stream[..prompt] {
        evaluator.run(token)?;
    }
    for _ in 0..20 {
        let token = stream[stream.len() - 1];
        evaluator.run(token)?;
        stream.push(evaluator.next(token)?);
    }
    let text: Vec<&str> = stream.iter().map(|&token| netlist.tokens()[token].text.as_str()).collect();
    println!("{}", text.join("  "));
    assert!(text.ends_with(&["@3", "2=0", "@3"]) || text.ends_with(&["2=0", "@3", "2=0"]), "the program ends");

    for choices in [
        common::check_dtype(netlist, &compiled, &stream, common::Dtype::F32),
        common::check(netlist, &compiled, &stream),
    ] {
        for (position, choice) in choices.iter().enumerate().take(stream.len() - 1).skip(prompt) {
            assert_eq!(*choice, Some(stream[position + 1]), "the weights say something else at {position}");
        }
    }
    println!("the weights say the same, in f32 and bf16");
    Ok(())
}

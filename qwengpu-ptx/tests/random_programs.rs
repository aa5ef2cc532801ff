//! Random structured kernels against direct evaluation.
//!
//! A kernel works on six words a thread: operations, guarded operations, branches, loops of a few rounds,
//! jump tables, local memory, calls of a function that calls itself. Four threads run it on different words.

#![allow(clippy::panic, reason = "a failing test panics")]

mod common;

use common::{Argument, attempt, compile, run};
use proptest::prelude::*;
use qwengpu_interp::Outcome;
use qwengpu_isa::{Dim3, FaultKind, MachineSpec};

const REGISTERS: usize = 6;
const SLOTS: usize = 3;

#[derive(Debug, Clone)]
enum Source {
    Register(usize),
    Number(u32),
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Shl,
    ShrU,
    ShrS,
    MinS,
    MaxU,
    DivU,
    RemS,
    MulHi,
}

#[derive(Debug, Clone, Copy)]
enum Relation {
    Eq,
    LtS,
    GeU,
}

#[derive(Debug, Clone)]
struct Test {
    relation: Relation,
    a: usize,
    b: Source,
}

#[derive(Debug, Clone)]
enum Statement {
    Assign(Operation, usize, Source, Source),
    Mad(usize, usize, usize, Source),
    Guarded(Test, bool, Operation, usize, Source, Source),
    Select(Test, usize, Source, Source),
    If(Test, Vec<Statement>, Vec<Statement>),
    Loop(u32, Vec<Statement>),
    Switch(usize, Vec<Vec<Statement>>),
    /// Depth, destination and arguments of a call; whether it goes through a pointer.
    Call(u32, usize, usize, usize, bool),
    Put(usize, usize),
    Get(usize, usize),
    Copy(usize, usize),
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        3 => (0..REGISTERS).prop_map(Source::Register),
        1 => prop_oneof![Just(0), Just(1), Just(2), Just(4), Just(0xff), Just(u32::MAX), Just(31), any::<u32>()].prop_map(Source::Number),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{Add, And, DivU, MaxU, MinS, Mul, MulHi, Or, RemS, Shl, ShrS, ShrU, Sub, Xor};
    prop_oneof![
        12 => prop::sample::select(vec![Add, Sub, Mul, And, Or, Xor, Shl, ShrU, ShrS, MinS, MaxU]),
        1 => prop::sample::select(vec![DivU, RemS, MulHi]),
    ]
}

fn test() -> impl Strategy<Value = Test> {
    let relation = prop::sample::select(vec![Relation::Eq, Relation::LtS, Relation::GeU]);
    (relation, 0..REGISTERS, source()).prop_map(|(relation, a, b)| Test { relation, a, b })
}

fn statement() -> impl Strategy<Value = Statement> {
    let reg = 0..REGISTERS;
    let leaf = prop_oneof![
        6 => (operation(), reg.clone(), source(), source()).prop_map(|(op, d, a, b)| Statement::Assign(op, d, a, b)),
        1 => (reg.clone(), reg.clone(), reg.clone(), source()).prop_map(|(d, a, b, c)| Statement::Mad(d, a, b, c)),
        2 => (test(), any::<bool>(), operation(), reg.clone(), source(), source())
            .prop_map(|(t, n, op, d, a, b)| Statement::Guarded(t, n, op, d, a, b)),
        2 => (test(), reg.clone(), source(), source()).prop_map(|(t, d, a, b)| Statement::Select(t, d, a, b)),
        1 => (0..SLOTS, reg.clone()).prop_map(|(s, r)| Statement::Put(s, r)),
        1 => (reg.clone(), 0..SLOTS).prop_map(|(r, s)| Statement::Get(r, s)),
        1 => (0..3u32, reg.clone(), reg.clone(), reg.clone(), any::<bool>())
            .prop_map(|(n, d, a, b, p)| Statement::Call(n, d, a, b, p)),
        2 => (reg.clone(), reg).prop_map(|(d, s)| Statement::Copy(d, s)),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let block = prop::collection::vec(inner, 0..5);
        prop_oneof![
            2 => (test(), block.clone(), block.clone()).prop_map(|(t, a, b)| Statement::If(t, a, b)),
            1 => (0..REGISTERS, prop::collection::vec(block.clone(), 1..5)).prop_map(|(r, bodies)| Statement::Switch(r, bodies)),
            1 => (1..4u32, block).prop_map(|(n, body)| Statement::Loop(n, body)),
        ]
    })
}

/// A function of a depth and two words, which calls itself between two runs of statements if the depth is not 0.
#[derive(Debug, Clone)]
struct Recursive {
    before: Vec<Statement>,
    arguments: (usize, usize),
    destination: usize,
    after: Vec<Statement>,
}

/// No calls: each level calls the function once.
fn without_calls(body: &[Statement]) -> Vec<Statement> {
    let inner = body.iter().map(|statement| match statement {
        Statement::If(t, yes, no) => Statement::If(t.clone(), without_calls(yes), without_calls(no)),
        Statement::Loop(n, body) => Statement::Loop(*n, without_calls(body)),
        Statement::Switch(r, bodies) => Statement::Switch(*r, bodies.iter().map(|b| without_calls(b)).collect()),
        Statement::Call(_, d, a, _, _) => Statement::Copy(*d, *a),
        other => other.clone(),
    });
    inner.collect()
}

fn recursive() -> impl Strategy<Value = Recursive> {
    let body = || prop::collection::vec(statement(), 0..5).prop_map(|body| without_calls(&body));
    (body(), (0..REGISTERS, 0..REGISTERS), 0..REGISTERS, body())
        .prop_map(|(before, arguments, destination, after)| Recursive { before, arguments, destination, after })
}

impl Recursive {
    fn run(&self, depth: u32, a: u32, b: u32) -> u32 {
        let mut thread = Thread::start([a, b, depth, a, b, depth]);
        thread.run(&self.before, self);
        if depth > 0 {
            let (x, y) = (thread.registers[self.arguments.0], thread.registers[self.arguments.1]);
            thread.registers[self.destination] = self.run(depth - 1, x, y);
        }
        thread.run(&self.after, self);
        thread.registers[0]
    }

    fn print(&self) -> String {
        let mut printer = Printer::default();
        printer.line(&format!(
            "{FUNCTION}\n{{\n{DECLARATIONS}ld.param.u32 %t, [n];\nld.param.u32 %r0, [a];\nld.param.u32 %r1, [b];\n\
             mov.u32 %r2, %t;\nmov.u32 %r3, %r0;\nmov.u32 %r4, %r1;\nmov.u32 %r5, %t;"
        ));
        printer.print(&self.before);
        printer.line("setp.eq.u32 %q, %t, 0;\n@%q bra BOTTOM;\nadd.u32 %s, %t, -1;");
        printer.call("f", "%s", self.destination, self.arguments.0, self.arguments.1);
        printer.line("BOTTOM:");
        printer.print(&self.after);
        printer.line("st.param.b32 [result], %r0;\nret;\n}");
        printer.text
    }
}

const FUNCTION: &str = ".func (.param .b32 result) f(.param .b32 n, .param .b32 a, .param .b32 b)";

const DECLARATIONS: &str = ".reg .b32 %r<6>;\n.reg .b32 %c<1000>;\n.reg .pred %p<1000>;\n.reg .pred %q;\n.reg .b32 %t;\n\
    .reg .b32 %s;\n.reg .b64 %a<3>;\n.local .align 4 .b8 mine[12];\nst.local.u32 [mine], 0;\nst.local.u32 [mine+4], 1;\n\
    st.local.u32 [mine+8], 2;\n";

fn apply(op: Operation, a: u32, b: u32) -> u32 {
    let (sa, sb) = (a.cast_signed(), b.cast_signed());
    match op {
        Operation::Add => a.wrapping_add(b),
        Operation::Sub => a.wrapping_sub(b),
        Operation::Mul => a.wrapping_mul(b),
        Operation::And => a & b,
        Operation::Or => a | b,
        Operation::Xor => a ^ b,
        Operation::Shl => a.checked_shl(b).unwrap_or(0),
        Operation::ShrU => a.checked_shr(b).unwrap_or(0),
        Operation::ShrS => (sa >> b.min(31)).cast_unsigned(),
        Operation::MinS => sa.min(sb).cast_unsigned(),
        Operation::MaxU => a.max(b),
        Operation::DivU => a.checked_div(b).unwrap_or(u32::MAX),
        Operation::RemS => {
            if b == 0 {
                a
            } else {
                sa.wrapping_rem(sb).cast_unsigned()
            }
        }
        Operation::MulHi => u32::try_from((u64::from(a) * u64::from(b)) >> 32).expect("32 bits"),
    }
}

fn name(op: Operation) -> &'static str {
    match op {
        Operation::Add => "add.u32",
        Operation::Sub => "sub.u32",
        Operation::Mul => "mul.lo.u32",
        Operation::And => "and.b32",
        Operation::Or => "or.b32",
        Operation::Xor => "xor.b32",
        Operation::Shl => "shl.b32",
        Operation::ShrU => "shr.u32",
        Operation::ShrS => "shr.s32",
        Operation::MinS => "min.s32",
        Operation::MaxU => "max.u32",
        Operation::DivU => "div.u32",
        Operation::RemS => "rem.s32",
        Operation::MulHi => "mul.hi.u32",
    }
}

struct Thread {
    registers: [u32; REGISTERS],
    slots: [u32; SLOTS],
}

impl Thread {
    fn start(registers: [u32; REGISTERS]) -> Thread {
        Thread { registers, slots: std::array::from_fn(|slot| u32::try_from(slot).expect("small")) }
    }

    fn read(&self, source: &Source) -> u32 {
        match source {
            Source::Register(idx) => self.registers[*idx],
            Source::Number(number) => *number,
        }
    }

    fn holds(&self, test: &Test) -> bool {
        let (a, b) = (self.registers[test.a], self.read(&test.b));
        match test.relation {
            Relation::Eq => a == b,
            Relation::LtS => a.cast_signed() < b.cast_signed(),
            Relation::GeU => a >= b,
        }
    }

    fn run(&mut self, body: &[Statement], function: &Recursive) {
        for statement in body {
            match statement {
                Statement::Assign(op, d, a, b) => self.registers[*d] = apply(*op, self.read(a), self.read(b)),
                Statement::Mad(d, a, b, c) => {
                    let product = self.registers[*a].wrapping_mul(self.registers[*b]);
                    self.registers[*d] = product.wrapping_add(self.read(c));
                }
                Statement::Guarded(test, negated, op, d, a, b) => {
                    if self.holds(test) != *negated {
                        self.registers[*d] = apply(*op, self.read(a), self.read(b));
                    }
                }
                Statement::Select(test, d, a, b) => {
                    self.registers[*d] = if self.holds(test) { self.read(a) } else { self.read(b) };
                }
                Statement::If(test, yes, no) => {
                    if self.holds(test) {
                        self.run(yes, function);
                    } else {
                        self.run(no, function);
                    }
                }
                Statement::Loop(rounds, body) => (0..*rounds).for_each(|_| self.run(body, function)),
                Statement::Switch(reg, bodies) => {
                    self.run(&bodies[self.registers[*reg] as usize % bodies.len()], function);
                }
                Statement::Call(depth, d, a, b, _) => {
                    self.registers[*d] = function.run(*depth, self.registers[*a], self.registers[*b]);
                }
                Statement::Put(slot, reg) => self.slots[*slot] = self.registers[*reg],
                Statement::Get(reg, slot) => self.registers[*reg] = self.slots[*slot],
                Statement::Copy(d, s) => self.registers[*d] = self.registers[*s],
            }
        }
    }
}

#[derive(Default)]
struct Printer {
    text: String,
    names: usize,
}

impl Printer {
    fn fresh(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn source(source: &Source) -> String {
        match source {
            Source::Register(idx) => format!("%r{idx}"),
            Source::Number(number) => number.to_string(),
        }
    }

    fn test(&mut self, test: &Test) -> usize {
        let relation = match test.relation {
            Relation::Eq => "eq.u32",
            Relation::LtS => "lt.s32",
            Relation::GeU => "ge.u32",
        };
        let pred = self.fresh();
        self.line(&format!("setp.{relation} %p{pred}, %r{}, {};", test.a, Self::source(&test.b)));
        pred
    }

    fn call(&mut self, target: &str, depth: &str, d: usize, a: usize, b: usize) {
        self.line(&format!(
            "{{ .param .b32 x; .param .b32 y; .param .b32 z; .param .b32 w; st.param.b32 [x], {depth};\n\
             st.param.b32 [y], %r{a}; st.param.b32 [z], %r{b}; call (w), {target}, (x, y, z); ld.param.b32 %r{d}, [w]; }}"
        ));
    }

    fn print(&mut self, body: &[Statement]) {
        for statement in body {
            match statement {
                Statement::Assign(op, d, a, b) => {
                    self.line(&format!("{} %r{d}, {}, {};", name(*op), Self::source(a), Self::source(b)));
                }
                Statement::Mad(d, a, b, c) => {
                    self.line(&format!("mad.lo.u32 %r{d}, %r{a}, %r{b}, {};", Self::source(c)));
                }
                Statement::Guarded(test, negated, op, d, a, b) => {
                    let pred = self.test(test);
                    let not = if *negated { "!" } else { "" };
                    self.line(&format!(
                        "@{not}%p{pred} {} %r{d}, {}, {};",
                        name(*op),
                        Self::source(a),
                        Self::source(b)
                    ));
                }
                Statement::Select(test, d, a, b) => {
                    let pred = self.test(test);
                    self.line(&format!("selp.b32 %r{d}, {}, {}, %p{pred};", Self::source(a), Self::source(b)));
                }
                Statement::If(test, yes, no) => {
                    let pred = self.test(test);
                    let label = self.fresh();
                    self.line(&format!("@!%p{pred} bra E{label};"));
                    self.print(yes);
                    self.line(&format!("bra.uni J{label};\nE{label}:"));
                    self.print(no);
                    self.line(&format!("J{label}:"));
                }
                Statement::Loop(rounds, body) => {
                    let label = self.fresh();
                    self.line(&format!("mov.u32 %c{label}, 0;\nL{label}:"));
                    self.print(body);
                    self.line(&format!("add.u32 %c{label}, %c{label}, 1;\nsetp.lt.u32 %p{label}, %c{label}, {rounds};\n@%p{label} bra L{label};"));
                }
                Statement::Switch(reg, bodies) => {
                    let label = self.fresh();
                    let names: Vec<String> = (0..bodies.len()).map(|n| format!("S{label}_{n}")).collect();
                    self.line(&format!(
                        "rem.u32 %c{label}, %r{reg}, {};\nT{label}: .branchtargets {};\nbrx.idx %c{label}, T{label};",
                        bodies.len(),
                        names.join(", ")
                    ));
                    for (name, body) in names.iter().zip(bodies) {
                        self.line(&format!("{name}:"));
                        self.print(body);
                        self.line(&format!("bra.uni D{label};"));
                    }
                    self.line(&format!("D{label}:"));
                }
                Statement::Call(depth, d, a, b, false) => self.call("f", &depth.to_string(), *d, *a, *b),
                Statement::Call(depth, d, a, b, true) => {
                    self.line("mov.u64 %a2, f;");
                    self.call("%a2", &depth.to_string(), *d, *a, *b);
                }
                Statement::Put(slot, reg) => self.line(&format!("st.local.u32 [mine+{}], %r{reg};", 4 * slot)),
                Statement::Get(reg, slot) => self.line(&format!("ld.local.u32 %r{reg}, [mine+{}];", 4 * slot)),
                Statement::Copy(d, s) => self.line(&format!("mov.u32 %r{d}, %r{s};")),
            }
        }
    }
}

fn kernel(body: &[Statement], function: &Recursive) -> String {
    let mut printer = Printer::default();
    printer.print(body);
    let mut text = format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n{}.visible .entry k(.param .u64 data)\n{{\n{DECLARATIONS}\
         ld.param.u64 %a0, [data];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %a1, %t, 24;\nadd.s64 %a0, %a0, %a1;\n",
        function.print()
    );
    for idx in 0..REGISTERS {
        text.push_str(&format!("ld.global.u32 %r{idx}, [%a0+{}];\n", 4 * idx));
    }
    text.push_str(&printer.text);
    for idx in 0..REGISTERS {
        text.push_str(&format!("st.global.u32 [%a0+{}], %r{idx};\n", 4 * idx));
    }
    text.push_str("ret;\n}\n");
    text
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lowered_kernels_compute_what_they_say(
        body in prop::collection::vec(statement(), 1..14),
        function in recursive(),
        words in prop::collection::vec(prop_oneof![0..20u32, any::<u32>()], 4 * REGISTERS),
    ) {
        for spec in [MachineSpec::seed(), cramped()] {
            check(spec, &body, &function, &words)?;
        }
    }
}

/// A machine on which everything spills.
fn cramped() -> MachineSpec {
    MachineSpec { registers: 6, predicates: 2, local_words: 128, rom_words: 4096, ..MachineSpec::seed() }
}

fn check(spec: MachineSpec, body: &[Statement], function: &Recursive, words: &[u32]) -> Result<(), TestCaseError> {
    let ptx = kernel(body, function);
    let module = qwengpu_ptx::parse(&ptx).expect("the text is valid");
    let lowered = match qwengpu_ptx::lower(&module, None, &qwengpu_ptx::Options::new(spec)) {
        Ok(lowered) => lowered,
        Err(qwengpu_ptx::PtxError::ImplLimit { .. }) if spec == MachineSpec::seed() => return Ok(()),
        Err(error) => panic!("{error}\n{ptx}"),
    };
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let arguments = [Argument::Buffer(bytes)];
    let (outcome, done) = attempt(spec, &lowered, Dim3::linear(1), Dim3::linear(4), &arguments);
    match outcome {
        Outcome::Finished => {}
        // The stack does not fit.
        Outcome::Fault(fault) if fault.kind == FaultKind::StackOverflow && spec == MachineSpec::seed() => return Ok(()),
        other => panic!("{other}\n{ptx}\n{}", lowered.program),
    }
    for (thread, (before, after)) in words.chunks(REGISTERS).zip(done.buffers[0].chunks(REGISTERS)).enumerate() {
        let mut expected = Thread::start(before.try_into().expect("a thread's words"));
        expected.run(body, function);
        prop_assert_eq!(after, expected.registers, "thread {}\n{}\n{}", thread, &ptx, &lowered.program);
    }
    Ok(())
}

#[test]
fn an_empty_kernel_copies_its_words() {
    let lowered =
        compile(&kernel(&[], &Recursive { before: vec![], arguments: (0, 0), destination: 0, after: vec![] }));
    let done = run(&lowered, Dim3::linear(1), Dim3::linear(1), &[Argument::Buffer((0..24).collect())]);
    assert_eq!(done.buffers[0][0], 0x0302_0100);
}

//! Random programs that end by construction.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::sample::select;

use super::instruction::{comparison, predicate_source, register, short_operand, straight_instruction};
use crate::inst::Instruction;
use crate::modifier::{Comparison, LoadWidth, SpecialReg, StoreWidth, Table2, TrapReason};
use crate::operand::{Address, Offset, Operand};
use crate::program::{KernelSignature, Program};
use crate::reg::{Pc, PredReg, PredSource, Reg};
use crate::spec::{GLOBAL_BASE, LOCAL_BASE, MachineSpec, Memory, SHARED_BASE};

/// Loop counters, by nesting depth; random instructions do not write them.
const COUNTERS: [Reg; 2] = [Reg::R14, Reg::R15];
/// Holds masked addresses and targets of indirect branches; random instructions do not write it.
const SCRATCH: Reg = Reg::R13;
/// Conditions of loops; random instructions do not write it.
const LOOP_PREDICATE: PredReg = PredReg::P6;

/// The size and the content of random programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOptions {
    /// Most statements of a sequence.
    pub max_statements: usize,
    /// How deep branches and loops are nested; more than 2 is taken as 2.
    pub max_depth: u32,
    /// Most rounds of a loop.
    pub max_rounds: u32,
    /// Whether some accesses have unmasked addresses, which are likely to fault.
    pub wild_addresses: bool,
    /// Whether there are barriers. They stand at the top level, where all live lanes are together.
    pub barriers: bool,
}

impl Default for ProgramOptions {
    fn default() -> Self {
        Self { max_statements: 8, max_depth: 2, max_rounds: 3, wild_addresses: false, barriers: true }
    }
}

/// A structured program before it has instruction indices.
#[derive(Debug, Clone)]
enum Statement {
    Straight(Instruction),
    /// Address from a register, cut to the window, and an access there.
    Access {
        source: Reg,
        mask: u32,
        instruction: Instruction,
    },
    /// Skips the body in the lanes where the branch, whose target is not yet known, is taken.
    Skip {
        branch: Instruction,
        indirect: bool,
        body: Vec<Statement>,
    },
    /// Repeats the body, `rounds` times or once more than the lane id says.
    Loop {
        rounds: Option<u32>,
        body: Vec<Statement>,
    },
    /// Lanes leave, where the guard is true.
    Leave(PredSource),
    Barrier,
}

/// A valid program that ends on every launch: branches go forward, or back in loops with a bounded counter.
///
/// Registers `r13` to `r15` and predicate `p6` belong to the generated control flow and addressing.
pub fn terminating_program(spec: &MachineSpec, options: &ProgramOptions) -> impl Strategy<Value = Program> + use<> {
    // Every nesting level needs a counter of its own.
    let statement = nested(spec, options, options.max_depth.min(2));
    let top = if options.barriers {
        prop_oneof![
            8 => statement,
            1 => Just(Statement::Barrier),
            1 => predicate_source().prop_map(Statement::Leave),
        ]
        .boxed()
    } else {
        statement
    };
    let rom_words = usize::from(spec.rom_words);
    vec(top, 1..=options.max_statements).prop_filter_map("program fits", move |body| {
        let mut instructions = Vec::new();
        emit(&body, 0, &mut instructions);
        instructions.push(Instruction::exit());
        (instructions.len() <= rom_words).then(|| Program::new(KernelSignature::new("random"), instructions))
    })
}

fn nested(spec: &MachineSpec, options: &ProgramOptions, depth: u32) -> proptest::strategy::BoxedStrategy<Statement> {
    let straight = straight_instruction().prop_filter("control registers are kept", |instruction| {
        let reserved = |reg| reg == SCRATCH || COUNTERS.contains(&reg);
        !instruction.operation.rd().is_some_and(reserved) && instruction.operation.pd() != Some(LOOP_PREDICATE)
    });
    let simple = prop_oneof![
        6 => straight.prop_map(Statement::Straight),
        3 => access(spec, options.wild_addresses),
    ];
    if depth == 0 {
        return simple.boxed();
    }
    let body = vec(nested(spec, options, depth - 1), 1..=options.max_statements.div_ceil(2));
    let rounds = prop_oneof![3 => (1..=options.max_rounds).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        8 => simple,
        2 => (predicate_source(), proptest::bool::weighted(0.2), body.clone()).prop_map(|(guard, indirect, body)| {
            Statement::Skip { branch: Instruction::bra(Pc::ENTRY).guarded(guard), indirect, body }
        }),
        1 => (compared_branch(), body.clone())
            .prop_map(|(branch, body)| Statement::Skip { branch, indirect: false, body }),
        1 => (rounds, body).prop_map(|(rounds, body)| Statement::Loop { rounds, body }),
    ]
    .boxed()
}

/// A branch on a comparison, to a place that is not yet known.
fn compared_branch() -> impl Strategy<Value = Instruction> + Clone {
    (comparison(), register(), short_operand(), predicate_source(), predicate_source())
        .prop_map(|(comparison, a, b, and, guard)| Instruction::brc(comparison, a, b, and, Pc::ENTRY).guarded(guard))
}

fn access(spec: &MachineSpec, wild: bool) -> impl Strategy<Value = Statement> + use<> {
    let windows = [(Memory::Global, GLOBAL_BASE), (Memory::Shared, SHARED_BASE), (Memory::Local, LOCAL_BASE)];
    // The largest power of two that fits, so that a masked address is always inside the window.
    let windows = windows.map(|(memory, base)| {
        let bytes = spec.window(memory).bytes();
        (base, 1 << bytes.ilog2())
    });
    let loads = (select(LoadWidth::ALL), register().prop_filter("is free", |reg| reg.index() < SCRATCH.index()))
        .prop_map(|(width, rd)| (width.bytes(), Instruction::ld(width, rd, Address::register(SCRATCH))));
    let stores = (select(StoreWidth::ALL), register())
        .prop_map(|(width, c)| (width.bytes(), Instruction::st(width, Address::register(SCRATCH), c)));
    let weight = if wild { 0.05 } else { 0.0 };
    let choices = (prop_oneof![loads, stores], select(windows.to_vec()), register(), predicate_source());
    (choices, proptest::bool::weighted(weight)).prop_map(
        |(((bytes, instruction), (base, size), source, guard), unmasked)| {
            let mask = if unmasked { u32::MAX } else { (size - 1) & !(bytes - 1) };
            let mut instruction = instruction.guarded(guard);
            if let (Some(address), Some(offset)) =
                (instruction.operation.address(), i32::try_from(base).ok().and_then(Offset::new))
            {
                instruction.operation = instruction.operation.with_address(address.with_offset(offset));
            }
            Statement::Access { source, mask, instruction }
        },
    )
}

/// Appends the instructions of statements.
fn emit(statements: &[Statement], depth: usize, out: &mut Vec<Instruction>) {
    for statement in statements {
        match statement {
            Statement::Straight(instruction) => out.push(*instruction),
            Statement::Access { source, mask, instruction } => {
                out.push(Instruction::lop(Table2::AND, SCRATCH, *source, *mask));
                out.push(*instruction);
            }
            Statement::Skip { branch: instruction, indirect, body } => {
                let branch = out.len();
                out.push(Instruction::trap(TrapReason::Illegal));
                if *indirect {
                    out.push(Instruction::trap(TrapReason::Illegal));
                }
                emit(body, depth, out);
                let end = index(out.len());
                if *indirect {
                    out[branch] = Instruction::mov(SCRATCH, u32::from(end.get()));
                    out[branch + 1] = Instruction::brx(SCRATCH).guarded(instruction.guard);
                } else {
                    out[branch] = instruction.with_target(end);
                }
            }
            Statement::Loop { rounds, body } => {
                let counter = COUNTERS[depth];
                out.push(match rounds {
                    Some(rounds) => Instruction::mov(counter, rounds - 1),
                    None => Instruction::s2r(counter, SpecialReg::LaneId),
                });
                let start = index(out.len());
                emit(body, depth + 1, out);
                out.push(Instruction::setp(Comparison::Ne, LOOP_PREDICATE, counter, 0));
                out.push(Instruction::iadd(counter, counter, Operand::signed(-1), Reg::ZERO));
                out.push(Instruction::bra(start).guarded(LOOP_PREDICATE));
            }
            Statement::Leave(guard) => out.push(Instruction::exit().guarded(*guard)),
            Statement::Barrier => out.push(Instruction::bar()),
        }
    }
}

/// Programs too long for an index are dropped by the caller, so a saturated index is never used.
fn index(length: usize) -> Pc {
    Pc::try_from(length).unwrap_or(Pc::new(u16::MAX))
}

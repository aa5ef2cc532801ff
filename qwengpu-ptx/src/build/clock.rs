//! `%clock` and its relatives: the number of PTX instructions that the thread has executed.
//!
//! Only a kernel that reads one pays: each block adds its instructions at its end, and a read adds those of its
//! block so far. Where functions call themselves the count travels between them like an argument.

use qwengpu_isa::{LoadWidth, StoreWidth, TernaryOp};

use crate::ast::{Function, Instruction, Operand};
use crate::ir::{Address, Cond, InstKind, Symbol, SymbolId, SymbolSpace, VReg, Value, WordOp};

use super::Builder;
use super::call_graph::CallGraph;

/// What the special registers that count are called.
const NAMES: &[&str] = &["%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"];

/// Where the count stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In a register: the kernel is one function.
    Register(VReg),
    /// In a word that all functions share.
    Shared(SymbolId),
}

/// The count of a kernel that reads it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    place: Place,
    /// Instructions of the block that the count does not have yet.
    pending: u32,
}

fn reads_clock(operand: &Operand) -> bool {
    match operand {
        Operand::Name(name) => NAMES.contains(&name.text.as_str()),
        Operand::Vector(items, _) | Operand::List(items, _) => items.iter().any(reads_clock),
        _ => false,
    }
}

/// Whether the kernel may read its count, and whether it may reach a function that calls itself.
pub(super) fn needs_clock<'m>(graph: &CallGraph<'m>, kernel: &'m Function) -> (bool, bool) {
    let mut reads = false;
    graph.each_reached(kernel, &mut |inst: &'m Instruction| reads |= inst.operands.iter().any(reads_clock));
    (reads, graph.reaches_recursion(&kernel.name.text))
}

impl Builder<'_> {
    /// Starts counting, in a kernel that asks for it.
    pub(super) fn start_clock(&mut self, recursive: bool) {
        let place = if recursive {
            Place::Shared(self.func.symbol(Symbol {
                name: "clock".to_owned(),
                space: SymbolSpace::Transfer,
                bytes: 4,
                align: 4,
                line: self.line,
            }))
        } else {
            Place::Register(self.func.vreg())
        };
        self.clock = Some(Clock { place, pending: 0 });
        self.set_clock(place, Value::ZERO);
    }

    /// Counts a PTX instruction.
    pub(super) fn tick(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.pending += 1;
        }
    }

    /// Adds what the current block has executed, at its end.
    pub(super) fn settle_clock(&mut self) {
        let Some(clock) = &mut self.clock else { return };
        let pending = std::mem::take(&mut clock.pending);
        let place = clock.place;
        if pending > 0 {
            let before = self.clock_at(place);
            let after = self.func.vreg();
            let sum = WordOp::Ternary(TernaryOp::Iadd, before, Value::Imm(pending), Value::ZERO);
            // In all threads: those whose guard fails have passed the instructions, too.
            self.push(Cond::TRUE, InstKind::Word(after, sum));
            self.set_clock(place, after.into());
        }
    }

    /// Forgets what the block of another function has executed.
    pub(super) fn restart_clock(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.pending = 0;
        }
    }

    /// The count so far.
    pub(super) fn read_clock(&mut self) -> Value {
        let Some(Clock { place, pending }) = self.clock else { return Value::ZERO };
        let before = self.clock_at(place);
        // A register of its own: the count goes on.
        let before = self.copy(before);
        self.add(before.into(), Value::Imm(pending))
    }

    fn clock_at(&mut self, place: Place) -> Value {
        match place {
            Place::Register(register) => register.into(),
            Place::Shared(word) => {
                let load = WordOp::Load(LoadWidth::B32, Address::of(Value::Symbol(word, 0)));
                let value = self.func.vreg();
                self.push(Cond::TRUE, InstKind::Word(value, load));
                value.into()
            }
        }
    }

    fn set_clock(&mut self, place: Place, value: Value) {
        let kind = match place {
            Place::Register(register) => InstKind::Word(register, WordOp::Move(value)),
            Place::Shared(word) => InstKind::Store(StoreWidth::B32, Address::of(Value::Symbol(word, 0)), value),
        };
        self.push(Cond::TRUE, kind);
    }
}

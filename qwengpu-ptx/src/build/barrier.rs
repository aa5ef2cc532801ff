//! Barriers of a CTA.
//!
//! The machine has one barrier, for all warps. A kernel whose barriers are all of that kind uses it as it is;
//! a reduction counts in a shared word between two of them.
//!
//! If one barrier of a kernel is for some of the threads, all its barriers are *counted*: each has a count of
//! arrivals and a generation in shared memory. The machine's barrier then only yields to the other warps: a
//! warp waits in a loop around it until the generation has changed. A barrier for all threads compares with
//! the threads that have not exited, so every exit is counted as well. Whatever comes between two yields is
//! not interrupted, since a warp runs until it waits or ends.
//!
//! A warp arrives as a whole: every barrier yields at least once, and a yield faults unless all lanes of the
//! warp that have not exited take part.

use std::collections::BTreeMap;

use qwengpu_isa::{Axis, Comparison, ConstIdx, UnaryOp};

use crate::ast::{Function, Instruction, Operand, ScalarType};
use crate::error::{PtxError, Result};
use crate::ir::{Address, Cond, InstKind, PredOp, Symbol, SymbolId, SymbolSpace, Terminator, Value, WordOp};

use super::Builder;
use super::call_graph::CallGraph;
use super::decode::Mods;
use super::operand::operands;
use super::special::WARP_LANES;

/// How many barriers a CTA has, by the manual.
const NUM_BARRIERS: u32 = 16;

/// Where the parts of a counted barrier stand in its entry.
const COUNT: u32 = 0;
const GENERATION: u32 = 4;
const SUM: u32 = 8;
const RESULT: u32 = 12;

/// What the barriers of a kernel need.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// Whether one of them is not for all threads.
    counted: bool,
    /// Whether one of them is for all threads.
    for_all: bool,
    reducing: bool,
    /// Whether one of them is a warp's.
    pub(super) of_warps: bool,
    /// The number of each barrier's entry; none if a barrier is named by a register.
    entries: Option<BTreeMap<u64, u32>>,
    table: Option<SymbolId>,
    exited: Option<SymbolId>,
    /// The sum of the reductions of barriers for all threads.
    sum: Option<SymbolId>,
}

/// How many threads a barrier waits for.
#[derive(Debug, Clone, Copy)]
enum Party {
    All,
    Threads(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Sync,
    Arrive,
    Popc,
    And,
    Or,
}

impl Action {
    fn is_reduction(self) -> bool {
        matches!(self, Action::Popc | Action::And | Action::Or)
    }
}

/// The operands of a barrier: its name, its number of threads, and what a reduction needs.
struct Parts<'m> {
    name: &'m Operand,
    threads: Option<&'m Operand>,
    destination: Option<&'m Operand>,
    source: Option<&'m Operand>,
}

fn parts<'m>(inst: &'m Instruction, reduces: bool) -> Option<Parts<'m>> {
    let none = Parts { name: inst.operands.first()?, threads: None, destination: None, source: None };
    match (reduces, &inst.operands[..]) {
        (false, [name]) => Some(Parts { name, ..none }),
        (false, [name, threads]) => Some(Parts { name, threads: Some(threads), ..none }),
        (true, [destination, name, source]) => {
            Some(Parts { name, threads: None, destination: Some(destination), source: Some(source) })
        }
        (true, [destination, name, threads, source]) => {
            Some(Parts { name, threads: Some(threads), destination: Some(destination), source: Some(source) })
        }
        _ => None,
    }
}

impl Barriers {
    /// Looks at the barriers that a kernel may reach.
    pub(super) fn new<'m>(graph: &CallGraph<'m>, kernel: &'m Function) -> Self {
        let mut barriers = Barriers { entries: Some(BTreeMap::new()), ..Barriers::default() };
        graph.each_reached(kernel, &mut |inst| {
            let opcode = &inst.opcode;
            let is_barrier = matches!(opcode.name.text.as_str(), "bar" | "barrier");
            barriers.of_warps |= is_barrier && opcode.has("warp");
            if !is_barrier || opcode.has("warp") || opcode.has("cluster") {
                return;
            }
            let reduces = opcode.has("red");
            let Some(parts) = parts(inst, reduces) else { return };
            barriers.reducing |= reduces;
            barriers.counted |= parts.threads.is_some();
            barriers.for_all |= parts.threads.is_none();
            match (parts.name, &mut barriers.entries) {
                (Operand::Int { value, .. }, Some(entries)) => {
                    let next = u32::try_from(entries.len()).unwrap_or(0);
                    entries.entry(*value).or_insert(next);
                }
                _ => barriers.entries = None,
            }
        });
        barriers
    }

    fn entry_bytes(&self) -> u32 {
        if self.reducing { 16 } else { 8 }
    }
}

impl<'m> Builder<'m> {
    pub(super) fn barrier(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        mods.flag("cta");
        mods.flag("aligned");
        if mods.flag("warp") {
            // A warp's lanes that reach this point together are already in step.
            mods.required("an operation", &[("sync", ())])?;
            operands(inst, &[1])?;
            return Ok(());
        }
        let action = if mods.flag("red") {
            let action =
                mods.required("an operation", &[("popc", Action::Popc), ("and", Action::And), ("or", Action::Or)])?;
            mods.any_type()?;
            action
        } else {
            mods.required("an operation", &[("sync", Action::Sync), ("arrive", Action::Arrive)])?
        };
        let counts: &[usize] = match action {
            Action::Sync => &[1, 2],
            Action::Arrive => &[2],
            Action::Popc | Action::And | Action::Or => &[3, 4],
        };
        operands(inst, counts)?;
        let Some(parts) = parts(inst, action.is_reduction()) else {
            return Err(mods.invalid("it reads `barrier name, threads`"));
        };
        let name = self.read_word(parts.name, ScalarType::U32)?;
        if name.imm().is_some_and(|name| name >= NUM_BARRIERS) {
            return Err(PtxError::invalid(parts.name.span(), parts.name.to_string(), "barriers are 0 to 15"));
        }
        let party = match parts.threads {
            None => Party::All,
            Some(operand) => {
                let threads = self.read_word(operand, ScalarType::U32)?;
                if threads.imm().is_some_and(|n| n == 0 || n % WARP_LANES != 0) {
                    return Err(PtxError::invalid(
                        operand.span(),
                        operand.to_string(),
                        "the number of threads is a positive multiple of the warp size, which is 4",
                    ));
                }
                Party::Threads(threads)
            }
        };
        // What is counted: the threads for which the predicate holds, or for `and` those for which it does not.
        let counted = match (action, parts.source) {
            (Action::And, Some(source)) => self.read_pred(source)?.not(),
            (_, Some(source)) => self.read_pred(source)?,
            (_, None) => Cond::FALSE,
        };
        let mut sum = Value::ZERO;
        self.unguarded(|s| {
            if s.barriers.counted {
                let entry = s.barrier_entry(name);
                sum = s.counted_barrier(action, entry, party, counted);
            } else if action.is_reduction() {
                sum = s.full_reduction(counted);
            } else {
                s.push(Cond::TRUE, InstKind::Barrier);
            }
        });
        match (action, parts.destination) {
            (Action::Popc, Some(destination)) => self.write(destination, ScalarType::U32, sum, Value::ZERO),
            (Action::And | Action::Or, Some(destination)) => {
                let relation = if action == Action::And { Comparison::Eq } else { Comparison::Ne };
                let holds = self.compare(relation, sum, Value::ZERO);
                let destination = self.pred_destination(destination)?;
                self.assign_preds(&[(destination, holds)]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn shared_words(&mut self, name: &str, bytes: u32) -> SymbolId {
        let line = self.line;
        self.func.symbol(Symbol {
            name: name.to_owned(),
            space: SymbolSpace::Shared,
            bytes: u64::from(bytes),
            align: 4,
            line,
        })
    }

    /// The address of a counted barrier's entry.
    fn barrier_entry(&mut self, name: Value) -> Address {
        let bytes = self.barriers.entry_bytes();
        let entries = self.barriers.entries.as_ref().map_or(NUM_BARRIERS as usize, BTreeMap::len);
        let entries = u32::try_from(entries).unwrap_or(NUM_BARRIERS);
        let table = match self.barriers.table {
            Some(table) => table,
            None => self.shared_words("barriers", entries * bytes),
        };
        self.barriers.table = Some(table);
        let start = Address::of(Value::Symbol(table, 0));
        match (name.imm(), &self.barriers.entries) {
            (Some(name), Some(known)) => start.plus(bytes * known.get(&u64::from(name)).copied().unwrap_or(0)),
            (Some(name), None) => start.plus(bytes * name),
            (None, _) => {
                let name = self.and(name, Value::Imm(NUM_BARRIERS - 1));
                let offset = self.shl(name, Value::Imm(bytes.trailing_zeros()));
                let at = self.add(offset, Value::Symbol(table, 0));
                Address::of(at)
            }
        }
    }

    fn load_b32(&mut self, address: Address) -> Value {
        self.word(WordOp::Load(qwengpu_isa::LoadWidth::B32, address))
    }

    /// A store by one lane of the warp.
    fn store_first(&mut self, first: Cond, address: Address, value: Value) {
        self.push(first, InstKind::Store(qwengpu_isa::StoreWidth::B32, address, value));
    }

    fn first_lane(&mut self) -> Cond {
        self.cond(PredOp::Lead(Value::ZERO))
    }

    fn count_lanes(&mut self, cond: Cond) -> Value {
        let lanes = self.word(WordOp::Vote(cond));
        self.unary(UnaryOp::Popc, lanes)
    }

    /// Adds to a word of shared memory on behalf of the warp.
    fn add_to(&mut self, first: Cond, address: Address, number: Value) {
        let before = self.load_b32(address);
        let after = self.add(before, number);
        self.store_first(first, address, after);
    }

    /// Counts in a shared word between two barriers; each warp takes its part out again behind the second.
    fn full_reduction(&mut self, counted: Cond) -> Value {
        let sum = match self.barriers.sum {
            Some(sum) => sum,
            None => self.shared_words("sum of a barrier", 4),
        };
        self.barriers.sum = Some(sum);
        let sum = Address::of(Value::Symbol(sum, 0));
        let first = self.first_lane();
        let number = self.count_lanes(counted);
        self.add_to(first, sum, number);
        self.push(Cond::TRUE, InstKind::Barrier);
        let total = self.load_b32(sum);
        self.push(Cond::TRUE, InstKind::Barrier);
        let negative = self.neg(number);
        self.add_to(first, sum, negative);
        total
    }

    fn counted_barrier(&mut self, action: Action, entry: Address, party: Party, counted: Cond) -> Value {
        if action == Action::Arrive {
            // Faults unless the warp arrives as a whole.
            self.push(Cond::TRUE, InstKind::Barrier);
        }
        let arrived = match party {
            Party::All => self.count_lanes(Cond::TRUE),
            Party::Threads(_) => Value::Imm(WARP_LANES),
        };
        let first = self.first_lane();
        let generation = self.load_b32(entry.plus(GENERATION));
        self.add_to(first, entry.plus(COUNT), arrived);
        if action.is_reduction() {
            let number = self.count_lanes(counted);
            self.add_to(first, entry.plus(SUM), number);
        }
        let wait = self.func.new_block();
        let after = self.func.new_block();
        match party {
            // Exits complete a barrier of all threads, so each round of the loop looks.
            Party::All => {
                self.end_block(Terminator::Jump(wait), wait);
                self.complete(first, entry, party, generation);
            }
            Party::Threads(_) => {
                self.complete(first, entry, party, generation);
                if action == Action::Arrive {
                    return Value::ZERO;
                }
                self.end_block(Terminator::Jump(wait), wait);
            }
        }
        self.push(Cond::TRUE, InstKind::Barrier);
        let now = self.load_b32(entry.plus(GENERATION));
        let again = self.compare(Comparison::Eq, now, generation);
        self.end_block(Terminator::Branch(again, wait, after), after);
        if action.is_reduction() { self.load_b32(entry.plus(RESULT)) } else { Value::ZERO }
    }

    /// Starts the next generation if all have arrived.
    fn complete(&mut self, first: Cond, entry: Address, party: Party, generation: Value) {
        let mut count = self.load_b32(entry.plus(COUNT));
        let wanted = match party {
            Party::Threads(threads) => threads,
            Party::All => {
                let exited = self.exited_threads();
                let exited = self.load_b32(exited);
                count = self.add(count, exited);
                let rows = self.mul(Value::Const(ConstIdx::ntid(Axis::Y)), Value::Const(ConstIdx::NTID_Z));
                self.mul(rows, Value::Const(ConstIdx::ntid(Axis::X)))
            }
        };
        let full = self.compare(Comparison::GeU, count, wanted);
        let full = self.both(full, first);
        self.store_first(full, entry.plus(COUNT), Value::ZERO);
        let next = self.add(generation, Value::ONE);
        self.store_first(full, entry.plus(GENERATION), next);
        if self.barriers.reducing {
            let sum = self.load_b32(entry.plus(SUM));
            self.store_first(full, entry.plus(RESULT), sum);
            self.store_first(full, entry.plus(SUM), Value::ZERO);
        }
    }

    fn exited_threads(&mut self) -> Address {
        let exited = match self.barriers.exited {
            Some(exited) => exited,
            None => self.shared_words("exited threads", 4),
        };
        self.barriers.exited = Some(exited);
        Address::of(Value::Symbol(exited, 0))
    }

    /// Counts the threads that the guard is about to end, if counted barriers must know.
    ///
    /// All threads do, with the others: a block of its own might stand behind the next barrier.
    pub(super) fn count_exits(&mut self) {
        if !(self.barriers.counted && self.barriers.for_all) {
            return;
        }
        let guard = std::mem::replace(&mut self.guard, Cond::TRUE);
        let exited = self.exited_threads();
        let first = self.first_lane();
        let lanes = self.count_lanes(guard);
        self.add_to(first, exited, lanes);
        self.guard = guard;
    }
}

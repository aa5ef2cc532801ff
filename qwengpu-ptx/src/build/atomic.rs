//! `atom` and `red`: a loop in which the threads that name one address take turns.
//!
//! `lead` picks, for every address, the lowest thread that still waits; the leaders read, compute and write,
//! and leave the loop. The others branch back. Losers run first because their program counter is smaller,
//! and nothing else of the CTA runs in between, since a warp keeps running until it waits or ends.

use qwengpu_isa::{BinaryOp, Comparison, Extremum, LoadWidth, Relation, Signedness, Table2};

use crate::ast::{Instruction, Operand, ScalarType, StateSpace, TypeClass};
use crate::error::Result;
use crate::ir::{Address, Cond, InstKind, PredOp, Terminator, Value, WordOp};

use super::Builder;
use super::decode::Mods;
use super::integer::signedness;
use super::operand::{Fit, operands};
use super::wide::Wide;

/// What an atomic does with the old value and its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Update {
    Add,
    Extremum(Extremum),
    Logic(Table2),
    Exchange,
    CompareAndSwap,
    Increment,
    Decrement,
}

const UPDATES: &[(&str, Update)] = &[
    ("add", Update::Add),
    ("min", Update::Extremum(Extremum::Min)),
    ("max", Update::Extremum(Extremum::Max)),
    ("and", Update::Logic(Table2::AND)),
    ("or", Update::Logic(Table2::OR)),
    ("xor", Update::Logic(Table2::XOR)),
    ("exch", Update::Exchange),
    ("cas", Update::CompareAndSwap),
    ("inc", Update::Increment),
    ("dec", Update::Decrement),
];

const SPACES: &[(&str, StateSpace)] = &[
    ("global", StateSpace::Global),
    ("shared", StateSpace::Shared),
    ("shared::cta", StateSpace::Shared),
    ("shared::cluster", StateSpace::Shared),
];

impl<'m> Builder<'m> {
    pub(super) fn atomic(&mut self, inst: &'m Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let returns = mods.opcode().name.text == "atom";
        mods.choice(SPACES);
        let update = mods.required("an operation", UPDATES)?;
        let ty = mods.any_type()?;
        mods.drop_hints();
        if ty.class() == TypeClass::Float {
            return Err(mods.float());
        }
        let swap = update == Update::CompareAndSwap;
        if !(matches!(ty.bits(), 32 | 64) || swap && ty.bits() == 16) {
            return Err(
                mods.unsupported("an atomic of another width than 32 or 64 bits; use `.b32` on the word around it")
            );
        }
        let ops = operands(inst, &[usize::from(returns) + 2 + usize::from(swap)])?;
        let (destination, ops): (Option<&Operand>, &[Operand]) =
            if returns { (Some(&ops[0]), &ops[1..]) } else { (None, ops) };
        let address = self.address(&ops[0])?;
        let operand = self.read(&ops[1], ty, Fit::Exact)?;
        let swap_in = if swap { self.read(&ops[2], ty, Fit::Exact)? } else { operand };
        // The source registers may include the destination's, which the loop must not touch.
        let mut old = (Value::ZERO, Value::ZERO);
        self.unguarded(|s| old = s.atomic_loop(update, ty, address, operand, swap_in));
        match destination {
            Some(destination) => self.write(destination, ty, old.0, old.1),
            None => Ok(()),
        }
    }

    pub(super) fn address_value(&mut self, address: Address) -> Value {
        let base = address.base.map_or(Value::ZERO, Value::from);
        let fixed = match address.symbol {
            Some(symbol) => Value::Symbol(symbol, address.offset),
            None => Value::Imm(address.offset),
        };
        self.add(base, fixed)
    }

    fn atomic_loop(&mut self, update: Update, ty: ScalarType, address: Address, operand: Wide, swap_in: Wide) -> Wide {
        let wide = ty.bits() == 64;
        let address = self.address_value(address);
        let old = (self.func.vreg(), self.func.vreg());
        self.push(Cond::TRUE, InstKind::Word(old.0, WordOp::Undefined));
        if wide {
            self.push(Cond::TRUE, InstKind::Word(old.1, WordOp::Undefined));
        }
        let body = self.func.new_block();
        let after = self.func.new_block();
        self.end_block(Terminator::Jump(body), body);
        let leads = self.cond(PredOp::Lead(address));
        self.guard = leads;
        self.guard_pure = true;
        let memory = Address::of(address);
        let load = |s: &mut Self, dst, at| {
            let width = if ty.bits() == 16 { LoadWidth::U16 } else { LoadWidth::B32 };
            let op = WordOp::Load(width, at);
            s.push(s.guard, InstKind::Word(dst, op));
        };
        load(self, old.0, memory);
        if wide {
            load(self, old.1, memory.plus(4));
        }
        let before: Wide = (old.0.into(), if wide { old.1.into() } else { Value::ZERO });
        let stored = if update == Update::CompareAndSwap {
            // False for threads that do not lead.
            self.guard = Cond::TRUE;
            let equal = if wide {
                self.compare_wide(Relation::Eq, Signedness::Unsigned, before, operand)
            } else {
                self.compare(Comparison::Eq, before.0, operand.0)
            };
            self.guard = self.both(equal, leads);
            swap_in
        } else {
            self.updated(update, ty, before, operand)
        };
        self.store_word(ty, memory, stored.0);
        if wide {
            self.store_word(ty, memory.plus(4), stored.1);
        }
        self.guard = Cond::TRUE;
        self.guard_pure = false;
        self.end_block(Terminator::Branch(leads, after, body), after);
        before
    }

    fn updated(&mut self, update: Update, ty: ScalarType, old: Wide, operand: Wide) -> Wide {
        let wide = ty.bits() == 64;
        let zero = Value::ZERO;
        match update {
            Update::Add if wide => self.add_wide(false, old, operand),
            Update::Add => (self.add(old.0, operand.0), zero),
            Update::Logic(table) => {
                let high = if wide { self.logic(table, old.1, operand.1) } else { zero };
                (self.logic(table, old.0, operand.0), high)
            }
            Update::Extremum(extremum) if wide => {
                let relation = if extremum == Extremum::Min { Relation::Lt } else { Relation::Gt };
                let keep = self.compare_wide(relation, signedness(ty), old, operand);
                (self.select(keep, old.0, operand.0), self.select(keep, old.1, operand.1))
            }
            Update::Extremum(extremum) => {
                (self.binary(BinaryOp::Imnmx(extremum, signedness(ty)), old.0, operand.0), zero)
            }
            Update::Increment => {
                let wraps = self.compare(Comparison::GeU, old.0, operand.0);
                let next = self.add(old.0, Value::ONE);
                (self.select(wraps, zero, next), zero)
            }
            Update::Decrement => {
                let empty = self.compare(Comparison::Eq, old.0, zero);
                let beyond = self.compare(Comparison::GtU, old.0, operand.0);
                let wraps = self.either(empty, beyond);
                let next = self.add(old.0, Value::Imm(u32::MAX));
                (self.select(wraps, operand.0, next), zero)
            }
            Update::Exchange | Update::CompareAndSwap => operand,
        }
    }
}

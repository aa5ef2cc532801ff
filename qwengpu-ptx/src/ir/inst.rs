//! Instructions.

use qwengpu_isa::{
    BinaryOp, Comparison, DivisionPart, LoadWidth, ShuffleMode, Signedness, SpecialReg, StoreWidth, Table2, Table3,
    TernaryOp, TrapReason, UnaryOp,
};

use smallvec::SmallVec;

use super::entities::{RoutineId, SymbolId, VPred, VReg};
use super::value::{Address, Cond, Value};

/// The operands of one instruction that are of a kind; there are rarely more than three.
pub(crate) type Operands<T> = SmallVec<[T; 3]>;

/// An operation that yields a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WordOp {
    /// The value.
    Move(Value),
    /// An operation on three values.
    Ternary(TernaryOp, Value, Value, Value),
    /// An operation on two values.
    Binary(BinaryOp, Value, Value),
    /// An operation on one value.
    Unary(UnaryOp, Value),
    /// A bitwise function of three values.
    Logic3(Table3, Value, Value, Value),
    /// The first value if the condition holds, else the second.
    Select(Cond, Value, Value),
    /// The first value as another lane has it; the second says which lane.
    Shuffle(ShuffleMode, Value, Value),
    /// The exec lanes in which the condition holds, as bits.
    Vote(Cond),
    /// A special register.
    Special(SpecialReg),
    /// Quotient or remainder of `value & 31`, or of the linear thread id, by a number below 64.
    SmallDivide(DivisionPart, Option<Value>, Value),
    /// Quotient or remainder of any two words; `expand_macros` makes a loop or a product of it.
    Divide(Signedness, DivisionPart, Value, Value),
    /// The high word of a product; `expand_macros` makes 16-bit products of it.
    MulHigh(Signedness, Value, Value),
    /// Memory at an address.
    Load(LoadWidth, Address),
    /// No particular value; takes no instruction.
    Undefined,
}

/// An operation that yields a predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PredOp {
    /// The comparison and the condition.
    Compare(Comparison, Value, Value, Cond),
    /// A function of two conditions.
    Logic(Table2, Cond, Cond),
    /// Whether the thread is the lowest exec lane with its value.
    Lead(Value),
    /// No particular truth value; takes no instruction.
    Undefined,
}

impl PredOp {
    /// A copy of a condition.
    pub(crate) fn copy(cond: Cond) -> PredOp {
        PredOp::Logic(Table2::COPY, Cond::TRUE, cond)
    }

    /// The condition copied, if it is a copy.
    pub(crate) fn as_copy(&self) -> Option<Cond> {
        match self {
            PredOp::Logic(Table2::COPY, Cond::Fixed(true), cond) => Some(*cond),
            PredOp::Logic(..) | PredOp::Compare(..) | PredOp::Lead(_) | PredOp::Undefined => None,
        }
    }
}

/// What an instruction does in the threads whose guard holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InstKind {
    /// Writes a register.
    Word(VReg, WordOp),
    /// Writes a predicate.
    Pred(VPred, PredOp),
    /// Writes memory.
    Store(StoreWidth, Address, Value),
    /// Waits for the CTA; its guard is always true.
    Barrier,
    /// Faults; its guard is always true.
    Trap(TrapReason),
    /// Runs a routine; its guard is always true. Gone once routines are linked.
    Call(RoutineId),
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inst {
    /// Which threads it affects.
    pub(crate) guard: Cond,
    pub(crate) kind: InstKind,
    /// The PTX line it comes from; 0 for none.
    pub(crate) line: u32,
}

impl WordOp {
    /// The operands; addresses are not among them.
    fn values(&self) -> Operands<Value> {
        match self {
            WordOp::Move(a) | WordOp::Unary(_, a) => [*a].into_iter().collect(),
            WordOp::Ternary(_, a, b, c) | WordOp::Logic3(_, a, b, c) => [*a, *b, *c].into_iter().collect(),
            WordOp::Binary(_, a, b)
            | WordOp::Select(_, a, b)
            | WordOp::Shuffle(_, a, b)
            | WordOp::Divide(_, _, a, b)
            | WordOp::MulHigh(_, a, b) => [*a, *b].into_iter().collect(),
            WordOp::SmallDivide(_, a, b) => a.iter().copied().chain([*b]).collect(),
            WordOp::Vote(_) | WordOp::Special(_) | WordOp::Load(..) | WordOp::Undefined => Operands::new(),
        }
    }

    /// Calls `visit` on every operand; addresses are not visited.
    fn each_value(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        match self {
            WordOp::Move(a) | WordOp::Unary(_, a) => visit(a),
            WordOp::Ternary(_, a, b, c) | WordOp::Logic3(_, a, b, c) => {
                visit(a);
                visit(b);
                visit(c);
            }
            WordOp::Binary(_, a, b)
            | WordOp::Select(_, a, b)
            | WordOp::Shuffle(_, a, b)
            | WordOp::Divide(_, _, a, b)
            | WordOp::MulHigh(_, a, b) => {
                visit(a);
                visit(b);
            }
            WordOp::SmallDivide(_, a, b) => {
                if let Some(a) = a {
                    visit(a);
                }
                visit(b);
            }
            WordOp::Vote(_) | WordOp::Special(_) | WordOp::Load(..) | WordOp::Undefined => {}
        }
    }

    /// Whether the result depends on nothing but the operands and the thread.
    pub(crate) fn is_pure(&self) -> bool {
        match self {
            WordOp::Move(_)
            | WordOp::Ternary(..)
            | WordOp::Binary(..)
            | WordOp::Unary(..)
            | WordOp::Logic3(..)
            | WordOp::Select(..)
            | WordOp::Special(_)
            | WordOp::SmallDivide(..)
            | WordOp::Divide(..)
            | WordOp::MulHigh(..) => true,
            WordOp::Shuffle(..) | WordOp::Vote(_) | WordOp::Load(..) | WordOp::Undefined => false,
        }
    }

    /// The condition read, if any.
    pub(crate) fn cond(&self) -> Option<Cond> {
        match self {
            WordOp::Select(cond, ..) | WordOp::Vote(cond) => Some(*cond),
            WordOp::Move(_)
            | WordOp::Ternary(..)
            | WordOp::Binary(..)
            | WordOp::Unary(..)
            | WordOp::Logic3(..)
            | WordOp::Special(_)
            | WordOp::SmallDivide(..)
            | WordOp::Divide(..)
            | WordOp::MulHigh(..)
            | WordOp::Shuffle(..)
            | WordOp::Load(..)
            | WordOp::Undefined => None,
        }
    }

    /// The registers read.
    pub(crate) fn regs(&self) -> Operands<VReg> {
        match self {
            WordOp::Load(_, address) => address.base.into_iter().chain(address.index).collect(),
            op => op.values().into_iter().filter_map(Value::reg).collect(),
        }
    }
}

impl Inst {
    /// Calls `visit` on every value operand; the registers of addresses are not visited.
    pub(crate) fn each_value(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        match &mut self.kind {
            InstKind::Word(_, op) => op.each_value(visit),
            InstKind::Pred(_, PredOp::Compare(_, a, b, _)) => {
                visit(a);
                visit(b);
            }
            InstKind::Pred(_, PredOp::Lead(a)) => visit(a),
            InstKind::Store(_, _, value) => visit(value),
            InstKind::Pred(_, PredOp::Logic(..) | PredOp::Undefined)
            | InstKind::Barrier
            | InstKind::Trap(_)
            | InstKind::Call(_) => {}
        }
    }

    /// Calls `visit` on every condition, the guard included.
    pub(crate) fn each_cond(&mut self, visit: &mut dyn FnMut(&mut Cond)) {
        visit(&mut self.guard);
        match &mut self.kind {
            InstKind::Word(_, WordOp::Select(cond, ..) | WordOp::Vote(cond))
            | InstKind::Pred(_, PredOp::Compare(_, _, _, cond)) => visit(cond),
            InstKind::Pred(_, PredOp::Logic(_, p, q)) => {
                visit(p);
                visit(q);
            }
            InstKind::Word(..)
            | InstKind::Pred(_, PredOp::Lead(_) | PredOp::Undefined)
            | InstKind::Store(..)
            | InstKind::Barrier
            | InstKind::Trap(_)
            | InstKind::Call(_) => {}
        }
    }

    pub(crate) fn address(&self) -> Option<Address> {
        match &self.kind {
            InstKind::Word(_, WordOp::Load(_, address)) | InstKind::Store(_, address, _) => Some(*address),
            InstKind::Word(..) | InstKind::Pred(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => None,
        }
    }

    pub(crate) fn address_mut(&mut self) -> Option<&mut Address> {
        match &mut self.kind {
            InstKind::Word(_, WordOp::Load(_, address)) | InstKind::Store(_, address, _) => Some(address),
            InstKind::Word(..) | InstKind::Pred(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => None,
        }
    }

    /// The registers read, addresses included; one entry for each operand.
    pub(crate) fn regs_read(&self) -> Operands<VReg> {
        match &self.kind {
            InstKind::Word(_, op) => op.regs(),
            InstKind::Pred(_, PredOp::Compare(_, a, b, _)) => a.reg().into_iter().chain(b.reg()).collect(),
            InstKind::Pred(_, PredOp::Lead(a)) => a.reg().into_iter().collect(),
            InstKind::Store(_, address, value) => {
                let address = address.base.into_iter().chain(address.index);
                address.chain(value.reg()).collect()
            }
            InstKind::Pred(_, PredOp::Logic(..) | PredOp::Undefined)
            | InstKind::Barrier
            | InstKind::Trap(_)
            | InstKind::Call(_) => Operands::new(),
        }
    }

    /// The predicates read, the guard's included; one entry for each operand.
    pub(crate) fn preds_read(&self) -> Operands<VPred> {
        let mut preds: Operands<VPred> = self.guard.pred().into_iter().collect();
        match &self.kind {
            InstKind::Word(_, op) => preds.extend(op.cond().and_then(Cond::pred)),
            InstKind::Pred(_, PredOp::Compare(_, _, _, cond)) => preds.extend(cond.pred()),
            InstKind::Pred(_, PredOp::Logic(_, p, q)) => {
                preds.extend(p.pred());
                preds.extend(q.pred());
            }
            InstKind::Pred(_, PredOp::Lead(_) | PredOp::Undefined)
            | InstKind::Store(..)
            | InstKind::Barrier
            | InstKind::Trap(_)
            | InstKind::Call(_) => {}
        }
        preds
    }

    pub(crate) fn reg_written(&self) -> Option<VReg> {
        match self.kind {
            InstKind::Word(dst, _) => Some(dst),
            InstKind::Pred(..) | InstKind::Store(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => {
                None
            }
        }
    }

    pub(crate) fn pred_written(&self) -> Option<VPred> {
        match self.kind {
            InstKind::Pred(dst, _) => Some(dst),
            InstKind::Word(..) | InstKind::Store(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => {
                None
            }
        }
    }

    /// The symbols whose address the instruction uses.
    pub(crate) fn symbols(&self) -> Operands<SymbolId> {
        let of_value = |value: Value| match value {
            Value::Symbol(symbol, _) => Some(symbol),
            Value::Reg(_) | Value::Imm(_) | Value::Const(_) => None,
        };
        let values: Operands<Value> = match &self.kind {
            InstKind::Word(_, op) => op.values(),
            InstKind::Pred(_, PredOp::Compare(_, a, b, _)) => [*a, *b].into_iter().collect(),
            InstKind::Pred(_, PredOp::Lead(a)) => [*a].into_iter().collect(),
            InstKind::Store(_, _, value) => [*value].into_iter().collect(),
            InstKind::Pred(_, PredOp::Logic(..) | PredOp::Undefined)
            | InstKind::Barrier
            | InstKind::Trap(_)
            | InstKind::Call(_) => Operands::new(),
        };
        let addressed = self.address().and_then(|address| address.symbol);
        addressed.into_iter().chain(values.into_iter().filter_map(of_value)).collect()
    }

    /// Whether it does more than write its destination.
    pub(crate) fn has_effect(&self) -> bool {
        match self.kind {
            InstKind::Word(..) | InstKind::Pred(..) => false,
            InstKind::Store(..) | InstKind::Barrier | InstKind::Trap(_) | InstKind::Call(_) => true,
        }
    }

    /// Whether it only says that its destination holds nothing yet.
    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self.kind, InstKind::Word(_, WordOp::Undefined) | InstKind::Pred(_, PredOp::Undefined))
    }

    /// The word operation, if the instruction writes all threads.
    pub(crate) fn unguarded_op(&self) -> Option<&WordOp> {
        match &self.kind {
            InstKind::Word(_, op) if self.guard == Cond::TRUE => Some(op),
            InstKind::Word(..)
            | InstKind::Pred(..)
            | InstKind::Store(..)
            | InstKind::Barrier
            | InstKind::Trap(_)
            | InstKind::Call(_) => None,
        }
    }
}

//! The typed control-flow IR between PTX and machine instructions.
//!
//! A [`Function`] is a list of basic blocks. Values are 32-bit words ([`VReg`]) and predicates ([`VPred`]);
//! a 64-bit PTX register is a pair of words from the start, so that an unused high half is merely dead code.
//! The IR is not SSA: a register may be written many times, and a guarded instruction writes only the threads
//! whose guard holds. Operations are those of the machine, but any operand may be a [`Value`]; the pass
//! `legalize_operands` moves what does not fit an operand field into registers.

mod entities;
mod function;
mod inst;
mod print;
mod value;
mod verify;

pub(crate) use entities::{BlockId, InstRef, RoutineId, SymbolId, VPred, VReg};
pub(crate) use function::{Function, Symbol, SymbolSpace, Terminator};
pub(crate) use inst::{Inst, InstKind, Operands, PredOp, WordOp};
pub(crate) use value::{Address, Cond, Value};
pub(crate) use verify::{Strictness, verify};

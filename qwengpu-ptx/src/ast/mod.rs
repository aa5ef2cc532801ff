//! The syntax of a PTX module: what was written, without what it means.

mod directive;
mod inst;
mod print;
mod types;

pub use directive::{
    Body, BranchTargets, Extent, Function, FunctionKind, InitialValue, Item, Linkage, Module, PointerAttribute,
    Statement, Tuning, Variable,
};
pub use inst::{AddressBase, Guard, Instruction, Modifier, Name, Opcode, Operand};
pub use types::{ScalarType, StateSpace, TypeClass};

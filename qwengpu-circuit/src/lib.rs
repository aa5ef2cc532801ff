//! A compiler from machines, written as netlists of small-integer operations, to the weights of Qwen3.5 layers.
//!
//! It knows nothing of any particular machine: a design is a [`Netlist`] made with a [`Builder`].
#![forbid(unsafe_code)]

mod builder;
mod compile;
mod error;
mod eval;
mod geometry;
mod ir;
mod linear;
mod lower;
mod margin;
mod neurons;
mod place;
mod print;
mod report;
mod schedule;
mod tensors;
mod units;
mod verify;
mod walk;

pub use builder::{BIT, Builder, StateDescription};
pub use compile::{CompileOptions, Compiled, compile};
pub use error::CompileError;
pub use eval::{EvalError, Evaluator};
pub use geometry::{ConstantPlan, Geometry, GeometryError};
pub use ir::{
    Enumeration, Exclusive, Level, Netlist, Operation, Product, ReadPort, RowChoice, Signal, SignalInfo, State,
    StepKind, Token,
};
pub use linear::Linear;
pub use margin::{Dtype, DtypeMargins, MarginError, MarginReport, noise_bounds, prove, prove_all};
pub use place::{LayerPlacement, NeuronRole, Occupant, PlacedHead, PlacedNeuron, Placement};
pub use report::{CompileReport, LayerUsage};
pub use schedule::{LayerPlan, Schedule};
pub use tensors::{CircuitTensors, LayerTensors, STORED_BIT, SparseMatrix, StateLocation};
pub use units::Unit;
pub use verify::{Violation, verify};

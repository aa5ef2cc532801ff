//! A compiler from machines, written as netlists of small-integer operations, to the weights of Qwen3.5 layers.
//!
//! It knows nothing of any particular machine: a design is a [`Netlist`] made with a [`Builder`]. [`compile`] gives it
//! layers, channels, neurons, heads and weights; [`prove`] shows that the weights compute what the netlist says,
//! exactly, in f32 and in bf16; an [`Evaluator`] runs the netlist on plain integers.
//!
//! ```
//! use qwengpu_circuit::{Builder, CompileOptions, Dtype, Evaluator, Geometry, Token, compile, prove};
//!
//! // Two input bits; the answer is their conjunction.
//! let mut builder = Builder::new();
//! let bits = builder.input_bits("x", 2);
//! let both = builder.and("both", &bits);
//! for number in 0..4 {
//!     let inputs = vec![(bits[0], number & 1), (bits[1], number >> 1)];
//!     builder.token(Token { text: format!("ask {number}"), inputs, code: vec![] });
//! }
//! let yes = builder.token(Token { text: "yes".into(), inputs: vec![], code: vec![(both, 1)] });
//! let netlist = builder.finish();
//!
//! let compiled = compile(&netlist, &Geometry::new(1024, 64, 1, 4), &CompileOptions::default())?;
//! assert_eq!(compiled.report.layers.len(), 1);
//! let report = prove(&netlist, &compiled, &[Dtype::F32, Dtype::Bf16])?;
//! assert!(report.dtypes.iter().all(|margins| margins.logit_gap >= 32.0));
//!
//! let mut evaluator = Evaluator::new(&netlist);
//! evaluator.run(3)?;
//! assert_eq!(evaluator.next(3)?, yes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Stages
//!
//! | stage | what it does |
//! |---|---|
//! | [`verify`] | checks the netlist's invariants, C01 to C12 |
//! | neurons | operations as distinct MLP neurons |
//! | schedule | a layer for each operation, within neurons, heads and channels |
//! | place | channels with their liveness, neurons, heads, rows |
//! | lower | [`CircuitTensors`] |
//! | [`prove`] | ranges, groups, exactness, noise; see [`MarginError`] for what it refuses |
//!
//! Every stage is a pure function, and the same netlist gives the same tensors.
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
pub use tensors::{CircuitTensors, LayerTensors, NO_DECAY, STORED_BIT, SparseMatrix, StateLocation};
pub use units::Unit;
pub use verify::{Violation, verify};

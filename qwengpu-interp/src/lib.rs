//! The reference machine of qwenGPU: runs programs and speaks their exact record stream.
//!
//! The compiled model and this interpreter must speak the same records; the interpreter is the specification.
//!
//! ```
//! use qwengpu_interp::{Machine, Outcome, run_stream};
//! use qwengpu_isa::{Dim3, LaunchConfig, MachineSpec, assemble, prompt};
//!
//! let spec = MachineSpec::seed();
//! let program = assemble("s2r r1, tid\n iadd r2, r1, c[1]\n st.b32 [r1*4 + c[0]], r2\n exit")?;
//! let launch = LaunchConfig::new(Dim3::linear(1), Dim3::linear(4)).with_parameters(&[16, 100]);
//!
//! let mut machine = Machine::new(spec, &program)?;
//! let run = machine.launch(&launch, 1_000)?;
//! assert_eq!(run.outcome, Outcome::Finished);
//! assert_eq!(machine.global()[4..8], [100, 101, 102, 103]);
//!
//! // From tokens alone, the same is spoken.
//! let again = run_stream(spec, &prompt(&spec, &program, &launch)?, 1_000)?;
//! assert_eq!(again.records, run.records);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! - [`Machine`]: the state; [`Machine::launch`] runs a kernel, [`Machine::begin`] does so event by event.
//! - [`Execution`]: an iterator over [`Event`]s, which carry records and what a person wants to see.
//! - [`run_stream`], [`Machine::run_prompt`]: launches that are given as records.
//! - [`alu`]: the arithmetic of one lane, as pure functions.
//!
//! # Invariants
//!
//! - Faults and step limits are values, not errors; no program and no prompt makes the interpreter panic.
//! - The records of an execution depend on the state of the machine and the launch only.
//! - An instruction that faults changes nothing.
#![forbid(unsafe_code)]

pub mod alu;
mod machine;
mod memory;
mod records;
mod scheduler;
mod step;
mod stream;
mod trace;
mod warp;

pub use machine::{Machine, MachineError};
pub use scheduler::Execution;
pub use stream::{StreamError, StreamErrorKind, run_stream};
pub use trace::{Counts, Event, Fault, InstructionTrace, LaneTrace, Outcome, Run};

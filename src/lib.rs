//! qwenGPU: a SIMT GPU compiled into the weights of Qwen3.5 layers.
//!
//! A CUDA kernel becomes PTX, PTX a program of the machine, the program a prompt of tokens. The forward pass of ordinary
//! Gated DeltaNet layers, whose weights are compiled and not trained, then speaks the execution record by record under
//! greedy decoding, and the result is read from the recurrent state. The host tokenises, decodes and reads; it computes
//! nothing of a kernel.
//!
//! ```
//! use qwengpu::{Argument, Dim3, EngineKind, Gpu, Kernel, Launch, Outcome};
//!
//! # fn main() -> Result<(), qwengpu::Error> {
//! let mut gpu = Gpu::new(EngineKind::Interp)?; // EngineKind::Sparse runs the compiled weights
//! let kernel = Kernel::from_ptx(gpu.spec(), include_str!("../kernels/collatz.ptx"), None)?;
//! let launch = Launch::new(Dim3::linear(1), Dim3::linear(4))
//!     .argument(Argument::buffer(&[1_u32, 7, 27, 9]))
//!     .argument(Argument::zeros::<i32>(4));
//! let result = gpu.launch(&kernel, &launch)?;
//! assert_eq!(result.outcome, Outcome::Finished);
//! assert_eq!(result.buffers[1].to_vec::<i32>(), Some(vec![0, 16, 111, 19]));
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! - [`Gpu`]: a machine in an engine; [`EngineKind`]: the four engines.
//! - [`Kernel`]: from PTX, CUDA ([`CudaCompiler`]) or assembly text.
//! - [`Launch`], [`Argument`], [`LaunchResult`]: what goes in and comes out; [`Gpu::launch_batch`] runs many at once.
//! - [`Narrator`]: records as text for people.
//! - [`language`]: expressions and calls as text, and their results.
//! - [`generate`]: text from a merged model, with what its GPU computes in the middle.
//! - [`merge`]: a machine for a base model, for [`qwengpu_weights::merge`].
//! - [`suite`]: kernels with launches and expected results.
//! - The crates below it: [`qwengpu_isa`], [`qwengpu_interp`], [`qwengpu_ptx`], [`qwengpu_circuit`],
//!   [`qwengpu_machine`], [`qwengpu_weights`], [`qwengpu_model`].
//!
//! # Invariants
//!
//! - Every engine speaks the same records for the same launch.
//! - A fault of a kernel is an [`Outcome`]; an [`Error`] is never the kernel's doing.
//! - Results come from the engine's memory alone, never from the interpreter beside it.
#![forbid(unsafe_code)]

mod argument;
mod batch;
mod cuda;
mod driver;
mod engine;
mod error;
pub mod generate;
mod gpu;
mod kernel;
pub mod language;
mod launch;
mod layout;
mod memory;
pub mod merge;
mod running;
pub mod suite;
mod trace;
pub mod weights;

pub use argument::{Argument, ArgumentError, Buffer, Element, ElementType, Scalar};
pub use batch::BatchEvent;
pub use cuda::{CudaCompiler, CudaError};
pub use engine::EngineKind;
pub use error::{Error, KernelError, LaunchError, MachineError, RunError};
pub use gpu::{Gpu, GpuOptions, SavedMachine, Speech, launch_prompt};
pub use kernel::Kernel;
pub use launch::{Check, Draft, Launch, LaunchResult, Outcome, Start};
pub use qwengpu_isa::{Dim3, MachinePreset, MachineSpec, Record};
pub use qwengpu_model::Precision;
pub use trace::{Fault, Narrator};

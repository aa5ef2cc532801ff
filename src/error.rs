//! What can go wrong, by stage: getting a kernel, making a machine, launching, running.

use std::path::PathBuf;

use qwengpu_isa::Record;
use thiserror::Error;

use crate::argument::ArgumentError;
use crate::cuda::CudaError;

/// Any failure of the library.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel's source cannot be used.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The machine cannot be made.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The launch is refused before it starts.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The engine stopped in the middle.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A source that gives no kernel.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KernelError {
    /// PTX that is invalid, not supported, or does not fit the machine.
    #[error("{source}")]
    Ptx {
        /// What is wrong.
        source: qwengpu_ptx::PtxError,
        /// The PTX text, so that a caller can show the place.
        text: String,
    },
    /// CUDA source that the compiler refuses, or no compiler.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// Assembly text with errors.
    #[error("{}", errors.errors.iter().map(|error| error.render(text)).collect::<Vec<_>>().join("\n"))]
    Assembly {
        /// What is wrong.
        errors: qwengpu_isa::AsmErrors,
        /// The assembly text.
        text: String,
    },
    /// A program that the machine cannot run.
    #[error("the program does not fit the machine: {0}")]
    Verify(#[from] qwengpu_isa::VerifyErrors),
}

/// A machine that cannot be made or loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MachineError {
    /// Sizes that no netlist exists for.
    #[error("building the machine: {0}")]
    Netlist(#[from] qwengpu_machine::MachineError),
    /// The netlist does not compile.
    #[error("compiling the machine: {0}")]
    Compile(#[from] qwengpu_circuit::CompileError),
    /// A hidden size in which a base and a machine have no room.
    #[error(
        "hidden size {hidden} does not work: {reason}{}",
        if working.is_empty() { String::new() } else { format!("; these sizes work: {}", list(working)) }
    )]
    Hidden {
        /// The size.
        hidden: usize,
        /// Why.
        reason: String,
        /// Sizes that were tried and work.
        working: Vec<usize>,
    },
    /// Weights that the model refuses.
    #[error("loading the weights: {}", with_sources(source))]
    Model {
        /// What is wrong.
        #[from]
        source: qwengpu_model::Error,
    },
    /// A checkpoint directory that is none, or damaged.
    #[error("{}; `qwengpu emit --out DIR` writes a checkpoint", with_sources(source))]
    Manifest {
        /// What is wrong.
        #[from]
        source: qwengpu_weights::ManifestError,
    },
    /// A checkpoint of no machine that is known.
    #[error("{}: {reason}", path.display())]
    Checkpoint {
        /// The directory.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
}

/// A launch that is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A launch wants the memory of the one before, and there is none.
    #[error("there is no memory to keep: the launch before did not finish, or there was none")]
    NothingKept,
    /// A launch of a batch goes on from another.
    #[error("a launch of a batch finds a machine that is switched on for it: start it fresh, or launch it by itself")]
    BatchStart,
    /// A launch of a batch has a draft.
    #[error("a launch of a batch is spoken record by record: leave its draft out, or launch it by itself")]
    BatchDraft,
    /// Too few or too many arguments.
    #[error("kernel {kernel} takes {expected} arguments, got {got}: give {}", if forms.is_empty() { "none" } else { forms })]
    ArgumentCount {
        /// The kernel's name.
        kernel: String,
        /// Number of its parameters.
        expected: usize,
        /// Number of arguments.
        got: usize,
        /// How the arguments are written.
        forms: String,
    },
    /// An argument of another kind or size than its parameter.
    #[error("argument {number} ({name}) is {got}, expected {expected}")]
    ArgumentKind {
        /// Position, from 1 on.
        number: usize,
        /// Name of the parameter.
        name: String,
        /// How the argument is written.
        expected: String,
        /// What was given.
        got: String,
    },
    /// The buffers are larger than global memory.
    #[error(
        "the buffers need {need} words of global memory, {limit} are free{}: \
         use smaller buffers or narrower types",
        if *reserved == 0 { String::new() } else { format!(" ({reserved} hold the kernel's own variables)") }
    )]
    GlobalMemory {
        /// Words needed.
        need: usize,
        /// Words there are.
        limit: usize,
        /// Words that the kernel's own data take.
        reserved: usize,
    },
    /// Static and dynamic shared memory are more than a CTA has.
    #[error("the kernel needs {need} bytes of shared memory ({dynamic} of them dynamic), a CTA has {limit}")]
    SharedMemory {
        /// Bytes needed.
        need: u64,
        /// Bytes asked for at the launch.
        dynamic: u32,
        /// Bytes there are.
        limit: u32,
    },
    /// Text or values that are no argument.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A limit of the machine.
    #[error(transparent)]
    Machine(#[from] qwengpu_isa::LaunchError),
}

/// An engine that stopped in the middle of a launch.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// What was saved is not this engine's.
    #[error("what was saved is of a machine in another engine")]
    OtherEngine,
    /// The machine was never switched on.
    #[error("the machine is off: launch something first")]
    Off,
    /// The model spoke a token that is no record.
    #[error("after {position} records the model spoke token {token}, which is no record of the machine")]
    ForeignToken {
        /// The token's id.
        token: u32,
        /// Number of records spoken before.
        position: usize,
    },
    /// The netlist broke one of its declarations.
    #[error("the netlist broke a declaration: {0}")]
    Netlist(#[from] qwengpu_circuit::EvalError),
    /// The model failed.
    #[error("the model failed: {}", with_sources(source))]
    Model {
        /// How.
        #[from]
        source: qwengpu_model::Error,
    },
    /// A step of a batch failed, and with it every launch that took part.
    #[error("the batch broke down: {reason}")]
    Batch {
        /// How.
        reason: String,
    },
    /// The interpreter refused the prompt.
    #[error("the interpreter refused the prompt: {0}")]
    Prompt(#[from] qwengpu_interp::StreamError),
    /// The machine has no such record, so it cannot be heard.
    #[error("the machine has no record {0}")]
    NoRecord(Record),
    /// An element of the recurrent state that is no bit.
    #[error("word {word} of global memory, bit {bit}: the recurrent state holds {value}, expected 0 or {one}")]
    NoBit {
        /// The word.
        word: usize,
        /// The bit.
        bit: usize,
        /// What the state holds.
        value: f32,
        /// What a set bit is.
        one: f32,
    },
    /// The machine has no state of that name.
    #[error("the machine keeps no state {0:?}")]
    NoState(String),
}

fn list(sizes: &[usize]) -> String {
    sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// An error's message with those of its causes.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let message = source.to_string();
        if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
        next = source.source();
    }
    text
}

//! The GPU: a machine in an engine, and the host driver that launches kernels on it.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use qwengpu_circuit::{CompileReport, Compiled};
use qwengpu_interp::Machine as Interpreter;
use qwengpu_isa::{LaunchConfig, MachineSpec, Record, prompt};
use qwengpu_machine::Machine;
use qwengpu_model::Precision;

use crate::engine::{Engine, EngineKind, InterpEngine, ModelEngine, ModelSource, NetlistEngine};
use crate::error::{Error, LaunchError, RunError};
use crate::kernel::Kernel;
use crate::launch::{Check, Launch, LaunchResult, Outcome};
use crate::layout::Layout;
use crate::trace::{Fault, Position};
use crate::weights;

/// How a GPU is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuOptions {
    /// The sizes of the machine.
    pub spec: MachineSpec,
    /// What runs it.
    pub engine: EngineKind,
    /// Where weights and activations are rounded, in the engines that have them.
    pub precision: Precision,
    /// A directory with an emitted checkpoint to run instead of compiling the machine.
    pub checkpoint: Option<PathBuf>,
}

impl GpuOptions {
    /// The seed machine in an engine, in f32, compiled in memory.
    #[must_use]
    pub const fn new(engine: EngineKind) -> Self {
        Self { spec: MachineSpec::seed(), engine, precision: Precision::F32, checkpoint: None }
    }
}

/// A machine in an engine.
///
/// ```
/// use qwengpu::{Argument, Dim3, EngineKind, Gpu, Kernel, Launch};
///
/// # fn main() -> Result<(), qwengpu::Error> {
/// let mut gpu = Gpu::new(EngineKind::Interp)?;
/// let kernel = Kernel::from_ptx(gpu.spec(), include_str!("../kernels/vector_add.ptx"), None)?;
/// let launch = Launch::new(Dim3::linear(1), Dim3::linear(4))
///     .argument(Argument::buffer(&[1_i32, 2, 3]))
///     .argument(Argument::buffer(&[10_i32, 20, 30]))
///     .argument(Argument::zeros::<i32>(3))
///     .argument(3_i32);
/// let result = gpu.launch(&kernel, &launch)?;
/// assert_eq!(result.buffers[2].to_vec::<i32>(), Some(vec![11, 22, 33]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Gpu {
    options: GpuOptions,
    backend: Backend,
    report: Option<CompileReport>,
}

#[derive(Debug)]
enum Backend {
    Interp,
    Netlist(Box<Machine>),
    Model(Box<ModelSource>),
}

impl Gpu {
    /// The seed machine in an engine; a model is compiled in memory and runs in f32.
    ///
    /// # Errors
    /// If the machine cannot be made.
    pub fn new(engine: EngineKind) -> Result<Self, Error> {
        Self::with_options(&GpuOptions::new(engine))
    }

    /// A machine with all options.
    ///
    /// # Errors
    /// If the machine cannot be made or the checkpoint cannot be loaded.
    pub fn with_options(options: &GpuOptions) -> Result<Self, Error> {
        let mut options = options.clone();
        let mut report = None;
        let backend = match options.engine {
            EngineKind::Interp => Backend::Interp,
            EngineKind::Netlist => Backend::Netlist(Box::new(weights::build(&options.spec)?)),
            EngineKind::Sparse | EngineKind::Dense => {
                let source = if let Some(directory) = &options.checkpoint {
                    weights::load(directory, options.engine, options.precision)?
                } else {
                    let machine = weights::build(&options.spec)?;
                    let compiled = weights::compile(&machine)?;
                    report = Some(compiled.report.clone());
                    weights::in_memory(machine, compiled, options.engine, options.precision)?
                };
                options.spec = *source.table.spec();
                Backend::Model(Box::new(source))
            }
        };
        Ok(Self { options, backend, report })
    }

    /// A GPU of a machine that is compiled already, in memory.
    ///
    /// # Errors
    /// If the weights cannot be loaded.
    pub fn from_compiled(machine: Machine, compiled: Compiled, options: &GpuOptions) -> Result<Self, Error> {
        let report = Some(compiled.report.clone());
        let spec = *machine.table.spec();
        let backend = match options.engine {
            EngineKind::Interp => Backend::Interp,
            EngineKind::Netlist => Backend::Netlist(Box::new(machine)),
            EngineKind::Sparse | EngineKind::Dense => {
                Backend::Model(Box::new(weights::in_memory(machine, compiled, options.engine, options.precision)?))
            }
        };
        Ok(Self { options: GpuOptions { spec, checkpoint: None, ..options.clone() }, backend, report })
    }

    /// The sizes of the machine.
    #[must_use]
    pub const fn spec(&self) -> &MachineSpec {
        &self.options.spec
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> EngineKind {
        self.options.engine
    }

    /// What the compiled machine costs; `None` for engines that compile nothing.
    #[must_use]
    pub const fn report(&self) -> Option<&CompileReport> {
        self.report.as_ref()
    }

    /// Runs a kernel to its end.
    ///
    /// A fault of the kernel is an [`Outcome`], not an error.
    ///
    /// # Errors
    /// If the launch is refused, or the engine breaks down.
    pub fn launch(&mut self, kernel: &Kernel, launch: &Launch) -> Result<LaunchResult, Error> {
        self.launch_with(kernel, launch, &mut |_| ())
    }

    /// The same; `on_record` sees each record when it is spoken.
    ///
    /// # Errors
    /// As [`Gpu::launch`].
    pub fn launch_with(
        &mut self,
        kernel: &Kernel,
        launch: &Launch,
        on_record: &mut dyn FnMut(Record),
    ) -> Result<LaunchResult, Error> {
        let prepared = Prepared::new(&self.options.spec, kernel, launch)?;
        let reference = launch.check.then(|| Reference::new(&self.options.spec, &prepared.prompt, launch)).transpose()?;
        match &mut self.backend {
            Backend::Interp => run(&mut InterpEngine::new(self.options.spec), kernel, launch, prepared, reference, on_record),
            Backend::Netlist(machine) => {
                run(&mut NetlistEngine::new(machine), kernel, launch, prepared, reference, on_record)
            }
            Backend::Model(source) => {
                run(&mut ModelEngine::new(source), kernel, launch, prepared, reference, on_record)
            }
        }
    }
}

/// The records that a launch is made of: its prompt.
///
/// # Errors
/// If the launch is refused.
pub fn launch_prompt(spec: &MachineSpec, kernel: &Kernel, launch: &Launch) -> Result<Vec<Record>, Error> {
    Ok(Prepared::new(spec, kernel, launch)?.prompt)
}

/// A launch with its arguments placed.
struct Prepared {
    layout: Layout,
    prompt: Vec<Record>,
}

impl Prepared {
    fn new(spec: &MachineSpec, kernel: &Kernel, launch: &Launch) -> Result<Self, Error> {
        let layout = Layout::new(spec, kernel, &launch.arguments)?;
        let limit = spec.window(qwengpu_isa::Memory::Shared).bytes();
        let need = u64::from(kernel.signature().shared_bytes) + u64::from(launch.shared_bytes);
        if need > u64::from(limit) {
            return Err(LaunchError::SharedMemory { need, dynamic: launch.shared_bytes, limit }.into());
        }
        let config = LaunchConfig::new(launch.grid, launch.block)
            .with_constants(layout.constants.iter().copied())
            .with_global(layout.global.clone());
        let prompt = prompt(spec, kernel.program(), &config).map_err(LaunchError::from)?;
        Ok(Self { layout, prompt })
    }
}

/// What the interpreter makes of the same prompt.
struct Reference {
    records: Vec<Record>,
    global: Vec<u32>,
}

impl Reference {
    fn new(spec: &MachineSpec, prompt: &[Record], launch: &Launch) -> Result<Self, RunError> {
        let mut machine = Interpreter::power_on(*spec).map_err(qwengpu_interp::StreamError::from)?;
        let steps = u64::try_from(launch.max_tokens).unwrap_or(u64::MAX);
        let records = machine.run_prompt(prompt, steps)?.records;
        Ok(Self { records, global: machine.global().to_vec() })
    }

    /// Compares memory behind equal records; only at the end of the launch does the reference know it.
    fn compare_memory(&self, memory: &[u32], ended: bool) -> Check {
        let mut words = self.global.iter().zip(memory).enumerate();
        match words.find(|(_, (expected, got))| ended && expected != got) {
            Some((word, (&expected, &got))) => Check::Memory { word, expected, got },
            None => Check::Equal,
        }
    }
}

/// Drives an engine through a launch.
fn run(
    engine: &mut dyn Engine,
    kernel: &Kernel,
    launch: &Launch,
    prepared: Prepared,
    reference: Option<Reference>,
    on_record: &mut dyn FnMut(Record),
) -> Result<LaunchResult, Error> {
    let Prepared { layout, prompt } = prepared;
    let mut records = Vec::new();
    let mut position = Position::START;
    let mut outcome = Outcome::TokenLimit(launch.max_tokens);
    let mut check = None;
    let begun = Instant::now();
    let mut prompt_seconds = 0.0;
    let mut listener = |record: Record| {
        if records.is_empty() {
            prompt_seconds = begun.elapsed().as_secs_f64();
        }
        on_record(record);
        if let Some(reference) = &reference {
            let expected = reference.records.get(records.len()).copied();
            if expected != Some(record) {
                check = Some(Check::Record { position: records.len(), expected, got: record });
                outcome = Outcome::Mismatch;
            }
        }
        records.push(record);
        position.follow(record);
        if let Record::Fault { kind, lane } = record {
            outcome = Outcome::Fault(Fault::new(kernel, position, kind, lane));
        }
        if record == Record::Halt && matches!(outcome, Outcome::TokenLimit(_)) {
            outcome = Outcome::Finished;
        }
        let ended = record == Record::Halt || check.is_some() || records.len() >= launch.max_tokens;
        if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let ran = if launch.max_tokens > 0 { engine.run(&prompt, &mut listener) } else { Ok(()) };
    let seconds = begun.elapsed().as_secs_f64() - prompt_seconds;
    // Behind a record that differs, memory means nothing.
    let memory = match (ran, &outcome) {
        (Err(error), _) => Err(error),
        (Ok(()), Outcome::Mismatch) => Ok(None),
        (Ok(()), _) if records.is_empty() => Ok(Some(layout.global.clone())),
        (Ok(()), _) => engine.global_memory().map(Some),
    };
    let mut buffers = Vec::new();
    match (memory, reference) {
        (Ok(Some(memory)), reference) => {
            check = reference.map(|reference| reference.compare_memory(&memory, records.last() == Some(&Record::Halt)));
            buffers = layout.read(&memory, &launch.arguments);
        }
        (Ok(None), _) => {}
        (Err(error), Some(_)) => {
            check = Some(Check::Broken { position: records.len(), reason: error.to_string() });
            outcome = Outcome::Mismatch;
        }
        (Err(error), None) => return Err(error.into()),
    }
    Ok(LaunchResult {
        buffers,
        warp_instructions: records.iter().filter(|record| matches!(record, Record::Exec { .. })).count(),
        tokens: records.len(),
        records,
        prompt_tokens: prompt.len(),
        seconds,
        prompt_seconds,
        outcome,
        check,
    })
}

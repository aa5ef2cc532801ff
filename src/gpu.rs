//! The GPU: a machine in an engine.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use qwengpu_circuit::{CompileReport, Compiled};
use qwengpu_isa::{MachineSpec, Record};
use qwengpu_machine::Machine;
use qwengpu_model::{Cache, Precision};

use crate::batch::{self, BatchEvent};
use crate::driver::{Driver, Past};
use crate::engine::{
    BatchEngine, Engine, EngineKind, InterpEngine, ModelEngine, ModelSource, NetlistEngine, NetlistHistory,
};
use crate::error::{Error, MachineError, RunError};
use crate::kernel::Kernel;
use crate::launch::{Draft, Launch, LaunchResult};
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
    /// Threads of the dense engine; `None` takes as many as there are processors.
    pub threads: Option<NonZeroUsize>,
}

impl GpuOptions {
    /// The seed machine in an engine, in f32, compiled in memory.
    #[must_use]
    pub const fn new(engine: EngineKind) -> Self {
        Self { spec: MachineSpec::seed(), engine, precision: Precision::F32, checkpoint: None, threads: None }
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
    /// What the machine holds, if a launch can go on from it.
    past: Option<Past>,
}

#[derive(Debug)]
enum Backend {
    Interp(InterpEngine),
    Netlist(Box<Machine>, NetlistHistory),
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
            EngineKind::Interp => Backend::Interp(InterpEngine::new(options.spec)),
            EngineKind::Netlist => {
                Backend::Netlist(Box::new(weights::build(&options.spec)?), NetlistHistory::default())
            }
            EngineKind::Sparse | EngineKind::Dense => {
                let source = if let Some(directory) = &options.checkpoint {
                    weights::load(directory, options.engine, options.precision)?
                } else {
                    let machine = weights::build(&options.spec)?;
                    let compiled = weights::compile(&machine)?;
                    report = Some(compiled.report.clone());
                    weights::in_memory(machine, compiled, options.engine, options.precision)?
                };
                options.spec = *source.vocabulary.spec();
                Backend::model(source, &options)?
            }
        };
        Ok(Self { options, backend, report, past: None })
    }

    /// A GPU of a machine that is compiled already, in memory.
    ///
    /// # Errors
    /// If the weights cannot be loaded.
    pub fn from_compiled(machine: Machine, compiled: Compiled, options: &GpuOptions) -> Result<Self, Error> {
        let report = Some(compiled.report.clone());
        let spec = *machine.table.spec();
        let backend = match options.engine {
            EngineKind::Interp => Backend::Interp(InterpEngine::new(spec)),
            EngineKind::Netlist => Backend::Netlist(Box::new(machine), NetlistHistory::default()),
            EngineKind::Sparse | EngineKind::Dense => {
                Backend::model(weights::in_memory(machine, compiled, options.engine, options.precision)?, options)?
            }
        };
        Ok(Self { options: GpuOptions { spec, checkpoint: None, ..options.clone() }, backend, report, past: None })
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
    /// A fault of the kernel is an [`Outcome`](crate::Outcome), not an error.
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
        let driver = Driver::new(&self.options.spec, kernel, launch, self.past.as_ref())?;
        let past = &mut self.past;
        self.backend.with_engine(|engine| driver.run(engine, past, on_record))?
    }

    /// Runs many launches, up to `streams` of them at once; gives their results in the order of the launches.
    ///
    /// Each is what [`Gpu::launch`] would give on a fresh machine, whichever others run beside it: records, faults and
    /// memory are its own. A model speaks a record of each in turn, and where a launch has ended, the next one begins;
    /// the other engines run one after another. Seconds of a result are those in which the others spoke, too.
    /// A stream takes [`Gpu::stream_bytes`]. Afterwards the machine holds nothing that a launch could go on from.
    ///
    /// ```
    /// use qwengpu::{Argument, Dim3, EngineKind, Gpu, Kernel, Launch};
    ///
    /// # fn main() -> Result<(), qwengpu::Error> {
    /// let mut gpu = Gpu::new(EngineKind::Interp)?; // with EngineKind::Sparse or Dense the streams share the weights
    /// let kernel = Kernel::from_ptx(gpu.spec(), include_str!("../kernels/collatz.ptx"), None)?;
    /// let launches = [1_u32, 7, 27].map(|number| {
    ///     let numbers = Argument::buffer(&[number; 4]);
    ///     Launch::new(Dim3::linear(1), Dim3::linear(4)).argument(numbers).argument(Argument::zeros::<i32>(4))
    /// });
    /// let launches: Vec<_> = launches.iter().map(|launch| (&kernel, launch)).collect();
    /// for (result, steps) in gpu.launch_batch(&launches, gpu.enough_streams()).into_iter().zip([0, 16, 111]) {
    ///     assert_eq!(result?.buffers[1].to_vec::<i32>(), Some(vec![steps; 4]));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Of each launch by itself: as [`Gpu::launch`], and [`LaunchError`](crate::LaunchError) if it goes on from another
    /// launch or has a draft.
    pub fn launch_batch(
        &mut self,
        launches: &[(&Kernel, &Launch)],
        streams: NonZeroUsize,
    ) -> Vec<Result<LaunchResult, Error>> {
        self.launch_batch_with(launches, streams, &mut |_| ())
    }

    /// The same; `on_event` sees each record when it is spoken, and each result when it is there.
    ///
    /// # Errors
    /// As [`Gpu::launch_batch`].
    pub fn launch_batch_with(
        &mut self,
        launches: &[(&Kernel, &Launch)],
        streams: NonZeroUsize,
        on_event: &mut dyn FnMut(BatchEvent<'_>),
    ) -> Vec<Result<LaunchResult, Error>> {
        self.past = None;
        let spec = &self.options.spec;
        if let Backend::Model(source) = &mut self.backend {
            let mut engine = BatchEngine::new(source, streams.get().min(launches.len()));
            return batch::run(&mut engine, spec, launches, on_event);
        }
        let mut results = Vec::with_capacity(launches.len());
        for (number, &(kernel, launch)) in launches.iter().enumerate() {
            let mut on_record = |record| on_event(BatchEvent::Spoken { launch: number, record });
            let result = batch::driver(spec, kernel, launch)
                .and_then(|driver| self.backend.with_engine(|engine| driver.run(engine, &mut None, &mut on_record))?);
            on_event(BatchEvent::Ended { launch: number, result: &result });
            results.push(result);
        }
        results
    }

    /// Streams of a batch with which the engine is as fast as it gets: 16 where every read of the weights serves all
    /// streams, 1 in the other engines, which take as long for each token of a batch as for one alone, or longer.
    #[must_use]
    pub const fn enough_streams(&self) -> NonZeroUsize {
        match self.options.engine {
            EngineKind::Dense => const { NonZeroUsize::new(16).expect("16 is not 0") },
            EngineKind::Sparse | EngineKind::Interp | EngineKind::Netlist => NonZeroUsize::MIN,
        }
    }

    /// Bytes that each stream of a batch takes, at most: the recurrent states; 0 where there are no streams.
    #[must_use]
    pub fn stream_bytes(&self) -> usize {
        match &self.backend {
            Backend::Model(source) => source.model.config().recurrent_bytes(),
            Backend::Interp(_) | Backend::Netlist(..) => 0,
        }
    }

    /// Forgets everything: the next launch finds a machine that is switched on for it.
    pub fn power_off(&mut self) {
        self.past = None;
    }

    /// A copy of what the machine holds.
    #[must_use]
    pub fn save(&self) -> SavedMachine {
        let engine = match &self.backend {
            Backend::Interp(engine) => SavedEngine::Interp(Box::new(engine.clone())),
            Backend::Netlist(_, history) => SavedEngine::Netlist(history.clone()),
            Backend::Model(source) => SavedEngine::Model(source.model.save(), source.unheard),
        };
        SavedMachine { past: self.past.clone(), engine }
    }

    /// Goes on from what was saved, of this or another GPU with the same machine and engine.
    ///
    /// # Errors
    /// If it is another's; the machine is as before then.
    pub fn restore(&mut self, saved: &SavedMachine) -> Result<(), RunError> {
        match (&mut self.backend, &saved.engine) {
            (Backend::Interp(engine), SavedEngine::Interp(saved)) => engine.clone_from(saved.as_ref()),
            (Backend::Netlist(_, history), SavedEngine::Netlist(saved)) => history.clone_from(saved),
            (Backend::Model(source), SavedEngine::Model(cache, unheard)) => {
                source.model.restore(cache)?;
                source.unheard = *unheard;
            }
            _ => return Err(RunError::OtherEngine),
        }
        self.past.clone_from(&saved.past);
        Ok(())
    }

    /// Lets the machine hear a prompt and what it is said to have spoken, in one prefill where the engine is a model, and
    /// compares each record with what the engine would speak there.
    ///
    /// The machine is switched on before, unless it `continues`. Returns the place of the first difference, and what
    /// the engine speaks there; `None` if that is no record.
    ///
    /// # Errors
    /// If the engine breaks down.
    pub fn verify(
        &mut self,
        prompt: &[Record],
        spoken: &[Record],
        continues: bool,
    ) -> Result<Option<(usize, Option<Record>)>, RunError> {
        self.past = None;
        self.backend.with_engine(|engine| {
            if !continues {
                engine.power_on(&[])?;
            }
            let answers = engine.answers(prompt, spoken)?;
            let pairs = answers.into_iter().zip(spoken).enumerate();
            let mut different = pairs.filter(|(_, (answer, record))| answer.as_ref() != Some(record));
            Ok(different.next().map(|(place, (answer, _))| (place, answer)))
        })?
    }

    /// Hears a prompt on a fresh machine and speaks until it halts, for callers that make their own prompts.
    ///
    /// `max_records` bounds what is spoken; it must not be 0, since an engine answers before it is asked to stop.
    ///
    /// # Errors
    /// If the engine breaks down.
    pub fn speak(&mut self, prompt: &[Record], max_records: NonZeroUsize) -> Result<Speech, RunError> {
        self.past = None;
        self.backend.with_engine(|engine| {
            engine.power_on(&[])?;
            let mut records = Vec::new();
            engine.run(prompt, &[], &mut |record| {
                records.push(record);
                let ended = record == Record::Halt || records.len() >= max_records.get();
                if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            Ok(Speech { records, global: engine.global_memory()? })
        })?
    }
}

/// What a machine holds between launches.
#[derive(Debug, Clone)]
pub struct SavedMachine {
    past: Option<Past>,
    engine: SavedEngine,
}

#[derive(Debug, Clone)]
enum SavedEngine {
    Interp(Box<InterpEngine>),
    Netlist(NetlistHistory),
    Model(Cache, Option<Record>),
}

impl Backend {
    fn model(mut source: ModelSource, options: &GpuOptions) -> Result<Self, MachineError> {
        if let Some(threads) = options.threads {
            source.model.set_threads(threads)?;
        }
        Ok(Self::Model(Box::new(source)))
    }

    /// Makes the engine, as the launch before has left it, and uses it.
    fn with_engine<T>(&mut self, run: impl FnOnce(&mut dyn Engine) -> T) -> Result<T, RunError> {
        Ok(match self {
            Self::Interp(engine) => run(engine),
            Self::Netlist(machine, history) => run(&mut NetlistEngine::new(machine, history)?),
            Self::Model(source) => run(&mut ModelEngine::new(source)),
        })
    }
}

/// What a machine said, and its global memory behind that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speech {
    /// The records, the last of which is [`Record::Halt`] unless the limit came first.
    pub records: Vec<Record>,
    /// The words of global memory.
    pub global: Vec<u32>,
}

/// The records that a launch is made of: its prompt.
///
/// # Errors
/// If the launch is refused.
pub fn launch_prompt(spec: &MachineSpec, kernel: &Kernel, launch: &Launch) -> Result<Vec<Record>, Error> {
    Ok(Driver::new(spec, kernel, &Launch { check: false, draft: Draft::Nothing, ..launch.clone() }, None)?
        .whole_prompt())
}

//! The host's part of a launch: make the prompt, listen, read memory.

use qwengpu_interp::Machine as Interpreter;
use qwengpu_isa::{History, LaunchConfig, MachineSpec, Memory, Record, launch_records, program_records};

use crate::engine::Engine;
use crate::error::{Error, LaunchError, RunError};
use crate::kernel::Kernel;
use crate::launch::{Check, Draft, Launch, LaunchResult, Outcome, Start};
use crate::layout::Layout;
use crate::running::Running;
use crate::trace::Position;

/// What the launches since the machine was switched on have left in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    /// The words of the program.
    words: Vec<u64>,
    /// Of each launch, what the machine heard and the most that it might speak.
    prompts: Vec<(Vec<Record>, usize)>,
}

/// A launch with its arguments placed, ready to run.
#[derive(Debug)]
pub(crate) struct Driver<'a> {
    kernel: &'a Kernel,
    launch: &'a Launch,
    layout: Layout,
    /// The records of the program; none if the machine has it already.
    program: Vec<Record>,
    /// Those of the launch.
    prompt: Vec<Record>,
    reference: Option<Reference>,
    /// What the machine might speak.
    draft: Vec<Record>,
    start: Position,
}

impl<'a> Driver<'a> {
    /// Checks the launch; the interpreter runs it beforehand if it is to be checked. `past` is what the machine holds,
    /// if it can go on at all.
    pub(crate) fn new(
        spec: &MachineSpec,
        kernel: &'a Kernel,
        launch: &'a Launch,
        past: Option<&Past>,
    ) -> Result<Self, Error> {
        let past = match (launch.start, past) {
            (Start::Fresh, _) | (Start::Overwrite, None) => None,
            (Start::Keep, None) => return Err(LaunchError::NothingKept.into()),
            (Start::Overwrite | Start::Keep, Some(past)) => Some(past),
        };
        let layout = Layout::new(spec, kernel, &launch.arguments)?;
        let limit = spec.window(Memory::Shared).bytes();
        let need = u64::from(kernel.signature().shared_bytes) + u64::from(launch.shared_bytes);
        if need > u64::from(limit) {
            return Err(LaunchError::SharedMemory { need, dynamic: launch.shared_bytes, limit }.into());
        }
        let written = if launch.start == Start::Keep { Vec::new() } else { layout.global.clone() };
        let config = LaunchConfig::new(launch.grid, launch.block)
            .with_constants(layout.constants.iter().copied())
            .with_global(written);
        let words = kernel.program().words();
        let program = if past.is_some_and(|past| past.words == words) { Vec::new() } else { program_records(&words) };
        let history = if past.is_some() { History::Used } else { History::PowerOn };
        let prompt = launch_records(spec, &config, history).map_err(LaunchError::from)?;
        let mut driver = Self {
            kernel,
            launch,
            layout,
            program,
            prompt,
            reference: None,
            draft: Vec::new(),
            start: Position::start(spec),
        };
        if launch.check || launch.draft == Draft::Interp {
            driver.reference = Some(Reference::new(spec, past, &driver.whole_prompt(), launch.max_tokens)?);
        }
        driver.draft = match &launch.draft {
            Draft::Nothing => Vec::new(),
            Draft::Interp => driver.reference.iter().flat_map(|reference| &reference.records).copied().collect(),
            Draft::Records(records) => records.clone(),
        };
        driver.draft.truncate(launch.max_tokens);
        driver.reference = driver.reference.filter(|_| launch.check);
        Ok(driver)
    }

    /// Program and launch in one.
    pub(crate) fn whole_prompt(&self) -> Vec<Record> {
        self.program.iter().chain(&self.prompt).copied().collect()
    }

    /// Begins the launch on a machine that is switched on for it, or that continues.
    pub(crate) fn begin(self, continues: bool) -> (Spoken, Running<'a>) {
        let prompt = self.whole_prompt();
        let Self { kernel, launch, layout, program, prompt: own, reference, draft, start } = self;
        let running = Running::new(kernel, launch, layout, prompt, reference, continues, start);
        (Spoken { program, prompt: own, draft }, running)
    }

    /// Runs the launch on an engine, and notes in `past` what it leaves; nothing if the machine cannot go on.
    pub(crate) fn run(
        self,
        engine: &mut dyn Engine,
        past: &mut Option<Past>,
        on_record: &mut dyn FnMut(Record),
    ) -> Result<LaunchResult, Error> {
        let (kernel, launch) = (self.kernel, self.launch);
        let before = past.take().filter(|_| launch.start != Start::Fresh);
        let (Spoken { program, prompt, draft }, mut running) = self.begin(before.is_some());
        let heard = if before.is_some() {
            running.prompt().to_vec()
        } else {
            engine.power_on(&program)?;
            prompt
        };
        let ran = if launch.max_tokens == 0 {
            Ok(0)
        } else {
            engine.run(&heard, &draft, &mut |record| {
                on_record(record);
                running.hear(record)
            })
        };
        let result = running.conclude(ran, || engine.global_memory())?;
        if result.outcome == Outcome::Finished {
            let mut next = before.unwrap_or_default();
            next.words = kernel.program().words();
            next.prompts.push((result.prompt.clone(), launch.max_tokens));
            *past = Some(next);
        }
        Ok(result)
    }
}

/// What a machine is told.
#[derive(Debug)]
pub(crate) struct Spoken {
    /// The program, if it doesn't have it already.
    pub(crate) program: Vec<Record>,
    /// The launch.
    pub(crate) prompt: Vec<Record>,
    /// What it might speak.
    pub(crate) draft: Vec<Record>,
}

/// What the interpreter makes of the same prompt.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) records: Vec<Record>,
    global: Vec<u32>,
}

impl Reference {
    fn new(spec: &MachineSpec, past: Option<&Past>, prompt: &[Record], max_tokens: usize) -> Result<Self, RunError> {
        let mut machine = Interpreter::power_on(*spec).map_err(qwengpu_interp::StreamError::from)?;
        // Every warp instruction speaks at least one record.
        let steps = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
        for (prompt, max_tokens) in past.iter().flat_map(|past| &past.prompts) {
            machine.run_prompt(prompt, steps(*max_tokens))?;
        }
        let records = machine.run_prompt(prompt, steps(max_tokens))?.records;
        Ok(Self { records, global: machine.global().to_vec() })
    }

    /// Compares memory behind equal records; only at the end of the launch does the reference know it.
    pub(crate) fn compare_memory(&self, memory: &[u32], ended: bool) -> Check {
        let mut words = self.global.iter().zip(memory).enumerate();
        match words.find(|(_, (expected, got))| ended && expected != got) {
            Some((word, (&expected, &got))) => Check::Memory { word, expected, got },
            None => Check::Equal,
        }
    }
}

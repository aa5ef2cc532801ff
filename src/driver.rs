//! The host's part of a launch: make the prompt, listen, read memory.

use std::ops::ControlFlow;
use std::time::Instant;

use qwengpu_interp::Machine as Interpreter;
use qwengpu_isa::{History, LaunchConfig, MachineSpec, Memory, Record, launch_records, program_records};

use crate::engine::Engine;
use crate::error::{Error, LaunchError, RunError};
use crate::kernel::Kernel;
use crate::launch::{Check, Draft, Launch, LaunchResult, Outcome, Start};
use crate::layout::Layout;
use crate::trace::{Fault, Position};

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
        let mut driver = Self { kernel, launch, layout, program, prompt, reference: None, draft: Vec::new() };
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

    /// Runs the launch on an engine, and notes in `past` what it leaves; nothing if the machine cannot go on.
    pub(crate) fn run(
        self,
        engine: &mut dyn Engine,
        past: &mut Option<Past>,
        on_record: &mut dyn FnMut(Record),
    ) -> Result<LaunchResult, Error> {
        let whole = self.whole_prompt();
        let Self { kernel, launch, layout, program, prompt, reference, draft } = self;
        let begun = Instant::now();
        let before = past.take();
        let (mut next, continues, heard_now) = match before {
            Some(before) if launch.start != Start::Fresh => (before, true, &whole),
            _ => {
                engine.power_on(&program)?;
                (Past::default(), false, &prompt)
            }
        };
        let mut prompt_seconds = 0.0;
        let mut heard = Heard { kernel, position: Position::START, records: Vec::new(), fault: None, mismatch: None };
        let ran = if launch.max_tokens == 0 {
            Ok(0)
        } else {
            engine.run(heard_now, &draft, &mut |record| {
                if heard.records.is_empty() {
                    prompt_seconds = begun.elapsed().as_secs_f64();
                }
                on_record(record);
                heard.hear(record, reference.as_ref());
                let ended = heard.has_ended() || heard.records.len() >= launch.max_tokens;
                if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        };
        let seconds = begun.elapsed().as_secs_f64() - prompt_seconds;
        let drafted = ran.as_ref().copied().unwrap_or(0);
        let (memory, check) = match (heard.mismatch.take(), ran) {
            // Behind a record that differs, memory means nothing.
            (Some(mismatch), _) => (None, Some(mismatch)),
            (None, Ok(_)) => conclude(engine, &heard, &layout, reference.as_ref())?,
            (None, Err(error)) => (None, Some(broken(&heard, error, reference.as_ref())?)),
        };
        let outcome = match (&memory, heard.fault.take()) {
            (None, _) => Outcome::Mismatch,
            (Some(_), Some(fault)) => Outcome::Fault(fault),
            (Some(_), None) if heard.records.last() == Some(&Record::Halt) => Outcome::Finished,
            (Some(_), None) => Outcome::TokenLimit(launch.max_tokens),
        };
        if outcome == Outcome::Finished {
            next.words = kernel.program().words();
            next.prompts.push((whole.clone(), launch.max_tokens));
            *past = Some(next);
        }
        let records = heard.records;
        Ok(LaunchResult {
            buffers: memory.map(|memory| layout.read(&memory, &launch.arguments)).unwrap_or_default(),
            warp_instructions: records.iter().filter(|record| matches!(record, Record::Exec { .. })).count(),
            tokens: records.len(),
            drafted,
            records,
            prompt: whole,
            continues,
            seconds,
            prompt_seconds,
            outcome,
            check,
        })
    }
}

/// Memory at the end of a stream, and the comparison with the reference if there is one.
fn conclude(
    engine: &dyn Engine,
    heard: &Heard<'_>,
    layout: &Layout,
    reference: Option<&Reference>,
) -> Result<(Option<Vec<u32>>, Option<Check>), RunError> {
    // An engine that was never started has no memory.
    let memory = if heard.records.is_empty() { Ok(layout.global.clone()) } else { engine.global_memory() };
    match memory {
        Ok(memory) => {
            let check = reference.map(|reference| reference.compare_memory(&memory, heard.has_ended()));
            Ok((Some(memory), check))
        }
        Err(error) => Ok((None, Some(broken(heard, error, reference)?))),
    }
}

/// An engine that breaks down is a difference where there is a reference, and an error where there is none.
fn broken(heard: &Heard<'_>, error: RunError, reference: Option<&Reference>) -> Result<Check, RunError> {
    match reference {
        Some(_) => Ok(Check::Broken { position: heard.records.len(), reason: error.to_string() }),
        None => Err(error),
    }
}

/// What was heard of a stream.
struct Heard<'a> {
    kernel: &'a Kernel,
    position: Position,
    records: Vec<Record>,
    fault: Option<Fault>,
    mismatch: Option<Check>,
}

impl Heard<'_> {
    fn hear(&mut self, record: Record, reference: Option<&Reference>) {
        if let Some(reference) = reference {
            let position = self.records.len();
            let expected = reference.records.get(position).copied();
            if expected != Some(record) {
                self.mismatch = Some(Check::Record { position, expected, got: record });
            }
        }
        self.records.push(record);
        self.position.follow(record);
        match (&mut self.fault, record) {
            (None, Record::Fault { kind, lane }) => {
                self.fault = Some(Fault::new(self.kernel, self.position, kind, lane));
            }
            (Some(fault), _) => fault.hear(record),
            (None, _) => {}
        }
    }

    fn has_ended(&self) -> bool {
        self.mismatch.is_some() || self.records.last() == Some(&Record::Halt)
    }
}

/// What the interpreter makes of the same prompt.
#[derive(Debug)]
struct Reference {
    records: Vec<Record>,
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
    fn compare_memory(&self, memory: &[u32], ended: bool) -> Check {
        let mut words = self.global.iter().zip(memory).enumerate();
        match words.find(|(_, (expected, got))| ended && expected != got) {
            Some((word, (&expected, &got))) => Check::Memory { word, expected, got },
            None => Check::Equal,
        }
    }
}

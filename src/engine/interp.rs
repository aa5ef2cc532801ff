//! The reference interpreter as an engine.

use std::ops::ControlFlow;

use qwengpu_interp::Machine;
use qwengpu_isa::{MachineSpec, Record};

use super::{Engine, Listener};
use crate::error::RunError;

/// Runs launches on the interpreter.
#[derive(Debug, Clone)]
pub(crate) struct InterpEngine {
    spec: MachineSpec,
    machine: Option<Machine>,
    /// A program that the machine hears with the next prompt.
    program: Vec<Record>,
}

impl InterpEngine {
    pub(crate) fn new(spec: MachineSpec) -> Self {
        Self { spec, machine: None, program: Vec::new() }
    }
}

impl Engine for InterpEngine {
    fn power_on(&mut self, program: &[Record]) -> Result<(), RunError> {
        self.machine = Some(Machine::power_on(self.spec).map_err(qwengpu_interp::StreamError::from)?);
        self.program = program.to_vec();
        Ok(())
    }

    fn run(&mut self, prompt: &[Record], _draft: &[Record], listener: &mut Listener<'_>) -> Result<usize, RunError> {
        let Some(machine) = &mut self.machine else { return Err(RunError::Off) };
        let prompt: Vec<Record> = self.program.drain(..).chain(prompt.iter().copied()).collect();
        // The listener counts records, and every warp instruction speaks at least one.
        'run: for event in machine.hear(&prompt, u64::MAX)? {
            for record in event.records() {
                if listener(record).is_break() {
                    break 'run;
                }
            }
        }
        Ok(0)
    }

    fn answers(&mut self, prompt: &[Record], spoken: &[Record]) -> Result<Vec<Option<Record>>, RunError> {
        // The interpreter hears nobody but the host.
        let mut own = Vec::new();
        self.run(prompt, &[], &mut |record| {
            own.push(Some(record));
            if own.len() < spoken.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        own.resize(spoken.len(), None);
        Ok(own)
    }

    fn global_memory(&self) -> Result<Vec<u32>, RunError> {
        self.machine.as_ref().map(|machine| machine.global().to_vec()).ok_or(RunError::Off)
    }
}

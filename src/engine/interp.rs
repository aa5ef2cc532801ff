//! The reference interpreter as an engine.

use qwengpu_interp::Machine;
use qwengpu_isa::{MachineSpec, Record};

use super::{Engine, Listener};
use crate::error::RunError;

/// Runs launches on the interpreter.
#[derive(Debug)]
pub(crate) struct InterpEngine {
    spec: MachineSpec,
    machine: Option<Machine>,
}

impl InterpEngine {
    pub(crate) fn new(spec: MachineSpec) -> Self {
        Self { spec, machine: None }
    }
}

impl Engine for InterpEngine {
    fn run(&mut self, prompt: &[Record], listener: &mut Listener<'_>) -> Result<(), RunError> {
        let machine = self.machine.insert(Machine::power_on(self.spec).map_err(qwengpu_interp::StreamError::from)?);
        // The listener counts records, and every warp instruction speaks at least one.
        'run: for event in machine.hear(prompt, u64::MAX)? {
            for record in event.records() {
                if listener(record).is_break() {
                    break 'run;
                }
            }
        }
        Ok(())
    }

    fn global_memory(&self) -> Result<Vec<u32>, RunError> {
        Ok(self.machine.as_ref().map(|machine| machine.global().to_vec()).unwrap_or_default())
    }
}

//! The netlist on plain integers as an engine.

use std::fmt;

use qwengpu_circuit::Evaluator;
use qwengpu_isa::{Memory, Record};
use qwengpu_machine::{Machine, memory_state};

use super::{Engine, Listener, Speaker, decode};
use crate::error::RunError;
use crate::memory::words;

/// Runs launches on the netlist evaluator.
pub(crate) struct NetlistEngine<'a> {
    machine: &'a Machine,
    evaluator: Evaluator<'a>,
}

impl fmt::Debug for NetlistEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetlistEngine").finish_non_exhaustive()
    }
}

impl<'a> NetlistEngine<'a> {
    pub(crate) fn new(machine: &'a Machine) -> Self {
        Self { machine, evaluator: Evaluator::new(&machine.netlist) }
    }

    fn hear(&mut self, record: Record) -> Result<usize, RunError> {
        let token = self.machine.table.get(record).ok_or(RunError::NoRecord(record))? as usize;
        self.evaluator.run(token)?;
        Ok(token)
    }

    fn speak(&mut self, heard: usize, position: usize) -> Result<Record, RunError> {
        let token = u32::try_from(self.evaluator.next(heard)?).unwrap_or(u32::MAX);
        self.machine.table.record(token).ok_or(RunError::ForeignToken { token, position })
    }
}

impl Speaker for NetlistEngine<'_> {
    fn begin(&mut self, prompt: &[Record]) -> Result<Record, RunError> {
        self.evaluator = Evaluator::new(&self.machine.netlist);
        let mut heard = 0;
        for &record in prompt {
            heard = self.hear(record)?;
        }
        self.speak(heard, 0)
    }

    fn answer(&mut self, record: Record, position: usize) -> Result<Record, RunError> {
        let heard = self.hear(record)?;
        self.speak(heard, position)
    }
}

impl Engine for NetlistEngine<'_> {
    fn run(&mut self, prompt: &[Record], listener: &mut Listener<'_>) -> Result<(), RunError> {
        decode(self, prompt, listener)
    }

    fn global_memory(&self) -> Result<Vec<u32>, RunError> {
        words(self.machine.table.spec(), |byte| {
            let name = memory_state(Memory::Global, byte, None);
            let rows = self.evaluator.state_rows(&name).ok_or(RunError::NoState(name))?;
            Ok(move |word: usize, bit: usize| {
                Ok(rows.get(word).and_then(|row| row.get(bit)).is_some_and(|&value| value != 0))
            })
        })
    }
}

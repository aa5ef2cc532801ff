//! The netlist on plain integers as an engine.

use std::fmt;

use qwengpu_circuit::Evaluator;
use qwengpu_isa::{Memory, Record};
use qwengpu_machine::{Machine, memory_state};

use super::{Engine, Listener, Speaker, decode, heard};
use crate::error::RunError;
use crate::memory::words;

/// What a netlist has heard since it was switched on; the evaluator's state is nothing but a function of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetlistHistory {
    heard: Vec<Record>,
    unheard: Option<Record>,
}

/// Runs launches on the netlist evaluator.
pub(crate) struct NetlistEngine<'a> {
    machine: &'a Machine,
    evaluator: Evaluator<'a>,
    history: &'a mut NetlistHistory,
}

impl fmt::Debug for NetlistEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetlistEngine").field("history", &self.history).finish_non_exhaustive()
    }
}

impl<'a> NetlistEngine<'a> {
    /// Goes on behind a history.
    pub(crate) fn new(machine: &'a Machine, history: &'a mut NetlistHistory) -> Result<Self, RunError> {
        let mut engine = Self { machine, evaluator: Evaluator::new(&machine.netlist), history };
        for record in std::mem::take(&mut engine.history.heard) {
            engine.hear(record)?;
        }
        Ok(engine)
    }

    fn hear(&mut self, record: Record) -> Result<usize, RunError> {
        let token = self.machine.table.get(record).ok_or(RunError::NoRecord(record))? as usize;
        self.evaluator.run(token)?;
        self.history.heard.push(record);
        Ok(token)
    }
}

impl Speaker for NetlistEngine<'_> {
    fn answer(&mut self, records: &[Record], position: usize) -> Result<Record, RunError> {
        let mut heard = 0;
        for &record in records {
            heard = self.hear(record)?;
        }
        let token = u32::try_from(self.evaluator.next(heard)?).unwrap_or(u32::MAX);
        self.machine.table.record(token).ok_or(RunError::ForeignToken { token, position })
    }

    fn unheard(&mut self) -> &mut Option<Record> {
        &mut self.history.unheard
    }
}

impl Engine for NetlistEngine<'_> {
    fn power_on(&mut self, program: &[Record]) -> Result<(), RunError> {
        *self.history = NetlistHistory::default();
        self.evaluator = Evaluator::new(&self.machine.netlist);
        program.iter().try_for_each(|&record| self.hear(record).map(|_| ()))
    }

    fn run(&mut self, prompt: &[Record], _draft: &[Record], listener: &mut Listener<'_>) -> Result<usize, RunError> {
        decode(self, prompt, listener).map(|()| 0)
    }

    fn answers(&mut self, prompt: &[Record], spoken: &[Record]) -> Result<Vec<Option<Record>>, RunError> {
        let mut heard = heard(self, prompt);
        let mut answers = Vec::new();
        for (position, &record) in spoken.iter().enumerate() {
            answers.push(match self.answer(&heard, position) {
                Ok(answer) => Some(answer),
                Err(RunError::ForeignToken { .. }) => None,
                Err(error) => return Err(error),
            });
            heard = vec![record];
        }
        self.history.unheard = spoken.last().copied();
        Ok(answers)
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

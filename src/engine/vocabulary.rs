//! Records as the tokens of a model.

use qwengpu_isa::{MachineSpec, Record, RecordTable};

use crate::error::RunError;

/// Which record is which token.
pub(crate) struct Vocabulary {
    /// The records, in the order of their tokens.
    table: RecordTable,
    /// The id of the first record's token.
    first_token: u32,
}

impl Vocabulary {
    pub(crate) const fn new(table: RecordTable, first_token: u32) -> Self {
        Self { table, first_token }
    }

    /// The machine whose records these are.
    pub(crate) const fn spec(&self) -> &MachineSpec {
        self.table.spec()
    }

    pub(super) fn token(&self, record: Record) -> Result<u32, RunError> {
        let index = self.table.get(record).ok_or(RunError::NoRecord(record))?;
        Ok(self.first_token + index)
    }

    pub(super) fn tokens(&self, records: &[Record]) -> Result<Vec<u32>, RunError> {
        records.iter().map(|&record| self.token(record)).collect()
    }

    /// The record of a token, if it is one.
    pub(super) fn record(&self, token: u32) -> Option<Record> {
        self.table.record(token.checked_sub(self.first_token)?)
    }
}

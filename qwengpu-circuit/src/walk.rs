//! Walks over the forms and the signals of operations.

use crate::ir::{Level, Netlist, Operation, RowChoice, Signal, State};
use crate::linear::Linear;

impl RowChoice {
    /// Every form of the choice.
    pub fn forms(&self) -> impl Iterator<Item = &Linear> {
        let (forms, enable) = match self {
            Self::Address { bits, enable } => (bits, Some(enable)),
            Self::Rows(forms) => (forms, None),
        };
        forms.iter().chain(enable)
    }

    /// The form of one row: 1 when the row takes part, at most 0 when not.
    #[must_use]
    pub fn row_form(&self, row: usize) -> Linear {
        match self {
            Self::Rows(forms) => forms.get(row).cloned().unwrap_or_default(),
            Self::Address { bits, enable } => bits.iter().enumerate().fold(enable.clone(), |form, (i, bit)| {
                if row >> i & 1 == 1 { form + bit.clone() - 1 } else { form - bit.clone() }
            }),
        }
    }
}

impl State {
    /// Every form that does not belong to a read port.
    pub fn forms(&self) -> impl Iterator<Item = &Linear> {
        let level = match &self.level {
            Level::EveryRow => None,
            Level::When(form) => Some(form),
        };
        self.clear.iter().chain(self.write.forms()).chain(&self.value).chain(level)
    }
}

impl Operation {
    /// The signals that the operation makes, read port by read port for a state.
    #[must_use]
    pub fn outputs(&self) -> Vec<Signal> {
        match self {
            Self::Table { outputs, .. } => outputs.clone(),
            Self::Products { output, .. } | Self::Select { output, .. } => vec![*output],
            Self::State(state) => state.reads.iter().flat_map(|read| read.outputs.iter().copied()).collect(),
        }
    }
}

impl Netlist {
    /// A name for an operation: a state's own, or that of the first signal it makes.
    #[must_use]
    pub fn operation_name(&self, number: usize) -> String {
        match self.operations().get(number) {
            Some(Operation::State(state)) => state.name.clone(),
            Some(operation) => operation
                .outputs()
                .first()
                .and_then(|output| self.signals().get(output.index()))
                .map_or_else(|| format!("operation {number}"), |info| info.name.clone()),
            None => format!("operation {number}"),
        }
    }

    /// The name of a signal.
    #[must_use]
    pub fn name(&self, signal: Signal) -> &str {
        self.signals().get(signal.index()).map_or("?", |info| &info.name)
    }
}

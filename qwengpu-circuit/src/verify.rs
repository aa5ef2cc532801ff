//! The invariants of a netlist.
//!
//! | number | invariant |
//! |---|---|
//! | C01 | names of signals are unique |
//! | C02 | names of states are unique |
//! | C03 | a form uses only signals that were made before it (inputs, or outputs of earlier operations) |
//! | C04 | a signal is made once: it is an input or the output of one operation |
//! | C05 | columns of a table are not empty, have equal length, and there is one for each output |
//! | C06 | a state has at least one row and one bit, and each read port has an output for each bit |
//! | C07 | a row choice by rows has a form for each row; one by address has at most 24 bits, and at least as many as the rows need |
//! | C08 | a token sets inputs only, each once and within its declared range |
//! | C09 | texts of tokens are unique |
//! | C10 | a declared range is not empty |
//! | C11 | members of an exclusive group are distinct bits |
//! | C12 | a token's code names each signal once |

use std::collections::BTreeSet;
use std::fmt;

use crate::ir::{Netlist, Operation, RowChoice, Signal, State};
use crate::linear::Linear;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number of the invariant, such as 3 for C03.
    pub invariant: u8,
    /// The signal, operation, state, token or group that breaks it.
    pub entity: String,
    /// How.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "C{:02} {}: {}", self.invariant, self.entity, self.message)
    }
}

/// Checks every invariant of this module.
///
/// # Errors
/// All violations, in the netlist's order.
pub fn verify(netlist: &Netlist) -> Result<(), Vec<Violation>> {
    let mut verifier = Verifier { netlist, known: vec![false; netlist.signals().len()], violations: Vec::new() };
    verifier.signals();
    for (number, operation) in netlist.operations().iter().enumerate() {
        verifier.operation(number, operation);
    }
    verifier.tokens();
    verifier.groups();
    if verifier.violations.is_empty() { Ok(()) } else { Err(verifier.violations) }
}

struct Verifier<'a> {
    netlist: &'a Netlist,
    known: Vec<bool>,
    violations: Vec<Violation>,
}

impl Verifier<'_> {
    fn report(&mut self, invariant: u8, entity: impl Into<String>, message: impl Into<String>) {
        self.violations.push(Violation { invariant, entity: entity.into(), message: message.into() });
    }

    fn name(&self, signal: Signal) -> String {
        self.netlist
            .signals()
            .get(signal.index())
            .map_or_else(|| format!("signal {}", signal.index()), |info| info.name.clone())
    }

    fn signals(&mut self) {
        let mut names = BTreeSet::new();
        for info in self.netlist.signals() {
            if !names.insert(info.name.as_str()) {
                self.report(1, &info.name, "the name is used twice");
            }
            if info.range.is_empty() {
                self.report(10, &info.name, "the declared range is empty");
            }
        }
        let mut states = BTreeSet::new();
        for operation in self.netlist.operations() {
            if let Operation::State(state) = operation
                && !states.insert(state.name.as_str())
            {
                self.report(2, &state.name, "the name is used twice");
            }
        }
        for &input in self.netlist.inputs() {
            self.define(input);
        }
    }

    fn define(&mut self, signal: Signal) {
        match self.known.get_mut(signal.index()) {
            Some(known) if !*known => *known = true,
            Some(_) => self.report(4, self.name(signal), "made twice"),
            None => self.report(4, self.name(signal), "not in the netlist"),
        }
    }

    fn uses(&mut self, entity: &str, form: &Linear) {
        for (signal, _) in form.terms() {
            if !self.known.get(signal.index()).copied().unwrap_or(false) {
                self.report(3, entity, format!("uses {} before it is made", self.name(signal)));
            }
        }
    }

    fn operation(&mut self, number: usize, operation: &Operation) {
        let entity = self.netlist.operation_name(number);
        match operation {
            Operation::Table { argument, columns, outputs, .. } => {
                self.uses(&entity, argument);
                let length = columns.first().map_or(0, Vec::len);
                if length == 0 || columns.len() != outputs.len() || columns.iter().any(|column| column.len() != length)
                {
                    self.report(
                        5,
                        &entity,
                        format!("{} outputs and columns of lengths that differ or are 0", outputs.len()),
                    );
                }
                outputs.iter().for_each(|&output| self.define(output));
            }
            Operation::Products { terms, output } => {
                for term in terms {
                    self.uses(&entity, &term.gate);
                    self.uses(&entity, &term.up);
                }
                self.define(*output);
            }
            Operation::Select { condition, then, otherwise, output } => {
                for form in [condition, then, otherwise] {
                    self.uses(&entity, form);
                }
                self.define(*output);
            }
            Operation::State(state) => self.state(state),
        }
    }

    fn state(&mut self, state: &State) {
        if state.rows == 0 || state.value.is_empty() {
            self.report(6, &state.name, format!("{} rows of {} bits", state.rows, state.value.len()));
        }
        for form in state.forms() {
            self.uses(&state.name, form);
        }
        self.row_choice(state, &state.write);
        for read in &state.reads {
            self.row_choice(state, &read.query);
            for form in read.query.forms() {
                self.uses(&state.name, form);
            }
            if read.outputs.len() != state.value.len() {
                self.report(6, &state.name, format!("{} outputs for {} bits", read.outputs.len(), state.value.len()));
            }
        }
        for read in &state.reads {
            read.outputs.iter().for_each(|&output| self.define(output));
        }
    }

    fn row_choice(&mut self, state: &State, choice: &RowChoice) {
        match choice {
            RowChoice::Rows(forms) if forms.len() != state.rows => {
                self.report(7, &state.name, format!("{} forms for {} rows", forms.len(), state.rows));
            }
            RowChoice::Address { bits, .. } if bits.len() > 24 || state.rows > 1 << bits.len() => {
                self.report(7, &state.name, format!("{} address bits for {} rows", bits.len(), state.rows));
            }
            RowChoice::Rows(_) | RowChoice::Address { .. } => {}
        }
    }

    fn tokens(&mut self) {
        let netlist = self.netlist;
        let inputs: BTreeSet<Signal> = netlist.inputs().iter().copied().collect();
        let mut texts = BTreeSet::new();
        for token in netlist.tokens() {
            if !texts.insert(token.text.as_str()) {
                self.report(9, &token.text, "the text is used twice");
            }
            let mut set = BTreeSet::new();
            for &(signal, value) in &token.inputs {
                if !inputs.contains(&signal) || !set.insert(signal) {
                    self.report(
                        8,
                        &token.text,
                        format!("sets {}, which is not an input or is set twice", self.name(signal)),
                    );
                } else if !netlist.signals()[signal.index()].range.contains(&value) {
                    self.report(8, &token.text, format!("sets {} to {value}, outside its range", self.name(signal)));
                }
            }
            let mut coded = BTreeSet::new();
            for &(signal, _) in &token.code {
                if !coded.insert(signal) || signal.index() >= self.known.len() {
                    self.report(
                        12,
                        &token.text,
                        format!("the code names {} twice, or it does not exist", self.name(signal)),
                    );
                }
            }
        }
    }

    fn groups(&mut self) {
        for group in self.netlist.exclusives() {
            let distinct: BTreeSet<Signal> = group.members.iter().copied().collect();
            let bits = group.members.iter().all(|member| {
                self.netlist
                    .signals()
                    .get(member.index())
                    .is_some_and(|info| *info.range.start() >= 0 && *info.range.end() <= 1)
            });
            if distinct.len() != group.members.len() || !bits {
                self.report(11, &group.name, "members are not distinct bits");
            }
        }
    }
}

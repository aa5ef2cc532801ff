//! Runs a netlist on plain integers.

use thiserror::Error;

use crate::ir::{Level, Netlist, Operation, RowChoice, Signal, State};
use crate::linear::Linear;

/// A netlist that breaks its own rules, found while it ran.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvalError {
    /// A signal left its declared range.
    #[error("signal {name} is {value}, outside its declared range {low}..={high}")]
    Range {
        /// The signal.
        name: String,
        /// What it was.
        value: i64,
        /// Declared minimum.
        low: i64,
        /// Declared maximum.
        high: i64,
    },
    /// A key or query form above 1, or a number of rows that can't be read or written at once.
    #[error("state {name}: {what}")]
    Rows {
        /// The state.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// More than one member of an exclusive group is 1.
    #[error("exclusive group {name} has {count} members that are 1")]
    Exclusive {
        /// The group.
        name: String,
        /// How many are 1.
        count: usize,
    },
    /// A token number past the table.
    #[error("token {token} does not exist: the netlist has {count}")]
    Token {
        /// The number.
        token: usize,
        /// How many there are.
        count: usize,
    },
    /// No output is non-zero, so no token stands out.
    #[error("after token {token} two tokens share the largest logit {logit}: {first} and {second}")]
    Tie {
        /// The token that was run.
        token: String,
        /// The largest logit.
        logit: i64,
        /// One of the best.
        first: String,
        /// Another.
        second: String,
    },
}

/// One copy of a state's rows.
type Rows = Vec<Vec<i64>>;

/// Runs tokens through a netlist.
#[derive(Clone, Debug)]
pub struct Evaluator<'a> {
    netlist: &'a Netlist,
    values: Vec<i64>,
    /// For each operation, the rows of its state (empty for others); the last column is the level.
    states: Vec<Rows>,
    /// For each signal, the tokens whose code uses it.
    coded: Vec<Vec<(usize, i64)>>,
    logits: Vec<i64>,
    check: bool,
}

impl<'a> Evaluator<'a> {
    /// All states empty. Checks every declaration at each token.
    #[must_use]
    pub fn new(netlist: &'a Netlist) -> Self {
        let states = netlist
            .operations()
            .iter()
            .map(|operation| match operation {
                Operation::State(state) => vec![vec![0; state.value.len() + 1]; state.rows],
                Operation::Table { .. } | Operation::Products { .. } | Operation::Select { .. } => Vec::new(),
            })
            .collect();
        let mut coded = vec![Vec::new(); netlist.signals().len()];
        for (number, token) in netlist.tokens().iter().enumerate() {
            for &(signal, weight) in &token.code {
                coded[signal.index()].push((number, weight));
            }
        }
        let values = vec![0; netlist.signals().len()];
        Self { netlist, values, states, coded, logits: vec![0; netlist.tokens().len()], check: true }
    }

    /// The value of a signal after the last token.
    #[must_use]
    pub fn value(&self, signal: Signal) -> i64 {
        self.values[signal.index()]
    }

    /// The rows of the named state: one list of bits a row.
    #[must_use]
    pub fn state_rows(&self, name: &str) -> Option<Vec<&[i64]>> {
        self.netlist.operations().iter().zip(&self.states).find_map(|(operation, rows)| match operation {
            Operation::State(state) if state.name == name => {
                Some(rows.iter().map(|row| &row[..row.len() - 1]).collect())
            }
            _ => None,
        })
    }

    /// Runs one token.
    ///
    /// # Errors
    /// When the netlist breaks a declaration.
    pub fn run(&mut self, token: usize) -> Result<(), EvalError> {
        let netlist = self.netlist;
        let count = netlist.tokens().len();
        let found = netlist.tokens().get(token).ok_or(EvalError::Token { token, count })?;
        for input in netlist.inputs() {
            self.values[input.index()] = 0;
        }
        for &(signal, value) in &found.inputs {
            self.values[signal.index()] = value;
        }
        for (index, operation) in netlist.operations().iter().enumerate() {
            match operation {
                Operation::Table { argument, first, columns, outputs, .. } => {
                    let length = columns.first().map_or(0, Vec::len);
                    let entry = usize::try_from(self.form(argument) - first).unwrap_or(0).min(length.saturating_sub(1));
                    for (column, output) in columns.iter().zip(outputs) {
                        self.values[output.index()] = column[entry];
                    }
                }
                Operation::Products { terms, output } => {
                    let mut sum = 0;
                    for term in terms {
                        let gate = self.form(&term.gate);
                        if gate > 0 {
                            sum += term.coefficient * gate * self.form(&term.up);
                        }
                    }
                    self.values[output.index()] = sum;
                }
                Operation::Select { condition, then, otherwise, output } => {
                    let chosen = if self.form(condition) >= 0 { then } else { otherwise };
                    self.values[output.index()] = self.form(chosen);
                }
                Operation::State(state) => self.run_state(index, state)?,
            }
        }
        if self.check { self.check_declarations() } else { Ok(()) }
    }

    fn form(&self, form: &Linear) -> i64 {
        form.evaluate(|signal| self.values[signal.index()])
    }

    fn run_state(&mut self, index: usize, state: &State) -> Result<(), EvalError> {
        if state.clear.as_ref().is_some_and(|clear| self.form(clear) > 0) {
            for row in &mut self.states[index] {
                row.fill(0);
            }
        }
        let written = self.rows(state, &state.write)?;
        if written.len() > 1 {
            return Err(EvalError::Rows {
                name: state.name.clone(),
                what: format!("writes {} rows at once", written.len()),
            });
        }
        for row in written {
            let mut value: Vec<i64> = state.value.iter().map(|form| self.form(form).max(0)).collect();
            if value.iter().any(|bit| !(0..=1).contains(bit)) {
                return Err(EvalError::Rows {
                    name: state.name.clone(),
                    what: format!("row {row} is written with {value:?}"),
                });
            }
            value.push(match &state.level {
                Level::EveryRow => 1,
                Level::When(form) => self.form(form),
            });
            self.states[index][row] = value;
        }
        for read in &state.reads {
            let rows = self.rows(state, &read.query)?;
            let fault = |what: String| EvalError::Rows { name: state.name.clone(), what };
            let legal =
                rows.is_empty() || (rows.len().is_power_of_two() && rows.len().trailing_zeros().is_multiple_of(2));
            if !legal {
                return Err(fault(format!("reads {} rows at once: not a power of four", rows.len())));
            }
            let levels: i64 = rows.iter().map(|&row| self.states[index][row][state.value.len()]).sum();
            let mut any = false;
            for (bit, output) in read.outputs.iter().enumerate() {
                let value = rows.iter().map(|&row| self.states[index][row][bit]).sum();
                any |= value != 0;
                self.values[output.index()] = value;
            }
            if any && levels != 1 {
                return Err(fault(format!("{levels} of the rows read carry the level, not one")));
            }
        }
        Ok(())
    }

    fn rows(&self, state: &State, choice: &RowChoice) -> Result<Vec<usize>, EvalError> {
        match choice {
            RowChoice::Address { bits, enable } => {
                let enable = self.form(enable);
                if enable > 1 {
                    return Err(EvalError::Rows {
                        name: state.name.clone(),
                        what: format!("the enable of an address is {enable}"),
                    });
                }
                if enable < 1 {
                    return Ok(Vec::new());
                }
                let mut row = 0_usize;
                for (i, bit) in bits.iter().enumerate() {
                    match self.form(bit) {
                        0 => {}
                        1 => row |= 1 << i,
                        other => {
                            return Err(EvalError::Rows {
                                name: state.name.clone(),
                                what: format!("address bit {i} is {other}"),
                            });
                        }
                    }
                }
                Ok(if row < state.rows { vec![row] } else { Vec::new() })
            }
            RowChoice::Rows(forms) => {
                let mut rows = Vec::new();
                for (row, form) in forms.iter().enumerate() {
                    match self.form(form) {
                        1 => rows.push(row),
                        value if value > 1 => {
                            return Err(EvalError::Rows {
                                name: state.name.clone(),
                                what: format!("the form of row {row} is {value}"),
                            });
                        }
                        _ => {}
                    }
                }
                Ok(rows)
            }
        }
    }

    fn check_declarations(&self) -> Result<(), EvalError> {
        for (info, &value) in self.netlist.signals().iter().zip(&self.values) {
            if !info.range.contains(&value) {
                return Err(EvalError::Range {
                    name: info.name.clone(),
                    value,
                    low: *info.range.start(),
                    high: *info.range.end(),
                });
            }
        }
        for group in self.netlist.exclusives() {
            let count = group.members.iter().filter(|member| self.values[member.index()] != 0).count();
            if count > 1 {
                return Err(EvalError::Exclusive { name: group.name.clone(), count });
            }
        }
        Ok(())
    }

    /// The token with the largest logit after the last token that was run.
    ///
    /// # Errors
    /// [`EvalError::Tie`] when two tokens share it.
    pub fn next(&mut self, token: usize) -> Result<usize, EvalError> {
        self.logits.fill(0);
        for (signal, coded) in self.coded.iter().enumerate() {
            let value = self.values[signal];
            if value != 0 {
                for &(number, weight) in coded {
                    self.logits[number] += weight * value;
                }
            }
        }
        let (mut best, mut second) = (0, 0);
        for (number, &logit) in self.logits.iter().enumerate().skip(1) {
            if logit > self.logits[best] {
                (best, second) = (number, best);
            } else if second == best || logit > self.logits[second] {
                second = number;
            }
        }
        if best != second && self.logits[best] == self.logits[second] {
            let text = |number: usize| self.netlist.tokens()[number].text.clone();
            return Err(EvalError::Tie {
                token: text(token),
                logit: self.logits[best],
                first: text(best),
                second: text(second),
            });
        }
        Ok(best)
    }
}

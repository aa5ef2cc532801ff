//! Writes netlists: one method for each operation, and the small gates made of them.

use std::ops::RangeInclusive;

use crate::ir::{
    Enumeration, Exclusive, Level, Netlist, Operation, Product, ReadPort, RowChoice, Signal, SignalInfo, State,
    StepKind, Token,
};
use crate::linear::Linear;

/// The range of a bit.
pub const BIT: RangeInclusive<i64> = 0..=1;

/// Grows a [`Netlist`]; names of signals are prefixed by the open scopes.
#[derive(Debug, Default)]
pub struct Builder {
    netlist: Netlist,
    scope: Vec<String>,
}

/// What [`Builder::state`] needs to know of a state; the read ports' outputs are made by it.
#[derive(Clone, Debug)]
pub struct StateDescription {
    /// Number of rows.
    pub rows: usize,
    /// Empties the state while 1.
    pub clear: Option<Linear>,
    /// The row that is written.
    pub write: RowChoice,
    /// The bits that are written.
    pub value: Vec<Linear>,
    /// Where the norm's level is.
    pub level: Level,
}

impl Builder {
    /// An empty netlist.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `body` with `name` put before the names of its signals.
    pub fn scope<T>(&mut self, name: impl Into<String>, body: impl FnOnce(&mut Self) -> T) -> T {
        self.scope.push(name.into());
        let result = body(self);
        self.scope.pop();
        result
    }

    fn name(&self, name: &str) -> String {
        let mut full = self.scope.join("/");
        if !full.is_empty() {
            full.push('/');
        }
        full.push_str(name);
        full
    }

    fn signal(&mut self, name: &str, range: RangeInclusive<i64>) -> Signal {
        let signal = Signal(u32::try_from(self.netlist.signals.len()).unwrap_or(u32::MAX));
        self.netlist.signals.push(SignalInfo { name: self.name(name), range });
        signal
    }

    /// A signal that the embedding sets.
    pub fn input(&mut self, name: &str, range: RangeInclusive<i64>) -> Signal {
        let signal = self.signal(name, range);
        self.netlist.inputs.push(signal);
        signal
    }

    /// Bits that the embedding sets, least significant first.
    pub fn input_bits(&mut self, name: &str, count: usize) -> Vec<Signal> {
        (0..count).map(|i| self.input(&format!("{name}/bit{i}"), BIT)).collect()
    }

    /// Adds a token and returns its number.
    pub fn token(&mut self, token: Token) -> usize {
        self.netlist.tokens.push(token);
        self.netlist.tokens.len() - 1
    }

    /// Declares that at most one of these bits is 1 in any token; the margin pass proves it.
    pub fn exclusive(&mut self, name: &str, members: &[Signal]) {
        let name = self.name(name);
        self.netlist.exclusives.push(Exclusive { name, members: members.to_vec() });
    }

    /// Tells the margin pass that everything between `cut` and `outputs` depends on the cut alone; it proves the
    /// declared ranges there by evaluating every combination of the cut's values (at most 2^18).
    pub fn enumerate(&mut self, cut: &[Signal], outputs: &[Signal]) {
        self.netlist.enumerations.push(Enumeration { cut: cut.to_vec(), outputs: outputs.to_vec() });
    }

    /// Functions of one small integer with dead-zone steps; see [`Operation::Table`].
    pub fn table(
        &mut self,
        names: &[&str],
        argument: impl Into<Linear>,
        first: i64,
        columns: Vec<Vec<i64>>,
    ) -> Vec<Signal> {
        self.table_with(names, argument.into(), first, columns, StepKind::DeadZone)
    }

    /// Functions of one integer of up to 255 with plain steps; see [`StepKind::Plain`].
    pub fn plain_table(
        &mut self,
        names: &[&str],
        argument: impl Into<Linear>,
        first: i64,
        columns: Vec<Vec<i64>>,
    ) -> Vec<Signal> {
        self.table_with(names, argument.into(), first, columns, StepKind::Plain)
    }

    fn table_with(
        &mut self,
        names: &[&str],
        argument: Linear,
        first: i64,
        columns: Vec<Vec<i64>>,
        steps: StepKind,
    ) -> Vec<Signal> {
        assert_eq!(names.len(), columns.len(), "a table needs a name for each output");
        let outputs: Vec<Signal> = names
            .iter()
            .zip(&columns)
            .map(|(name, column)| {
                let (low, high) =
                    (column.iter().min().copied().unwrap_or(0), column.iter().max().copied().unwrap_or(0));
                self.signal(name, low..=high)
            })
            .collect();
        self.netlist.operations.push(Operation::Table { argument, first, columns, steps, outputs: outputs.clone() });
        outputs
    }

    /// `[form >= 0]` with a dead zone.
    pub fn step(&mut self, name: &str, form: impl Into<Linear>) -> Signal {
        self.table(&[name], form, -1, vec![vec![0, 1]])[0]
    }

    /// A sum of products with a declared range; the margin pass proves the range.
    pub fn products(&mut self, name: &str, range: RangeInclusive<i64>, terms: Vec<Product>) -> Signal {
        let output = self.signal(name, range);
        self.netlist.operations.push(Operation::Products { terms, output });
        output
    }

    /// `relu(gate)`, where the gate is at most 1: a bit.
    pub fn relu_bit(&mut self, name: &str, gate: impl Into<Linear>) -> Signal {
        self.products(name, BIT, vec![Product { coefficient: 1, gate: gate.into(), up: Linear::one() }])
    }

    /// The conjunction of bits (complement a literal with [`Linear::not`]): one neuron.
    pub fn and<L: Into<Linear> + Clone>(&mut self, name: &str, literals: &[L]) -> Signal {
        let count = i64::try_from(literals.len()).unwrap_or(i64::MAX);
        self.relu_bit(name, Linear::sum(literals.iter().cloned()) - (count - 1))
    }

    /// `if condition >= 0 { then } else { otherwise }`.
    pub fn select(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
        condition: impl Into<Linear>,
        then: impl Into<Linear>,
        otherwise: impl Into<Linear>,
    ) -> Signal {
        let output = self.signal(name, range);
        self.netlist.operations.push(Operation::Select {
            condition: condition.into(),
            then: then.into(),
            otherwise: otherwise.into(),
            output,
        });
        output
    }

    /// Adds a state with a read port for each query; returns the bits that each port reads.
    pub fn state(
        &mut self,
        name: &str,
        description: StateDescription,
        queries: Vec<(&str, RowChoice)>,
    ) -> Vec<Vec<Signal>> {
        let reads: Vec<ReadPort> = queries
            .into_iter()
            .map(|(port, query)| {
                let outputs =
                    (0..description.value.len()).map(|i| self.signal(&format!("{name}/{port}/bit{i}"), BIT)).collect();
                ReadPort { query, outputs }
            })
            .collect();
        let outputs = reads.iter().map(|read| read.outputs.clone()).collect();
        let StateDescription { rows, clear, write, value, level } = description;
        let name = self.name(name);
        self.netlist.operations.push(Operation::State(State { name, rows, clear, write, value, level, reads }));
        outputs
    }

    /// The finished netlist.
    #[must_use]
    pub fn finish(self) -> Netlist {
        self.netlist
    }
}

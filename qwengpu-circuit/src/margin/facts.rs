//! What is known of a netlist's signals: definitions, proven ranges and groups.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::cone::FormRanges;
use super::error::MarginError;
use super::form::{Form, Groups};
use super::tokens::TokenTable;
use super::world::{Constraint, MOST_DEPTH, World};
use crate::ir::{Netlist, Signal};
use crate::linear::Linear;

/// A term of a sum of products.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) coefficient: i64,
    pub(super) gate: Rc<Form>,
    pub(super) up: Rc<Form>,
    /// The up form's value if it is a constant.
    pub(super) up_constant: Option<i64>,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) argument: Rc<Form>,
    pub(super) first: i64,
    pub(super) columns: Vec<Vec<i64>>,
    pub(super) outputs: Vec<u32>,
}

/// How a signal is made.
#[derive(Clone, Debug, Default)]
pub(super) enum Definition {
    /// Not processed yet.
    #[default]
    Unknown,
    /// Set by the embedding.
    Input,
    /// `relu(gate)`.
    Relu(Rc<Form>),
    /// A sum of products.
    Sum(Rc<Vec<Term>>),
    /// An output of a table, by the column's number.
    Table { table: Rc<Table>, column: usize },
    /// A choice.
    Select { condition: Rc<Form>, then: Rc<Form>, otherwise: Rc<Form> },
    /// A bit read from a state.
    Read { port: usize, bit: usize },
}

impl Definition {
    /// Adds the signals that the definition uses.
    pub(super) fn operands(&self, into: &mut Vec<u32>) {
        let mut add = |form: &Form| into.extend(form.terms.iter().map(|term| term.signal));
        match self {
            Self::Relu(gate) => add(gate),
            Self::Sum(terms) => terms.iter().for_each(|term| add(&term.gate)),
            Self::Table { table, .. } => add(&table.argument),
            Self::Select { condition, then, otherwise } => {
                [condition, then, otherwise].into_iter().for_each(|form| add(form))
            }
            Self::Unknown | Self::Input | Self::Read { .. } => {}
        }
    }
}

/// A read port, as far as its outputs' values go.
#[derive(Debug, Default)]
pub(super) struct PortFacts {
    pub(super) state: usize,
    /// Forms of which one is at least 1 if any output is 1.
    pub(super) queries: Vec<Rc<Form>>,
    pub(super) outputs: Vec<u32>,
    /// If rows are read together: for each class of them and each bit, the row that can hold the bit. `None` if rows are
    /// read one by one.
    pub(super) classes: Option<Vec<Vec<Option<usize>>>>,
}

/// A state, as far as what is stored goes.
#[derive(Debug, Default)]
pub(super) struct StateFacts {
    /// A row (by number, or the only entry for addresses) is written only if its form is at least 1.
    pub(super) writes: Vec<Rc<Form>>,
    pub(super) values: Vec<Rc<Form>>,
}

/// Everything proven so far.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) netlist: &'a Netlist,
    pub(super) is_input: Vec<bool>,
    pub(super) definitions: Vec<Definition>,
    pub(super) groups: Groups,
    pub(super) tokens: TokenTable,
    pub(super) ports: Vec<Rc<PortFacts>>,
    /// By operation number.
    pub(super) states: BTreeMap<usize, StateFacts>,
    pub(super) worlds: Vec<World>,
    pub(super) depth: usize,
    /// Ranges of forms in the cones of enumerations.
    pub(super) enumerated: FormRanges,
    /// For sums of products, sets of terms of which only one is active at a time, where they were needed.
    pub(super) cliques: BTreeMap<Signal, Vec<Vec<usize>>>,
    /// For sums of products, how many gates are at least 0 at the same time, where that is known.
    pub(super) awake: BTreeMap<Signal, usize>,
    /// What could not be proven so far; the proof goes on as if it had been.
    pub(super) faults: Vec<MarginError>,
    /// The largest sum of squares of channels.
    pub(super) largest_squares: i64,
    stored: BTreeMap<(usize, usize, usize), bool>,
    forms: BTreeMap<Linear, Rc<Form>>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(netlist: &'a Netlist) -> Self {
        let count = netlist.signals().len();
        let mut facts = Self {
            netlist,
            is_input: vec![false; count],
            definitions: vec![Definition::default(); count],
            groups: Groups { members: Vec::new(), of: vec![Vec::new(); count] },
            tokens: TokenTable::new(netlist),
            ports: Vec::new(),
            states: BTreeMap::new(),
            worlds: Vec::new(),
            depth: 0,
            enumerated: FormRanges::new(),
            cliques: BTreeMap::new(),
            awake: BTreeMap::new(),
            faults: Vec::new(),
            largest_squares: 0,
            stored: BTreeMap::new(),
            forms: BTreeMap::new(),
        };
        // The last world is never narrowed: it keeps the ranges themselves.
        facts.worlds.resize_with(MOST_DEPTH + 1, World::default);
        for world in &mut facts.worlds {
            world.low = netlist.signals().iter().map(|info| *info.range.start()).collect();
            world.high = netlist.signals().iter().map(|info| *info.range.end()).collect();
        }
        for &input in netlist.inputs() {
            facts.is_input[input.index()] = true;
            facts.definitions[input.index()] = Definition::Input;
            let range = facts.tokens.range(input.0).unwrap_or((0, 0));
            facts.set_range(input, range);
        }
        facts
    }

    /// Keeps a fault, and goes on with `otherwise`.
    pub(super) fn note<T>(&mut self, outcome: Result<T, MarginError>, otherwise: T) -> T {
        outcome.unwrap_or_else(|fault| {
            self.faults.push(fault);
            otherwise
        })
    }

    /// Records a proven range.
    pub(super) fn set_range(&mut self, signal: Signal, (low, high): (i64, i64)) {
        for world in &mut self.worlds {
            world.low[signal.index()] = low;
            world.high[signal.index()] = high;
        }
    }

    /// The proven range of a signal.
    pub(super) fn signal_range(&self, signal: Signal) -> (i64, i64) {
        (self.worlds[MOST_DEPTH].low[signal.index()], self.worlds[MOST_DEPTH].high[signal.index()])
    }

    /// Records a proven group.
    pub(super) fn add_group(&mut self, members: &[Signal]) {
        let number = crate::tensors::index(self.groups.members.len());
        for member in members {
            self.groups.of[member.index()].push(number);
        }
        self.groups.members.push(members.iter().map(|member| member.0).collect());
        // Forms made before do not know the group; those made from now on do.
        self.forms.clear();
    }

    /// Prepares a form; equal forms share.
    pub(super) fn form(&mut self, linear: &Linear) -> Rc<Form> {
        if let Some(form) = self.forms.get(linear) {
            return Rc::clone(form);
        }
        let form = Rc::new(Form::new(linear, &self.is_input, &self.groups, &mut self.tokens));
        self.forms.insert(linear.clone(), Rc::clone(&form));
        form
    }

    /// The range of a form by the ranges of its signals, proven groups, and the tokens.
    pub(super) fn range(&self, form: &Form) -> (i64, i64) {
        let world = &self.worlds[MOST_DEPTH];
        form.range(&world.low, &world.high)
    }

    /// The range of a linear form, by enumeration if it is part of one.
    pub(super) fn linear_range(&mut self, linear: &Linear) -> (i64, i64) {
        let form = self.form(linear);
        let (low, high) = self.range(&form);
        match self.enumerated.get(linear) {
            Some(&(least, most)) => (low.max(least), high.min(most)),
            None => (low, high),
        }
    }

    /// Whether two bits of a row that a port reads are never both 1.
    pub(super) fn stored_exclusive(&mut self, port: usize, a: usize, b: usize) -> bool {
        let facts = Rc::clone(&self.ports[port]);
        let key = (port, a.min(b), a.max(b));
        if let Some(&known) = self.stored.get(&key) {
            return known;
        }
        // Until it is proven, a question within the proof must not rely on it.
        self.stored.insert(key, false);
        let Some(state) = self.states.get(&facts.state) else { return false };
        let both = [Constraint::at_least(&state.values[a], 1), Constraint::at_least(&state.values[b], 1)];
        let writes = state.writes.clone();
        let row = |write: &Rc<Form>| {
            let mut all = both.to_vec();
            all.push(Constraint::at_least(write, 1));
            all
        };
        let proven = match &facts.classes {
            None => self.contradict(&both) || writes.iter().all(|write| self.contradict(&row(write))),
            Some(classes) => classes.iter().all(|rows| match (rows[a], rows[b]) {
                (Some(first), Some(second)) => first == second && self.contradict(&row(&writes[first])),
                // A bit that can be stored in no row is never 1.
                _ => true,
            }),
        };
        self.stored.insert(key, proven);
        proven
    }
}

/// Smallest and largest entry of a column for arguments in a range, clamped at both ends.
pub(super) fn column_range(column: &[i64], first: i64, least: i64, most: i64) -> (i64, i64) {
    let at = |argument: i64| {
        usize::try_from(argument.saturating_sub(first)).unwrap_or(0).min(column.len().saturating_sub(1))
    };
    let entries = &column[at(least)..=at(most).max(at(least))];
    (entries.iter().min().copied().unwrap_or(0), entries.iter().max().copied().unwrap_or(0))
}

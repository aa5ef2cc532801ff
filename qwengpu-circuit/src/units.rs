//! What the scheduler places: logic operations, and the read ports of states, with their uses and outputs.

use std::collections::BTreeSet;

use crate::geometry::Geometry;
use crate::ir::{Netlist, Operation, Signal};
use crate::neurons::Expansion;

/// What is placed as a whole in one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// A Table, Products or Select operation, by its number: part of a layer's MLP.
    Logic(usize),
    /// A copy of a state for one of its read ports, by the numbers of both: heads of a layer's mixer. A state without
    /// ports has one copy, numbered 0, that is only written.
    Port(usize, usize),
}

/// A unit with what the scheduler needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct UnitInfo {
    pub(crate) unit: Unit,
    /// Signals read, distinct.
    pub(crate) uses: Vec<Signal>,
    /// Signals made that anything reads, each needs a channel.
    pub(crate) makes: Vec<Signal>,
    /// Heads of a port.
    pub(crate) heads: usize,
}

impl UnitInfo {
    pub(crate) fn is_port(&self) -> bool {
        matches!(self.unit, Unit::Port(..))
    }
}

/// All units of a netlist, with the readers of each signal.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    pub(crate) units: Vec<UnitInfo>,
    /// For each signal, the units that read it.
    pub(crate) readers: Vec<Vec<usize>>,
    /// For each signal, whether a token's code reads it at the end.
    pub(crate) coded: Vec<bool>,
}

/// Banks and slices of a state: heads below each other, and heads side by side.
pub(crate) fn bank_grid(geometry: &Geometry, rows: usize, bits: usize) -> (usize, usize) {
    (rows.div_ceil(geometry.key_dim), bits.div_ceil(geometry.bits_per_head()))
}

impl Units {
    /// Units in the netlist's order; logic that nothing reads is left out.
    pub(crate) fn new(netlist: &Netlist, geometry: &Geometry, expansion: &Expansion) -> Self {
        let count = netlist.signals().len();
        let mut coded = vec![false; count];
        for token in netlist.tokens() {
            for &(signal, _) in &token.code {
                coded[signal.index()] = true;
            }
        }
        let mut read = coded.clone();
        let mut units = Vec::new();
        for (number, operation) in netlist.operations().iter().enumerate().rev() {
            match operation {
                Operation::State(state) => {
                    let (banks, slices) = bank_grid(geometry, state.rows, state.value.len());
                    let own: BTreeSet<Signal> = state.forms().flat_map(|form| form.terms().map(|(signal, _)| signal)).collect();
                    for port in (0..state.reads.len().max(1)).rev() {
                        let mut uses = own.clone();
                        let mut makes = Vec::new();
                        if let Some(port) = state.reads.get(port) {
                            uses.extend(port.query.forms().flat_map(|form| form.terms().map(|(signal, _)| signal)));
                            makes.extend(port.outputs.iter().copied().filter(|output| read[output.index()]));
                        }
                        units.push(UnitInfo {
                            unit: Unit::Port(number, port),
                            uses: uses.into_iter().collect(),
                            makes,
                            heads: banks * slices,
                        });
                    }
                    // All ports stand before their state's forms in time, so forms are read even if no output is.
                    for info in units.iter().rev().take(state.reads.len().max(1)) {
                        info.uses.iter().for_each(|signal| read[signal.index()] = true);
                    }
                }
                Operation::Table { .. } | Operation::Products { .. } | Operation::Select { .. } => {
                    let makes: Vec<Signal> = operation.outputs().into_iter().filter(|output| read[output.index()]).collect();
                    if makes.is_empty() {
                        continue;
                    }
                    let mut uses = BTreeSet::new();
                    for contribution in &expansion.operations[number] {
                        if read[contribution.output.index()] {
                            let neuron = expansion.neuron(contribution.neuron);
                            uses.extend(neuron.gate.terms().chain(neuron.up.terms()).map(|(signal, _)| signal));
                        }
                    }
                    uses.iter().for_each(|signal| read[signal.index()] = true);
                    let uses = uses.into_iter().collect();
                    units.push(UnitInfo { unit: Unit::Logic(number), uses, makes, heads: 0 });
                }
            }
        }
        units.reverse();
        let mut readers = vec![Vec::new(); count];
        for (number, info) in units.iter().enumerate() {
            for signal in &info.uses {
                readers[signal.index()].push(number);
            }
        }
        Self { units, readers, coded }
    }

    /// Whether anything reads a signal: only such signals have a channel.
    pub(crate) fn is_read(&self, signal: Signal) -> bool {
        self.coded[signal.index()] || !self.readers[signal.index()].is_empty()
    }
}

//! What the scheduler places: logic operations, and the read ports of states, with their uses and outputs.

use std::collections::{BTreeMap, BTreeSet};

use crate::geometry::Geometry;
use crate::ir::{Netlist, Operation, Signal};
use crate::linear::Linear;
use crate::neurons::{Expansion, largest};

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
    /// For each signal, the first signal of those that share its channel: signals that only ever appear together,
    /// with equal coefficients. The channel holds their sum.
    pub(crate) class: Vec<Signal>,
}

/// A class in the making.
#[derive(Clone, Copy)]
struct Sum {
    /// The signal that stands for it.
    first: Signal,
    /// The least and the largest sum.
    low: i64,
    high: i64,
    /// Neurons that add to it, and the sum of the magnitudes of what they add.
    neurons: i64,
    load: i64,
}

/// The largest number of neurons times magnitudes of what they add, so that f32 roundings of their sum, in any order,
/// stay below `2^-10`.
const LARGEST_ROUNDING: i64 = 1 << 14;

/// The largest magnitude that a shared channel may sum up to. bf16 would hold every integer up to 256, but a projection
/// into a channel that many signals share rounds in f32 at the size of their sum, which costs more margin than channels.
const LARGEST_SUM: i64 = 1;

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
                    let own: BTreeSet<Signal> =
                        state.forms().flat_map(|form| form.terms().map(|(signal, _)| signal)).collect();
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
                    let makes: Vec<Signal> =
                        operation.outputs().into_iter().filter(|output| read[output.index()]).collect();
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
        let class = classes(netlist, expansion, &units, &readers, &coded);
        Self { units, readers, coded, class }
    }

    /// The signal that stands for all that share the channel of this one.
    pub(crate) fn class(&self, signal: Signal) -> Signal {
        self.class[signal.index()]
    }

    /// Whether anything reads a signal: only such signals have a channel.
    pub(crate) fn is_read(&self, signal: Signal) -> bool {
        self.coded[signal.index()] || !self.readers[signal.index()].is_empty()
    }
}

/// Finds signals that only ever appear together with equal coefficients, and so can share a channel.
fn classes(
    netlist: &Netlist,
    expansion: &Expansion,
    units: &[UnitInfo],
    readers: &[Vec<usize>],
    coded: &[bool],
) -> Vec<Signal> {
    let count = netlist.signals().len();
    // For each signal, the forms in which it appears, by number, with its coefficient.
    let mut appearances: Vec<Vec<(usize, i64)>> = vec![Vec::new(); count];
    let mut number = 0;
    let mut appear = |form: &Linear| {
        for (signal, coefficient) in form.terms() {
            appearances[signal.index()].push((number, coefficient));
        }
        number += 1;
    };
    let mut seen = vec![false; expansion.neurons.len()];
    let mut made = vec![false; count];
    for info in units {
        info.makes.iter().for_each(|signal| made[signal.index()] = true);
        match (info.unit, info.unit.operation(netlist)) {
            (Unit::Port(_, port), Some(Operation::State(state))) => {
                let query = state.reads.get(port).into_iter().flat_map(|read| read.query.forms());
                state.forms().chain(query).for_each(&mut appear);
            }
            (Unit::Logic(operation), _) => {
                for contribution in &expansion.operations[operation] {
                    if made[contribution.output.index()]
                        && !std::mem::replace(&mut seen[contribution.neuron.index()], true)
                    {
                        let neuron = expansion.neuron(contribution.neuron);
                        appear(&neuron.gate);
                        appear(&neuron.up);
                    }
                }
            }
            (Unit::Port(..), _) => {}
        }
    }
    let mut class: Vec<Signal> = (0..count).map(|signal| Signal(crate::tensors::index(signal))).collect();
    let loads = loads(netlist, expansion);
    // By where they appear: the first signal, and the sum so far.
    let mut groups: BTreeMap<&[(usize, i64)], Sum> = BTreeMap::new();
    for (position, info) in netlist.signals().iter().enumerate() {
        if coded[position] || readers[position].is_empty() {
            continue;
        }
        let (low, high) = ((*info.range.start()).min(0), (*info.range.end()).max(0));
        let own = Signal(crate::tensors::index(position));
        let (neurons, load) = loads[position];
        let empty = Sum { first: own, low: 0, high: 0, neurons: 0, load: 0 };
        let group = groups.entry(&appearances[position]).or_insert(empty);
        let rounded = (group.neurons + neurons).saturating_mul(group.load + load) > LARGEST_ROUNDING;
        if group.low + low < -LARGEST_SUM || group.high + high > LARGEST_SUM || rounded {
            *group = empty;
        }
        group.low += low;
        group.high += high;
        group.neurons += neurons;
        group.load += load;
        class[position] = group.first;
    }
    class
}

/// For each signal, how many neurons add to it, and the largest sum of the magnitudes of what they add.
fn loads(netlist: &Netlist, expansion: &Expansion) -> Vec<(i64, i64)> {
    let mut loads = vec![(0_i64, 0_i64); netlist.signals().len()];
    for contribution in expansion.operations.iter().flatten() {
        let neuron = expansion.neuron(contribution.neuron);
        let gate = largest(netlist, &neuron.gate).max(0);
        let up = largest(netlist, &neuron.up).max(largest(netlist, &-neuron.up.clone()));
        let load = &mut loads[contribution.output.index()];
        load.0 += 1;
        load.1 = load.1.saturating_add((contribution.down.abs() * gate).saturating_mul(up) / 2);
    }
    loads
}

impl Unit {
    fn operation(self, netlist: &Netlist) -> Option<&Operation> {
        let (Self::Logic(number) | Self::Port(number, _)) = self;
        netlist.operations().get(number)
    }
}

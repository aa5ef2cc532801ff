//! Operations as MLP neurons, each distinct neuron once.
//!
//! A neuron adds `down / 256 * silu(128 * gate) * up`, which is `down / 2 * relu(gate) * up` for integer gates.

use std::collections::BTreeMap;

use crate::ir::{Netlist, Operation, Signal, StepKind};
use crate::linear::Linear;

/// A distinct neuron of an [`Expansion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NeuronId(u32);

impl NeuronId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Two integer forms: `relu(gate) * up`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Neuron {
    pub(crate) gate: Linear,
    pub(crate) up: Linear,
}

/// What a neuron adds to a signal: `down / 2 * relu(gate) * up`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contribution {
    pub(crate) neuron: NeuronId,
    pub(crate) output: Signal,
    pub(crate) down: i64,
}

/// All neurons of a netlist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expansion {
    pub(crate) neurons: Vec<Neuron>,
    numbers: BTreeMap<Neuron, NeuronId>,
    /// For each operation, what its neurons add; sorted by neuron; empty for states.
    pub(crate) operations: Vec<Vec<Contribution>>,
}

impl Expansion {
    /// Expands every operation of a netlist.
    pub(crate) fn new(netlist: &Netlist) -> Self {
        let mut expansion = Self::default();
        for operation in netlist.operations() {
            let contributions = expansion.expand(netlist, operation);
            expansion.operations.push(contributions);
        }
        expansion
    }

    pub(crate) fn neuron(&self, id: NeuronId) -> &Neuron {
        &self.neurons[id.index()]
    }

    /// The number of a neuron, a new one if it was not seen before.
    pub(crate) fn intern(&mut self, gate: Linear, up: Linear) -> NeuronId {
        let neuron = Neuron { gate, up };
        if let Some(&id) = self.numbers.get(&neuron) {
            return id;
        }
        let id = NeuronId(crate::tensors::index(self.neurons.len()));
        self.neurons.push(neuron.clone());
        self.numbers.insert(neuron, id);
        id
    }

    fn expand(&mut self, netlist: &Netlist, operation: &Operation) -> Vec<Contribution> {
        let mut sum: BTreeMap<(Neuron, Signal), i64> = BTreeMap::new();
        let mut add = |gate: Linear, up: Linear, output: Signal, down: i64| {
            let silent = gate.is_constant() && gate.constant() <= 0;
            let zero = up.is_constant() && up.constant() == 0;
            if !silent && !zero && down != 0 {
                *sum.entry((Neuron { gate, up }, output)).or_insert(0) += down;
            }
        };
        match operation {
            Operation::Table { argument, first, columns, steps, outputs } => {
                for (column, &output) in columns.iter().zip(outputs) {
                    if let Some(&base) = column.first() {
                        add(Linear::one(), Linear::one(), output, 2 * base);
                    }
                    let slope = column_slope(column, *steps);
                    if slope != 0 {
                        let last = first + length(column) - 1;
                        add(argument.clone() - *first, Linear::one(), output, 2 * slope);
                        if largest(netlist, argument) > last {
                            add(argument.clone() - last, Linear::one(), output, -2 * slope);
                        }
                    }
                    for (threshold, pair) in (first + 1..).zip(column.windows(2)) {
                        let change = pair[1] - pair[0] - slope;
                        if change != 0 {
                            let past = argument.clone() - threshold;
                            let (upper, lower, scale) = match steps {
                                StepKind::DeadZone => (past.clone() * 4 + 3, past * 4 + 1, 1),
                                StepKind::Plain => (past.clone() + 1, past, 2),
                            };
                            add(upper, Linear::one(), output, change * scale);
                            add(lower, Linear::one(), output, -change * scale);
                        }
                    }
                }
            }
            Operation::Products { terms, output } => {
                for term in terms {
                    add(term.gate.clone(), term.up.clone(), *output, 2 * term.coefficient);
                }
            }
            Operation::Select { condition, then, otherwise, output } => {
                let difference = then.clone() - otherwise;
                add(condition.clone() * 4 + 3, difference.clone(), *output, 1);
                add(condition.clone() * 4 + 1, difference, *output, -1);
                add(otherwise.clone(), Linear::one(), *output, 2);
            }
            Operation::State(_) => {}
        }
        sum.into_iter()
            .filter(|&(_, down)| down != 0)
            .map(|((Neuron { gate, up }, output), down)| Contribution { neuron: self.intern(gate, up), output, down })
            .collect()
    }
}

/// The least number of entries of a column that may be lowered with a slope.
const SLOPE_ENTRIES: usize = 8;

/// The slope, of -1, 0 and 1, around which a column is made of steps. One other than 0 costs two ramp neurons and
/// lets the argument's noise through once, so it must save more than half of the steps of a long column. Plain steps
/// next to each other merge into slopes by themselves.
pub(crate) fn column_slope(column: &[i64], steps: StepKind) -> i64 {
    if steps == StepKind::Plain || column.len() < SLOPE_ENTRIES {
        return 0;
    }
    let cost = |slope: i64| {
        let steps = column.windows(2).filter(|pair| pair[1] - pair[0] != slope).count();
        2 * steps + if slope == 0 { 0 } else { 2 }
    };
    [1, -1].into_iter().find(|&slope| 2 * cost(slope) < cost(0)).unwrap_or(0)
}

/// The largest value of a form by the declared ranges of its signals alone.
pub(crate) fn largest(netlist: &Netlist, form: &Linear) -> i64 {
    form.terms().fold(form.constant(), |sum, (signal, coefficient)| {
        let range = &netlist.signals()[signal.index()].range;
        sum + coefficient * if coefficient > 0 { *range.end() } else { *range.start() }
    })
}

fn length(column: &[i64]) -> i64 {
    i64::try_from(column.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;

    fn count(build: impl FnOnce(&mut Builder, Signal)) -> usize {
        let mut builder = Builder::new();
        let x = builder.input("x", 0..=9);
        build(&mut builder, x);
        Expansion::new(&builder.finish()).neurons.len()
    }

    #[test]
    fn tables_of_one_argument_share_their_steps() {
        let two = |builder: &mut Builder, x: Signal| {
            builder.table(&["a"], x, 0, vec![vec![0, 1, 1, 0]]);
            builder.table(&["b"], x, 0, vec![vec![0, 1, 0, 0]]);
        };
        assert_eq!(count(two), 6);
    }

    #[test]
    fn plain_steps_next_to_each_other_merge() {
        assert_eq!(count(|builder, x| drop(builder.plain_table(&["same"], x, 0, vec![(0..10).collect()]))), 2);
    }

    #[test]
    fn long_columns_use_a_slope() {
        assert_eq!(count(|builder, x| drop(builder.table(&["same"], x, 0, vec![(0..10).collect()]))), 1);
        let low = |builder: &mut Builder, x: Signal| {
            drop(builder.table(&["low"], x, 0, vec![(0..10).map(|n| n % 5).collect()]))
        };
        assert_eq!(count(low), 3);
        assert_eq!(count(|builder, x| drop(builder.table(&["clamped"], x, 0, vec![(0..9).collect()]))), 2);
        assert_eq!(count(|builder, x| drop(builder.table(&["short"], x, 0, vec![(0..5).collect()]))), 8);
    }

    #[test]
    fn a_base_value_costs_one_neuron_for_all() {
        let base = |builder: &mut Builder, x: Signal| {
            builder.table(&["a", "b"], x, 0, vec![vec![1, 0], vec![5, 0]]);
        };
        assert_eq!(count(base), 3);
    }
}

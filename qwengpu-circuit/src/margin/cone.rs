//! Ranges proven by evaluating everything between a cut and some outputs for each combination of the cut's values.

use std::collections::{BTreeMap, BTreeSet};

use super::error::MarginError;
use super::facts::Facts;
use super::world::Constraint;
use crate::ir::{Netlist, Operation, Signal};
use crate::linear::Linear;

/// The largest number of combinations.
const MOST_COMBINATIONS: usize = 1 << 18;
/// Combinations that are evaluated at once.
const BLOCK: usize = 1 << 11;

/// What enumeration found of a form in the cone.
pub(super) type FormRanges = BTreeMap<Linear, (i64, i64)>;

/// Outputs of all enumerations and what lies between: their ranges are proven when the enumeration runs.
pub(super) fn outputs(netlist: &Netlist) -> BTreeSet<Signal> {
    let cones = netlist.enumerations().iter().filter_map(|hint| cone(netlist, &hint.cut, &hint.outputs).ok());
    cones.flatten().flat_map(|number| netlist.operations()[number].outputs()).collect()
}

/// Operations between a cut and outputs, in order; or a signal that the cone reads besides.
fn cone(netlist: &Netlist, cut: &[Signal], outputs: &[Signal]) -> Result<Vec<usize>, Signal> {
    let mut maker: BTreeMap<Signal, usize> = BTreeMap::new();
    for (number, operation) in netlist.operations().iter().enumerate() {
        if !matches!(operation, Operation::State(_)) {
            maker.extend(operation.outputs().into_iter().map(|output| (output, number)));
        }
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<Signal> = outputs.to_vec();
    while let Some(signal) = open.pop() {
        if cut.contains(&signal) {
            continue;
        }
        let Some(&number) = maker.get(&signal) else { return Err(signal) };
        if found.insert(number) {
            let forms = forms(&netlist.operations()[number]);
            open.extend(forms.iter().flat_map(|form| form.terms().map(|(signal, _)| signal)));
        }
    }
    Ok(found.into_iter().collect())
}

/// The forms that an operation of logic evaluates.
fn forms(operation: &Operation) -> Vec<&Linear> {
    match operation {
        Operation::Table { argument, .. } => vec![argument],
        Operation::Products { terms, .. } => terms.iter().flat_map(|term| [&term.gate, &term.up]).collect(),
        Operation::Select { condition, then, otherwise, .. } => vec![condition, then, otherwise],
        Operation::State(_) => Vec::new(),
    }
}

impl Facts<'_> {
    /// Proves the ranges of an enumeration's cone.
    pub(super) fn enumerate(&mut self, hint: usize) -> Result<(), MarginError> {
        let netlist = self.netlist;
        let hint = &netlist.enumerations()[hint];
        let fault = |what: String| MarginError::Enumeration {
            output: hint.outputs.first().map_or_else(String::new, |&output| netlist.name(output).to_owned()),
            what,
        };
        let operations = cone(netlist, &hint.cut, &hint.outputs)
            .map_err(|signal| fault(format!("it also depends on {}, which is not in the cut", netlist.name(signal))))?;
        let ranges: Vec<(i64, i64)> = hint.cut.iter().map(|&signal| self.signal_range(signal)).collect();
        let total = ranges.iter().try_fold(1_usize, |total, (low, high)| {
            let values = usize::try_from(high - low + 1).ok()?;
            total.checked_mul(values).filter(|&total| total <= MOST_COMBINATIONS)
        });
        let Some(total) = total else {
            return Err(fault(format!("the cut has more than {MOST_COMBINATIONS} combinations")));
        };
        let impossible = self.impossible_pairs(&hint.cut);
        // Columns of values: the cut, then every output of the cone.
        let mut column: BTreeMap<Signal, usize> = hint.cut.iter().enumerate().map(|(i, &signal)| (signal, i)).collect();
        for &number in &operations {
            for output in netlist.operations()[number].outputs() {
                let next = column.len();
                column.entry(output).or_insert(next);
            }
        }
        let mut values: Vec<Vec<i64>> = vec![vec![0; BLOCK]; column.len()];
        let mut signals: Vec<(i64, i64)> = vec![(i64::MAX, i64::MIN); column.len()];
        let mut found = FormRanges::new();
        let mut awake = BTreeMap::new();
        let mut block = Block { column: &column, ranges: &mut found, awake: &mut awake };
        let mut next = 0;
        while next < total {
            let mut filled = 0;
            while filled < BLOCK && next < total {
                let mut rest = next;
                for (place, (low, high)) in ranges.iter().enumerate() {
                    let count = usize::try_from(high - low + 1).unwrap_or(1);
                    values[place][filled] = low + i64::try_from(rest % count).unwrap_or(0);
                    rest /= count;
                }
                next += 1;
                let excluded = impossible.iter().any(|&(a, x, b, y)| values[a][filled] == x && values[b][filled] == y);
                filled += usize::from(!excluded);
            }
            for &number in &operations {
                block.operation(&netlist.operations()[number], &mut values, filled);
            }
            for (range, values) in signals.iter_mut().zip(&values) {
                for &value in &values[..filled] {
                    *range = (range.0.min(value), range.1.max(value));
                }
            }
        }
        for (&signal, &place) in column.iter().filter(|(_, place)| **place >= hint.cut.len()) {
            if signals[place].0 <= signals[place].1 {
                self.accept(signal, signals[place], String::new)?;
            }
        }
        self.awake.extend(awake);
        for (form, range) in found {
            let entry = self.enumerated.entry(form).or_insert(range);
            *entry = (entry.0.max(range.0), entry.1.min(range.1));
        }
        Ok(())
    }

    /// Pairs of bits of a cut, with values, that no token has at once.
    fn impossible_pairs(&mut self, cut: &[Signal]) -> Vec<(usize, i64, usize, i64)> {
        let mut pairs = Vec::new();
        let forms: Vec<_> = cut.iter().map(|&signal| self.form(&signal.into())).collect();
        for second in 0..cut.len() {
            for first in 0..second {
                if self.signal_range(cut[first]) != (0, 1) || self.signal_range(cut[second]) != (0, 1) {
                    continue;
                }
                let is = |place: usize, value: i64| match value {
                    1 => Constraint::at_least(&forms[place], 1),
                    _ => Constraint::at_most(&forms[place], 0),
                };
                for (x, y) in [(1, 1), (1, 0), (0, 1)] {
                    if self.contradict(&[is(first, x), is(second, y)]) {
                        pairs.push((first, x, second, y));
                    }
                }
            }
        }
        pairs
    }
}

struct Block<'a> {
    column: &'a BTreeMap<Signal, usize>,
    ranges: &'a mut FormRanges,
    /// For each sum of products, the largest number of gates that are at least 0.
    awake: &'a mut BTreeMap<Signal, usize>,
}

impl Block<'_> {
    /// A form's values over a block; records its range.
    fn form(&mut self, form: &Linear, values: &[Vec<i64>], filled: usize) -> Vec<i64> {
        let mut sums = vec![form.constant(); filled];
        for (signal, coefficient) in form.terms() {
            for (sum, value) in sums.iter_mut().zip(&values[self.column[&signal]]) {
                *sum += coefficient * value;
            }
        }
        let least = sums.iter().min().copied().unwrap_or(i64::MAX);
        let most = sums.iter().max().copied().unwrap_or(i64::MIN);
        match self.ranges.get_mut(form) {
            Some(range) => *range = (range.0.min(least), range.1.max(most)),
            None => drop(self.ranges.insert(form.clone(), (least, most))),
        }
        sums
    }

    fn operation(&mut self, operation: &Operation, values: &mut [Vec<i64>], filled: usize) {
        match operation {
            Operation::Table { argument, first, columns, outputs, .. } => {
                let arguments = self.form(argument, values, filled);
                for (entries, output) in columns.iter().zip(outputs) {
                    let target = &mut values[self.column[output]];
                    for (value, argument) in target.iter_mut().zip(&arguments) {
                        *value = entries[usize::try_from(argument - first).unwrap_or(0).min(entries.len() - 1)];
                    }
                }
            }
            Operation::Products { terms, output } => {
                let mut sums = vec![0; filled];
                let mut counts = vec![0_usize; filled];
                for term in terms {
                    let gates = self.form(&term.gate, values, filled);
                    counts.iter_mut().zip(&gates).for_each(|(count, gate)| *count += usize::from(*gate >= 0));
                    let ups = self.form(&term.up, values, filled);
                    for ((sum, gate), up) in sums.iter_mut().zip(&gates).zip(&ups) {
                        *sum += term.coefficient * (*gate).max(0) * up;
                    }
                }
                let most = self.awake.entry(*output).or_insert(0);
                *most = counts.into_iter().fold(*most, usize::max);
                values[self.column[output]][..filled].copy_from_slice(&sums);
            }
            Operation::Select { condition, then, otherwise, output } => {
                let [conditions, thens, others] =
                    [condition, then, otherwise].map(|form| self.form(form, values, filled));
                let target = &mut values[self.column[output]];
                for place in 0..filled {
                    target[place] = if conditions[place] >= 0 { thens[place] } else { others[place] };
                }
            }
            Operation::State(_) => {}
        }
    }
}

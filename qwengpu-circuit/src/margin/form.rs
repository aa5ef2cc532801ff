//! Linear forms prepared for bounds: terms in a row, members of one exclusive group marked.

use std::collections::BTreeMap;

use super::tokens::TokenTable;
use crate::linear::Linear;

/// No group.
pub(super) const ALONE: u32 = u32::MAX;

/// A term of a [`Form`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FormTerm {
    pub(super) signal: u32,
    pub(super) coefficient: i64,
    /// The group as whose member the term counts in this form, or [`ALONE`].
    pub(super) group: u32,
    pub(super) is_input: bool,
}

/// A linear form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) constant: i64,
    pub(super) terms: Vec<FormTerm>,
    /// Smallest and largest value of the part that consists of inputs, over all tokens.
    pub(super) inputs: (i64, i64),
}

/// Proven exclusive groups: which groups each signal is in.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) members: Vec<Vec<u32>>,
    pub(super) of: Vec<Vec<u32>>,
}

impl Form {
    pub(super) fn new(form: &Linear, is_input: &[bool], groups: &Groups, tokens: &mut TokenTable) -> Self {
        let mut terms: Vec<FormTerm> = form
            .terms()
            .map(|(signal, coefficient)| FormTerm {
                signal: signal.0,
                coefficient,
                group: ALONE,
                is_input: is_input[signal.index()],
            })
            .collect();
        let inputs: Vec<(u32, i64)> =
            terms.iter().filter(|term| term.is_input).map(|term| (term.signal, term.coefficient)).collect();
        let inputs = if inputs.is_empty() { (0, 0) } else { tokens.sum_range(&inputs) };
        // The groups with most members in the form first; inputs are bounded together anyway.
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for term in terms.iter().filter(|term| !term.is_input) {
            for &group in &groups.of[term.signal as usize] {
                *counts.entry(group).or_insert(0) += 1;
            }
        }
        let mut ranked: Vec<(usize, u32)> = counts
            .into_iter()
            .filter(|&(_, count)| count > 1)
            .map(|(group, count)| (usize::MAX - count, group))
            .collect();
        ranked.sort_unstable();
        for (_, group) in ranked {
            for term in &mut terms {
                if term.group == ALONE && !term.is_input && groups.of[term.signal as usize].contains(&group) {
                    term.group = group;
                }
            }
        }
        Self { constant: form.constant(), terms, inputs }
    }

    /// The largest value of `sign * form` when each signal lies in its range.
    pub(super) fn max(&self, sign: i64, low: &[i64], high: &[i64]) -> i64 {
        let mut sum = sign * self.constant;
        let mut inputs = 0;
        let mut best: Vec<(u32, i64)> = Vec::new();
        for term in &self.terms {
            let value = term.max(sign, low, high);
            if term.is_input {
                inputs += value;
            } else if term.group != ALONE && value > 0 {
                match best.iter_mut().find(|(group, _)| *group == term.group) {
                    Some((_, most)) => *most = (*most).max(value),
                    None => best.push((term.group, value)),
                }
            } else {
                sum += value;
            }
        }
        let grouped: i64 = best.iter().map(|(_, most)| most).sum();
        sum + inputs.min(self.input_cap(sign)) + grouped
    }

    /// The largest value of the part that consists of inputs, over all tokens.
    pub(super) fn input_cap(&self, sign: i64) -> i64 {
        if sign > 0 { self.inputs.1 } else { -self.inputs.0 }
    }

    /// Smallest and largest value.
    pub(super) fn range(&self, low: &[i64], high: &[i64]) -> (i64, i64) {
        (-self.max(-1, low, high), self.max(1, low, high))
    }
}

impl FormTerm {
    /// The largest value of `sign * coefficient * signal`.
    pub(super) fn max(self, sign: i64, low: &[i64], high: &[i64]) -> i64 {
        let coefficient = sign * self.coefficient;
        coefficient * if coefficient > 0 { high[self.signal as usize] } else { low[self.signal as usize] }
    }
}

//! The inputs as the tokens set them: exact, because tokens can be enumerated.

use std::collections::BTreeMap;

use crate::ir::Netlist;

/// A set of tokens.
pub(super) type TokenSet = Vec<u64>;

/// Which tokens give an input which value.
#[derive(Debug, Default)]
pub(super) struct TokenTable {
    count: usize,
    /// For each signal that is an input, `(value, tokens)`, values ascending; empty for others.
    values: Vec<Vec<(i64, TokenSet)>>,
    /// For each signal that is an input, its non-zero values by token.
    sparse: Vec<Vec<(u32, i64)>>,
    /// Largest and smallest value of sums of inputs that were asked for before.
    sums: BTreeMap<Vec<(u32, i64)>, (i64, i64)>,
}

impl TokenTable {
    pub(super) fn new(netlist: &Netlist) -> Self {
        let count = netlist.tokens().len();
        let words = count.div_ceil(64);
        let mut sparse: Vec<Vec<(u32, i64)>> = vec![Vec::new(); netlist.signals().len()];
        for (number, token) in netlist.tokens().iter().enumerate() {
            for &(signal, value) in &token.inputs {
                if value != 0 {
                    sparse[signal.index()].push((crate::tensors::index(number), value));
                }
            }
        }
        let mut values: Vec<Vec<(i64, TokenSet)>> = vec![Vec::new(); netlist.signals().len()];
        for input in netlist.inputs() {
            let mut by_value: BTreeMap<i64, TokenSet> = BTreeMap::new();
            let mut zero = vec![u64::MAX; words];
            if !count.is_multiple_of(64) {
                zero[words - 1] = (1 << (count % 64)) - 1;
            }
            for &(token, value) in &sparse[input.index()] {
                let (word, bit) = (token as usize / 64, 1 << (token % 64));
                by_value.entry(value).or_insert_with(|| vec![0; words])[word] |= bit;
                zero[word] &= !bit;
            }
            if zero.iter().any(|&word| word != 0) {
                by_value.insert(0, zero);
            }
            values[input.index()] = by_value.into_iter().collect();
        }
        Self { count, values, sparse, sums: BTreeMap::new() }
    }

    /// All tokens.
    pub(super) fn all(&self) -> TokenSet {
        let mut set = vec![u64::MAX; self.count.div_ceil(64)];
        if !self.count.is_multiple_of(64)
            && let Some(last) = set.last_mut()
        {
            *last = (1 << (self.count % 64)) - 1;
        }
        set
    }

    /// Values that some token of a set gives to an input: smallest and largest.
    pub(super) fn range_within(&self, signal: u32, set: &TokenSet) -> Option<(i64, i64)> {
        let meets = |tokens: &TokenSet| tokens.iter().zip(set).any(|(a, b)| a & b != 0);
        let values = &self.values[signal as usize];
        let low = values.iter().find(|(_, tokens)| meets(tokens))?.0;
        let high = values.iter().rev().find(|(_, tokens)| meets(tokens))?.0;
        Some((low, high))
    }

    /// Smallest and largest value of an input; `None` if no token exists.
    pub(super) fn range(&self, signal: u32) -> Option<(i64, i64)> {
        let values = &self.values[signal as usize];
        Some((values.first()?.0, values.last()?.0))
    }

    /// Removes the tokens that give an input a value outside `low ..= high`.
    pub(super) fn restrict(&self, set: &mut TokenSet, signal: u32, low: i64, high: i64) {
        for (value, tokens) in &self.values[signal as usize] {
            if !(low..=high).contains(value) {
                set.iter_mut().zip(tokens).for_each(|(word, gone)| *word &= !gone);
            }
        }
    }

    /// Smallest and largest value of `sum(coefficient * input)` over the tokens.
    pub(super) fn sum_range(&mut self, terms: &[(u32, i64)]) -> (i64, i64) {
        if let &[(signal, coefficient)] = terms {
            let (low, high) = self.range(signal).unwrap_or((0, 0));
            return if coefficient > 0 {
                (low * coefficient, high * coefficient)
            } else {
                (high * coefficient, low * coefficient)
            };
        }
        if let Some(&found) = self.sums.get(terms) {
            return found;
        }
        let mut sums = vec![0_i64; self.count];
        for &(signal, coefficient) in terms {
            for &(token, value) in &self.sparse[signal as usize] {
                sums[token as usize] += coefficient * value;
            }
        }
        let range = (sums.iter().min().copied().unwrap_or(0), sums.iter().max().copied().unwrap_or(0));
        self.sums.insert(terms.to_vec(), range);
        range
    }
}

//! The recurrent states of a linear layer: which rows, and which parts of a row, may be non-zero.

use super::memo::Pair;
use crate::delta_rule::{add_scaled, dot};
use crate::rows::SparseRows;

/// Bits in a row's mask.
const PARTS: usize = u64::BITS as usize;
/// Fewest columns in a part.
const LANES: usize = 8;

/// `[heads, dk, dv]`, zeros included; work is done where values may be non-zero only.
#[derive(Debug, Clone)]
pub(crate) struct State {
    values: Vec<f32>,
    /// `[heads, dk]`: the parts of a row that may be non-zero.
    filled: Vec<u64>,
    dk: usize,
    dv: usize,
}

/// A row that is put together, `[dv]`.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    values: Vec<f32>,
    /// Parts outside are zero.
    filled: u64,
}

/// Columns in a part of a row.
fn part_len(dv: usize) -> usize {
    dv.div_ceil(PARTS).next_multiple_of(LANES)
}

/// Calls `visit` with each stretch of columns in a mask.
#[inline(always)]
fn for_each_stretch(mut mask: u64, dv: usize, mut visit: impl FnMut(std::ops::Range<usize>)) {
    let part = part_len(dv);
    while mask != 0 {
        let first = mask.trailing_zeros();
        let end = first + (mask >> first).trailing_ones();
        visit(first as usize * part..(end as usize * part).min(dv));
        mask &= u64::MAX.checked_shl(end).unwrap_or(0);
    }
}

impl Line {
    pub(crate) fn new(dv: usize) -> Self {
        Self { values: vec![0.0; dv], filled: 0 }
    }

    /// Becomes zero.
    pub(crate) fn clear(&mut self) {
        let Self { values, filled } = self;
        for_each_stretch(std::mem::take(filled), values.len(), |stretch| values[stretch].fill(0.0));
    }

    /// Whether it is zero for certain.
    pub(crate) fn is_clear(&self) -> bool {
        self.filled == 0
    }

    /// Sets a column.
    #[inline]
    pub(crate) fn set(&mut self, col: usize, value: f32) {
        self.values[col] = value;
        self.filled |= 1 << (col / part_len(self.values.len()));
    }

    /// Changes every value; a zero must stay one.
    #[inline(always)]
    pub(crate) fn map(&mut self, change: impl Fn(f32) -> f32) {
        let Self { values, filled } = self;
        for_each_stretch(*filled, values.len(), |stretch| {
            values[stretch].iter_mut().for_each(|value| *value = change(*value));
        });
    }

    /// The sum of squares.
    pub(crate) fn squares(&self) -> f32 {
        let mut sum = 0.0;
        for_each_stretch(self.filled, self.values.len(), |stretch| {
            sum += dot(&self.values[stretch.clone()], &self.values[stretch]);
        });
        sum
    }

    /// Becomes zero; calls `visit` with each column and value that wasn't.
    #[inline(always)]
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(usize, f32)) {
        let Self { values, filled } = self;
        for_each_stretch(std::mem::take(filled), values.len(), |stretch| {
            let first = stretch.start;
            for (i, lanes) in values[stretch].chunks_mut(LANES).enumerate() {
                if lanes.iter().fold(0, |any, value| any | value.to_bits()) << 1 == 0 {
                    continue; // zeros of either sign
                }
                for (col, value) in (first + i * LANES..).zip(lanes) {
                    let value = std::mem::take(value);
                    if value != 0.0 {
                        visit(col, value);
                    }
                }
            }
        });
    }

    #[inline]
    fn add(&mut self, scale: f32, row: &[f32], filled: u64) {
        let values = &mut self.values;
        for_each_stretch(filled, row.len(), |stretch| add_scaled(&mut values[stretch.clone()], scale, &row[stretch]));
        self.filled |= filled;
    }
}

impl State {
    pub(crate) fn new(heads: usize, dk: usize, dv: usize) -> Self {
        Self { values: vec![0.0; heads * dk * dv], filled: vec![0; heads * dk], dk, dv }
    }

    /// A copy, `[heads * dk, dv]`.
    pub(crate) fn rows(&self) -> SparseRows {
        let mut rows = SparseRows::zeros(self.filled.len(), self.dv);
        for ((row, values), &filled) in (0..).zip(self.values.chunks_exact(self.dv)).zip(&self.filled) {
            if filled != 0 {
                rows.push(row, values);
            }
        }
        rows
    }

    /// One head's, `[dk, dv]`, if there is such a head.
    pub(crate) fn of_head(&self, head: usize) -> Option<&[f32]> {
        self.values.chunks_exact(self.dk * self.dv).nth(head)
    }

    /// The inverse of [`rows`](Self::rows).
    pub(crate) fn set_rows(&mut self, rows: &SparseRows) {
        self.clear();
        let part = part_len(self.dv);
        for (row, values) in rows.rows() {
            let row = row as usize;
            self.values[row * self.dv..][..self.dv].copy_from_slice(values);
            let is_filled = values.chunks(part).map(|part| part.iter().any(|s| s.to_bits() != 0));
            self.filled[row] = (0..).zip(is_filled).fold(0, |mask, (i, is_filled)| mask | u64::from(is_filled) << i);
        }
    }

    /// Becomes zero.
    pub(crate) fn clear(&mut self) {
        let Self { values, filled, dv, .. } = self;
        for (row, filled) in values.chunks_exact_mut(*dv).zip(filled).filter(|(_, filled)| **filled != 0) {
            for_each_stretch(std::mem::take(filled), *dv, |stretch| row[stretch].fill(0.0));
        }
    }

    /// Multiplies a head's rows.
    pub(crate) fn scale(&mut self, head: usize, factor: f32) {
        let rows = head * self.dk..(head + 1) * self.dk;
        for (row, filled) in rows.clone().zip(&mut self.filled[rows]).filter(|(_, filled)| **filled != 0) {
            let values = &mut self.values[row * self.dv..(row + 1) * self.dv];
            for_each_stretch(*filled, self.dv, |stretch| values[stretch].iter_mut().for_each(|s| *s *= factor));
            if factor == 0.0 {
                *filled = 0;
            }
        }
    }

    /// Adds `scale S^T k` to a line.
    #[inline]
    pub(crate) fn read(&self, head: usize, keys: &[Pair], scale: f32, line: &mut Line) {
        for &(key, k) in keys {
            let row = head * self.dk + key as usize;
            line.add(scale * f32::from_bits(k), &self.values[row * self.dv..(row + 1) * self.dv], self.filled[row]);
        }
    }

    /// `S += k line^T`.
    #[inline]
    pub(crate) fn write(&mut self, head: usize, keys: &[Pair], line: &Line) {
        for &(key, k) in keys {
            let row = head * self.dk + key as usize;
            let values = &mut self.values[row * self.dv..(row + 1) * self.dv];
            for_each_stretch(line.filled, self.dv, |stretch| {
                add_scaled(&mut values[stretch.clone()], f32::from_bits(k), &line.values[stretch]);
            });
            self.filled[row] |= line.filled;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::delta_rule::{Token, recurrent_step};

    fn list(values: &[f32]) -> Vec<Pair> {
        (0..).zip(values).filter(|&(_, &value)| value != 0.0).map(|(i, value)| (i, value.to_bits())).collect()
    }

    proptest! {
        /// The delta rule in parts of rows against that on whole matrices; small integers, so that sums are exact.
        #[test]
        fn parts_are_enough(
            dv in prop::sample::select(vec![3_usize, 8, 20, 70, 600]),
            steps in prop::collection::vec((prop::collection::vec(-1..2_i8, 2), prop::collection::vec(-1..2_i8, 2), prop::collection::btree_map(0..600_usize, -3..4_i8, 0..4), 0..3_u8), 1..8),
        ) {
            let floats = |values: &[i8]| values.iter().copied().map(f32::from).collect::<Vec<f32>>();
            let mut state = State::new(2, 2, dv);
            let mut expected = vec![0.0; 2 * dv];
            let mut copy = State::new(2, 2, dv);
            for (key, query, set, decay) in steps {
                let (key, query, decay) = (floats(&key), floats(&query), f32::from(decay));
                let mut value = vec![0.0; dv];
                set.into_iter().for_each(|(col, v)| value[col % dv] = f32::from(v));
                let mut read = vec![0.0; dv];
                let token = Token { query: &query, key: &key, value: &value, decay, beta: 1.0 };
                recurrent_step(&mut expected, token, &mut read);

                state.scale(1, decay);
                let mut line = Line::new(dv);
                list(&value).into_iter().for_each(|(col, v)| line.set(col as usize, f32::from_bits(v)));
                state.read(1, &list(&key), -1.0, &mut line);
                state.write(1, &list(&key), &line);
                line.clear();
                prop_assert!(line.is_clear());
                state.read(1, &list(&query), 1.0, &mut line);

                prop_assert_eq!(state.of_head(1).expect("a head"), &expected[..]);
                prop_assert!(state.of_head(0).expect("a head").iter().all(|&s| s == 0.0));
                prop_assert_eq!(&state.rows().to_dense(), &state.values);
                let mut got = vec![0.0; dv];
                line.drain(|col, value| got[col] = value);
                prop_assert_eq!(&got, &read);
                copy.set_rows(&state.rows());
                let mut again = Line::new(dv);
                copy.read(1, &list(&query), 1.0, &mut again);
                prop_assert_eq!(again.squares().to_bits(), dot(&read, &read).to_bits());
            }
        }
    }
}

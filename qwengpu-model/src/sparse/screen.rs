//! Which neurons may have a `silu` that isn't exactly zero, found without computing their sums.
//!
//! Far below zero `silu` underflows to zero. In compiled weights nearly every neuron is held down there by a bias from
//! one constant channel, until enough inputs raise it. So only contributions that raise a neuron are added up, and only
//! neurons that are raised far enough are computed: what lowers a neuron can't make a zero into something else.

use super::packed::{Entry, Lists, Packed, with_lists};
use super::vector::Inputs;
use crate::matrix::{SparseMatrix, low_32};

/// `silu` is zero below -89; the rest is for the rounding of sums.
const SILENT: f32 = -96.0;
/// Share of a bias that rounding may move a sum by.
const ROUNDING: f32 = 1.0 / 65_536.0;

/// Finds candidates among the rows of a matrix.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    /// By column, the entries above zero and those below.
    above: Packed,
    below: Packed,
    /// The fullest column, taken for the bias.
    bias_col: u32,
    bias_column: Vec<(u32, f32)>,
    /// Rows without any entry: never candidates.
    is_empty: Vec<bool>,
    /// The bias column's input that what follows belongs to.
    bias: f32,
    rows: Vec<Row>,
    /// Rows that no bias holds down.
    free: Vec<u32>,
}

/// A row while inputs are added up.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Zero between runs.
    sum: f32,
    /// What the sum must exceed.
    limit: f32,
}

impl Screen {
    /// `weight` is `[out, in]`.
    pub(crate) fn new(weight: &SparseMatrix) -> Self {
        let columns = weight.transpose();
        let fullest = (0..columns.rows()).max_by_key(|&col| columns.row(col).0.len()).unwrap_or(0);
        let others = |keep: fn(f32) -> bool| {
            let kept = columns.map(|col, _, w| if keep(w) && col as usize != fullest { w } else { 0.0 });
            Packed::rows(&[&kept])
        };
        let (rows, values) = columns.row(fullest);
        let mut screen = Self {
            above: others(|w| w > 0.0),
            below: others(|w| w < 0.0),
            bias_col: low_32(fullest),
            bias_column: rows.iter().copied().zip(values.iter().copied()).collect(),
            is_empty: (0..weight.rows()).map(|row| weight.row(row).0.is_empty()).collect(),
            bias: 0.0,
            rows: vec![Row { sum: 0.0, limit: 0.0 }; weight.rows()],
            free: Vec::new(),
        };
        screen.set_bias(0.0);
        screen
    }

    /// Lists each row that may have a result, once. False if that would be too many to be worth the search.
    #[inline]
    #[expect(clippy::float_cmp, reason = "limits are those of exactly this value")]
    pub(crate) fn run(&mut self, x: &Inputs, candidates: &mut Vec<u32>) -> bool {
        let bias = x.get(self.bias_col);
        if bias != self.bias {
            self.set_bias(bias);
        }
        if self.free.len() > self.rows.len() / 4 {
            return false;
        }
        candidates.clear();
        candidates.extend_from_slice(&self.free);
        // Contributions only rise, so a row passes its limit once.
        with_lists!(&self.above, above => with_lists!(&self.below, below => {
            above.fetch(x.iter().filter(|&(_, value)| value > 0.0).map(|(col, _)| col as usize), 1);
            below.fetch(x.iter().filter(|&(_, value)| value < 0.0).map(|(col, _)| col as usize), 1);
            for (col, value) in x.iter() {
                if value > 0.0 {
                    raise(above, col, value, &mut self.rows, candidates);
                } else {
                    raise(below, col, value, &mut self.rows, candidates);
                }
            }
            for (col, value) in x.iter() {
                if value > 0.0 {
                    clear(above, col, &mut self.rows);
                } else {
                    clear(below, col, &mut self.rows);
                }
            }
        }));
        true
    }

    fn set_bias(&mut self, bias: f32) {
        self.bias = bias;
        self.rows.fill(Row { sum: 0.0, limit: SILENT });
        for &(row, weight) in &self.bias_column {
            let sum = weight * bias;
            self.rows[row as usize].limit = SILENT - sum - sum.abs() * ROUNDING;
        }
        let rows = (0..).zip(self.rows.iter().zip(&self.is_empty));
        self.free.clear();
        self.free.extend(rows.filter(|&(_, (row, &is_empty))| row.limit < 0.0 && !is_empty).map(|(i, _)| i));
    }
}

#[inline(always)]
fn raise<E: Entry>(columns: &Lists<E>, col: u32, value: f32, rows: &mut [Row], candidates: &mut Vec<u32>) {
    for &entry in columns.get(col as usize) {
        let row = &mut rows[entry.place()];
        let before = row.sum;
        row.sum = before + entry.value() * value;
        // The first of these fails for nearly every entry.
        if row.sum > row.limit && before <= row.limit {
            candidates.push(low_32(entry.place()));
        }
    }
}

#[inline(always)]
fn clear<E: Entry>(columns: &Lists<E>, col: u32, rows: &mut [Row]) {
    for &entry in columns.get(col as usize) {
        rows[entry.place()].sum = 0.0;
    }
}

//! The short convolution, for the channels that had a non-zero input lately.

use std::collections::VecDeque;

use super::vector::Sums;
use crate::activation::silu;
use crate::engine::Precision;
use crate::matrix::SparseMatrix;
use crate::rows::SparseRows;

/// Depthwise causal convolution, then `silu`.
#[derive(Debug, Clone)]
pub(crate) struct ShortConv {
    /// `[kernel][channels]`, this token's tap last; a tap that is zero everywhere is empty.
    taps: Vec<Vec<f32>>,
    precision: Precision,
}

/// The last inputs as lists, the newest last; as many as there are taps.
#[derive(Debug, Clone)]
pub(crate) struct History {
    tokens: VecDeque<Past>,
}

#[derive(Debug, Clone, Default)]
struct Past {
    /// (channel, value), or (column, value before the norm) of what is projected to channels when somebody asks.
    list: Vec<(u32, f32)>,
    /// The norm's factor of columns.
    inverse: Option<f32>,
}

impl History {
    pub(crate) fn new(kernel: usize) -> Self {
        Self { tokens: (0..kernel).map(|_| Past::default()).collect() }
    }

    pub(crate) fn clear(&mut self) {
        self.tokens.iter_mut().for_each(|past| past.list.clear());
    }

    /// Drops the oldest list and returns it, emptied, for the newest.
    #[inline]
    pub(crate) fn begin(&mut self) -> Vec<(u32, f32)> {
        let mut list = self.tokens.pop_front().unwrap_or_default().list;
        list.clear();
        list
    }

    /// Appends the newest, channels.
    pub(crate) fn end(&mut self, list: Vec<(u32, f32)>) {
        self.tokens.push_back(Past { list, inverse: None });
    }

    /// Appends the newest, columns that aren't normed and projected yet.
    #[inline]
    pub(crate) fn push_inputs(&mut self, inputs: impl Iterator<Item = (u32, f32)>, inverse: f32) {
        let mut list = self.begin();
        list.extend(inputs);
        self.tokens.push_back(Past { list, inverse: Some(inverse) });
    }

    /// `[channels, kernel]`.
    pub(crate) fn rows(&self, channels: usize, project: impl Fn(&[(u32, f32)], f32) -> Vec<(u32, f32)>) -> SparseRows {
        let kernel = self.tokens.len();
        let mut dense = vec![0.0; channels * kernel];
        for (j, Past { list, inverse }) in self.tokens.iter().enumerate() {
            let projected = inverse.map_or_else(|| list.clone(), |inverse| project(list, inverse));
            for (channel, value) in projected {
                dense[channel as usize * kernel + j] = value;
            }
        }
        SparseRows::from_dense(kernel, &dense)
    }

    /// The inverse of [`rows`](Self::rows).
    pub(crate) fn set_rows(&mut self, rows: &SparseRows) {
        for Past { list, inverse } in &mut self.tokens {
            list.clear();
            *inverse = None;
        }
        for (channel, taps) in rows.rows() {
            for (Past { list, .. }, &value) in self.tokens.iter_mut().zip(taps).filter(|&(_, &value)| value != 0.0) {
                list.push((channel, value));
            }
        }
    }
}

impl ShortConv {
    /// `weight` is `[channels, kernel]`.
    pub(crate) fn new(weight: &SparseMatrix, precision: Precision) -> Self {
        let by_tap = weight.transpose();
        let tap = |j: usize| {
            let (channels, values) = by_tap.row(j);
            let mut tap = vec![0.0; if channels.is_empty() { 0 } else { weight.rows() }];
            for (&channel, &value) in channels.iter().zip(values) {
                tap[channel as usize] = precision.round(value);
            }
            tap
        };
        Self { taps: (0..weight.cols()).map(tap).collect(), precision }
    }

    /// Calls `visit` for each channel whose result isn't zero.
    #[inline]
    pub(crate) fn run(&self, history: &History, sums: &mut Sums, mut visit: impl FnMut(u32, f32)) {
        let round = |value| self.precision.round(value);
        let mut finish = |channel: u32, sum: f32| {
            let result = round(silu(round(sum)));
            if result != 0.0 {
                visit(channel, result);
            }
        };
        let newest = self.taps.len() - 1;
        let older_taps = self.taps[..newest].iter().any(|tap| !tap.is_empty());
        for (tap, past) in self.taps.iter().zip(&history.tokens).filter(|(tap, _)| !tap.is_empty()) {
            for &(channel, value) in &past.list {
                let product = tap[channel as usize] * value;
                if older_taps {
                    sums.add(channel, product);
                } else {
                    finish(channel, product);
                }
            }
        }
        if older_taps {
            sums.drain(finish);
        }
    }
}

//! Vectors with few non-zeros.

use super::packed::Entry;
use crate::engine::Precision;
use crate::matrix::{SparseMatrix, low_32};

/// A vector with a list of the places that may be non-zero.
///
/// Sums are collected with [`add`](Self::add) and consumed with [`drain`](Self::drain). A place whose sum passes
/// through zero may be listed twice; draining visits it once.
#[derive(Debug, Clone)]
pub(crate) struct Sums {
    values: Vec<f32>,
    listed: Vec<u32>,
}

impl Sums {
    pub(crate) fn new(len: usize) -> Self {
        Self { values: vec![0.0; len], listed: Vec::with_capacity(len) }
    }

    #[inline]
    pub(crate) fn add(&mut self, place: u32, value: f32) {
        let sum = &mut self.values[place as usize];
        if *sum == 0.0 {
            self.listed.push(place);
        }
        *sum += value;
    }

    /// Adds a list of values, scaled.
    #[inline]
    pub(crate) fn add_list<E: Entry>(&mut self, list: &[E], scale: f32) {
        for &entry in list {
            self.add(low_32(entry.place()), entry.value() * scale);
        }
    }

    /// Hands out every non-zero sum and leaves zeros.
    #[inline]
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(u32, f32)) {
        for &place in &self.listed {
            let sum = std::mem::take(&mut self.values[place as usize]);
            if sum != 0.0 {
                visit(place, sum);
            }
        }
        self.listed.clear();
    }
}

/// A vector whose non-zeros are exactly the listed places.
#[derive(Debug, Clone)]
pub(crate) struct Inputs {
    values: Vec<f32>,
    listed: Vec<u32>,
}

impl Inputs {
    pub(crate) fn new(len: usize) -> Self {
        Self { values: vec![0.0; len], listed: Vec::with_capacity(len) }
    }

    pub(crate) fn clear(&mut self) {
        for &place in &self.listed {
            self.values[place as usize] = 0.0;
        }
        self.listed.clear();
    }

    /// Sets a place that isn't listed yet.
    #[inline]
    pub(crate) fn set(&mut self, place: u32, value: f32) {
        if value != 0.0 {
            self.values[place as usize] = value;
            self.listed.push(place);
        }
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> f32 {
        self.values[place as usize]
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// Sorts the list, so that sums over it have a fixed order.
    pub(crate) fn sort(&mut self) {
        self.listed.sort_unstable();
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, f32)> + Clone {
        self.listed.iter().map(|&place| (place, self.values[place as usize]))
    }

    /// Scalar product with a row of a matrix.
    #[inline]
    pub(crate) fn dot_row(&self, matrix: &SparseMatrix, row: usize) -> f32 {
        let (cols, values) = matrix.row(row);
        cols.iter().zip(values).map(|(&col, &value)| value * self.values[col as usize]).sum()
    }
}

/// The residual stream.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    values: Vec<f32>,
    is_listed: Vec<bool>,
    listed: Vec<u32>,
}

impl Stream {
    pub(crate) fn new(len: usize) -> Self {
        Self { values: vec![0.0; len], is_listed: vec![false; len], listed: Vec::with_capacity(len) }
    }

    /// Starts over with a row of the embedding.
    pub(crate) fn load(&mut self, embeddings: &SparseMatrix, row: usize) {
        for &place in &self.listed {
            self.values[place as usize] = 0.0;
            self.is_listed[place as usize] = false;
        }
        self.listed.clear();
        let (places, values) = embeddings.row(row);
        for (&place, &value) in places.iter().zip(values) {
            self.values[place as usize] = value;
            self.is_listed[place as usize] = true;
            self.listed.push(place);
        }
    }

    /// Adds what a block gave: both the block's sums and the stream's are rounded.
    #[inline]
    pub(crate) fn add(&mut self, sums: &mut Sums, precision: Precision) {
        sums.drain(|place, sum| {
            let i = place as usize;
            self.values[i] = precision.round(self.values[i] + precision.round(sum));
            if !self.is_listed[i] {
                self.is_listed[i] = true;
                self.listed.push(place);
            }
        });
    }

    /// Hands out every non-zero value and takes places that have become zero off the list.
    #[inline(always)]
    pub(crate) fn visit(&mut self, mut visit: impl FnMut(u32, f32)) {
        let Self { values, is_listed, listed } = self;
        let mut kept = 0;
        for i in 0..listed.len() {
            let place = listed[i];
            let value = values[place as usize];
            if value == 0.0 {
                is_listed[place as usize] = false;
                continue;
            }
            listed[kept] = place;
            kept += 1;
            visit(place, value);
        }
        listed.truncate(kept);
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    pub(crate) fn listed(&self) -> &[u32] {
        &self.listed
    }
}

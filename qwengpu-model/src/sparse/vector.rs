//! Vectors with few non-zeros.

use super::bits::Bits;
use super::memo::Pair;
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

    pub(crate) fn len(&self) -> usize {
        self.values.len()
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
    /// The places that aren't zero.
    active: Bits,
    /// The sum of squares, as additions have changed it, and the largest it has been since it was last summed up.
    squares: f64,
    largest: f64,
}

impl Stream {
    pub(crate) fn new(len: usize) -> Self {
        Self { values: vec![0.0; len], active: Bits::new(len), squares: 0.0, largest: 0.0 }
    }

    /// Starts over with a row of the embedding.
    pub(crate) fn load(&mut self, embeddings: &SparseMatrix, row: usize) {
        let Self { values, active, .. } = self;
        active.drain(|place| values[place as usize] = 0.0);
        let (places, row) = embeddings.row(row);
        for (&place, &value) in places.iter().zip(row) {
            values[place as usize] = value;
            active.set(place);
        }
        self.squares = row.iter().map(|&value| square(value)).sum();
        self.largest = self.squares;
    }

    /// Adds what a block gave: both the block's sums and the stream's are rounded.
    #[inline]
    pub(crate) fn add(&mut self, sums: &mut Sums, precision: Precision) {
        let mut change = Change::default();
        sums.drain(|place, sum| self.add_one(place, precision.round(sum), precision, &mut change));
        self.take(change);
    }

    /// Adds rounded sums.
    #[inline]
    pub(crate) fn add_pairs(&mut self, pairs: &[Pair], precision: Precision) {
        let mut change = Change::default();
        for &(place, bits) in pairs {
            self.add_one(place, f32::from_bits(bits), precision, &mut change);
        }
        self.take(change);
    }

    #[inline(always)]
    fn add_one(&mut self, place: u32, sum: f32, precision: Precision, change: &mut Change) {
        let value = &mut self.values[place as usize];
        let before = *value;
        let after = precision.round(before + sum);
        *value = after;
        change.gained += square(after);
        change.lost += square(before);
        self.active.assign(place, after != 0.0);
    }

    #[inline(always)]
    fn take(&mut self, change: Change) {
        // Whatever the order of the changes was, the sum has not been larger than this.
        let most = self.squares + change.gained;
        if most > self.largest {
            self.largest = most;
        }
        self.squares = most - change.lost;
    }

    /// The sum of squares, better than any sum in f32.
    #[inline]
    pub(crate) fn squares(&mut self) -> f64 {
        // What has been subtracted from the sum has left a rounding of its size.
        const WORN: f64 = 1.0 / 65_536.0;
        if self.squares < self.largest * WORN {
            self.squares = 0.0;
            self.active.for_each(|place| self.squares += square(self.values[place as usize]));
            self.largest = self.squares;
        }
        self.squares
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    pub(crate) fn active(&self) -> &Bits {
        &self.active
    }
}

/// What additions do to the sum of squares.
#[derive(Debug, Clone, Copy, Default)]
struct Change {
    gained: f64,
    lost: f64,
}

#[inline(always)]
fn square(value: f32) -> f64 {
    f64::from(value) * f64::from(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers of very different sizes come and go; the sum of squares stays right.
        #[test]
        fn squares_follow_additions(added in prop::collection::vec((0..6_u32, -60..60_i32, any::<bool>()), 1..60)) {
            let mut stream = Stream::new(6);
            let mut sums = Sums::new(6);
            for (place, exponent, cancels) in added {
                let value = stream.values()[place as usize];
                sums.add(place, if cancels { -value } else { f32::powi(2.0, exponent) * 1.25 });
                stream.add(&mut sums, Precision::F32);
                let expected: f64 = stream.values().iter().map(|&value| square(value)).sum();
                let squares = stream.squares();
                prop_assert!((squares - expected).abs() <= expected * 1e-9, "{squares}, not {expected}");
                let mut active = Vec::new();
                stream.active().for_each(|place| active.push(place));
                let nonzero: Vec<u32> = (0..6).filter(|&place| stream.values()[place as usize] != 0.0).collect();
                prop_assert_eq!(active, nonzero);
            }
        }
    }
}

//! Matrices most of whose rows are zero, as recurrent states are that hold a few registers or words of memory.

use crate::matrix::low_32;

/// A matrix `[rows, width]` that keeps the rows with anything in them.
///
/// Equal matrices are equal however they were made: a row is kept if it has a bit set, so that a negative zero stays.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRows {
    num_rows: usize,
    width: usize,
    /// The numbers of the rows that are kept, ascending.
    kept: Vec<u32>,
    /// `[kept, width]`.
    values: Vec<f32>,
}

impl SparseRows {
    /// A matrix of zeros.
    #[must_use]
    pub fn zeros(num_rows: usize, width: usize) -> Self {
        Self { num_rows, width, kept: Vec::new(), values: Vec::new() }
    }

    /// From all values, `[rows, width]`; `width` is not 0.
    pub(crate) fn from_dense(width: usize, values: &[f32]) -> Self {
        debug_assert!(values.len().is_multiple_of(width), "{} values, rows of {width}", values.len());
        let mut rows = Self::zeros(values.len() / width, width);
        (0..).zip(values.chunks_exact(width)).for_each(|(row, values)| rows.push(row, values));
        rows
    }

    /// All values, `[rows, width]`.
    #[must_use]
    pub fn to_dense(&self) -> Vec<f32> {
        let mut dense = vec![0.0; self.len()];
        for (row, values) in self.rows() {
            dense[row as usize * self.width..][..self.width].copy_from_slice(values);
        }
        dense
    }

    /// The number of all values, zeros included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.num_rows * self.width
    }

    /// Whether it has no values, not even zeros.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The rows that are kept, each with its number, ascending.
    pub fn rows(&self) -> impl Iterator<Item = (u32, &[f32])> {
        self.kept.iter().copied().zip(self.values.chunks_exact(self.width.max(1)))
    }

    /// Appends a row behind those that are kept, unless it is zero.
    pub(crate) fn push(&mut self, row: u32, values: &[f32]) {
        debug_assert!(self.kept.last().is_none_or(|&last| last < row) && row < low_32(self.num_rows));
        if values.iter().fold(0, |any, value| any | value.to_bits()) != 0 {
            self.kept.push(row);
            self.values.extend_from_slice(values);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn there_and_back(
            width in 1..4_usize,
            values in prop::collection::vec(prop_oneof![4 => Just(0.0_f32), 1 => Just(-0.0), 1 => -2.0..2.0_f32], 0..8)
        ) {
            let values: Vec<f32> = values.iter().flat_map(|&value| vec![value; width]).collect();
            let rows = SparseRows::from_dense(width, &values);
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&rows.to_dense()), bits(&values));
            prop_assert_eq!(rows.len(), values.len());
            prop_assert!(rows.rows().all(|(_, row)| row.len() == width && bits(row).iter().any(|&bits| bits != 0)));
        }
    }
}

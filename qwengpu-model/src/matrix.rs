//! Sparse matrices: non-zeros by row, or by column through [`SparseMatrix::transpose`].

use crate::error::MatrixError;

/// A matrix that keeps its non-zeros only, by row.
///
/// Rows and columns are those of a linear map's weight: `[out, in]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseMatrix {
    cols: usize,
    /// Row r's entries are `starts[r]..starts[r + 1]`.
    starts: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl SparseMatrix {
    /// A matrix of zeros.
    #[must_use]
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { cols, starts: vec![0; rows + 1], indices: Vec::new(), values: Vec::new() }
    }

    /// A matrix of the given (row, column, value) entries, in any order. Zeros are dropped.
    ///
    /// # Errors
    /// If an entry is outside, not finite, or there twice.
    pub fn from_triplets(
        rows: usize,
        cols: usize,
        entries: impl IntoIterator<Item = (u32, u32, f32)>,
    ) -> Result<Self, MatrixError> {
        let (num_rows, num_cols) = (index("rows", rows)?, index("columns", cols)?);
        let mut kept = Vec::new();
        for (row, col, value) in entries {
            if row >= num_rows || col >= num_cols {
                return Err(MatrixError::OutOfRange { row, col, rows, cols });
            }
            if !value.is_finite() {
                return Err(MatrixError::NotFinite { row, col, value });
            }
            if value != 0.0 {
                kept.push((row, col, value));
            }
        }
        index("number of entries", kept.len())?;
        kept.sort_unstable_by_key(|&(row, col, _)| (row, col));
        if let Some(pair) = kept.windows(2).find(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
            return Err(MatrixError::Duplicate { row: pair[0].0, col: pair[0].1 });
        }
        let mut builder = Builder::new(rows, cols);
        for (row, col, value) in kept {
            builder.push(row as usize, col, value);
        }
        Ok(builder.finish())
    }

    /// A matrix of `rows * cols` values in row-major order. Zeros are dropped.
    ///
    /// # Errors
    /// If the number of values is another, or one isn't finite.
    pub fn from_dense(rows: usize, cols: usize, values: &[f32]) -> Result<Self, MatrixError> {
        index("rows", rows)?;
        let num_cols = index("columns", cols)?;
        if rows.checked_mul(cols) != Some(values.len()) {
            return Err(MatrixError::Length { got: values.len(), rows, cols });
        }
        let mut builder = Builder::new(rows, cols);
        for (row, line) in values.chunks(cols.max(1)).enumerate() {
            for (col, &value) in (0..num_cols).zip(line) {
                if !value.is_finite() {
                    return Err(MatrixError::NotFinite { row: index("rows", row)?, col, value });
                }
                if value != 0.0 {
                    builder.push(row, col, value);
                }
            }
        }
        index("number of entries", builder.matrix.values.len())?;
        Ok(builder.finish())
    }

    /// A matrix of non-zeros that `visit` hands out with ascending row-major index.
    pub(crate) fn from_nonzeros(
        rows: usize,
        cols: usize,
        for_each: impl FnOnce(&mut dyn FnMut(usize, f32)),
    ) -> Result<Self, MatrixError> {
        index("rows", rows)?;
        index("columns", cols)?;
        let mut builder = Builder::new(rows, cols);
        let mut failure = None;
        for_each(&mut |position, value| {
            let (row, col) = (position / cols, low_32(position % cols));
            if !value.is_finite() {
                failure.get_or_insert(MatrixError::NotFinite { row: low_32(row), col, value });
            }
            builder.push(row, col, value);
        });
        index("number of entries", builder.matrix.values.len())?;
        failure.map_or_else(|| Ok(builder.finish()), Err)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries that aren't zero.
    #[must_use]
    pub fn num_nonzeros(&self) -> usize {
        self.values.len()
    }

    /// A row's columns, ascending, and its values. Empty if there is no such row.
    #[inline]
    #[must_use]
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let range = match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(&start), Some(&end)) => start as usize..end as usize,
            _ => 0..0,
        };
        (&self.indices[range.clone()], &self.values[range])
    }

    /// All (row, column, value), in row-major order.
    pub fn entries(&self) -> impl Iterator<Item = (u32, u32, f32)> {
        (0..low_32(self.rows())).flat_map(|row| {
            let (cols, values) = self.row(row as usize);
            cols.iter().zip(values).map(move |(&col, &value)| (row, col, value))
        })
    }

    /// All values in row-major order, zeros included.
    #[must_use]
    pub fn to_dense(&self) -> Vec<f32> {
        let mut dense = vec![0.0; self.rows() * self.cols];
        for (row, col, value) in self.entries() {
            dense[row as usize * self.cols + col as usize] = value;
        }
        dense
    }

    /// The same entries with rows and columns swapped.
    #[must_use]
    pub fn transpose(&self) -> Self {
        let mut starts = vec![0; self.cols + 1];
        for &col in &self.indices {
            starts[col as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut indices = vec![0; self.indices.len()];
        let mut values = vec![0.0; self.values.len()];
        for (row, col, value) in self.entries() {
            let place = &mut next[col as usize];
            indices[*place as usize] = row;
            values[*place as usize] = value;
            *place += 1;
        }
        Self { cols: self.rows(), starts, indices, values }
    }

    /// The same places with other values; places whose value becomes zero are dropped.
    pub(crate) fn map(&self, mut value_at: impl FnMut(u32, u32, f32) -> f32) -> Self {
        let mut builder = Builder::new(self.rows(), self.cols);
        for (row, col, value) in self.entries() {
            let value = value_at(row, col, value);
            if value != 0.0 {
                builder.push(row as usize, col, value);
            }
        }
        builder.finish()
    }
}

/// Takes entries in row-major order.
struct Builder {
    matrix: SparseMatrix,
    rows: usize,
}

impl Builder {
    fn new(rows: usize, cols: usize) -> Self {
        let matrix = SparseMatrix { cols, starts: vec![0], indices: Vec::new(), values: Vec::new() };
        Self { matrix, rows }
    }

    fn push(&mut self, row: usize, col: u32, value: f32) {
        self.close_rows(row);
        self.matrix.indices.push(col);
        self.matrix.values.push(value);
    }

    /// Records that all rows up to `row`, exclusive, are complete.
    fn close_rows(&mut self, row: usize) {
        while self.matrix.starts.len() <= row {
            self.matrix.starts.push(low_32(self.matrix.values.len()));
        }
    }

    fn finish(mut self) -> SparseMatrix {
        self.close_rows(self.rows);
        self.matrix.indices.shrink_to_fit();
        self.matrix.values.shrink_to_fit();
        self.matrix
    }
}

fn index(what: &'static str, value: usize) -> Result<u32, MatrixError> {
    const MAX: usize = i32::MAX as usize;
    if value > MAX {
        return Err(MatrixError::TooLarge { what, got: value, max: MAX });
    }
    Ok(low_32(value))
}

/// An index that is known to fit: dimensions and numbers of entries are checked when a matrix is built.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "callers have checked the range")]
pub(crate) fn low_32(value: usize) -> u32 {
    value as u32
}

//! A tensor of a merged model that is made from a tensor of the base, block of rows by block of rows.

use std::io::{self, Seek, Write};
use std::ops::Range;

use half::bf16;
use qwengpu_circuit::SparseMatrix;

use super::error::{BaseError, MergeError};
use super::index::{BaseTensor, Storage, TensorIndex};
use super::widening::{power_of_two, round_to_bf16, single};
use crate::dtype::Dtype;
use crate::sparse_file::{PAGE, SparseWriter, pages_of};

/// Values that are made at a time.
const BLOCK: usize = 1 << 20;

/// Rows of the base that stay together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The first row in the base.
    pub(crate) from: usize,
    /// The same row in the merged tensor.
    pub(crate) to: usize,
    /// How many.
    pub(crate) count: usize,
}

/// What becomes of each value of the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// Nothing.
    Keep,
    /// Multiplied by two to this power.
    Scale(i32),
    /// `1 + w` is divided by this.
    Divide(f64),
}

/// A value in one column of some rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant {
    pub(crate) rows: Range<usize>,
    pub(crate) column: usize,
    pub(crate) value: f32,
}

/// Where the values of a widened tensor come from; what nobody sets is zero.
#[derive(Clone, Debug)]
pub(crate) struct WidenedRows<'a> {
    pub(crate) index: &'a TensorIndex,
    pub(crate) source: &'a BaseTensor,
    pub(crate) segments: Vec<Segment>,
    pub(crate) change: Change,
    pub(crate) constants: Vec<Constant>,
    /// A matrix of the circuit, and the row where its first row goes.
    pub(crate) circuit: Option<(&'a SparseMatrix, usize)>,
}

/// Why a widened tensor was not written.
#[derive(Debug)]
pub(crate) enum RowsError {
    /// The file could not be written.
    Write(io::Error),
    /// The base could not be read, or does not fit.
    Source(MergeError),
}

impl From<io::Error> for RowsError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl From<BaseError> for RowsError {
    fn from(error: BaseError) -> Self {
        Self::Source(error.into())
    }
}

impl WidenedRows<'_> {
    /// Writes all values; `rows` and `cols` are the merged tensor's.
    pub(crate) fn write<W: Write + Seek>(
        &self,
        (rows, cols): (usize, usize),
        dtype: Dtype,
        writer: &mut SparseWriter<W>,
    ) -> Result<(), RowsError> {
        let step = (BLOCK / cols).max(1);
        let mut buffers = Buffers::default();
        let mut values = vec![0.0; step.min(rows) * cols];
        let mut bytes = Vec::with_capacity(values.len() * dtype.size());
        for first in (0..rows).step_by(step) {
            let block = first..rows.min(first + step);
            let values = &mut values[..block.len() * cols];
            self.fill(&block, cols, dtype, values, &mut buffers)?;
            bytes.clear();
            match dtype {
                Dtype::F32 => values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes())),
                Dtype::Bf16 => {
                    values.iter().for_each(|&value| bytes.extend_from_slice(&bf16::from_f32(value).to_le_bytes()));
                }
            }
            let is_large = |value: f32| match dtype {
                Dtype::F32 => !value.is_finite(),
                Dtype::Bf16 => !bf16::from_f32(value).is_finite(),
            };
            if let Some(place) = values.iter().position(|&value| is_large(value)) {
                let (tensor, row) = (self.source.name.clone(), first + place / cols);
                return Err(RowsError::Source(MergeError::Overflow { tensor, row, dtype }));
            }
            writer.write(&bytes)?;
        }
        Ok(())
    }

    /// The values of a block of rows.
    fn fill(
        &self,
        block: &Range<usize>,
        cols: usize,
        dtype: Dtype,
        values: &mut [f32],
        buffers: &mut Buffers,
    ) -> Result<(), BaseError> {
        values.fill(0.0);
        let source_cols = self.source.cols();
        for segment in &self.segments {
            let start = block.start.max(segment.to);
            let end = block.end.min(segment.to + segment.count);
            if start >= end {
                continue;
            }
            let from = segment.from + start - segment.to;
            self.index.read_rows(self.source, from, end - start, &mut buffers.bytes, &mut buffers.values)?;
            self.change.apply(dtype, &mut buffers.values);
            let rows = values[(start - block.start) * cols..].chunks_exact_mut(cols);
            for (row, source) in rows.zip(buffers.values.chunks_exact(source_cols)) {
                row[..source_cols].copy_from_slice(source);
            }
        }
        for Constant { rows, column, value } in &self.constants {
            for row in block.start.max(rows.start)..block.end.min(rows.end) {
                values[(row - block.start) * cols + column] = *value;
            }
        }
        if let Some((matrix, first)) = self.circuit {
            let behind = |row: usize| matrix.entries.partition_point(|entry| first + (entry.0 as usize) < row);
            for &(row, col, value) in &matrix.entries[behind(block.start)..behind(block.end)] {
                values[(first + row as usize - block.start) * cols + col as usize] = value;
            }
        }
        Ok(())
    }

    /// About how many bytes the values take on a disk that stores no pages of zeros.
    pub(crate) fn bytes_on_disk(&self, (rows, cols): (usize, usize), dtype: Dtype) -> u64 {
        let row_bytes = cols * dtype.size();
        let source_bytes = (self.source.cols() * dtype.size()).next_multiple_of(PAGE) + PAGE;
        let base_rows: usize = self.segments.iter().map(|segment| segment.count).sum();
        let places = self.circuit.iter().flat_map(|(matrix, _)| &matrix.entries);
        let bytes = places.map(|&(row, col, _)| row as usize * row_bytes + col as usize * dtype.size());
        // Base rows of several pages may leave some of them empty.
        let dense = base_rows * row_bytes.min(source_bytes);
        let sparse = (pages_of(bytes) * PAGE).min((rows - base_rows.min(rows)) * row_bytes);
        (dense + sparse) as u64
    }
}

/// Reused from block to block.
#[derive(Debug, Default)]
struct Buffers {
    bytes: Vec<u8>,
    values: Vec<f32>,
}

impl Change {
    /// Changes values; those of a norm are rounded to the dtype, once.
    fn apply(self, dtype: Dtype, values: &mut [f32]) {
        match self {
            Self::Keep => {}
            Self::Scale(exponent) => {
                let factor = power_of_two(exponent);
                values.iter_mut().for_each(|value| *value *= factor);
            }
            Self::Divide(divisor) => {
                for value in values {
                    let exact = (1.0 + f64::from(*value)) / divisor - 1.0;
                    *value = match dtype {
                        Dtype::F32 => single(exact),
                        Dtype::Bf16 => round_to_bf16(exact),
                    };
                }
            }
        }
    }
}

impl Storage {
    /// The dtype that holds all values of this one.
    pub(crate) const fn lossless(self) -> Dtype {
        match self {
            Self::Bf16 => Dtype::Bf16,
            Self::F16 | Self::F32 => Dtype::F32,
        }
    }

    /// Whether a dtype stores the same bytes.
    pub(crate) const fn is_same(self, dtype: Dtype) -> bool {
        matches!((self, dtype), (Self::Bf16, Dtype::Bf16) | (Self::F32, Dtype::F32))
    }
}

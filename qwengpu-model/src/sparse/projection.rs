//! Linear maps by column: every non-zero input scatters to the rows it reaches.
//!
//! One column may be full, as that of a constant channel that feeds a bias to every row. What it contributes is kept
//! for the last value it had, together with the results it gives on its own; a row that no other input reaches costs
//! nothing then unless its result is non-zero.

use super::packed::{Entry, Packed, with_lists};
use super::vector::Inputs;
use crate::engine::Precision;
use crate::matrix::{SparseMatrix, low_32};

/// A column with fewer entries than this isn't kept.
const FULL_COLUMN: usize = 16;

/// A sum and the epoch in which it was begun.
#[derive(Debug, Clone, Copy)]
struct Cell {
    sum: f32,
    epoch: u32,
}

/// Room for one projection's sums; shared by all projections of up to its size.
#[derive(Debug, Clone)]
pub(crate) struct Accumulator {
    cells: Vec<Cell>,
    epoch: u32,
    touched: Vec<u32>,
}

impl Accumulator {
    pub(crate) fn new(rows: usize) -> Self {
        let cells = vec![Cell { sum: 0.0, epoch: 0 }; rows];
        Self { cells, epoch: 0, touched: Vec::with_capacity(rows) }
    }

    fn begin(&mut self) {
        self.touched.clear();
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.cells.fill(Cell { sum: 0.0, epoch: 0 });
            self.epoch = 1;
        }
    }

    /// Adds a scaled column; a row's sum begins with what `base` says.
    #[inline(always)]
    fn add_column<E: Entry>(&mut self, column: &[E], scale: f32, base: impl Fn(usize) -> f32) {
        for &entry in column {
            let row = entry.place();
            let cell = &mut self.cells[row];
            if cell.epoch != self.epoch {
                *cell = Cell { sum: base(row), epoch: self.epoch };
                self.touched.push(low_32(row));
            }
            cell.sum += entry.value() * scale;
        }
    }
}

/// `W x` for a sparse x.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    /// By column.
    columns: Packed,
    precision: Precision,
    full: Option<FullColumn>,
}

/// What the fullest column contributes at its last value.
#[derive(Debug, Clone)]
struct FullColumn {
    col: u32,
    value: f32,
    /// By row.
    sums: Vec<f32>,
    /// Rows and results that aren't zero when no other column contributes.
    results: Vec<(u32, f32)>,
}

impl Projection {
    /// `weight` is `[out, in]`, already rounded.
    pub(crate) fn new(weight: &SparseMatrix, precision: Precision) -> Self {
        let columns = weight.transpose();
        let fullest = (0..).zip(0..columns.rows()).max_by_key(|&(_, i)| columns.row(i).0.len());
        let full = fullest.filter(|&(_, i)| columns.row(i).0.len() >= FULL_COLUMN).map(|(col, _)| FullColumn {
            col,
            value: 0.0,
            sums: vec![0.0; weight.rows()],
            results: Vec::new(),
        });
        Self { columns: Packed::rows(&[&columns]), precision, full }
    }

    /// Calls `visit` once for each row whose result isn't zero.
    #[inline]
    pub(crate) fn run(&mut self, x: &Inputs, sums: &mut Accumulator, mut visit: impl FnMut(u32, f32)) {
        sums.begin();
        let full = match &mut self.full {
            Some(full) if x.get(full.col) != 0.0 => {
                full.update(&self.columns, x.get(full.col), self.precision);
                Some(&*full)
            }
            Some(_) | None => None,
        };
        with_lists!(&self.columns, columns => columns.fetch(x.iter().map(|(col, _)| col as usize), 1));
        with_lists!(&self.columns, columns => match full {
            Some(full) => {
                for (col, value) in x.iter().filter(|&(col, _)| col != full.col) {
                    sums.add_column(columns.get(col as usize), value, |row| full.sums[row]);
                }
            }
            None => {
                for (col, value) in x.iter() {
                    sums.add_column(columns.get(col as usize), value, |_| 0.0);
                }
            }
        });
        for &row in &sums.touched {
            let result = self.precision.round(sums.cells[row as usize].sum);
            if result != 0.0 {
                visit(row, result);
            }
        }
        if let Some(full) = full {
            for &(row, result) in &full.results {
                if sums.cells[row as usize].epoch != sums.epoch {
                    visit(row, result);
                }
            }
        }
    }
}

impl FullColumn {
    #[expect(clippy::float_cmp, reason = "kept results are those of exactly this value")]
    fn update(&mut self, columns: &Packed, value: f32, precision: Precision) {
        if value == self.value {
            return;
        }
        self.value = value;
        self.results.clear();
        with_lists!(columns, columns => {
            for entry in columns.get(self.col as usize) {
                let sum = entry.value() * value;
                self.sums[entry.place()] = sum;
                let result = precision.round(sum);
                if result != 0.0 {
                    self.results.push((low_32(entry.place()), result));
                }
            }
        });
    }
}

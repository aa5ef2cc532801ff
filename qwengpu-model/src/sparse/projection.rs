//! Linear maps by column: every non-zero input scatters to the rows it reaches.
//!
//! One column may be full, as that of a constant channel that feeds a bias to every row. What it contributes is kept
//! for the last value it had, together with the results it gives on its own; a row that no other input reaches costs
//! nothing then unless its result is non-zero.

use super::vector::Inputs;
use crate::activation::silu;
use crate::engine::Precision;
use crate::matrix::SparseMatrix;

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
    #[inline]
    fn add_column(&mut self, columns: &SparseMatrix, col: u32, scale: f32, base: impl Fn(usize) -> f32) {
        let (rows, values) = columns.row(col as usize);
        for (&row, &value) in rows.iter().zip(values) {
            let cell = &mut self.cells[row as usize];
            if cell.epoch != self.epoch {
                *cell = Cell { sum: base(row as usize), epoch: self.epoch };
                self.touched.push(row);
            }
            cell.sum += value * scale;
        }
    }
}

/// What is done to each sum; zero stays zero.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Function {
    /// One rounding.
    Round,
    /// One rounding, `silu`, one rounding.
    Silu,
}

impl Function {
    #[inline]
    fn apply(self, precision: Precision, sum: f32) -> f32 {
        match self {
            Self::Round => precision.round(sum),
            Self::Silu => precision.round(silu(precision.round(sum))),
        }
    }
}

/// `f(W x)` for a sparse x and a function f of each result.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    columns: SparseMatrix,
    function: Function,
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
    pub(crate) fn new(weight: &SparseMatrix, precision: Precision, function: Function) -> Self {
        let columns = weight.transpose();
        let fullest = (0..).zip(0..columns.rows()).max_by_key(|&(_, i)| columns.row(i).0.len());
        let full = fullest.filter(|&(_, i)| columns.row(i).0.len() >= FULL_COLUMN).map(|(col, _)| FullColumn {
            col,
            value: 0.0,
            sums: vec![0.0; weight.rows()],
            results: Vec::new(),
        });
        Self { columns, function, precision, full }
    }

    /// Calls `visit` once for each row whose result isn't zero.
    #[inline]
    pub(crate) fn run(&mut self, x: &Inputs, sums: &mut Accumulator, mut visit: impl FnMut(u32, f32)) {
        sums.begin();
        let full = match &mut self.full {
            Some(full) if x.get(full.col) != 0.0 => {
                full.update(&self.columns, x.get(full.col), |sum| self.function.apply(self.precision, sum));
                Some(&*full)
            }
            Some(_) | None => None,
        };
        match full {
            Some(full) => {
                for (col, value) in x.iter() {
                    if col != full.col {
                        sums.add_column(&self.columns, col, value, |row| full.sums[row]);
                    }
                }
            }
            None => {
                for (col, value) in x.iter() {
                    sums.add_column(&self.columns, col, value, |_| 0.0);
                }
            }
        }
        for &row in &sums.touched {
            let result = self.function.apply(self.precision, sums.cells[row as usize].sum);
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
    fn update(&mut self, columns: &SparseMatrix, value: f32, function: impl Fn(f32) -> f32) {
        if value == self.value {
            return;
        }
        self.value = value;
        self.results.clear();
        let (rows, weights) = columns.row(self.col as usize);
        for (&row, &weight) in rows.iter().zip(weights) {
            let sum = weight * value;
            self.sums[row as usize] = sum;
            let result = function(sum);
            if result != 0.0 {
                self.results.push((row, result));
            }
        }
    }
}

//! The way from the final norm to logits, and to the largest of them without computing all.

use super::bits::Bits;
use super::lattice::Lattice;
use super::norm::Normed;
use super::vector::Inputs;
use super::whole::Whole;
use crate::engine::Precision;
use crate::matrix::SparseMatrix;

/// `lm_head`, by row, by column and as a lattice.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    rows: SparseMatrix,
    columns: SparseMatrix,
    lattice: Lattice,
    /// Answers by what logits depend on.
    answers: Whole,
    precision: Precision,
}

impl Head {
    /// `weight` is `[vocab, hidden]`.
    pub(crate) fn new(weight: &SparseMatrix, precision: Precision) -> Self {
        let rows = weight.map(|_, _, value| precision.round(value));
        let columns = rows.transpose();
        let lattice = Lattice::new(&rows);
        let mut used = Bits::new(columns.rows());
        rows.entries().for_each(|(_, col, _)| used.set(col));
        Self { rows, columns, lattice, answers: Whole::new(&used), precision }
    }

    /// All logits `[vocab]`. `x` is sorted.
    pub(crate) fn logits(&self, x: &Inputs, out: &mut [f32]) {
        out.fill(0.0);
        for (col, value) in x.iter() {
            let (rows, weights) = self.columns.row(col as usize);
            for (&row, &weight) in rows.iter().zip(weights) {
                out[row as usize] += weight * value;
            }
        }
        out.iter_mut().for_each(|logit| *logit = self.precision.round(*logit));
    }

    /// The id of the largest logit, the first of equals. `normed` is room for the input.
    pub(crate) fn argmax(&mut self, x: &Normed<'_>, normed: &mut Inputs) -> u32 {
        let Self { rows, lattice, precision, answers, .. } = self;
        let answer = answers.get(x, |_, answer| {
            x.write(normed);
            let row = lattice.search(normed, *precision, |row| precision.round(normed.dot_row(rows, row as usize)));
            answer.push((row, 0));
        });
        answer.first().map_or(0, |&(row, _)| row)
    }
}

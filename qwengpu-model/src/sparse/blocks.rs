//! Rows of linear maps that have no input in common fall apart into blocks.
//!
//! Two rows belong together if a column reaches both; one shared column, which feeds a bias to everything, does not
//! count. What a block's rows come to depends on the shared column and on the block's own columns alone.

use super::bits::Bits;
use crate::matrix::{SparseMatrix, low_32};

/// A row or column of no block.
pub(crate) const NONE: u32 = u32::MAX;

/// The columns and rows of maps by the block they belong to.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    /// The column that belongs to all.
    pub(crate) shared: u32,
    /// By column.
    pub(crate) of_col: Vec<u32>,
    /// By row; rows that the shared column alone reaches make up the last block.
    pub(crate) of_row: Vec<u32>,
    /// The columns of any block.
    pub(crate) columns: Bits,
    /// For each block the number of columns in the blocks before it, then the number of all.
    pub(crate) starts: Vec<u32>,
}

impl Blocks {
    /// Divides the rows that are non-zero in the first of these matrices; all have as many rows and columns.
    pub(crate) fn new(matrices: &[&SparseMatrix], shared: u32) -> Self {
        let (num_rows, num_cols) = matrices.first().map_or((0, 0), |m| (m.rows(), m.cols()));
        let is_used = |row: usize| matrices.first().is_some_and(|m| !m.row(row).0.is_empty());
        let own_cols = |row: usize| {
            let cols = matrices.iter().flat_map(move |m| m.row(row).0.iter().copied());
            cols.filter(move |&col| col != shared)
        };
        let mut parents: Vec<u32> = (0..low_32(num_cols)).collect();
        let mut columns = Bits::new(num_cols);
        for row in (0..num_rows).filter(|&row| is_used(row)) {
            let mut last = None;
            for col in own_cols(row) {
                columns.set(col);
                if let Some(last) = last {
                    let (a, b) = (root(&mut parents, last), root(&mut parents, col));
                    parents[a as usize] = b;
                }
                last = Some(col);
            }
        }

        let mut of_col = vec![NONE; num_cols];
        let mut of_root = vec![NONE; num_cols];
        let mut lens: Vec<u32> = Vec::new();
        columns.for_each(|col| {
            let block = &mut of_root[root(&mut parents, col) as usize];
            if *block == NONE {
                *block = low_32(lens.len());
                lens.push(0);
            }
            of_col[col as usize] = *block;
            lens[*block as usize] += 1;
        });
        let last = low_32(lens.len());
        let block_of = |row: usize| match own_cols(row).next() {
            _ if !is_used(row) => NONE,
            Some(col) => of_col[col as usize],
            None => last,
        };
        let of_row = (0..num_rows).map(block_of).collect();
        lens.push(0);
        let sum = |sum: &mut u32, len: u32| {
            *sum += len;
            Some(*sum)
        };
        let starts = std::iter::once(0).chain(lens.into_iter().scan(0, sum)).collect();
        Self { shared, of_col, of_row, columns, starts }
    }

    /// How many there are, one without columns included.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }
}

/// The representative of a column's set, with the path to it cut in half.
fn root(parents: &mut [u32], mut col: u32) -> u32 {
    while parents[col as usize] != col {
        let above = parents[parents[col as usize] as usize];
        parents[col as usize] = above;
        col = above;
    }
    col
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Matrices with few entries, small integers.
    pub(crate) fn sparse(rows: u32, cols: u32, entries: usize) -> impl Strategy<Value = SparseMatrix> {
        prop::collection::btree_map((0..rows, 0..cols), -4..5_i8, 0..entries).prop_map(move |entries| {
            let entries = entries.into_iter().map(|((row, col), value)| (row, col, f32::from(value)));
            SparseMatrix::from_triplets(rows as usize, cols as usize, entries).expect("entries")
        })
    }

    proptest! {
        #[test]
        fn no_row_reaches_into_another_block(gate in sparse(20, 24, 40), up in sparse(20, 24, 20)) {
            let blocks = Blocks::new(&[&gate, &up], 0);
            for row in 0..20 {
                let block = blocks.of_row[row];
                prop_assert_eq!(block == NONE, gate.row(row).0.is_empty());
                if block != NONE {
                    prop_assert!((block as usize) < blocks.len());
                    for &col in gate.row(row).0.iter().chain(up.row(row).0).filter(|&&col| col != 0) {
                        prop_assert_eq!(blocks.of_col[col as usize], block);
                    }
                }
            }
            let mut counts = vec![0; blocks.len()];
            blocks.columns.for_each(|col| counts[blocks.of_col[col as usize] as usize] += 1);
            for (block, count) in counts.into_iter().enumerate() {
                prop_assert_eq!(blocks.starts[block + 1] - blocks.starts[block], count);
            }
        }
    }

    #[test]
    fn a_shared_column_joins_nothing() {
        let entries = [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 0, 1.0), (3, 2, 1.0), (3, 3, 1.0)];
        let matrix = SparseMatrix::from_triplets(5, 4, entries).expect("entries");
        let blocks = Blocks::new(&[&matrix], 0);
        assert_eq!(blocks.of_row, [0, 1, 2, 1, NONE]);
        assert_eq!(blocks.of_col, [NONE, 0, 1, 1]);
        assert_eq!(blocks.starts, [0, 1, 3, 3]);
    }
}

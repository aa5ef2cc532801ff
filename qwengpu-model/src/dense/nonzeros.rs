//! Where a weight is mostly zeros, the values that aren't: found in the weight itself, once, when many tokens come first.
//!
//! A panel of rows is sparse if so few of its values are not zero that a product which visits them alone is faster than
//! the general one. The search gives a panel up as soon as it has more, so a weight without zeros is hardly read; holes of
//! the checkpoint's files are not read at all.

use std::ops::Range;

use rayon::prelude::*;

use super::weight::{Weight, widen};
use crate::load::Values;

/// Rows of a panel: in f32 they stay in the cache.
pub(crate) const PANEL_ROWS: usize = 128;
/// A panel is sparse if at most one value in so many isn't zero. The product that visits these alone takes two to three
/// times as long for each; an entry takes as much memory as two to four values.
const SPARSITY: usize = 16;
/// Values that are looked at together.
const LINE: usize = 16;

/// A value and its column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entry {
    pub(crate) column: u32,
    pub(crate) value: f32,
}

/// Rows of a weight with the values that aren't zero, columns ascending.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SparsePanel {
    /// Where each row's entries end.
    ends: Vec<u32>,
    entries: Vec<Entry>,
}

impl SparsePanel {
    pub(crate) fn rows(&self) -> usize {
        self.ends.len()
    }

    /// The entries of some rows, all of them together.
    pub(crate) fn entries(&self, rows: Range<usize>) -> &[Entry] {
        let end = |rows: usize| rows.checked_sub(1).map_or(0, |last| self.ends[last] as usize);
        &self.entries[end(rows.start)..end(rows.end)]
    }
}

/// The panels of a weight from the first row on; `None` stands for one that isn't sparse.
#[derive(Debug, Clone)]
pub(crate) struct Nonzeros {
    pub(crate) panels: Vec<Option<SparsePanel>>,
}

impl Nonzeros {
    /// Looks for sparse panels; none if there is none.
    pub(crate) fn find(weight: &Weight) -> Option<Self> {
        let starts: Vec<usize> = (0..weight.rows).step_by(PANEL_ROWS).collect();
        let panels: Vec<_> =
            starts.into_par_iter().map(|start| panel(weight, start..(start + PANEL_ROWS).min(weight.rows))).collect();
        panels.iter().any(Option::is_some).then_some(Self { panels })
    }

    /// Whether no panel is anything but sparse.
    pub(crate) fn all_sparse(&self) -> bool {
        self.panels.iter().all(Option::is_some)
    }
}

/// The non-zero values of some rows, unless they are too many.
fn panel(weight: &Weight, rows: Range<usize>) -> Option<SparsePanel> {
    let cols = weight.cols;
    let first = rows.start * cols;
    let most = rows.len() * cols / SPARSITY;
    let mut found: Vec<(usize, f32)> = Vec::new(); // places within the panel
    for part in weight.data(first..rows.end * cols) {
        let all_seen = match weight.values() {
            Values::F32(values) => {
                let is_zero = |line: &[f32]| line.iter().fold(0, |bits, value| bits | value.to_bits()) == 0;
                collect(&values[part.clone()], part.start - first, most, is_zero, |value| value, &mut found)
            }
            Values::Bf16(values) => {
                let is_zero = |line: &[u16]| line.iter().fold(0, |bits, value| bits | value) == 0;
                collect(&values[part.clone()], part.start - first, most, is_zero, widen, &mut found)
            }
        };
        if !all_seen {
            return None;
        }
    }
    let mut ends = vec![0; rows.len()];
    let mut entries = Vec::with_capacity(found.len());
    for (place, value) in found {
        entries.push(Entry { column: u32::try_from(place % cols).ok()?, value });
        ends[place / cols] = u32::try_from(entries.len()).ok()?;
    }
    // Rows without entries end where the row before ends.
    let mut end = 0;
    for own in &mut ends {
        end = end.max(*own);
        *own = end;
    }
    Some(SparsePanel { ends, entries })
}

/// Adds the non-zero values with their places; false as soon as there are more than `most`.
fn collect<W: Copy>(
    values: &[W],
    first: usize,
    most: usize,
    is_zero: impl Fn(&[W]) -> bool,
    to_f32: impl Fn(W) -> f32,
    found: &mut Vec<(usize, f32)>,
) -> bool {
    for (i, line) in values.chunks(LINE).enumerate() {
        if is_zero(line) {
            continue;
        }
        for (j, &value) in line.iter().enumerate() {
            let value = to_f32(value);
            if value != 0.0 {
                found.push((first + i * LINE + j, value));
            }
        }
        if found.len() > most {
            return false;
        }
    }
    true
}

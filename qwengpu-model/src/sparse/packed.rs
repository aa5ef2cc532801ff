//! Lists of (place, value) in one piece of memory: what bounds the engine is how many cache lines it touches.

use super::norm::Normed;
use crate::matrix::{SparseMatrix, low_32};

/// A place and a value.
pub(crate) trait Entry: Copy {
    fn place(self) -> usize;
    fn value(self) -> f32;
    fn bits(self) -> u32;
}

/// A place below 2^16 in the low half, a bf16 value in the high half.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Narrow(u32);

/// Any place and any value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide(u32, f32);

const LOW_HALF: u32 = 0xffff;

impl Entry for Narrow {
    #[inline(always)]
    fn place(self) -> usize {
        (self.0 & LOW_HALF) as usize
    }

    #[inline(always)]
    fn value(self) -> f32 {
        f32::from_bits(self.0 & !LOW_HALF)
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        self.0
    }
}

impl Entry for Wide {
    #[inline(always)]
    fn place(self) -> usize {
        self.0 as usize
    }

    #[inline(always)]
    fn value(self) -> f32 {
        self.1
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        self.0
    }
}

/// Lists one behind the other.
#[derive(Debug, Clone)]
pub(crate) struct Lists<E> {
    /// List i is `starts[i]..starts[i + 1]`.
    starts: Vec<u32>,
    entries: Vec<E>,
}

impl<E: Entry> Lists<E> {
    #[inline(always)]
    pub(crate) fn get(&self, list: usize) -> &[E] {
        &self.entries[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// Brings `width` lists from each of these on close to the processor.
    ///
    /// The loads don't wait for each other, as those of a loop over lists of irregular length do; without this, a model
    /// larger than the cache spends most of its time waiting.
    #[inline(always)]
    pub(crate) fn fetch(&self, firsts: impl Iterator<Item = usize> + Clone, width: usize) {
        let mut seen = 0;
        for first in firsts.clone() {
            seen ^= self.starts[first] ^ self.starts[first + width];
        }
        for first in firsts {
            let (start, end) = (self.starts[first] as usize, self.starts[first + width] as usize);
            if start < end {
                seen ^= self.entries[start].bits() ^ self.entries[end - 1].bits();
            }
        }
        std::hint::black_box(seen);
    }

    /// Scalar product of a list with a vector.
    #[inline(always)]
    pub(crate) fn dot(&self, list: usize, x: &Normed<'_>) -> f32 {
        self.get(list).iter().map(|entry| entry.value() * x.get(low_32(entry.place()))).sum()
    }
}

/// Lists of whichever entries hold them all.
#[derive(Debug, Clone)]
pub(crate) enum Packed {
    Narrow(Lists<Narrow>),
    Wide(Lists<Wide>),
}

impl Packed {
    /// The rows of these matrices by turns: row 0 of each, row 1 of each, and so on. All have as many rows.
    pub(crate) fn rows(matrices: &[&SparseMatrix]) -> Self {
        let num_rows = matrices.iter().map(|m| m.rows()).max().unwrap_or(0);
        Self::lists(|| (0..num_rows).flat_map(|row| matrices.iter().map(move |m| m.row(row))))
    }

    /// Lists by column of (column, place, value).
    pub(crate) fn columns(num_columns: usize, entries: &[(u32, u32, f32)]) -> Self {
        let mut lists = vec![(Vec::new(), Vec::new()); num_columns];
        for &(col, place, value) in entries {
            let (places, values): &mut (Vec<u32>, Vec<f32>) = &mut lists[col as usize];
            places.push(place);
            values.push(value);
        }
        Self::lists(|| lists.iter().map(|(places, values)| (&places[..], &values[..])))
    }

    fn lists<'a, L: Iterator<Item = (&'a [u32], &'a [f32])>>(lists: impl Fn() -> L) -> Self {
        let is_narrow = lists().all(|(places, values)| {
            places.iter().all(|&p| p <= LOW_HALF) && values.iter().all(|v| v.to_bits() & LOW_HALF == 0)
        });
        if is_narrow {
            Self::Narrow(pack(lists(), |place, value| Narrow(value.to_bits() | place)))
        } else {
            Self::Wide(pack(lists(), Wide))
        }
    }
}

fn pack<'a, E>(lists: impl Iterator<Item = (&'a [u32], &'a [f32])>, entry: impl Fn(u32, f32) -> E) -> Lists<E> {
    let mut packed = Lists { starts: vec![0], entries: Vec::new() };
    for (places, values) in lists {
        packed.entries.extend(places.iter().zip(values).map(|(&place, &value)| entry(place, value)));
        packed.starts.push(low_32(packed.entries.len()));
    }
    packed.entries.shrink_to_fit();
    packed
}

/// Runs an expression with `$lists` bound to the lists of either kind.
macro_rules! with_lists {
    ($packed:expr, $lists:ident => $body:expr) => {
        match $packed {
            $crate::sparse::packed::Packed::Narrow($lists) => $body,
            $crate::sparse::packed::Packed::Wide($lists) => $body,
        }
    };
}
pub(crate) use with_lists;

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(packed: &Packed, list: usize) -> Vec<(usize, f32)> {
        with_lists!(packed, lists => lists.get(list).iter().map(|e| (e.place(), e.value())).collect())
    }

    #[test]
    fn both_kinds_hold_what_they_were_given() {
        let narrow = SparseMatrix::from_triplets(2, 70_000, [(0, 3, -1.5), (1, 65_535, 2.0)]).expect("entries");
        let wide = SparseMatrix::from_triplets(2, 70_000, [(0, 65_536, 1.0), (1, 0, 0.1)]).expect("entries");
        let packed = Packed::rows(&[&narrow, &narrow]);
        assert!(matches!(packed, Packed::Narrow(_)));
        let lists: Vec<_> = (0..4).map(|list| entries(&packed, list)).collect();
        assert_eq!(lists, [vec![(3, -1.5)], vec![(3, -1.5)], vec![(65_535, 2.0)], vec![(65_535, 2.0)]]);
        let packed = Packed::rows(&[&narrow, &wide]);
        assert!(matches!(packed, Packed::Wide(_)));
        let lists: Vec<_> = (0..4).map(|list| entries(&packed, list)).collect();
        assert_eq!(lists, [vec![(3, -1.5)], vec![(65_536, 1.0)], vec![(65_535, 2.0)], vec![(0, 0.1)]]);
    }
}

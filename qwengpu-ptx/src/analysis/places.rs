//! Where each register occurs, so that a search for it need not read the code.

use crate::ir::{BlockId, InstRef};

/// The places of every register, ascending.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Where the places of each register begin; one more entry ends the last.
    starts: Vec<usize>,
    places: Vec<InstRef>,
}

impl Places {
    /// The places that are found for `count` registers, each with its register's number.
    pub(crate) fn new(count: usize, mut found: Vec<(usize, InstRef)>) -> Places {
        // Blocks are read in order of their numbers, or nearly so: a stable sort is quick.
        found.sort_by_key(|(_, at)| at.block);
        let mut starts = vec![0; count + 1];
        for (idx, _) in &found {
            starts[idx + 1] += 1;
        }
        for idx in 0..count {
            starts[idx + 1] += starts[idx];
        }
        let mut next = starts.clone();
        let mut places = vec![InstRef { block: BlockId::new(0), pos: 0 }; found.len()];
        for (idx, at) in found {
            places[next[idx]] = at;
            next[idx] += 1;
        }
        Places { starts, places }
    }

    /// All places of a register; none for one made later.
    fn of(&self, idx: usize) -> &[InstRef] {
        match self.starts.get(idx..idx + 2) {
            Some([start, end]) => &self.places[*start..*end],
            _ => &[],
        }
    }

    /// The last place in the block of `at` in front of it.
    pub(crate) fn last_before(&self, idx: usize, at: InstRef) -> Option<InstRef> {
        let places = self.of(idx);
        let behind = places.partition_point(|place| *place < at);
        places[..behind].last().copied().filter(|place| place.block == at.block)
    }

    /// The places from one position of a block up to another, the latter left out.
    pub(crate) fn between(&self, idx: usize, from: InstRef, to: InstRef) -> &[InstRef] {
        let places = self.of(idx);
        let start = places.partition_point(|place| *place < from);
        let end = places.partition_point(|place| *place < to);
        places.get(start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(block: usize, pos: usize) -> InstRef {
        InstRef { block: BlockId::new(block), pos }
    }

    #[test]
    fn places_are_found_by_block() {
        let found = vec![(1, at(2, 0)), (1, at(2, 5)), (1, at(0, 3)), (0, at(0, 4)), (1, at(0, 7))];
        let places = Places::new(2, found);
        assert_eq!(places.last_before(1, at(2, 5)), Some(at(2, 0)));
        assert_eq!(places.last_before(1, at(2, 0)), None);
        assert_eq!(places.last_before(1, at(0, 9)), Some(at(0, 7)));
        assert_eq!(places.last_before(0, at(1, 9)), None);
        assert_eq!(places.between(1, at(0, 3), at(0, 7)), [at(0, 3)]);
        assert_eq!(places.between(1, at(0, 4), at(0, 7)), []);
        assert_eq!(places.between(7, at(0, 0), at(9, 0)), []);
    }
}

//! A bounded table of what was computed lately, by exactly what it was computed from.

use crate::matrix::low_32;

/// A place and the bits of its value.
pub(crate) type Pair = (u32, u32);

/// Pairs after which everything is forgotten: what doesn't fit into a cache is hardly faster than computing.
const MAX_PAIRS: usize = 1 << 17;
/// Slots of a new table; a power of two.
const MIN_SLOTS: usize = 64;

/// Results by their inputs. Both are lists of pairs, inputs never empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memo {
    /// Open addressing; at most half are taken.
    slots: Vec<Slot>,
    taken: usize,
    /// Each entry's inputs, then its results.
    pairs: Vec<Pair>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u64,
    start: u32,
    /// Zero in a free slot.
    inputs: u32,
    results: u32,
}

/// Begins a hash.
#[inline(always)]
pub(crate) fn seed(block: u32) -> u64 {
    u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Adds a pair to a hash.
#[inline(always)]
pub(crate) fn mix(hash: u64, (place, bits): Pair) -> u64 {
    let word = u64::from(place) << 32 | u64::from(bits);
    (hash.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

impl Memo {
    /// The results for these inputs, if they are known.
    #[inline]
    pub(crate) fn find(&self, hash: u64, inputs: &[Pair]) -> Option<&[Pair]> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut place = Self::home(hash) & mask;
        loop {
            let slot = self.slots[place];
            if slot.inputs == 0 {
                return None;
            }
            if slot.hash == hash {
                let entry = &self.pairs[slot.start as usize..(slot.start + slot.inputs + slot.results) as usize];
                let (known, results) = entry.split_at(slot.inputs as usize);
                if known == inputs {
                    return Some(results);
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// Keeps results that [`find`](Self::find) didn't know.
    pub(crate) fn insert(&mut self, hash: u64, inputs: &[Pair], results: &[Pair]) {
        let len = inputs.len() + results.len();
        if inputs.is_empty() || len > MAX_PAIRS / 8 {
            return;
        }
        if self.pairs.len() + len > MAX_PAIRS {
            self.clear();
        }
        if self.taken * 2 >= self.slots.len() {
            let slots = vec![Slot::default(); (self.slots.len() * 2).max(MIN_SLOTS)];
            for slot in std::mem::replace(&mut self.slots, slots) {
                if slot.inputs != 0 {
                    self.place(slot);
                }
            }
        }
        self.place(Slot {
            hash,
            start: low_32(self.pairs.len()),
            inputs: low_32(inputs.len()),
            results: low_32(results.len()),
        });
        self.taken += 1;
        self.pairs.extend_from_slice(inputs);
        self.pairs.extend_from_slice(results);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.taken = 0;
        self.pairs.clear();
    }

    fn place(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut place = Self::home(slot.hash) & mask;
        while self.slots[place].inputs != 0 {
            place = (place + 1) & mask;
        }
        self.slots[place] = slot;
    }

    /// The high bits of a product are its best.
    #[inline(always)]
    fn home(hash: u64) -> usize {
        (hash >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// With hashes as bad as they can be.
        #[test]
        fn like_a_map(
            entries in prop::collection::vec((prop::collection::vec((0..3_u32, 0..3_u32), 1..4), prop::collection::vec((0..9_u32, 0..9_u32), 0..3)), 0..200),
            hashes in 1..5_u64,
        ) {
            let mut memo = Memo::default();
            let mut known = BTreeMap::new();
            let hash = |inputs: &[Pair]| (inputs.iter().copied().fold(seed(0), mix) % hashes) << 32;
            for (inputs, results) in entries {
                let found = memo.find(hash(&inputs), &inputs).map(<[Pair]>::to_vec);
                prop_assert_eq!(found.as_ref(), known.get(&inputs));
                if found.is_none() {
                    memo.insert(hash(&inputs), &inputs, &results);
                    known.insert(inputs, results);
                }
            }
        }
    }

    #[test]
    fn it_is_bounded_and_starts_over() {
        let mut memo = Memo::default();
        for i in 0..low_32(MAX_PAIRS) {
            let inputs = [(i, 0), (i, 1)];
            let hash = mix(seed(0), inputs[0]);
            memo.insert(hash, &inputs, &[(i, i)]);
            assert_eq!(memo.find(hash, &inputs), Some(&[(i, i)][..]));
            assert!(memo.pairs.len() <= MAX_PAIRS && memo.slots.len() <= MAX_PAIRS);
        }
        memo.clear();
        assert_eq!(memo.find(mix(seed(0), (1, 0)), &[(1, 0), (1, 1)]), None);
    }
}

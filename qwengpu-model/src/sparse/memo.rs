//! A bounded table of what was computed lately, by exactly what it was computed from.

use crate::matrix::low_32;

/// A place and the bits of its value.
pub(crate) type Pair = (u32, u32);

/// Pairs of a generation: what doesn't fit into a cache is hardly faster than computing.
const MAX_PAIRS: usize = 1 << 17;
/// Slots of a new table; a power of two.
const MIN_SLOTS: usize = 64;

/// Results by their inputs. Both are lists of pairs.
///
/// It forgets by generations: when the young one is full it becomes the old one, whose entries return to the young one
/// when they are found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memo {
    young: Generation,
    old: Generation,
}

#[derive(Debug, Clone, Default)]
struct Generation {
    /// Open addressing; at most half are taken.
    slots: Vec<Slot>,
    taken: usize,
    /// Each entry's two lengths, then its inputs, then its results.
    pairs: Vec<Pair>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The better half of the hash.
    hash: u32,
    /// Where its entry begins, counted from one; zero in a free slot.
    entry: u32,
}

/// Where results are, until the next insertion or search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    is_old: bool,
    start: usize,
    end: usize,
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
    /// Where the results for these inputs are, if they are known.
    #[inline]
    pub(crate) fn find(&mut self, hash: u64, inputs: &[Pair]) -> Option<Found> {
        let Self { young, old } = self;
        if let Some((start, end)) = young.find(hash, inputs) {
            return Some(Found { is_old: false, start, end });
        }
        let (start, end) = old.find(hash, inputs)?;
        let results = &old.pairs[start..end];
        if !young.has_room(inputs.len() + results.len()) {
            return Some(Found { is_old: true, start, end });
        }
        let (start, end) = young.insert(hash, inputs, results);
        Some(Found { is_old: false, start, end })
    }

    /// Begins to load what a search will look at.
    ///
    /// Loads of several searches don't wait for each other this way; without it, a table larger than the cache spends
    /// most of its time waiting.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) -> u32 {
        let Generation { slots, pairs, .. } = &self.young;
        let slot = slots.get(better_half(hash) as usize & slots.len().wrapping_sub(1)).copied().unwrap_or_default();
        slot.entry.checked_sub(1).map_or(0, |entry| pairs[entry as usize].0)
    }

    /// What was found last.
    #[inline]
    pub(crate) fn results(&self, found: Found) -> &[Pair] {
        let Found { is_old, start, end } = found;
        let generation = if is_old { &self.old } else { &self.young };
        &generation.pairs[start..end]
    }

    /// Keeps results that [`find`](Self::find) didn't know.
    pub(crate) fn insert(&mut self, hash: u64, inputs: &[Pair], results: &[Pair]) {
        let len = inputs.len() + results.len();
        if len > MAX_PAIRS / 8 {
            return;
        }
        if !self.young.has_room(len) {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(hash, inputs, results);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

impl Generation {
    fn has_room(&self, len: usize) -> bool {
        self.pairs.len() + len < MAX_PAIRS
    }

    /// Where the results for these inputs are.
    #[inline]
    fn find(&self, hash: u64, inputs: &[Pair]) -> Option<(usize, usize)> {
        let mask = self.slots.len().checked_sub(1)?;
        let hash = better_half(hash);
        let mut place = hash as usize & mask;
        loop {
            let slot = self.slots[place];
            let entry = (slot.entry as usize).checked_sub(1)?;
            if slot.hash == hash {
                let (num_inputs, num_results) = self.pairs[entry];
                let start = entry + 1 + num_inputs as usize;
                if self.pairs[entry + 1..start] == *inputs {
                    return Some((start, start + num_results as usize));
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// Returns where the results are.
    fn insert(&mut self, hash: u64, inputs: &[Pair], results: &[Pair]) -> (usize, usize) {
        if self.taken * 2 >= self.slots.len() {
            let slots = vec![Slot::default(); (self.slots.len() * 2).max(MIN_SLOTS)];
            for slot in std::mem::replace(&mut self.slots, slots) {
                if slot.entry != 0 {
                    self.place(slot);
                }
            }
        }
        self.place(Slot { hash: better_half(hash), entry: low_32(self.pairs.len() + 1) });
        self.taken += 1;
        self.pairs.push((low_32(inputs.len()), low_32(results.len())));
        self.pairs.extend_from_slice(inputs);
        self.pairs.extend_from_slice(results);
        (self.pairs.len() - results.len(), self.pairs.len())
    }

    fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.taken = 0;
        self.pairs.clear();
    }

    fn place(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut place = slot.hash as usize & mask;
        while self.slots[place].entry != 0 {
            place = (place + 1) & mask;
        }
        self.slots[place] = slot;
    }
}

/// The high bits of a product are its best.
#[inline(always)]
fn better_half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn look(memo: &mut Memo, hash: u64, inputs: &[Pair]) -> Option<Vec<Pair>> {
        memo.find(hash, inputs).map(|found| memo.results(found).to_vec())
    }

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
                let found = look(&mut memo, hash(&inputs), &inputs);
                prop_assert_eq!(found.as_ref(), known.get(&inputs));
                if found.is_none() {
                    memo.insert(hash(&inputs), &inputs, &results);
                    known.insert(inputs, results);
                }
            }
        }
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_used() {
        let mut memo = Memo::default();
        let key = |i: u32| [(i, 0), (i, 1)];
        let hash = |i: u32| mix(seed(0), (i, 0));
        memo.insert(hash(0), &key(0), &[(7, 7)]);
        for i in 1..low_32(MAX_PAIRS) {
            memo.insert(hash(i), &key(i), &[(i, i)]);
            assert_eq!(look(&mut memo, hash(i), &key(i)), Some(vec![(i, i)]));
            if i % 10_000 == 0 {
                assert_eq!(look(&mut memo, hash(0), &key(0)), Some(vec![(7, 7)]), "after {i}");
            }
            for generation in [&memo.young, &memo.old] {
                assert!(generation.pairs.len() <= MAX_PAIRS && generation.slots.len() <= MAX_PAIRS);
            }
        }
        assert_eq!(look(&mut memo, hash(1), &key(1)), None, "long ago");
        memo.clear();
        assert_eq!(look(&mut memo, hash(0), &key(0)), None);
    }
}

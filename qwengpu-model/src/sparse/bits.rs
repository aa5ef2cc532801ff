//! Sets of places, a bit each.

/// A set of places below a fixed length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

const WORD: usize = u64::BITS as usize;

impl Bits {
    pub(crate) fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(WORD)] }
    }

    #[inline]
    pub(crate) fn set(&mut self, place: u32) {
        self.words[place as usize / WORD] |= 1 << (place as usize % WORD);
    }

    /// Sets or clears a place.
    #[inline(always)]
    pub(crate) fn assign(&mut self, place: u32, is_in: bool) {
        let (word, bit) = (&mut self.words[place as usize / WORD], place as usize % WORD);
        *word = *word & !(1 << bit) | u64::from(is_in) << bit;
    }

    /// The words, each with its number.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(self.words.iter().copied())
    }

    /// Hands out the places that are in both this set and one word of another, ascending.
    #[inline(always)]
    pub(crate) fn for_each_in(&self, number: u32, word: u64, mut visit: impl FnMut(u32)) {
        let base = number * u64::BITS;
        for_each_bit(base, self.words[number as usize] & word, &mut visit);
    }

    /// Hands out every place, ascending, and leaves the empty set.
    #[inline]
    pub(crate) fn drain(&mut self, mut visit: impl FnMut(u32)) {
        for (base, word) in (0..).step_by(WORD).zip(&mut self.words) {
            for_each_bit(base, std::mem::take(word), &mut visit);
        }
    }

    /// Hands out every place, ascending.
    #[inline]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u32)) {
        for (base, &word) in (0..).step_by(WORD).zip(&self.words) {
            for_each_bit(base, word, &mut visit);
        }
    }
}

#[inline(always)]
fn for_each_bit(base: u32, mut word: u64, visit: &mut impl FnMut(u32)) {
    while word != 0 {
        visit(base + word.trailing_zeros());
        word &= word - 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn listed(each: impl FnOnce(&mut dyn FnMut(u32))) -> Vec<u32> {
        let mut list = Vec::new();
        each(&mut |place| list.push(place));
        list
    }

    proptest! {
        #[test]
        fn like_a_set(a in prop::collection::btree_set(0..200_u32, 0..40), b in prop::collection::btree_set(0..200_u32, 0..40)) {
            let bits = |set: &BTreeSet<u32>| {
                let mut bits = Bits::new(200);
                set.iter().for_each(|&place| bits.set(place));
                bits
            };
            let (mut left, right) = (bits(&a), bits(&b));
            prop_assert_eq!(listed(|f| left.for_each(f)), a.iter().copied().collect::<Vec<_>>());
            let common = listed(|f| right.words().for_each(|(number, word)| left.for_each_in(number, word, &mut *f)));
            prop_assert_eq!(common, a.intersection(&b).copied().collect::<Vec<_>>());
            b.iter().for_each(|&place| left.assign(place, a.contains(&place)));
            b.iter().for_each(|&place| left.assign(place, false));
            prop_assert_eq!(listed(|f| left.drain(f)), a.difference(&b).copied().collect::<Vec<_>>());
            prop_assert_eq!(left, Bits::new(200));
        }
    }
}

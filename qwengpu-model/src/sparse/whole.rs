//! What a whole map came to, by all that it reads.
//!
//! Above the blocks of a map: where a token's input as a whole has come lately, one search finds all results.

use super::bits::Bits;
use super::memo::{Found, Memo, Pair, mix, seed};
use super::norm::Normed;

/// Results of a function of the columns it reads, and of nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    /// Words of the set of columns that aren't empty, with their numbers.
    words: Vec<(u32, u64)>,
    /// This token's input: the norm's factor, then what is active, ascending.
    key: Vec<Pair>,
    hash: u64,
    memo: Memo,
    found: Option<Found>,
    /// What was computed, where nothing was found.
    results: Vec<Pair>,
    worth: Worth,
}

/// Whether looking pays: inputs that never come back only cost time.
#[derive(Debug, Clone, Copy, Default)]
struct Worth {
    asked: u32,
    found: u32,
    /// Inputs that are still to go by unseen.
    asleep: u32,
}

impl Worth {
    /// Inputs between two decisions.
    const WINDOW: u32 = 1024;
    /// The share of them that has to be found is one in so many.
    const SHARE: u32 = 4;
    /// Windows without looking.
    const SLEEP: u32 = 8;

    #[inline]
    fn is_awake(&mut self) -> bool {
        if self.asleep > 0 {
            self.asleep -= 1;
        }
        self.asleep == 0
    }

    #[inline]
    fn learn(&mut self, is_found: bool) {
        self.asked += 1;
        self.found += u32::from(is_found);
        if self.asked == Self::WINDOW {
            if self.found < Self::WINDOW / Self::SHARE {
                self.asleep = Self::WINDOW * Self::SLEEP;
            }
            (self.asked, self.found) = (0, 0);
        }
    }
}

impl Whole {
    /// Of a function that reads these columns.
    pub(crate) fn new(columns: &Bits) -> Self {
        Self {
            words: columns.words().filter(|&(_, word)| word != 0).collect(),
            key: Vec::new(),
            hash: 0,
            memo: Memo::default(),
            found: None,
            results: Vec::new(),
            worth: Worth::default(),
        }
    }

    /// The results for this input; `compute` appends them if they aren't known, given the columns that are active.
    #[inline]
    pub(crate) fn get(&mut self, x: &Normed<'_>, compute: impl FnOnce(&[Pair], &mut Vec<Pair>)) -> &[Pair] {
        self.key.clear();
        let context = (u32::MAX, x.inverse().to_bits());
        self.key.push(context);
        let mut hash = mix(seed(0), context);
        for &(number, word) in &self.words {
            x.for_each_raw_in(number, word, |col, value| {
                let input = (col, value.to_bits());
                self.key.push(input);
                hash = mix(hash, input);
            });
        }
        self.hash = hash;
        let is_awake = self.worth.is_awake();
        self.found = None;
        if is_awake {
            self.found = self.memo.find(hash, &self.key);
            self.worth.learn(self.found.is_some());
        }
        if let Some(found) = self.found {
            return self.memo.results(found);
        }
        self.results.clear();
        compute(&self.key[1..], &mut self.results);
        if is_awake {
            self.memo.insert(hash, &self.key, &self.results);
        }
        &self.results
    }

    /// The columns that were active last, before the norm, ascending.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (u32, f32)> {
        self.key.iter().skip(1).map(|&(col, bits)| (col, f32::from_bits(bits)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::tests::sparse;
    use super::super::norm::RmsNorm;
    use super::super::vector::Stream;
    use super::*;
    use crate::engine::Precision;
    use crate::matrix::SparseMatrix;

    /// Columns 0 to 11 of 16.
    fn columns() -> Bits {
        let mut columns = Bits::new(16);
        (0..12).for_each(|col| columns.set(col));
        columns
    }

    /// Everything that a function of these columns can depend on.
    fn all(x: &Normed<'_>, columns: &Bits) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let words = columns.words();
        words.for_each(|(number, word)| {
            x.for_each_raw_in(number, word, |col, _| pairs.push((col, x.get(col).to_bits())))
        });
        pairs
    }

    proptest! {
        /// Tokens come back, some of them differ in columns that don't count.
        #[test]
        fn known_or_not_it_is_the_same(
            tokens in prop::collection::vec(sparse(1, 16, 9), 1..6),
            order in prop::collection::vec(0..6_usize, 1..60),
        ) {
            let (norm, mut stream) = (RmsNorm::new(&[0.0; 16], 1e-6, Precision::F32), Stream::new(16));
            let mut whole = Whole::new(&columns());
            for which in order {
                stream.load(&tokens[which % tokens.len()], 0);
                let x = norm.stream(&mut stream);
                let expected = all(&x, &columns());
                let results = whole.get(&x, |_, results| results.extend(all(&x, &columns())));
                prop_assert_eq!(results, &expected[..]);
            }
        }
    }

    #[test]
    fn it_sleeps_where_nothing_comes_back_and_wakes_again() {
        let (norm, mut stream) = (RmsNorm::new(&[0.0; 16], 1e-6, Precision::F32), Stream::new(16));
        let mut whole = Whole::new(&columns());
        let mut ask = |value: f32| {
            let token = SparseMatrix::from_triplets(1, 16, [(0, 3, 1e9), (0, 4, value)]).expect("a token");
            stream.load(&token, 0);
            let mut computed = false;
            whole.get(&norm.stream(&mut stream), |_, _| computed = true);
            computed
        };
        (0..Worth::WINDOW).for_each(|i| assert!(ask(1.0 + i as f32)));
        // The last of these would be known.
        let asleep = Worth::WINDOW * Worth::SLEEP;
        (1..asleep).for_each(|_| assert!(ask(1.0)));
        assert!(!ask(1.0));
    }
}

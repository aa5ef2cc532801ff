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

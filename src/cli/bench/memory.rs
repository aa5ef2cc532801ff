//! Main memory: how fast it is read, and how much of it is free.

use super::Failure;

/// A buffer that is read from its beginning to its end, by as many threads as the engines have.
#[derive(Debug)]
pub(crate) struct Plain {
    words: Vec<u64>,
    threads: usize,
}

impl Plain {
    /// `bytes` bytes that are really there: pages of zeros would share one.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { words: (0..bytes as u64 / 8).collect(), threads: threads() }
    }

    pub(crate) fn bytes(&self) -> usize {
        8 * self.words.len()
    }

    /// The sum of all words.
    pub(crate) fn read(&self) -> u64 {
        let part = self.words.len().div_ceil(self.threads).max(1);
        std::thread::scope(|scope| {
            let parts: Vec<_> = self.words.chunks(part).map(|words| scope.spawn(|| sum(words))).collect();
            // A thread that sums cannot panic.
            parts.into_iter().fold(0, |total: u64, part| total.wrapping_add(part.join().unwrap_or_default()))
        })
    }
}

/// In 16 running sums, which no chain of additions holds up.
fn sum(words: &[u64]) -> u64 {
    let (blocks, rest) = words.as_chunks::<16>();
    let mut sums = [0_u64; 16];
    for block in blocks {
        for (sum, word) in sums.iter_mut().zip(block) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |total, &word| total.wrapping_add(word))
}

/// As many as rayon starts.
pub(crate) fn threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok()).filter(|&number| number > 0);
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Bytes that can be had without pushing others out; `None` where the system does not say.
pub(crate) fn available() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kilobytes| kilobytes << 10)
}

/// Refuses what would not fit.
pub(crate) fn refuse_without(bytes: usize) -> Result<(), Failure> {
    match available() {
        Some(available) if available < bytes => Err(Failure::input(format!(
            "this group needs {} MB, and {} MB are free: leave it out with --only",
            bytes >> 20,
            available >> 20
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        let plain = Plain::new(8 * 1003);
        assert_eq!(plain.read(), 1002 * 1003 / 2);
        assert_eq!(plain.bytes(), 8 * 1003);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        if available().is_some() {
            assert!(refuse_without(usize::MAX).is_err());
        }
        assert!(refuse_without(1).is_ok());
    }
}

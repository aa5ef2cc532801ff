//! Time, on the wall and on the processors.

use std::time::Instant;

use serde::Deserialize;

/// What something took; another program gives it as a list of both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(crate) struct Reading {
    /// Seconds on the wall.
    pub(crate) wall: f64,
    /// Seconds of all processors of this process; `None` where the system does not say.
    pub(crate) cpu: Option<f64>,
}

impl Reading {
    /// Nothing took no time.
    pub(crate) const ZERO: Self = Self { wall: 0.0, cpu: Some(0.0) };

    pub(crate) fn plus(self, other: Self) -> Self {
        let cpu = self.cpu.zip(other.cpu).map(|(one, two)| one + two);
        Self { wall: self.wall + other.wall, cpu }
    }

    /// The one that took less on the wall: what disturbs a run only makes it longer.
    pub(crate) fn least(self, other: Self) -> Self {
        if other.wall < self.wall { other } else { self }
    }

    /// Threads that were busy, on average.
    pub(crate) fn threads(self) -> Option<f64> {
        self.cpu.filter(|_| self.wall > 0.0).map(|cpu| cpu / self.wall)
    }

    /// So many of something in a second.
    pub(crate) fn rate(self, amount: f64) -> f64 {
        if self.wall > 0.0 { amount / self.wall } else { 0.0 }
    }
}

/// Runs something and says what it took.
pub(crate) fn time<T>(run: impl FnOnce() -> T) -> (T, Reading) {
    let (cpu, begun) = (processor_seconds(), Instant::now());
    let result = run();
    let wall = begun.elapsed().as_secs_f64();
    let cpu = processor_seconds().zip(cpu).map(|(after, before)| after - before);
    (result, Reading { wall, cpu })
}

/// Takes turns: every round runs each contestant once, so that what disturbs the machine disturbs all of them alike.
/// Returns the least time of each.
///
/// # Errors
/// The first error of a contestant.
pub(crate) fn take_turns<E>(
    rounds: usize,
    contestants: &mut [&mut dyn FnMut() -> Result<(), E>],
) -> Result<Vec<Reading>, E> {
    let mut best: Vec<Option<Reading>> = vec![None; contestants.len()];
    for _ in 0..rounds.max(1) {
        for (best, contestant) in best.iter_mut().zip(contestants.iter_mut()) {
            let (result, reading) = time(contestant);
            result?;
            *best = Some(best.map_or(reading, |best| best.least(reading)));
        }
    }
    Ok(best.into_iter().map(Option::unwrap_or_default).collect())
}

#[cfg(target_os = "linux")]
fn processor_seconds() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "a process of 2^52 seconds is none")]
    let seconds = time.tv_sec as f64;
    u32::try_from(time.tv_nsec).ok().map(|nanoseconds| seconds + f64::from(nanoseconds) / 1e9)
}

#[cfg(not(target_os = "linux"))]
fn processor_seconds() -> Option<f64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_alternate_and_the_least_counts() {
        let turns = std::cell::RefCell::new(String::new());
        let say = |name: char| turns.borrow_mut().push(name);
        let mut slow_once = || {
            if turns.borrow().is_empty() {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            say('a');
            Ok::<(), ()>(())
        };
        let mut other = || {
            say('b');
            Ok(())
        };
        let best = take_turns(3, &mut [&mut slow_once, &mut other]).expect("no errors");
        assert_eq!(*turns.borrow(), "ababab");
        assert!(best[0].wall < 0.05, "{best:?}");
    }

    #[test]
    fn an_error_ends_the_turns() {
        assert_eq!(take_turns(2, &mut [&mut || Err("broken")]).expect_err("it fails"), "broken");
    }
}

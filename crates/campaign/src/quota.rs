//! Void runs, which show the machine instead of what is measured, are made again: with other seeds, within a bound.

use std::ops::RangeInclusive;

/// How many runs must count, and how many may be made for it.
#[derive(Debug, Clone)]
pub struct Quota {
    wanted: u64,
    attempts: u64,
    bound: u64,
}

impl Quota {
    /// `wanted` runs, each with up to `attempts_each` attempts on average.
    pub fn new(wanted: u64, attempts_each: u64) -> Self {
        Self { wanted, attempts: 0, bound: wanted.saturating_mul(attempts_each) }
    }

    /// The numbers, from 1, of the attempts to make next, at most `at_once`. `counted` is the number of runs that count
    /// so far. `None` if that is enough, or if the bound is reached. Never more than are missing: to choose among valid
    /// runs would be a bias.
    pub fn next(&mut self, counted: u64, at_once: u64) -> Option<RangeInclusive<u64>> {
        let missing = self.wanted.saturating_sub(counted);
        let runs = missing.min(at_once).min(self.bound - self.attempts);
        let first = self.attempts + 1;
        self.attempts += runs;
        (runs > 0).then_some(first..=self.attempts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn void_runs_are_made_again_and_not_for_ever() {
        let mut quota = Quota::new(3, 2);
        assert_eq!(quota.next(0, 10), Some(1..=3));
        assert_eq!(quota.next(1, 10), Some(4..=5));
        assert_eq!(quota.next(2, 10), Some(6..=6));
        assert_eq!(quota.next(2, 10), None, "six attempts for three runs");
    }

    #[test]
    fn no_more_than_wanted_and_no_more_at_once() {
        let mut quota = Quota::new(5, 3);
        assert_eq!(quota.next(0, 2), Some(1..=2));
        assert_eq!(quota.next(2, 2), Some(3..=4));
        assert_eq!(quota.next(4, 2), Some(5..=5));
        assert_eq!(quota.next(5, 2), None);
    }
}

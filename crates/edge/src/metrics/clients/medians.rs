//! Medians of times in fixed memory.

use std::time::Duration;

/// Eight ranges for each doubling of the time, from 8 µs to beyond two days.
const RANGES: usize = 8 * 35;

/// How many times were in which range.
#[derive(Debug, Clone)]
pub(in super::super) struct Spread(Box<[u64; RANGES]>);

impl Default for Spread {
    fn default() -> Self {
        Self(Box::new([0; RANGES]))
    }
}

impl Spread {
    pub(super) fn add(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0[range(micros)] += 1;
    }

    pub(in super::super) fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The median in seconds, within 7 %; `None` without any time.
    pub(in super::super) fn median(&self) -> Option<f64> {
        let half = self.count().div_ceil(2);
        let mut seen = 0;
        let at = self.0.iter().position(|number| {
            seen += number;
            seen >= half && half > 0
        })?;
        let (from, to) = (begin(at), begin(at + 1));
        Some((from + to) as f64 / 2e6)
    }
}

/// The range of a time in microseconds: the place of its highest bit, and the next three bits.
fn range(micros: u64) -> usize {
    let micros = micros.max(8);
    let octave = 60 - micros.leading_zeros() as usize;
    let within = (micros >> octave) as usize & 7;
    (octave * 8 + within).min(RANGES - 1)
}

/// Where a range begins, in microseconds.
fn begin(range: usize) -> u64 {
    (8 + (range as u64 & 7)) << (range / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_one_another() {
        for at in 0..RANGES - 1 {
            assert_eq!(range(begin(at)), at);
            assert_eq!(range(begin(at + 1) - 1), at);
        }
        assert_eq!((range(0), range(u64::MAX)), (0, RANGES - 1));
    }

    #[test]
    fn a_median_is_near_the_time_in_the_middle() {
        let mut spread = Spread::default();
        assert_eq!(spread.median(), None);
        for milliseconds in [2, 3, 500, 700, 90_000] {
            spread.add(Duration::from_millis(milliseconds));
        }
        let median = spread.median().unwrap();
        assert!((median / 0.5 - 1.0).abs() < 0.07, "{median}");
    }
}

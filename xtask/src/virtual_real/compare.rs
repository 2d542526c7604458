//! Medians set beside each other.

use posthaste_units::Rng;

use super::cells::Cell;
use super::real::Measured;
use crate::bench::median;

/// What real time may be away from virtual time.
const TOLERANCE: f64 = 0.05;

/// Real runs below which a median says nothing.
const FEWEST_RUNS: usize = 9;

/// Resamples for the interval.
const RESAMPLES: usize = 1_000;

/// One cell's outcome.
#[derive(Debug)]
pub(super) struct Comparison {
    name: &'static str,
    /// Runs on either side.
    runs: [usize; 2],
    /// Median seconds on either side, virtual time first.
    medians: [f64; 2],
    /// `real / virtual - 1`, and its 95 % interval.
    error: f64,
    interval: [f64; 2],
    void: u64,
    lateness: f64,
}

impl Comparison {
    /// The head of the table.
    pub(super) const HEADER: &str = "\
| cell | virtual, median s (runs) | real, median s (runs) | real / virtual - 1 | 95 % interval | within 5 % | void runs | lateness, p99 of the worst run |
|---|---|---|---|---|---|---|---|";

    pub(super) fn new(cell: &Cell, virtual_times: &[f64], real: &Measured) -> Self {
        Self {
            name: cell.name,
            runs: [virtual_times.len(), real.seconds.len()],
            medians: [median(virtual_times.iter().copied()), median(real.seconds.iter().copied())],
            error: error(virtual_times, &real.seconds),
            interval: interval(virtual_times, &real.seconds),
            void: real.void,
            lateness: real.lateness,
        }
    }

    /// True if it was measured and real time is where virtual time says. NaN, which infinite medians make, is not.
    pub(super) fn agrees(&self) -> bool {
        self.runs.iter().all(|&runs| runs >= FEWEST_RUNS) && self.error.abs() <= TOLERANCE
    }

    pub(super) fn row(&self) -> String {
        let verdict = match self.agrees() {
            true => "yes",
            false if self.runs[1] < FEWEST_RUNS => "not measured: the machine is too busy",
            false => "**no**",
        };
        format!(
            "| {} | {:.4} ({}) | {:.4} ({}) | {:+.1} % | {:+.1} to {:+.1} % | {verdict} | {} | {:.2} ms |",
            self.name,
            self.medians[0],
            self.runs[0],
            self.medians[1],
            self.runs[1],
            self.error * 100.0,
            self.interval[0] * 100.0,
            self.interval[1] * 100.0,
            self.void,
            self.lateness * 1e3,
        )
    }
}

fn error(virtual_times: &[f64], real: &[f64]) -> f64 {
    median(real.iter().copied()) / median(virtual_times.iter().copied()) - 1.0
}

/// Bootstrap, with a fixed seed: the same times give the same interval.
fn interval(virtual_times: &[f64], real: &[f64]) -> [f64; 2] {
    if virtual_times.is_empty() || real.is_empty() {
        return [f64::NAN; 2];
    }
    let mut rng = Rng::from_test_seed(0);
    let mut resample = |times: &[f64]| -> Vec<f64> {
        times.iter().map(|_| times[rng.below(times.len() as u64) as usize]).collect()
    };
    let mut errors: Vec<f64> =
        (0..RESAMPLES).map(|_| error(&resample(virtual_times), &resample(real))).collect();
    errors.sort_by(f64::total_cmp);
    [errors[RESAMPLES * 25 / 1000], errors[RESAMPLES * 975 / 1000]]
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::*;

    fn compare(virtual_times: &[f64], real: &[f64]) -> Comparison {
        let real = Measured { seconds: real.to_vec(), void: 0, lateness: 0.0 };
        Comparison::new(&CELLS[0], virtual_times, &real)
    }

    #[test]
    fn five_percent_either_way_agree_and_more_does_not() {
        for (real, agrees) in [(1.0, true), (1.049, true), (0.951, true), (1.051, false), (0.949, false)] {
            assert_eq!(compare(&[1.0; 9], &[real; 9]).agrees(), agrees, "{real}");
        }
    }

    #[test]
    fn what_was_not_measured_does_not_agree() {
        let few = compare(&[1.0; 9], &[1.0; 8]);
        assert!(!few.agrees() && few.row().contains("not measured"));
        assert!(!compare(&[1.0; 9], &[]).agrees());
        assert!(!compare(&[f64::INFINITY; 9], &[f64::INFINITY; 9]).agrees());
        assert!(!compare(&[1.0; 9], &[f64::INFINITY; 9]).agrees());
    }

    #[test]
    fn the_interval_holds_the_error_and_shrinks_with_more_runs() {
        let spread =
            |count: u64| -> Vec<f64> { (0..count).map(|i| 1.0 + (i * 37 % 100) as f64 / 100.0).collect() };
        let width = |count| {
            let made = compare(&spread(count), &spread(count));
            assert!(made.interval[0] <= made.error && made.error <= made.interval[1], "{made:?}");
            made.interval[1] - made.interval[0]
        };
        assert!(width(900) < width(30) / 2.0);
    }
}

//! Medians set beside each other.

use posthaste_report::statistics::{Interval, bootstrap_interval};

use super::real::Measured;
use crate::cells::Cell;
use crate::median;

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
    /// Pairs of runs with the same seed.
    pairs: usize,
    /// Median seconds on either side, virtual time first: to read, not to judge.
    medians: [f64; 2],
    /// Geometric mean of `real / virtual` over the pairs, less 1, and its 95 % interval, a bootstrap over pairs.
    error: f64,
    interval: Option<Interval>,
    /// Correlation of the logarithms of the pairs: how far a seed gives both sides the same packets' fates.
    correlation: f64,
    void: u64,
    lateness: f64,
}

impl Comparison {
    /// The columns of the table.
    pub(super) const COLUMNS: [&str; 10] = [
        "cell",
        "pairs",
        "virtual, median s",
        "real, median s",
        "real / virtual - 1",
        "95 % interval",
        "within 5 %",
        "correlation",
        "void runs",
        "lateness, p99 of the worst run",
    ];

    /// `virtual_times` are those of the seeds of `real.runs`, in their order.
    pub(super) fn new(cell: &Cell, virtual_times: &[f64], real: &Measured) -> Self {
        let real_times = real.runs.iter().map(|run| run.seconds);
        let logarithms: Vec<[f64; 2]> =
            virtual_times.iter().zip(real_times.clone()).map(|(virt, real)| [virt.ln(), real.ln()]).collect();
        Self {
            name: cell.name,
            pairs: logarithms.len(),
            medians: [median(virtual_times.iter().copied()), median(real_times)],
            error: error(&logarithms),
            interval: bootstrap_interval(&logarithms, RESAMPLES, |pairs| Some(error(pairs))),
            correlation: correlation(&logarithms),
            void: real.void,
            lateness: real.lateness,
        }
    }

    /// True if it was measured and real time is where virtual time says. NaN and infinity, which failed runs make, are
    /// not.
    pub(super) fn agrees(&self) -> bool {
        self.pairs >= FEWEST_RUNS && self.error.abs() <= TOLERANCE
    }

    pub(super) fn row(&self) -> String {
        let verdict = match self.agrees() {
            true => "yes",
            false if self.pairs < FEWEST_RUNS => "not measured: the machine is too busy",
            false => "**no**",
        };
        let correlation =
            if self.correlation.is_nan() { "-".to_owned() } else { format!("{:.2}", self.correlation) };
        let Interval { low, high } = self.interval.unwrap_or(Interval { low: f64::NAN, high: f64::NAN });
        format!(
            "| {} | {} | {:.4} | {:.4} | {:+.1} % | {:+.1} to {:+.1} % | {verdict} | {correlation} | {} | {:.2} ms |",
            self.name,
            self.pairs,
            self.medians[0],
            self.medians[1],
            self.error * 100.0,
            low * 100.0,
            high * 100.0,
            self.void,
            self.lateness * 1e3,
        )
    }
}

/// Geometric mean of the ratios, less 1. A median would jump where times fall into two groups, as those of short
/// downloads with and without an early loss do.
fn error(logarithms: &[[f64; 2]]) -> f64 {
    (logarithms.iter().map(|[virt, real]| real - virt).sum::<f64>() / logarithms.len() as f64).exp_m1()
}

/// Pearson's; NaN where one side does not vary.
fn correlation(pairs: &[[f64; 2]]) -> f64 {
    let mean = |side: usize| pairs.iter().map(|pair| pair[side]).sum::<f64>() / pairs.len() as f64;
    let means = [mean(0), mean(1)];
    let moment = |one: usize, other: usize| -> f64 {
        pairs.iter().map(|pair| (pair[one] - means[one]) * (pair[other] - means[other])).sum()
    };
    moment(0, 1) / (moment(0, 0) * moment(1, 1)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::super::real::RealRun;
    use super::*;

    fn compare(virtual_times: &[f64], real: &[f64]) -> Comparison {
        let runs =
            real.iter().zip(1..).map(|(&seconds, seed)| RealRun { seed, seconds }).collect::<Vec<RealRun>>();
        Comparison::new(&CELLS[0], virtual_times, &Measured { runs, void: 0, lateness: 0.0 })
    }

    #[test]
    fn five_percent_either_way_agree_and_more_does_not() {
        for (real, agrees) in [(1.0, true), (1.049, true), (0.951, true), (1.051, false), (0.949, false)] {
            assert_eq!(compare(&[1.0; 9], &[real; 9]).agrees(), agrees, "{real}");
        }
    }

    #[test]
    fn what_was_not_measured_or_failed_does_not_agree() {
        let few = compare(&[1.0; 8], &[1.0; 8]);
        assert!(!few.agrees() && few.row().contains("not measured"));
        assert!(!compare(&[], &[]).agrees());
        let mut one_failed = [1.0; 9];
        one_failed[4] = f64::INFINITY;
        assert!(!compare(&[1.0; 9], &one_failed).agrees());
        assert!(!compare(&one_failed, &[1.0; 9]).agrees());
        assert!(!compare(&one_failed, &one_failed).agrees());
    }

    /// Times in two groups, seed by seed 2 % longer in real time; one more pair in the quick group would move the ratio
    /// of medians by a third.
    #[test]
    fn two_groups_of_times_are_compared_seed_by_seed() {
        let virtual_times: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
        let real: Vec<f64> = virtual_times.iter().map(|time| time * 1.02).collect();
        let made = compare(&virtual_times, &real);
        assert!((made.error - 0.02).abs() < 1e-9 && made.correlation > 0.999, "{made:?}");
        let Interval { low, high } = made.interval.unwrap();
        assert!([low, high].iter().all(|bound| (bound - 0.02).abs() < 1e-9), "{made:?}");
    }

    #[test]
    fn the_interval_holds_the_error_and_shrinks_with_more_runs() {
        let spread = |count: u64, step: u64| -> Vec<f64> {
            (0..count).map(|i| 1.0 + (i * step % 100) as f64 / 100.0).collect()
        };
        let width = |count| {
            let made = compare(&spread(count, 37), &spread(count, 61));
            let interval = made.interval.unwrap();
            assert!(interval.contains(made.error), "{made:?}");
            interval.high - interval.low
        };
        assert!(width(900) < width(30) / 2.0);
    }
}

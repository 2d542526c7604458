//! 95 % confidence intervals.

use posthaste_units::Rng;
use serde::Serialize;

use super::special::{fair_coin_at_most, student_t};
use super::{finite, mean, sorted, standard_deviation};

/// The confidence of every interval in reports.
pub const CONFIDENCE: f64 = 0.95;

/// A range of values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    #[serde(serialize_with = "finite")]
    pub low: f64,
    /// Upper end; infinite (`null` in JSON) if it lies beyond the deadline.
    #[serde(serialize_with = "finite")]
    pub high: f64,
}

impl Interval {
    /// True if `value` lies within.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The interval of the mean by Student's t; `None` below two values or if one is censored.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    let (mean, std) = (mean(values)?, standard_deviation(values)?);
    let n = values.len() as f64;
    let half = student_t(n - 1.0, 1.0 - CONFIDENCE) * std / n.sqrt();
    Some(Interval { low: mean - half, high: mean + half })
}

/// The interval of the median between two order statistics, without any assumption about the distribution; its
/// confidence is *at least* 95 %. `None` below six values: even their extremes enclose the median less often.
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let (low, high) = median_ranks(values.len())?;
    let sorted = sorted(values);
    Some(Interval { low: sorted[low], high: sorted[high] })
}

/// The interval of a statistic that has no formula, by the percentile bootstrap: the statistic of so many samples that
/// are drawn from `sample` with replacement. The draws have a fixed seed, so that equal samples have equal intervals.
/// Samples without the statistic do not count; `None` if there are no others.
pub fn bootstrap_interval<T: Copy>(
    sample: &[T],
    resamples: usize,
    statistic: impl Fn(&[T]) -> Option<f64>,
) -> Option<Interval> {
    let mut rng = Rng::from_test_seed(0);
    let count = sample.len() as u64;
    let mut draw =
        || -> Vec<T> { (0..count).filter_map(|_| sample.get(rng.below(count) as usize).copied()).collect() };
    let mut values: Vec<f64> = (0..resamples).filter_map(|_| statistic(&draw())).collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)? as f64;
    let at = |share: f64| values.get((last * share).round() as usize).copied();
    let outside = (1.0 - CONFIDENCE) / 2.0;
    Some(Interval { low: at(outside)?, high: at(1.0 - outside)? })
}

/// Indices of the order statistics that enclose the median of `n` values with 95 % confidence. The number of values
/// below the median is that of heads of `n` fair coins.
pub fn median_ranks(n: usize) -> Option<(usize, usize)> {
    let is_covered = |low: usize| fair_coin_at_most(low, n) <= (1.0 - CONFIDENCE) / 2.0;
    if n == 0 || !is_covered(0) {
        return None;
    }
    let (mut low, mut beyond) = (0, n / 2 + 1);
    while beyond - low > 1 {
        let middle = usize::midpoint(low, beyond);
        if is_covered(middle) {
            low = middle;
        } else {
            beyond = middle;
        }
    }
    Some((low, n - 1 - low))
}

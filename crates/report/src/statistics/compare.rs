//! Two cells set against each other.

use serde::Serialize;

use super::interval::{Interval, median_ranks};
use super::special::student_t;
use super::{CONFIDENCE, finite, mean, sorted, standard_deviation};

/// Ratios of runs with the same seed. A shared seed gives both stacks the same path, so ratios within pairs vary less
/// than the runs do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Paired {
    /// Pairs.
    pub pairs: usize,
    /// Pairs of which neither has a value (both censored, or both zero): their ratio may be anything.
    pub undetermined: usize,
    /// Runs without a partner of the same seed, on both sides.
    pub unpaired: usize,
    /// Pairs whose ratio is below one.
    pub below: usize,
    /// Pairs whose ratio is above one.
    pub above: usize,
    /// Median ratio; `None` if the undetermined pairs could move it.
    pub ratio: Option<f64>,
    /// Its 95 % confidence interval (order statistics), undetermined pairs taken as 0 for the lower end and as
    /// infinite for the upper; `None` below six pairs.
    pub interval: Option<Interval>,
    /// The least ratio.
    #[serde(serialize_with = "finite")]
    pub least: f64,
    /// The greatest ratio.
    #[serde(serialize_with = "finite")]
    pub greatest: f64,
}

impl Paired {
    /// True if the interval excludes one: the difference is not chance.
    pub fn is_decided(&self) -> bool {
        self.is_decidedly(true) || self.is_decidedly(false)
    }

    /// True if the whole interval lies above one, or below.
    pub fn is_decidedly(&self, above: bool) -> bool {
        self.interval.is_some_and(|interval| if above { interval.low > 1.0 } else { interval.high < 1.0 })
    }
}

/// Sets the values `ours` against those of `theirs` with the same seed, as ratios `ours / theirs`; `None` if no seed
/// is in both. A censored value of ours makes a ratio infinite, one of theirs makes it zero.
pub fn compare_paired(ours: &[(u64, f64)], theirs: &[(u64, f64)]) -> Option<Paired> {
    let mut theirs: Vec<(u64, f64)> = theirs.to_vec();
    theirs.sort_by_key(|(seed, _)| *seed);
    let mut ratios: Vec<Option<f64>> = Vec::new();
    for (seed, value) in ours {
        if let Ok(index) = theirs.binary_search_by_key(seed, |(seed, _)| *seed) {
            ratios.push(Some(value / theirs[index].1).filter(|ratio| !ratio.is_nan()));
        }
    }
    if ratios.is_empty() {
        return None;
    }
    let pairs = ratios.len();
    let with = |stand_in: f64| sorted(&ratios.iter().map(|r| r.unwrap_or(stand_in)).collect::<Vec<_>>());
    let (lower, upper) = (with(0.0), with(f64::INFINITY));
    let median = |sorted: &[f64]| super::quantile_of_sorted(sorted, 0.5);
    Some(Paired {
        pairs,
        undetermined: ratios.iter().filter(|ratio| ratio.is_none()).count(),
        unpaired: ours.len() + theirs.len() - 2 * pairs.min(theirs.len()),
        below: ratios.iter().flatten().filter(|ratio| **ratio < 1.0).count(),
        above: ratios.iter().flatten().filter(|ratio| **ratio > 1.0).count(),
        ratio: Some(median(&lower)).filter(|ratio| ratio.total_cmp(&median(&upper)).is_eq()),
        interval: median_ranks(pairs).map(|(low, high)| Interval { low: lower[low], high: upper[high] }),
        least: lower[0],
        greatest: upper[pairs - 1],
    })
}

/// The difference of two means that need not share a variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// `mean(ours) - mean(theirs)`.
    pub difference: f64,
    /// Its 95 % confidence interval.
    pub interval: Interval,
    /// Degrees of freedom after Welch and Satterthwaite.
    pub degrees: f64,
}

/// Welch's comparison, for runs that share no seeds; `None` below two values a side, if one is censored, or if
/// neither side varies.
pub fn welch(ours: &[f64], theirs: &[f64]) -> Option<Difference> {
    let share = |values: &[f64]| {
        standard_deviation(values).map(|std| (std * std / values.len() as f64, values.len() as f64))
    };
    let difference = mean(ours)? - mean(theirs)?;
    let ((first, n), (second, m)) = (share(ours)?, share(theirs)?);
    let variance = first + second;
    if variance <= 0.0 {
        return None;
    }
    let degrees = variance * variance / (first * first / (n - 1.0) + second * second / (m - 1.0));
    let half = student_t(degrees, 1.0 - CONFIDENCE) * variance.sqrt();
    let interval = Interval { low: difference - half, high: difference + half };
    Some(Difference { difference, interval, degrees })
}

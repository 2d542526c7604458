//! Numbers about samples: what the reports print, and how sure one can be of it.
//!
//! A value of `+inf` (or `-inf`) is *censored*: the run ended before the quantity was known, which is then only
//! known to lie beyond everything that was measured. Order statistics take that as it is; means do not exist with it.
//! No value is ever left out.

mod compare;
mod fairness;
mod interval;
mod special;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use compare::{Difference, Paired, compare_paired, welch};
pub use fairness::{jain, r_squared, smallest_share};
pub use interval::{CONFIDENCE, Interval, bootstrap_interval, mean_interval, median_interval, median_ranks};

/// A sample's description. Everything of it is in the unit of the values, `cov` is a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Values, the censored among them.
    pub n: usize,
    /// Censored values.
    pub censored: usize,
    /// Arithmetic mean; none if a value is censored.
    pub mean: Option<f64>,
    /// Its 95 % confidence interval by Student's t (for roughly normal values); none below two values.
    pub mean_interval: Option<Interval>,
    /// Sample standard deviation, n - 1 in the denominator; none below two values.
    pub std: Option<f64>,
    /// Coefficient of variation: `std / mean`; none if the mean is zero.
    pub cov: Option<f64>,
    /// Median.
    #[serde(serialize_with = "finite")]
    pub p50: f64,
    /// Its confidence interval of at least 95 % from order statistics, whatever the distribution; none below six.
    pub median_interval: Option<Interval>,
    /// 95th percentile, see [`quantile`]; the greatest value if there are fewer than 20.
    #[serde(serialize_with = "finite")]
    pub p95: f64,
    /// 99th percentile; the greatest value if there are fewer than 100.
    #[serde(serialize_with = "finite")]
    pub p99: f64,
    /// Least value.
    #[serde(serialize_with = "finite")]
    pub least: f64,
    /// Greatest value.
    #[serde(serialize_with = "finite")]
    pub greatest: f64,
}

/// JSON knows no infinity: censored values are `null` there.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
pub(crate) fn finite<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    value.is_finite().then_some(*value).serialize(serializer)
}

/// Describes a sample; `None` if it is empty. NaN counts as censored.
pub fn summarise(values: &[f64]) -> Option<Summary> {
    let sorted = sorted(values);
    let (least, greatest) = (*sorted.first()?, *sorted.last()?);
    let censored = sorted.iter().filter(|value| !value.is_finite()).count();
    let mean = mean(&sorted);
    let std = standard_deviation(&sorted);
    let cov = mean.zip(std).filter(|(mean, _)| *mean != 0.0).map(|(mean, std)| std / mean.abs());
    Some(Summary {
        n: sorted.len(),
        censored,
        mean,
        mean_interval: mean_interval(&sorted),
        std,
        cov,
        p50: quantile_of_sorted(&sorted, 0.50),
        median_interval: median_interval(&sorted),
        p95: quantile_of_sorted(&sorted, 0.95),
        p99: quantile_of_sorted(&sorted, 0.99),
        least,
        greatest,
    })
}

/// The values in ascending order, NaN as `+inf`.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> =
        values.iter().map(|&value| if value.is_nan() { f64::INFINITY } else { value }).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The quantile `p` (0 to 1) by inverting the empirical distribution: the least value that at least a share `p` of
/// the values does not exceed; where the share is met exactly, the mean of that value and the next (Hyndman and
/// Fan, definition 2). So the median of an even count is the mean of the two middle values, no value is invented
/// elsewhere, and censored values keep their place. `None` if there are no values.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    (!values.is_empty()).then(|| quantile_of_sorted(&sorted(values), p))
}

fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len() - 1;
    let rank = sorted.len() as f64 * p.clamp(0.0, 1.0);
    // A share such as 0.95 is not exact in binary: 20 x 0.95 must still be 19.
    let nearest = rank.round();
    if (rank - nearest).abs() < 1e-9 {
        let below = (nearest as usize).saturating_sub(1).min(last);
        let above = (nearest as usize).min(last);
        if sorted[below].total_cmp(&sorted[above]).is_eq() {
            return sorted[below];
        }
        return f64::midpoint(sorted[below], sorted[above]);
    }
    sorted[(rank.ceil() as usize).saturating_sub(1).min(last)]
}

/// Arithmetic mean; `None` if there are no values or one is censored.
pub fn mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    mean.is_finite().then_some(mean)
}

/// Sample standard deviation; `None` below two values or if one is censored.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The empirical distribution: each distinct value with the share of values that do not exceed it, ascending.
/// Censored values are beyond the last step, so with them the last share is below one.
pub fn distribution(values: &[f64]) -> Vec<(f64, f64)> {
    let sorted = sorted(values);
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (index, &value) in sorted.iter().enumerate() {
        if !value.is_finite() {
            continue;
        }
        let share = (index + 1) as f64 / sorted.len() as f64;
        match steps.last_mut() {
            Some(step) if step.0 >= value => step.1 = share,
            _ => steps.push((value, share)),
        }
    }
    steps
}

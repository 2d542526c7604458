//! Chances that resemble the one before.

use posthaste_units::Rng;

/// The strongest correlation that [`crate::Reordering`] can have.
pub const MAX_CORRELATION: f64 = 0.95;

/// Points at which the distribution of correlated draws is tabulated.
const POINTS: usize = 1 << 12;

/// A chance whose draws are an AR(1) sequence: `draw = (1 - correlation) x uniform + correlation x draw before`.
#[derive(Debug)]
pub(crate) struct CorrelatedChance {
    correlation: f64,
    /// The draw that is exceeded with the probability's complement.
    threshold: f64,
    last: f64,
    rng: Rng,
}

impl CorrelatedChance {
    pub(crate) fn new(probability: f64, correlation: f64, mut rng: Rng) -> Self {
        let threshold = if correlation > 0.0 { quantile(probability, correlation) } else { probability };
        // The sequence begins at a draw of its own; after a few packets it has forgotten that.
        let last = rng.unit_f64();
        Self { correlation, threshold, last, rng }
    }

    pub(crate) fn draw(&mut self) -> bool {
        if self.threshold <= 0.0 {
            return false;
        }
        let uniform = self.rng.unit_f64();
        self.last = (1.0 - self.correlation) * uniform + self.correlation * self.last;
        self.last < self.threshold
    }
}

/// The value below which the share `probability` of the sequence's draws is, in the long run.
///
/// Sums of uniform draws crowd in the middle: below 0.1 are only 1.8 % of draws with a correlation of 0.25. The
/// distribution solves `F(x) = E[P(uniform < (x - correlation x draw) / (1 - correlation))]`; iterating that from
/// any start forgets the start as the sequence itself does.
fn quantile(probability: f64, correlation: f64) -> f64 {
    if probability >= 1.0 {
        return 1.0;
    }
    let step = 1.0 / POINTS as f64;
    let mut distribution: Vec<f64> = (0..=POINTS).map(|point| point as f64 * step).collect();
    let mut integral = vec![0.0; POINTS + 1];
    loop {
        for point in 1..=POINTS {
            let mean = distribution[point - 1].midpoint(distribution[point]);
            integral[point] = integral[point - 1] + mean * step;
        }
        let integral_to = |x: f64| {
            if x <= 0.0 {
                return 0.0;
            }
            // Above 1 the distribution is 1.
            let (inside, beyond) = (x.min(1.0), (x - 1.0).max(0.0));
            let (point, part) = ((inside / step) as usize, (inside / step).fract());
            let below = integral[point];
            below + part * (integral.get(point + 1).unwrap_or(&below) - below) + beyond
        };
        let mut change: f64 = 0.0;
        for (point, value) in distribution.iter_mut().enumerate() {
            let x = point as f64 * step;
            let (low, high) = ((x - (1.0 - correlation)) / correlation, x / correlation);
            let new = correlation / (1.0 - correlation) * (integral_to(high) - integral_to(low));
            change = change.max((new - *value).abs());
            *value = new;
        }
        if change < 1e-9 {
            break;
        }
    }
    let above = distribution.partition_point(|&share| share < probability).clamp(1, POINTS);
    let (low, high) = (distribution[above - 1], distribution[above]);
    let part = if high > low { (probability - low) / (high - low) } else { 0.0 };
    (above as f64 - 1.0 + part) * step
}

#[cfg(test)]
mod tests;

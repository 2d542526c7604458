//! How sure one can be of an effect: runs drawn again from those that were made (bootstrap, percentiles). The draws are
//! seeded, so that the same results give the same text.

use posthaste_units::Rng;

use crate::metric::{Sample, Statistic};
use crate::statistics::{self, CONFIDENCE, Interval};

/// Draws: the ends are good to about a tenth of the interval.
const DRAWS: usize = 300;
/// Fewer runs say too little of their spread.
const LEAST_RUNS: usize = 6;

/// A cell's runs and its baseline's.
pub(super) struct Sides {
    pub(super) ours: Sample,
    pub(super) baseline: Option<Sample>,
}

/// The interval of `effect` of the two sides' statistic; `None` where the runs are too few or an effect is not known.
/// Runs of the same seed are drawn together: they have the path's luck in common.
pub(super) fn of(
    sides: &Sides,
    statistic: Statistic,
    effect: impl Fn(f64, Option<f64>) -> f64,
) -> Option<Interval> {
    let ours = sides.ours.numbers();
    let baseline = sides.baseline.as_ref().map(Sample::numbers);
    let is_paired = baseline.as_ref().is_none_or(|baseline| baseline.len() == ours.len());
    if ours.len() < LEAST_RUNS || !is_paired {
        return None;
    }
    let mut rng = Rng::from_seed([0; 32]);
    let mut effects = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let draw: Vec<usize> = (0..ours.len()).map(|_| rng.below(ours.len() as u64) as usize).collect();
        let of = |values: &[f64]| {
            let drawn: Vec<f64> = draw.iter().map(|&index| values[index]).collect();
            statistic.of(&statistics::summarise(&drawn)?)
        };
        let theirs = match &baseline {
            Some(baseline) => Some(of(baseline)?),
            None => None,
        };
        let effect = effect(of(&ours)?, theirs);
        if !effect.is_finite() {
            return None;
        }
        effects.push(effect);
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some(Interval {
        low: statistics::quantile(&effects, tail)?,
        high: statistics::quantile(&effects, 1.0 - tail)?,
    })
}

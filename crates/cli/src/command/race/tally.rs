//! What the runs amount to. A run that failed counts as slower than all others, so that no failure makes a median
//! or a percentile look better.

use posthaste_campaign::raced::Saving;
use posthaste_emulator::{Lateness, LatenessHistogram};
use posthaste_report::statistics::{self, Interval, bootstrap_interval, quantile};

use super::figures::headline;
use super::plan::Plan;
use super::testbed::Run;

/// Resamples for a confidence interval.
const RESAMPLES: usize = 2_000;

/// Everything that was measured.
pub(super) struct Tally {
    /// For each racer its runs, in the order of rounds.
    pub(super) runs: Vec<Vec<Run>>,
    pub(super) was_interrupted: bool,
}

/// What one racer's runs amount to in the workload's first figure, in seconds; `None` where too many failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Summary {
    pub(super) completed: usize,
    pub(super) failed: usize,
    pub(super) median: Option<f64>,
    pub(super) p95: Option<f64>,
    pub(super) fastest: Option<f64>,
    /// Mean and standard deviation of the runs that completed.
    pub(super) mean: Option<f64>,
    pub(super) deviation: Option<f64>,
    /// Median over the physical limit.
    pub(super) ratio_to_limit: Option<f64>,
    /// Against the baseline; `None` for the baseline itself.
    pub(super) saving: Option<Saving>,
}

impl Tally {
    pub(super) fn new(racers: usize) -> Self {
        Self { runs: (0..racers).map(|_| Vec::new()).collect(), was_interrupted: false }
    }

    pub(super) fn add(&mut self, run: Run) {
        let runs = &mut self.runs[run.start.racer];
        let place = runs.partition_point(|other| other.start.round < run.start.round);
        runs.insert(place, run);
    }

    pub(super) fn all_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().flatten()
    }

    pub(super) fn failures(&self) -> usize {
        self.all_runs().filter(|run| run.outcome.is_err()).count()
    }

    /// How late packets left all relays.
    pub(super) fn lateness(&self) -> Lateness {
        let mut all = LatenessHistogram::new();
        self.all_runs().for_each(|run| all.merge(&run.lateness));
        all.summary()
    }

    /// Packets that the system lost.
    pub(super) fn missed(&self) -> u64 {
        self.all_runs().map(|run| run.relay.missed).sum()
    }

    pub(super) fn summaries(&self, plan: &Plan) -> Vec<Summary> {
        let base = &self.runs[plan.baseline];
        let seconds = |run: &Run| headline(plan, run);
        let summary = |(index, runs): (usize, &Vec<Run>)| {
            let times: Vec<f64> = runs.iter().map(seconds).collect();
            let completed: Vec<f64> = times.iter().copied().filter(|time| time.is_finite()).collect();
            let median = median(&times);
            Summary {
                completed: completed.len(),
                failed: times.len() - completed.len(),
                median,
                p95: finite_quantile(&times, 0.95),
                fastest: completed.iter().copied().min_by(f64::total_cmp),
                mean: statistics::mean(&completed),
                deviation: statistics::standard_deviation(&completed),
                ratio_to_limit: median.map(|median| median / plan.limit.seconds),
                saving: if index == plan.baseline { None } else { saving(base, runs, seconds) },
            }
        };
        self.runs.iter().enumerate().map(summary).collect()
    }
}

/// The middle of `times`, unless it is infinite or there is none.
pub(super) fn median(times: &[f64]) -> Option<f64> {
    finite_quantile(times, 0.5)
}

/// A quantile as the lab and `posthaste page` define it, unless it is infinite or there is none.
fn finite_quantile(times: &[f64], share: f64) -> Option<f64> {
    quantile(times, share).filter(|time| time.is_finite())
}

/// The saving of `seconds` over the rounds that both have run. The interval is a bootstrap over rounds, because both have met
/// the same draws in each.
fn saving(base: &[Run], other: &[Run], seconds: impl Fn(&Run) -> f64) -> Option<Saving> {
    let pairs: Vec<(f64, f64)> = base
        .iter()
        .filter_map(|base| {
            let other = other.iter().find(|other| other.start.round == base.start.round)?;
            Some((seconds(base), seconds(other)))
        })
        .collect();
    let share = |pairs: &[(f64, f64)]| -> Option<f64> {
        let (base, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        Some(1.0 - median(&other)? / median(&base)?)
    };
    let observed = share(&pairs)?;
    let Interval { low, high } = bootstrap_interval(&pairs, RESAMPLES, share)?;
    Some(Saving { share: observed, low, high })
}

#[cfg(test)]
mod tests;

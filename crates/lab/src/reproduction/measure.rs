//! What of ours is set beside a published figure: one number from all runs of a cell.

use std::borrow::Cow;

use crate::experiment_result::{CellResult, ExperimentResult};
use crate::metric::{self, Column, Metric, Sample, Statistic, Unit};

/// Metrics that compare a cell with another by themselves: here that is for `judge` and `baseline` to say.
const COMPARING: [&str; 4] = ["saving", "gain", "harm", "harm-loss"];

/// How one number is made of the runs of a cell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Measure {
    /// A statistic of a metric: `completion.p95`.
    Column(Column),
    /// The least value of a metric: `completion.least`.
    Least(&'static Metric),
    /// The correlation of two metrics over the runs: `correlation(completion, loss)`.
    Correlation(&'static Metric, &'static Metric),
}

impl Measure {
    /// Reads its name.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let plain = |name: &str| {
            let column = metric::find(name.trim()).map_err(|error| error.to_string())?;
            if COMPARING.contains(&column.metric.name) {
                return Err(format!(
                    "`{}` compares cells by itself: name what it compares, and the other cell as `baseline`",
                    column.metric.name
                ));
            }
            Ok(column)
        };
        if let Some(inner) = text.strip_prefix("correlation(").and_then(|rest| rest.strip_suffix(')')) {
            let (first, second) = inner
                .split_once(',')
                .ok_or_else(|| format!("`{text}` needs two metrics: write correlation(completion, loss)"))?;
            return Ok(Self::Correlation(plain(first)?.metric, plain(second)?.metric));
        }
        if let Some(name) = text.strip_suffix(".least") {
            return Ok(Self::Least(plain(name)?.metric));
        }
        plain(text)
            .map(Self::Column)
            .map_err(|error| format!("{error}; .least, and correlation(metric, metric)"))
    }

    /// The unit of its values.
    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Column(column) => column.unit(),
            Self::Least(metric) => metric.unit,
            Self::Correlation(..) => Unit::Index,
        }
    }

    /// The metric whose size it tells; none for spreads and correlations.
    pub(super) fn size_of(self) -> Option<&'static Metric> {
        match self {
            Self::Column(Column { statistic: Statistic::Std | Statistic::Cov, .. })
            | Self::Correlation(..) => None,
            Self::Column(column) => Some(column.metric),
            Self::Least(metric) => Some(metric),
        }
    }

    /// The statistic, and the values that it is of, where it is one of a metric.
    pub(super) fn statistic(self) -> Option<Statistic> {
        if let Self::Column(column) = self { Some(column.statistic) } else { None }
    }

    /// The values that [`Self::statistic`] is of.
    pub(super) fn sample(
        self,
        experiment: &ExperimentResult,
        cell: &CellResult,
        flow: usize,
    ) -> Option<Sample> {
        let Self::Column(column) = self else { return None };
        Some(column.metric.sample(experiment, &*with_first(cell, flow)?))
    }

    /// For people: `completion time (p95)`.
    pub(super) fn label(self) -> String {
        match self {
            Self::Column(column) if column.statistic == Statistic::P50 => {
                format!("{} (median)", column.metric.label)
            }
            Self::Column(column) => column.label(),
            Self::Least(metric) => format!("{} (least)", metric.label),
            Self::Correlation(first, second) => {
                format!("correlation of {} and {}", first.label, second.label)
            }
        }
    }

    /// The number, for the flow in place `flow` of each run; infinite beyond the deadline, `None` if the runs say
    /// nothing.
    pub(super) fn value(self, experiment: &ExperimentResult, cell: &CellResult, flow: usize) -> Option<f64> {
        let cell = &*with_first(cell, flow)?;
        match self {
            Self::Column(column) => {
                let summary = column.metric.sample(experiment, cell).summary()?;
                // A mean with a run beyond the deadline is beyond it, too.
                column.statistic.of(&summary).or((summary.censored > 0).then_some(f64::INFINITY))
            }
            Self::Least(metric) => metric.sample(experiment, cell).summary().map(|summary| summary.least),
            Self::Correlation(first, second) => {
                let (first, second) = (first.sample(experiment, cell), second.sample(experiment, cell));
                let pairs = first.values.iter().filter_map(|(seed, a)| {
                    let partner = second.values.iter().find(|(other, _)| other == seed)?.1;
                    (a.is_finite() && partner.is_finite()).then_some((*a, partner))
                });
                let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
                correlation(&a, &b)
            }
        }
    }
}

/// The cell with the flow in place `flow` as each run's first: metrics are those of the first.
fn with_first(cell: &CellResult, flow: usize) -> Option<Cow<'_, CellResult>> {
    if flow == 0 {
        return Some(Cow::Borrowed(cell));
    }
    let mut moved = cell.clone();
    for run in moved.runs.iter_mut().filter(|run| !run.flows.is_empty()) {
        if flow >= run.flows.len() {
            return None;
        }
        run.flows.swap(0, flow);
    }
    Some(Cow::Owned(moved))
}

/// Pearson's correlation; `None` if one side does not vary.
pub(super) fn correlation(first: &[f64], second: &[f64]) -> Option<f64> {
    let squared = crate::statistics::r_squared(first, second)?;
    let rises = slope(&std::iter::zip(first, second).map(|(a, b)| (*a, *b)).collect::<Vec<_>>())? >= 0.0;
    Some(if rises { squared.sqrt() } else { -squared.sqrt() })
}

/// The slope of the straight line that fits best; `None` if the first numbers do not vary.
pub(super) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let products: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let squares: f64 = points.iter().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
    Some(products / squares).filter(|slope| slope.is_finite())
}

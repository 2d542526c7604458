//! What can be read off runs, by name.
//!
//! A [`Metric`] gives one number a run; a [`Column`] is a metric and the statistic of it that a table shows. Names
//! are those of experiment files: `completion`, `completion.p95`, `loss.mean`.

mod catalogue;
mod cells;
mod read;
#[cfg(test)]
mod tests;
mod unit;

use std::fmt;
use std::str::FromStr;

pub use catalogue::CATALOGUE;
pub use cells::{baseline, series_axis, sibling};
pub use unit::{Scale, Unit};

use crate::experiment_result::{CellResult, ExperimentResult, Published};
use crate::result::RunResult;
use crate::statistics::{self, Summary};

/// A quantity that each run has.
#[derive(Debug)]
pub struct Metric {
    /// Its name in experiment files.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// What it is, exactly.
    pub doc: &'static str,
    read: fn(&Context<'_>) -> Reading,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Less.
    Lower,
    /// More.
    Higher,
    /// Neither as such.
    Neither,
}

/// A run, and where it stands: some metrics compare it with its neighbours.
struct Context<'a> {
    experiment: &'a ExperimentResult,
    cell: &'a CellResult,
    run: &'a RunResult,
}

/// What a run says about a quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// This.
    Known(f64),
    /// It ended before that was known: worse than anything measured.
    Censored,
    /// Nothing: the stack does not tell, or the quantity has no meaning here.
    Unknown,
}

/// A metric in all runs of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Seed and value; `+inf` where less is better and the run is censored, `-inf` where more is better.
    pub values: Vec<(u64, f64)>,
    /// Runs that say nothing.
    pub unknown: usize,
}

impl Sample {
    /// The values alone, in the order of the runs.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    /// Its description; `None` if no run says anything.
    pub fn summary(&self) -> Option<Summary> {
        statistics::summarise(&self.numbers())
    }
}

impl Metric {
    /// Its values in the runs of a cell of `experiment`.
    pub fn sample(&self, experiment: &ExperimentResult, cell: &CellResult) -> Sample {
        let mut sample = Sample::default();
        let worst = if self.better == Better::Higher { f64::NEG_INFINITY } else { f64::INFINITY };
        for run in &cell.runs {
            match (self.read)(&Context { experiment, cell, run }) {
                Reading::Known(value) if value.is_finite() => sample.values.push((run.seed, value)),
                Reading::Censored => sample.values.push((run.seed, worst)),
                Reading::Known(_) | Reading::Unknown => sample.unknown += 1,
            }
        }
        sample
    }
}

/// A statistic of a metric over the runs of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Sample standard deviation.
    Std,
    /// Coefficient of variation.
    Cov,
}

impl Statistic {
    /// All, in the order of tables.
    pub const ALL: [Self; 6] = [Self::Mean, Self::P50, Self::P95, Self::P99, Self::Std, Self::Cov];

    /// Its name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Std => "std",
            Self::Cov => "cov",
        }
    }

    /// Its value; `None` where the sample has none.
    pub fn of(self, summary: &Summary) -> Option<f64> {
        match self {
            Self::Mean => summary.mean,
            Self::P50 => Some(summary.p50),
            Self::P95 => Some(summary.p95),
            Self::P99 => Some(summary.p99),
            Self::Std => summary.std,
            Self::Cov => summary.cov,
        }
    }
}

/// A metric and the statistic of it that a table shows: the median unless the name says another (`loss.mean`).
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The metric.
    pub metric: &'static Metric,
    /// The statistic.
    pub statistic: Statistic,
}

impl Column {
    /// For people: `completion time (p95)`; the median is not named.
    pub fn label(self) -> String {
        match self.statistic {
            Statistic::P50 => self.metric.label.to_owned(),
            statistic => format!("{} ({})", self.metric.label, statistic.name()),
        }
    }

    /// The unit of its values.
    pub fn unit(self) -> Unit {
        if self.statistic == Statistic::Cov { Unit::Index } else { self.metric.unit }
    }

    /// Its value in a cell, infinite if it lies beyond the deadline; `None` if the runs say nothing.
    pub fn value(self, experiment: &ExperimentResult, cell: &CellResult) -> Option<f64> {
        self.statistic.of(&self.metric.sample(experiment, cell).summary()?)
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.statistic {
            Statistic::P50 => f.write_str(self.metric.name),
            statistic => write!(f, "{}.{}", self.metric.name, statistic.name()),
        }
    }
}

/// No metric has the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no metric `{name}`; there are {}, each with a statistic of it if wished ({})",
    names().join(", "),
    Statistic::ALL.map(|statistic| format!(".{}", statistic.name())).join(", ")
)]
pub struct UnknownMetric {
    name: String,
}

/// All metrics' names, in the catalogue's order.
pub fn names() -> Vec<&'static str> {
    CATALOGUE.iter().map(|metric| metric.name).collect()
}

/// The column of a name; `first_byte` is as good as `first-byte`.
///
/// # Errors
/// If no metric or statistic has the name; the error lists those that there are.
pub fn find(name: &str) -> Result<Column, UnknownMetric> {
    let (base, statistic) = match name.rsplit_once('.') {
        Some((base, suffix)) => (base, Statistic::ALL.into_iter().find(|one| one.name() == suffix)),
        None => (name, Some(Statistic::P50)),
    };
    let base = base.replace('_', "-");
    let metric = CATALOGUE.iter().find(|metric| metric.name == base);
    match (metric, statistic) {
        (Some(metric), Some(statistic)) => Ok(Column { metric, statistic }),
        _ => Err(UnknownMetric { name: name.to_owned() }),
    }
}

impl FromStr for Column {
    type Err = UnknownMetric;

    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        find(name)
    }
}

/// A published figure and ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// Ours, in the unit of the column; infinite beyond the deadline.
    pub ours: Option<f64>,
    /// The published figure in the same unit; `None` if its unit cannot be converted.
    pub published: Option<f64>,
    /// Ours over the published one, where both are known and neither is zero.
    pub ratio: Option<f64>,
}

/// Sets a published figure beside ours; both unknown if its metric has no such name.
pub fn beside(experiment: &ExperimentResult, cell: &CellResult, published: &Published) -> Beside {
    let Ok(column) = find(&published.metric) else {
        return Beside { ours: None, published: None, ratio: None };
    };
    let ours = column.value(experiment, cell);
    let theirs = column.unit().from_printed(published.value, &published.unit);
    let ratio = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
    Beside { ours, published: theirs, ratio: ratio.filter(|ratio| ratio.is_finite() && *ratio != 0.0) }
}

//! Everything that an experiment has shown: what the sweep makes and the reports are drawn from.

use serde::{Deserialize, Serialize};

use crate::result::RunResult;

/// One experiment, all cells and seeds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResult {
    /// Its name on the command line.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it is to find out.
    pub question: String,
    /// Where it comes from (paper, section).
    pub source: String,
    /// The command that repeats all of it.
    pub command: String,
    /// A line that readers must know beside the figures (real sockets, a calibration, ...).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The stack that others are compared with; the first on the axis `stack` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The stack that is set beside the best of all others in each group of cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What is varied, in the order of [`CellResult::coordinates`]. The axis named `stack` becomes the series of
    /// every figure, the others become its panels.
    pub axes: Vec<Axis>,
    /// Metrics to tabulate, by name ([`crate::metric::find`]), the most important first.
    pub metrics: Vec<String>,
    /// Runs of each cell.
    pub seeds: u64,
    /// The cells, in the grid's order.
    pub cells: Vec<CellResult>,
}

/// One thing that is varied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its values as written.
    pub values: Vec<String>,
}

/// One combination of values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// A value for each axis.
    pub coordinates: Vec<String>,
    /// The command that repeats this cell alone.
    pub command: String,
    /// What no stack can beat here, where there is such a bound.
    pub limit: Option<Limit>,
    /// Published figures for this cell.
    pub published: Vec<Published>,
    /// One result a seed, in the order of seeds.
    pub runs: Vec<RunResult>,
}

/// The physical limit of a cell's first flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Least possible completion time, in seconds.
    pub seconds: f64,
    /// The sum spelled out, for people.
    pub terms: String,
    /// Rate of the slowest link on the way, in bits a second, where it is constant: a line in figures over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
}

/// A published figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The metric that it is set beside, by name ([`crate::metric::find`]).
    pub metric: String,
    /// The figure.
    pub value: f64,
    /// Its unit as printed.
    pub unit: String,
    /// Where it stands (file, row).
    pub source: String,
    /// `reproduced`, `same direction`, `not reproduced`, and why: whoever knows the setting fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

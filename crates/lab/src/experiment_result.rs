//! Everything that an experiment has shown: what the sweep makes and the reports are drawn from.

use serde::{Deserialize, Serialize};

use crate::result::RunResult;

/// One experiment, all cells and seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// What is varied, in the order of [`CellResult::coordinates`].
    pub axes: Vec<Axis>,
    /// Metrics to tabulate, by name, the most important first.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Least possible completion time, in seconds.
    pub seconds: f64,
    /// The sum spelled out, for people.
    pub terms: String,
}

/// A published figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The metric that it is set beside.
    pub metric: String,
    /// The figure.
    pub value: f64,
    /// Its unit as printed.
    pub unit: String,
    /// Where it stands (file, row).
    pub source: String,
}

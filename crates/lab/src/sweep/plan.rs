//! What of an experiment is run, and the command that repeats it.

use std::ops::Range;

use posthaste_units::Duration;

use super::Selection;
use crate::experiment::{Cell, CellFilter, Experiment, FilterError};

/// An experiment and what of it is to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// Indices into [`Experiment::cells`], ascending.
    pub cells: Vec<usize>,
    /// How the cells were chosen; empty for all, and where no user chose them.
    pub filters: Vec<CellFilter>,
    /// The seeds of each cell.
    pub seeds: Range<u64>,
    /// Interval of time series, if another is wanted than the experiment's.
    pub series: Option<Duration>,
}

impl Plan {
    /// Of the cells that all `filters` leave, and the experiment's own seeds unless others are given.
    ///
    /// # Errors
    /// If a filter names what the grid does not have, or they leave nothing.
    pub fn new(
        experiment: Experiment,
        filters: &[CellFilter],
        seeds: Option<Range<u64>>,
        series: Option<Duration>,
    ) -> Result<Self, FilterError> {
        let filter = filters.iter().cloned().fold(CellFilter::default(), CellFilter::and);
        let cells = experiment.select(&filter)?;
        let seeds = seeds.unwrap_or(0..experiment.seeds);
        Ok(Self { experiment, cells, filters: filters.to_vec(), seeds, series })
    }

    /// For a sweep; `command` is made of [`Self::words`].
    pub fn selection<'a>(&self, command: &'a dyn Fn(Option<&Cell>) -> String) -> Selection<'a> {
        Selection { cells: self.cells.clone(), seeds: self.seeds.clone(), series: self.series, command }
    }

    /// Words of the command that repeats a cell, or all of it; not quoted for any shell.
    pub fn words(&self, cell: Option<&Cell>) -> Vec<String> {
        let mut words = ["posthaste", "lab", "run", &self.experiment.name].map(str::to_owned).to_vec();
        let chosen = match cell {
            Some(cell) => self.experiment.cell_name(cell),
            None if self.cells.len() < self.experiment.cells.len() => {
                self.filters.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            }
            None => String::new(),
        };
        if !chosen.is_empty() {
            words.extend(["--cells".to_owned(), chosen]);
        }
        words.extend(["--seeds".to_owned(), format!("{}..{}", self.seeds.start, self.seeds.end)]);
        if let Some(interval) = self.series {
            words.extend(["--series".to_owned(), interval.to_string()]);
        }
        words
    }
}

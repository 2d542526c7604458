//! What of an experiment is run or reported.

use std::fmt::Write as _;
use std::ops::Range;

use posthaste_lab::experiment::{Cell, CellFilter, Experiment};
use posthaste_lab::sweep::Selection;
use posthaste_units::Duration;

use super::cells_argument;
use crate::args::Seeds;
use crate::exit::Failure;
use crate::printer::shell_quote;

/// An experiment and what of it is to run.
pub(super) struct Plan {
    pub(super) experiment: Experiment,
    pub(super) cells: Vec<usize>,
    /// How the cells were chosen; empty for all, and where no user chose them.
    pub(super) filters: Vec<CellFilter>,
    pub(super) seeds: Range<u64>,
    /// Interval of time series, if another is wanted than the experiment's.
    pub(super) series: Option<Duration>,
    /// What progress is told by.
    pub(super) label: String,
}

impl Plan {
    /// Of the experiment that the user calls `name`.
    ///
    /// # Errors
    /// There is no such experiment, or no such cells.
    pub(super) fn of(
        name: &str,
        filters: &[CellFilter],
        seeds: Option<&Seeds>,
        series: Option<Duration>,
    ) -> Result<Self, Failure> {
        let experiment = super::find(name)?;
        let filter = filters.iter().cloned().fold(CellFilter::default(), CellFilter::and);
        let cells = experiment.select(&filter).map_err(|error| {
            Failure::usage(format!("--cells: {error}"))
                .hint(format!("`posthaste lab describe {}` shows the grid", shell_quote(name)))
        })?;
        let seeds = seeds.map_or(0..experiment.seeds, |seeds| seeds.0.clone());
        let label = experiment.name.clone();
        Ok(Self { experiment, cells, filters: filters.to_vec(), seeds, series, label })
    }

    /// For a sweep; `command` is [`Self::command`].
    pub(super) fn selection<'a>(&self, command: &'a dyn Fn(Option<&Cell>) -> String) -> Selection<'a> {
        Selection { cells: self.cells.clone(), seeds: self.seeds.clone(), series: self.series, command }
    }

    /// The command that repeats a cell, or all of it.
    pub(super) fn command(&self, cell: Option<&Cell>) -> String {
        let mut command = format!("posthaste lab run {}", shell_quote(&self.experiment.name));
        if let Some(cell) = cell {
            command.push_str(&cells_argument(&self.experiment, cell));
        } else if self.cells.len() < self.experiment.cells.len() && !self.filters.is_empty() {
            let chosen = self.filters.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let _ = write!(command, " --cells {}", shell_quote(&chosen));
        }
        // Writing to a text cannot fail.
        let _ = write!(command, " --seeds {}..{}", self.seeds.start, self.seeds.end);
        if let Some(interval) = self.series {
            let _ = write!(command, " --series {interval}");
        }
        command
    }
}

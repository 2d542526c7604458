//! Experiments as TOML files: one run's description, what is varied in it, and what others have published.
//!
//! ```toml
//! title = "Light-weight latency reduction over three paths"   # one line
//! question = "How far from the physical limit is each stack?"
//! source = "history start, section 5.1"
//! seeds = 50                          # runs of each cell unless the command line says otherwise
//! metrics = ["completion"]            # what reports tabulate, the most important first
//! note = "..."                        # what readers must know beside the figures (optional)
//! baseline = "cubic"                  # the stack that others are compared with (optional)
//! subject = "cubic"                   # the stack that is set beside the best of all others (optional)
//!
//! [run]                               # a crate::spec::RunSpec, complete in itself
//! network = { kind = "simple", path = "good" }
//! flows = [{ stack = "cubic", workload = { kind = "bulk", object = "1MB" } }]
//!
//! [[axis]]
//! name = "path"
//! key = "network.path"                # where in [run]; several keys get the same value
//! values = ["good", "average"]
//!
//! [[axis]]
//! name = "object"
//! key = "flows.0.workload.object"
//! values = [
//!   "1MB",
//!   { label = "large", value = "10MB" },
//!   { label = "huge", set = { "flows.0.workload.object" = "1GB", deadline = "600s" } },
//! ]
//!
//! [[skip]]                            # cells that make no sense: a value, or several, of some axes
//! path = "average"
//! object = ["large", "huge"]
//!
//! [[published]]                       # see the module `published`
//! file = "history_start.csv"
//! rows = { experiment = "hs-simple" }
//! axes = { path = "network", object = "object" }
//! metric = "completion"
//! value = "baseline_value"
//! unit = "s"
//! ```
//!
//! The grid is the product of the axes, the last one changing fastest. All of it is checked before anything runs,
//! and errors name the line and the valid choices.

mod axis;
mod built_in;
mod check;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod grid;
mod published;
pub(crate) mod rows;
pub(crate) mod span;
mod traces;

use std::path::Path;

pub use error::ExperimentError;
pub use grid::{CellFilter, FilterError};
pub use published::{Figure, PublishedRow};

use crate::experiment_result::{Axis, Published};
use crate::spec::RunSpec;
use error::Fault;

/// Bytes that an experiment file may have.
const MAX_FILE: u64 = 1 << 20;
/// Axes that an experiment may have.
pub const MAX_AXES: usize = 8;
/// Values that an axis may have.
pub const MAX_VALUES: usize = 100;
/// Cells that a grid may have.
pub const MAX_CELLS: usize = 2_000;
/// Runs of a cell.
pub const MAX_SEEDS: u64 = 10_000;

/// An experiment that has been checked: every cell can run.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Its name on the command line: built in, or a file.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it is to find out.
    pub question: String,
    /// Where it comes from.
    pub source: String,
    /// What readers must know beside the figures.
    pub note: Option<String>,
    /// The stack that others are compared with.
    pub baseline: Option<String>,
    /// The stack that is set beside the best of all others in each group of cells.
    pub subject: Option<String>,
    /// Runs of each cell unless told otherwise.
    pub seeds: u64,
    /// Metrics to tabulate, the most important first.
    pub metrics: Vec<String>,
    /// What is varied.
    pub axes: Vec<Axis>,
    /// The grid, cells that are skipped left out; the last axis changes fastest.
    pub cells: Vec<Cell>,
    /// What others have published about it, as printed.
    pub published: Vec<PublishedRow>,
}

/// One combination of values.
#[derive(Debug, Clone)]
pub struct Cell {
    /// A value's label for each axis.
    pub coordinates: Vec<String>,
    /// The run.
    pub spec: RunSpec,
    /// Figures to set beside it.
    pub published: Vec<Published>,
}

impl Experiment {
    /// The built-in experiments' names, in the order in which they should be shown.
    pub fn names() -> Vec<&'static str> {
        built_in::EXPERIMENTS.iter().map(|(name, _)| *name).collect()
    }

    /// The built-in experiment with this name.
    ///
    /// # Errors
    /// [`ExperimentError::Unknown`] with the names that there are.
    pub fn built_in(name: &str) -> Result<Self, ExperimentError> {
        let (name, text) = built_in::EXPERIMENTS
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| ExperimentError::Unknown { name: name.to_owned(), valid: Self::names() })?;
        Self::from_toml(name, text, None)
    }

    /// The experiment in a file; published figures are looked for beside it and among the built-in ones.
    ///
    /// # Errors
    /// If the file cannot be read or is no valid experiment.
    pub fn from_file(path: &Path) -> Result<Self, ExperimentError> {
        let name = path.display().to_string();
        let unreadable = |reason: String| ExperimentError::Unreadable { name: name.clone(), reason };
        let text = file::read_bounded(path, MAX_FILE).map_err(unreadable)?;
        Self::from_toml(&name, &text, path.parent())
    }

    /// An experiment from its text; `name` is for messages and reports, `folder` is where its published figures may
    /// be.
    ///
    /// # Errors
    /// [`ExperimentError::Invalid`] for whatever is wrong with it, with the line and the valid choices.
    pub fn from_toml(name: &str, text: &str, folder: Option<&Path>) -> Result<Self, ExperimentError> {
        let traces = traces::Traces::of(folder);
        let file = file::parse(text, &traces).map_err(|fault| fault.of(name, text))?;
        let axes = axis::read(&file).map_err(|fault| fault.of(name, text))?;
        let mut cells = grid::build(&file, &axes, &traces).map_err(|fault| fault.of(name, text))?;
        let labels: Vec<Axis> = axes.iter().map(axis::GridAxis::labels).collect();
        for (key, stack) in [("baseline", &file.baseline), ("subject", &file.subject)] {
            let Some(stack) = stack else { continue };
            grid::find(labels.iter().cloned(), "stack", stack.get_ref())
                .map_err(|error| Fault::at(stack.span(), format!("{key}: {error}")).of(name, text))?;
        }
        let published = published::attach(&file.published, folder, &labels, &mut cells)
            .map_err(|fault| fault.of(name, text))?;
        Ok(Self {
            name: name.to_owned(),
            title: file.title,
            question: file.question,
            source: file.source,
            note: file.note,
            baseline: file.baseline.map(toml::Spanned::into_inner),
            subject: file.subject.map(toml::Spanned::into_inner),
            seeds: file.seeds,
            metrics: file.metrics,
            axes: labels,
            cells,
            published,
        })
    }

    /// The description of a single run from its text: an experiment's `[run]`, with this heading. `name` is for messages,
    /// `folder` is where trace files are looked for.
    ///
    /// # Errors
    /// As [`Self::from_toml`].
    pub fn run_from_toml(name: &str, text: &str, folder: Option<&Path>) -> Result<RunSpec, ExperimentError> {
        file::parse_run(text, &traces::Traces::of(folder)).map_err(|fault| fault.of(name, text))
    }

    /// A cell as a [`CellFilter`] names it: `path=good,object=1MB`; empty where nothing is varied.
    pub fn cell_name(&self, cell: &Cell) -> String {
        let term = |(axis, label): (&Axis, &String)| format!("{}={label}", axis.name);
        self.axes.iter().zip(&cell.coordinates).map(term).collect::<Vec<_>>().join(",")
    }

    /// The indices of the cells that `filter` leaves, in the grid's order.
    ///
    /// # Errors
    /// If it names an axis or a value that there is none of, or leaves nothing.
    pub fn select(&self, filter: &CellFilter) -> Result<Vec<usize>, FilterError> {
        filter.select(self)
    }
}

#[cfg(test)]
mod tests;

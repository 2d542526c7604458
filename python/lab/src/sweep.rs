//! Sweeps whose runs are made in chunks by other processes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use posthaste_lab::experiment::{Cell, CellFilter};
use posthaste_lab::experiment_result::ExperimentResult;
use posthaste_lab::result::{Outcome, RunResult};
use posthaste_lab::sweep::{self, Assignment, Plan, Shard, ShardHeader};
use posthaste_report as report;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::catalogue::read_experiment;
use crate::errors::{run_error, spec_error};
use crate::identity::identity;
use crate::json;
use crate::work::detached;

/// What of an experiment is run.
#[pyclass(frozen, module = "posthaste_lab._native")]
pub(crate) struct Sweep {
    pub(crate) plan: Arc<Plan>,
    pub(crate) runs: Arc<[Assignment]>,
    pub(crate) header: ShardHeader,
}

#[pymethods]
impl Sweep {
    /// Of the built-in experiment `name`, or of the one whose text is `text`; `cells` chooses some (`"path=good"`),
    /// `seeds` is the first and the one after the last.
    #[new]
    #[pyo3(signature = (name, text=None, folder=None, cells=Vec::new(), seeds=None, series=None))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: Option<&str>,
        folder: Option<PathBuf>,
        cells: Vec<String>,
        seeds: Option<(u64, u64)>,
        series: Option<&str>,
    ) -> PyResult<Self> {
        let experiment = read_experiment(py, name, text, folder.as_deref())?;
        let wrong =
            |key: &str, message: String| spec_error(py, &format!("{key}: {message}"), None, Some(key));
        let filters: Result<Vec<CellFilter>, _> = cells.iter().map(|cells| cells.parse()).collect();
        let filters = filters.map_err(|error| wrong("cells", error.to_string()))?;
        let series: Option<posthaste_units::Duration> =
            series.map(str::parse).transpose().map_err(|error| wrong("series", format!("{error}")))?;
        let plan = Plan::new(experiment, &filters, seeds.map(|(first, end)| first..end), series)
            .map_err(|error| wrong("cells", error.to_string()))?;
        let selection = plan.selection(&|_| String::new());
        let program = identity(py)?;
        let header = ShardHeader::new(name, cells, &plan.experiment, &selection, &program, Shard::ALL);
        let runs = sweep::assignments(&plan.experiment, &selection, &program).into();
        Ok(Self { plan: Arc::new(plan), runs, header })
    }

    /// Number of runs.
    fn __len__(&self) -> usize {
        self.runs.len()
    }

    /// Digest of all that the results follow from: the build, what is run, the recordings that it names.
    #[getter]
    fn digest(&self) -> &str {
        &self.header.runs
    }

    /// Coordinates of the cell of a run, and its seed.
    fn name_of(&self, index: usize) -> PyResult<(Vec<String>, u64)> {
        let run = self.runs.get(index).ok_or_else(|| PyIndexError::new_err("no such run"))?;
        Ok((self.plan.experiment.cells[run.cell].coordinates.clone(), run.seed))
    }

    /// Makes the runs from `first` to before `end`, at least one; those that are left after `seconds` are not begun. Gives
    /// a result for each that was made.
    fn make<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        end: usize,
        seconds: f64,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        if first >= end || end > self.runs.len() {
            return Err(PyIndexError::new_err(format!("runs {first} to {end} of {}", self.runs.len())));
        }
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let (plan, runs) = (Arc::clone(&self.plan), Arc::clone(&self.runs));
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let its_cancel = Arc::clone(&is_cancelled);
        let work = move || {
            let began = Instant::now();
            let mut results = Vec::new();
            for run in &runs[first..end] {
                let is_late = !results.is_empty() && began.elapsed() >= patience;
                if is_late || its_cancel.load(Ordering::Relaxed) {
                    break;
                }
                let cell = &plan.experiment.cells[run.cell];
                results.push(json::text(&sweep::make(cell, run.seed, run.series)));
            }
            results
        };
        let results = detached(py, &|| is_cancelled.store(true, Ordering::Relaxed), work)?;
        Ok(results.iter().map(|result| PyBytes::new(py, result.as_bytes())).collect())
    }

    /// The report of all results, in the order of the runs.
    fn gather(&self, py: Python<'_>, results: Vec<Vec<u8>>) -> PyResult<Report> {
        let plan = Arc::clone(&self.plan);
        let work = move || {
            let results: Result<Vec<Result<RunResult, String>>, _> =
                results.iter().map(|result| serde_json::from_slice(result)).collect();
            let results = results.map_err(|error| format!("a worker's result cannot be read: {error}"))?;
            let command = |cell: Option<&Cell>| command(&plan, cell);
            sweep::gather(&plan.experiment, &plan.selection(&command), results)
                .map_err(|error| error.to_string())
        };
        let result = detached(py, &|| (), work)?.map_err(|message| run_error(py, &message))?;
        Ok(Report { result: Arc::new(result) })
    }
}

/// The command that repeats a cell, or all of it, for a shell.
fn command(plan: &Plan, cell: Option<&Cell>) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    let quoted = |word: &String| {
        if word.bytes().all(is_plain) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    plan.words(cell).iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// What a sweep has shown.
#[pyclass(frozen, module = "posthaste_lab._native")]
pub(crate) struct Report {
    result: Arc<ExperimentResult>,
}

#[pymethods]
impl Report {
    /// As `posthaste lab run --json` writes it.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let result = Arc::clone(&self.result);
        detached(py, &|| (), move || report::json::to_string(std::slice::from_ref(&*result)))
    }

    /// As `posthaste lab run --html` writes it.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let result = Arc::clone(&self.result);
        detached(py, &|| (), move || report::html::page(std::slice::from_ref(&*result)))
    }

    /// Coordinates of the cell, seed and reason of each run that failed.
    fn failures(&self) -> Vec<(Vec<String>, u64, String)> {
        let runs = self.result.cells.iter().flat_map(|cell| cell.runs.iter().map(move |run| (cell, run)));
        runs.filter_map(|(cell, run)| match &run.outcome {
            Outcome::Failed(reason) => Some((cell.coordinates.clone(), run.seed, reason.clone())),
            Outcome::Completed | Outcome::Deadline => None,
        })
        .collect()
    }
}

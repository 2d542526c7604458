//! Results that are kept in a file, so that an interrupted sweep goes on where it ended.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use posthaste_campaign::keyed::HeadedError;
use posthaste_lab::result::RunResult;
use posthaste_lab::sweep;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{run_error, spec_error};
use crate::identity::identity;
use crate::json;
use crate::sweep::Sweep;

/// The journal of a sweep.
#[pyclass(frozen, module = "posthaste_lab._native")]
pub(crate) struct Journal {
    journal: Mutex<sweep::Journal>,
    path: PathBuf,
}

#[pymethods]
impl Journal {
    /// Opens the file, which is made if it is not there; `fresh` empties it.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, sweep: &Sweep, fresh: bool) -> PyResult<Self> {
        let header = &sweep.header;
        match sweep::Journal::open_file(&path, header, &identity(py)?, fresh) {
            Ok(journal) => Ok(Self { journal: Mutex::new(journal), path }),
            Err(error) => {
                let path = path.display();
                Err(match error {
                    HeadedError::File(error) => {
                        run_error(py, &format!("cannot keep runs in {path}: {error}"))
                    }
                    HeadedError::Foreign => spec_error(
                        py,
                        &format!("{path} holds no runs; it is left as it is"),
                        None,
                        Some("journal"),
                    ),
                    HeadedError::Other(found) => {
                        let difference = found.difference(header);
                        let message = format!(
                            "{path} holds other runs: {difference}; give another file, or fresh=True to empty it"
                        );
                        spec_error(py, &message, None, Some("journal"))
                    }
                })
            }
        }
    }

    /// A result for each run of the sweep, `None` where the file has none. Lines that are cut off or damaged count as
    /// missing.
    fn load<'py>(&self, py: Python<'py>, sweep: &Sweep) -> Vec<Option<Bound<'py, PyBytes>>> {
        let results: Vec<Option<String>> = py.detach(|| {
            let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.load(sweep.runs.iter().map(|run| &run.key));
            let take = |run: &sweep::Assignment| {
                let result = journal.take(&run.key).filter(|result| result.seed == run.seed)?;
                Some(json::text(&Ok::<_, String>(result)))
            };
            sweep.runs.iter().map(take).collect()
        });
        let bytes = |result: Option<String>| result.map(|result| PyBytes::new(py, result.as_bytes()));
        results.into_iter().map(bytes).collect()
    }

    /// Keeps the result of a run; those of failed runs are not kept, so that they are made again.
    fn append(&self, py: Python<'_>, sweep: &Sweep, index: usize, result: &[u8]) -> PyResult<()> {
        let run = sweep.runs.get(index).ok_or_else(|| PyIndexError::new_err("no such run"))?;
        let result: Result<RunResult, String> = serde_json::from_slice(result)
            .map_err(|error| run_error(py, &format!("a worker's result cannot be read: {error}")))?;
        let Ok(result) = result else { return Ok(()) };
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal
            .append(&run.key, &result)
            .map_err(|error| run_error(py, &format!("cannot keep runs in {}: {error}", self.path.display())))
    }
}

//! A single run.

use std::path::PathBuf;

use posthaste_lab::experiment::{Cell, Experiment};
use posthaste_lab::sweep;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{of_experiment, run_error, spec_error};
use crate::work::detached;
use crate::{json, value};

/// Makes one run. `spec` is TOML's text of an experiment's `[run]`, or the same as a dict without that heading; `name` is
/// for messages, `folder` is where trace files are looked for. Gives the result as JSON.
#[pyfunction]
pub(crate) fn run(
    spec: &Bound<'_, PyAny>,
    seed: u64,
    name: &str,
    folder: Option<PathBuf>,
) -> PyResult<String> {
    let py = spec.py();
    let (text, is_text) = match (spec.extract::<String>(), spec.cast::<PyDict>()) {
        (Ok(text), _) => (text, true),
        (Err(_), Ok(table)) => {
            let run = value::read(table, "run", 0)?;
            let run = toml::Table::from_iter([("run".to_owned(), run)]);
            let text = toml::to_string(&run)
                .map_err(|error| spec_error(py, &error.to_string(), None, Some("run")))?;
            (text, false)
        }
        _ => {
            return Err(spec_error(
                py,
                "a run's description is a dict, or TOML's text with the heading [run]",
                None,
                None,
            ));
        }
    };
    let spec = Experiment::run_from_toml(name, &text, folder.as_deref())
        .map_err(|error| of_experiment(py, error, is_text))?;
    let series = spec.series;
    let cell = Cell { coordinates: Vec::new(), spec, published: Vec::new() };
    let result =
        detached(py, &|| (), move || sweep::make(&cell, seed, series).map(|result| json::text(&result)))?;
    result.map_err(|message| run_error(py, &message))
}

//! What has a name: experiments, profiles, paths, stacks.

use std::path::Path;

use posthaste_lab::experiment::Experiment;
use posthaste_lab::peers::RIVAL_NAMES;
use posthaste_path::PathSpec;
use posthaste_schemes::Definition;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::errors::{of_experiment, of_profile, spec_error};
use crate::{json, value};

/// The built-in experiments' names.
#[pyfunction]
pub(crate) fn experiments() -> Vec<&'static str> {
    Experiment::names()
}

/// All about an experiment but its runs, as JSON. `text` is that of an experiment's file.
#[pyfunction]
pub(crate) fn describe_experiment(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    folder: Option<std::path::PathBuf>,
) -> PyResult<String> {
    let experiment = read_experiment(py, name, text, folder.as_deref())?;
    let cells: Vec<_> = experiment.cells.iter().map(|cell| &cell.coordinates).collect();
    Ok(json::text(&json!({
        "name": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "source": experiment.source,
        "note": experiment.note,
        "metrics": experiment.metrics,
        "axes": experiment.axes,
        "cells": cells,
        "seeds": experiment.seeds,
    })))
}

/// The built-in experiment, or the one of the text.
pub(crate) fn read_experiment(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    folder: Option<&Path>,
) -> PyResult<Experiment> {
    match text {
        Some(text) => Experiment::from_toml(name, text, folder),
        None => Experiment::built_in(name),
    }
    .map_err(|error| of_experiment(py, error, true))
}

/// Stacks by kind, as JSON: the profiles, those for comparison, rivals.
#[pyfunction]
pub(crate) fn stacks() -> String {
    json::text(&json!({
        "profiles": posthaste_schemes::names(),
        "comparison": posthaste_schemes::comparison_names(),
        "rivals": RIVAL_NAMES,
    }))
}

/// A profile with its policies, their claims and constants, as JSON; `text` is that of a profile's file.
#[pyfunction]
pub(crate) fn describe_profile(py: Python<'_>, name: &str, text: Option<&str>) -> PyResult<String> {
    let definition = match text {
        Some(text) => Definition::from_toml(name, text),
        None => Definition::find(name),
    };
    definition
        .and_then(|definition| definition.build().map(|_| json::text(&definition.describe())))
        .map_err(|error| of_profile(py, &error))
}

/// The named paths with their descriptions as JSON; or one path, described by a dict or named, in one line.
#[pyfunction]
pub(crate) fn describe_path(py: Python<'_>, path: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    let Some(path) = path else {
        let describe = |name: &&'static str| (*name, PathSpec::describe(name));
        let all: std::collections::BTreeMap<_, _> = PathSpec::names().iter().map(describe).collect();
        return Ok(json::text(&all));
    };
    if let Ok(table) = path.cast::<PyDict>()
        && ["trace-file", "up-trace-file"].iter().any(|key| table.contains(key).unwrap_or(false))
    {
        // Read where the run is made.
        return Ok("a recording from a file".to_owned());
    }
    let path: Result<PathSpec, _> = value::read(path, "path", 0)?.try_into();
    path.map(|path| path.to_string())
        .map_err(|error| spec_error(py, &format!("path: {}", error.message().trim()), None, Some("path")))
}

//! Results for programs.
//!
//! ```json
//! {
//!   "schema": 1,
//!   "experiments": [{
//!     "name": "...", "title": "...", "question": "...", "source": "...", "command": "...",
//!     "note": null, "baseline": null,
//!     "axes": [{"name": "path", "values": ["good", "bad"]}, {"name": "stack", "values": ["cubic"]}],
//!     "metrics": ["completion", "loss"],
//!     "seeds": 50,
//!     "cells": [{
//!       "coordinates": ["good", "cubic"],
//!       "command": "...",
//!       "limit": {"seconds": 0.16, "terms": "..."},
//!       "published": [{"metric": "completion.mean", "value": 0.52, "unit": "s", "source": "..."}],
//!       "repeatable": true,
//!       "incomplete": 0,
//!       "statistics": {
//!         "completion": {
//!           "unit": "s", "better": "lower", "unknown": 0, "n": 50, "censored": 0,
//!           "mean": 0.5, "mean_interval": {"low": 0.4, "high": 0.6}, "std": 0.1, "cov": 0.2,
//!           "p50": 0.5, "median_interval": {"low": 0.4, "high": 0.6}, "p95": 0.7, "p99": 0.8,
//!           "least": 0.3, "greatest": 0.8
//!         }
//!       },
//!       "against_baseline": {
//!         "pairs": 50, "undetermined": 0, "unpaired": 0, "below": 40, "above": 10,
//!         "ratio": 0.9, "interval": {"low": 0.85, "high": 0.95}, "least": 0.7, "greatest": 1.1
//!       },
//!       "runs": [{"seed": 1, "outcome": "completed", "virtual_seconds": 0.5, "flows": [], "links": []}]
//!     }]
//!   }]
//! }
//! ```
//!
//! Names and order of fields are stable; a change of meaning raises `schema`. Statistics are those of
//! [`crate::statistics`], one entry for each metric of [`crate::metric`] of which some run of the cell says
//! something; their values have the units `s`, `ms`, `bit/s`, `B`, `share` (0 to 1) or none. `null` in place of a
//! quantile or of an interval's end means beyond the deadline (censored), `null` in place of a mean or an interval
//! that there is none. An experiment with a `subject` names it; what others do beside it follows from the statistics. `against_baseline` holds the paired ratios of the first metric of `metrics`
//! ([`crate::statistics::Paired`]); `null` for the baseline itself. `runs` are [`crate::result::RunResult`]s;
//! unless `repeatable`, the same seeds give similar runs, not the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::json_lines::LineARun;
use super::layout::{Incomplete, Layout};
use crate::experiment_result::{Axis, CellResult, ExperimentResult, Limit, Published};
use crate::metric::{Better, CATALOGUE, Unit};
use crate::result::RunResult;
use crate::statistics::{Paired, Summary};

/// The version of the schema above.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    experiments: Vec<Experiment<'a>>,
}

#[derive(Serialize)]
struct Experiment<'a> {
    name: &'a str,
    title: &'a str,
    question: &'a str,
    source: &'a str,
    command: &'a str,
    note: Option<&'a str>,
    baseline: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    axes: &'a [Axis],
    metrics: &'a [String],
    seeds: u64,
    cells: Vec<Cell<'a>>,
}

#[derive(Serialize)]
struct Cell<'a> {
    coordinates: &'a [String],
    command: &'a str,
    limit: Option<&'a Limit>,
    published: &'a [Published],
    repeatable: bool,
    incomplete: usize,
    statistics: BTreeMap<&'static str, Statistics>,
    against_baseline: Option<Paired>,
    runs: &'a [RunResult],
}

#[derive(Serialize)]
struct Statistics {
    unit: &'static str,
    better: &'static str,
    unknown: usize,
    #[serde(flatten)]
    summary: Summary,
}

/// Experiments as JSON with their statistics, a line for each run and for each metric; ends with a line break.
pub fn to_string(experiments: &[ExperimentResult]) -> String {
    let experiments = experiments.iter().map(document_of).collect();
    let document = Document { schema: SCHEMA, experiments };
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, LineARun::default());
    // Plain structures with text keys, into memory: nothing that can fail.
    let _ = document.serialize(&mut serializer);
    text.push(b'\n');
    String::from_utf8(text).unwrap_or_default()
}

/// Experiments from what [`to_string`] has written; the statistics are computed again when needed.
///
/// # Errors
/// If `text` is not such a document, or one of another schema.
pub fn from_str(text: &str) -> Result<Vec<ExperimentResult>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }
    #[derive(Deserialize)]
    struct Results {
        experiments: Vec<ExperimentResult>,
    }
    let version: Version = serde_json::from_str(text)?;
    if version.schema != SCHEMA {
        let message = format!("results of schema {}, but this program reads schema {SCHEMA}", version.schema);
        return Err(serde::de::Error::custom(message));
    }
    serde_json::from_str::<Results>(text).map(|results| results.experiments)
}

fn document_of(experiment: &ExperimentResult) -> Experiment<'_> {
    let layout = Layout::new(experiment);
    Experiment {
        name: &experiment.name,
        title: &experiment.title,
        question: &experiment.question,
        source: &experiment.source,
        command: &experiment.command,
        note: experiment.note.as_deref(),
        baseline: experiment.baseline.as_deref(),
        subject: experiment.subject.as_deref(),
        axes: &experiment.axes,
        metrics: &experiment.metrics,
        seeds: experiment.seeds,
        cells: experiment.cells.iter().map(|cell| cell_of(&layout, cell)).collect(),
    }
}

fn cell_of<'a>(layout: &Layout<'a>, cell: &'a CellResult) -> Cell<'a> {
    let mut statistics = BTreeMap::new();
    for metric in CATALOGUE {
        let sample = metric.sample(layout.experiment, cell);
        if let Some(summary) = sample.summary() {
            let better = better_name(metric.better);
            let entry = Statistics { unit: unit_name(metric.unit), better, unknown: sample.unknown, summary };
            statistics.insert(metric.name, entry);
        }
    }
    Cell {
        coordinates: &cell.coordinates,
        command: &cell.command,
        limit: cell.limit.as_ref(),
        published: &cell.published,
        repeatable: layout.is_repeatable(cell),
        incomplete: Incomplete::of(cell).total(),
        statistics,
        against_baseline: layout.against_baseline(cell),
        runs: &cell.runs,
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "s",
        Unit::Milliseconds => "ms",
        Unit::BitsPerSecond => "bit/s",
        Unit::Bytes => "B",
        Unit::Share => "share",
        Unit::Count | Unit::Times | Unit::Index => "",
    }
}

fn better_name(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "neither",
    }
}

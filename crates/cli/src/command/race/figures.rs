//! What the reports show of each workload: columns of the lab's catalogue.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_lab::spec::WorkloadSpec;
use posthaste_report::experiment_result::{CellResult, ExperimentResult};
use posthaste_report::metric::{self, Statistic, Unit};
use posthaste_report::result::{FlowResult, Outcome};

use super::plan::Plan;
use super::testbed::Run;
use crate::printer;

/// A column of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    /// Above it.
    pub(super) head: &'static str,
    /// What it is, as [`metric::find`] knows it.
    pub(super) column: &'static str,
}

const fn figure(head: &'static str, column: &'static str) -> Figure {
    Figure { head, column }
}

const FILE: &[Figure] = &[figure("median", "completion"), figure("p95", "completion.p95")];
const REQUESTS: &[Figure] = &[figure("median", "latency"), figure("p95", "latency-p95")];
const VIDEO: &[Figure] = &[
    figure("startup", "startup"),
    figure("stalled", "stalled.mean"),
    figure("share", "stalled-share.mean"),
    figure("chunk rate", "chunk-rate"),
];

/// The columns of a workload; the first is what savings and ratios to the limit are about.
pub(super) fn all(workload: &WorkloadSpec) -> &'static [Figure] {
    match workload {
        WorkloadSpec::Video { .. } => VIDEO,
        WorkloadSpec::RequestResponse { .. } => REQUESTS,
        _ => FILE,
    }
}

/// The names of the page's columns, the first as in the table.
pub(super) fn metrics(workload: &WorkloadSpec) -> Vec<String> {
    let names: &[&str] = match workload {
        WorkloadSpec::Video { .. } => {
            &["startup", "stalled.mean", "stalled-share.mean", "chunk-rate", "connect"]
        }
        WorkloadSpec::RequestResponse { .. } => &["latency", "latency-p95", "completion", "connect"],
        _ => &["completion", "first_byte", "connect"],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The first figure of one run in seconds; infinite if it failed.
pub(super) fn headline(plan: &Plan, run: &Run) -> f64 {
    let read = |flow: &FlowResult| match plan.workload.spec {
        WorkloadSpec::Video { .. } => flow.startup(),
        WorkloadSpec::RequestResponse { .. } => flow.latency(0.5),
        _ => flow.completion,
    };
    run.outcome.as_ref().ok().and_then(|()| read(&run.flow)).unwrap_or(f64::INFINITY)
}

/// The value of `figure` in a cell; `None` without data, or if too many runs failed.
pub(super) fn value(figure: Figure, experiment: &ExperimentResult, cell: &CellResult) -> Option<f64> {
    let column = metric::find(figure.column).ok()?;
    // What a run that failed would have come to is not known, and a mean needs to know.
    let has_failures = cell.runs.iter().any(|run| run.outcome != Outcome::Completed);
    if column.statistic == Statistic::Mean && has_failures {
        return None;
    }
    column.value(experiment, cell).filter(|value| value.is_finite())
}

/// All figures of a cell by their names in the catalogue.
pub(super) fn values(
    workload: &WorkloadSpec,
    experiment: &ExperimentResult,
    cell: &CellResult,
) -> BTreeMap<String, Option<f64>> {
    let named = |figure: &Figure| (figure.column.to_owned(), value(*figure, experiment, cell));
    all(workload).iter().map(named).collect()
}

/// A value for people.
pub(super) fn text(figure: Figure, value: Option<f64>) -> String {
    let (Some(value), Ok(column)) = (value, metric::find(figure.column)) else { return "-".to_owned() };
    match column.unit() {
        Unit::Seconds if value == 0.0 => "0 s".to_owned(),
        Unit::Seconds => printer::duration(Duration::from_secs_f64(value.max(0.0))),
        Unit::Share => format!("{:.1} %", value * 100.0),
        unit => unit.text(value),
    }
}

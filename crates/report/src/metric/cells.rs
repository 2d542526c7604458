//! Neighbours in the grid: the same conditions with another stack.

use crate::experiment_result::{CellResult, ExperimentResult};

/// Index of the axis that is the series of figures: the one named `stack`, else the last; `None` without axes.
pub fn series_axis(experiment: &ExperimentResult) -> Option<usize> {
    let named = experiment.axes.iter().position(|axis| axis.name == "stack");
    named.or_else(|| experiment.axes.len().checked_sub(1))
}

/// The stack that others are compared with, as written on the series axis; `None` without axes or values.
pub fn baseline(experiment: &ExperimentResult) -> Option<&str> {
    let axis = experiment.axes.get(series_axis(experiment)?)?;
    let wished =
        experiment.baseline.as_ref().and_then(|name| axis.values.iter().find(|value| *value == name));
    wished.or_else(|| axis.values.first()).map(String::as_str)
}

/// The cell that differs from `cell` in nothing but the value of the series axis, which is `value`.
pub fn sibling<'a>(
    experiment: &'a ExperimentResult,
    cell: &CellResult,
    value: &str,
) -> Option<&'a CellResult> {
    let axis = series_axis(experiment)?;
    neighbours(experiment, cell, axis)
        .find(|other| other.coordinates.get(axis).is_some_and(|coordinate| coordinate == value))
}

/// The cell in the same conditions whose first flow has `stack`.
pub(super) fn with_first_stack<'a>(
    experiment: &'a ExperimentResult,
    cell: &CellResult,
    stack: &str,
) -> Option<&'a CellResult> {
    let axis = series_axis(experiment)?;
    neighbours(experiment, cell, axis).find(|other| {
        let first = other.runs.first().and_then(|run| run.flows.first());
        first.is_some_and(|flow| flow.stack == stack)
    })
}

fn neighbours<'a>(
    experiment: &'a ExperimentResult,
    cell: &CellResult,
    axis: usize,
) -> impl Iterator<Item = &'a CellResult> {
    let coordinates = cell.coordinates.clone();
    experiment.cells.iter().filter(move |other| {
        let mut pairs = other.coordinates.iter().zip(&coordinates).enumerate();
        other.coordinates.len() == coordinates.len() && pairs.all(|(index, (a, b))| index == axis || a == b)
    })
}

//! The cells: the product of the axes without what is skipped, and choices among them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::axis::{GridAxis, GridValue, substitute};
use super::error::Fault;
use super::file::File;
use super::traces::Traces;
use super::{Cell, Experiment, MAX_CELLS, check};
use crate::spec::RunSpec;

/// All cells, each checked.
pub(super) fn build(file: &File, axes: &[GridAxis], traces: &Traces<'_>) -> Result<Vec<Cell>, Fault> {
    check_values(file, axes, traces)?;
    let skips = skips(file, axes)?;
    let count = axes.iter().try_fold(1_usize, |product, axis| product.checked_mul(axis.values.len()));
    let count = count.filter(|&count| count <= MAX_CELLS).ok_or_else(|| {
        let factors: Vec<String> = axes.iter().map(|axis| axis.values.len().to_string()).collect();
        let message = format!("the grid has {} cells; at most {MAX_CELLS} are possible", factors.join(" x "));
        Fault { span: file.axes.last().map(toml::Spanned::span), message }
    })?;
    let mut cells = Vec::new();
    for number in 0..count {
        let values = values_of(axes, number);
        let labels = || values.iter().map(|value| value.label.as_str());
        if skips.iter().any(|skip| skip.matches(labels())) {
            continue;
        }
        let spec = substituted(file, &values, traces).and_then(|spec| check::ranges(&spec).map(|()| spec));
        let spec = spec.map_err(|message| {
            let names: Vec<String> =
                axes.iter().zip(labels()).map(|(axis, label)| format!("{}={label}", axis.name)).collect();
            let span = values.last().map(|value| value.span.clone());
            Fault { span, message: format!("the cell {}: {message}", names.join(",")) }
        })?;
        cells.push(Cell { coordinates: labels().map(str::to_owned).collect(), spec, published: Vec::new() });
    }
    if cells.is_empty() {
        let span = file.skips.last().map(toml::Spanned::span);
        return Err(Fault { span, message: "every cell is skipped: nothing is left to run".to_owned() });
    }
    Ok(cells)
}

/// The values of a cell: the last axis changes fastest.
fn values_of(axes: &[GridAxis], number: usize) -> Vec<&GridValue> {
    let mut rest = number;
    let mut values: Vec<&GridValue> = axes
        .iter()
        .rev()
        .map(|axis| {
            let value = &axis.values[rest % axis.values.len()];
            rest /= axis.values.len();
            value
        })
        .collect();
    values.reverse();
    values
}

/// Tries each value alone, so that a fault is told at its own line and not at some cell.
fn check_values(file: &File, axes: &[GridAxis], traces: &Traces<'_>) -> Result<(), Fault> {
    for axis in axes {
        for value in &axis.values {
            substituted(file, &[value], traces).and_then(|spec| check::runnable(&spec)).map_err(
                |message| {
                    let message = format!("axis `{}`, value `{}`: {message}", axis.name, value.label);
                    Fault::at(value.span.clone(), message)
                },
            )?;
        }
    }
    Ok(())
}

fn substituted(file: &File, values: &[&GridValue], traces: &Traces<'_>) -> Result<RunSpec, String> {
    let mut run = file.run.clone();
    for (key, value) in values.iter().flat_map(|value| &value.settings) {
        substitute(&mut run, key, value.clone())?;
    }
    read_run(run, traces)
}

/// A run's description, the traces that it names read.
pub(super) fn read_run(run: toml::Table, traces: &Traces<'_>) -> Result<RunSpec, String> {
    let run = traces.inline(run)?;
    RunSpec::deserialize(run).map_err(|error| error.message().trim().to_owned())
}

/// For each axis the labels that match; none named: all do.
#[derive(Debug)]
struct Skip(Vec<Vec<String>>);

impl Skip {
    fn matches<'a>(&self, mut labels: impl Iterator<Item = &'a str>) -> bool {
        self.0.iter().all(|matching| {
            let label = labels.next().unwrap_or_default();
            matching.is_empty() || matching.iter().any(|candidate| candidate == label)
        })
    }
}

fn skips(file: &File, axes: &[GridAxis]) -> Result<Vec<Skip>, Fault> {
    let mut skips = Vec::new();
    for spanned in &file.skips {
        let mut skip = Skip(vec![Vec::new(); axes.len()]);
        for (name, labels) in spanned.get_ref() {
            for label in labels.all() {
                let position = find(axes.iter().map(GridAxis::labels), name, label)
                    .map_err(|error| Fault::at(spanned.span(), format!("skip: {error}")))?;
                skip.0[position].push(label.clone());
            }
        }
        skips.push(skip);
    }
    Ok(skips)
}

/// The index of the axis `name`, which must have the value `label`.
pub(crate) fn find(
    all: impl Iterator<Item = crate::experiment_result::Axis> + Clone,
    name: &str,
    label: &str,
) -> Result<usize, FilterError> {
    let Some((index, axis)) = all.clone().enumerate().find(|(_, axis)| axis.name == name) else {
        let names: Vec<String> = all.map(|axis| axis.name).collect();
        return Err(FilterError(format!("there is no axis `{name}`; there are {}", names.join(", "))));
    };
    if axis.values.iter().any(|value| value == label) {
        return Ok(index);
    }
    let values = axis.values.join(", ");
    Err(FilterError(format!("the axis `{name}` has no value `{label}`; there are {values}")))
}

/// A choice of cells: `path=good,object=1MB,object=10MB` are those whose path is good and whose object is one of
/// two. Nothing chooses all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellFilter(Vec<(String, String)>);

/// Why a choice of cells is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(String);

impl FromStr for CellFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        text.split(',')
            .map(|term| match term.split_once('=') {
                Some((axis, value)) if !axis.trim().is_empty() && !value.trim().is_empty() => {
                    Ok((axis.trim().to_owned(), value.trim().to_owned()))
                }
                _ => Err(FilterError(format!("`{term}` is no choice of cells: write axis=value,axis=value"))),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for CellFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (axis, value)) in self.0.iter().enumerate() {
            let separator = if index > 0 { "," } else { "" };
            write!(f, "{separator}{axis}={value}")?;
        }
        Ok(())
    }
}

impl CellFilter {
    /// Both choices in one.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(super) fn select(&self, experiment: &Experiment) -> Result<Vec<usize>, FilterError> {
        let mut wanted: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (name, label) in &self.0 {
            let position = find(experiment.axes.iter().cloned(), name, label)?;
            wanted.entry(position).or_default().push(label);
        }
        let is_wanted = |cell: &Cell| {
            wanted.iter().all(|(&position, labels)| labels.contains(&cell.coordinates[position].as_str()))
        };
        let indices: Vec<usize> = experiment
            .cells
            .iter()
            .enumerate()
            .filter_map(|(index, cell)| is_wanted(cell).then_some(index))
            .collect();
        if indices.is_empty() {
            return Err(FilterError("no cell is left: the experiment skips these".to_owned()));
        }
        Ok(indices)
    }
}

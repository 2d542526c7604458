//! How cells are laid out for people: the series axis gives the rows of tables and the curves of figures, every
//! combination of the other axes' values is a group of its own.

use crate::experiment_result::{CellResult, ExperimentResult};
use crate::metric::{self, Column, Sample, Scale};
use crate::result::Outcome;
use crate::statistics::{self, Paired};

/// Cells that differ in nothing but the series axis.
pub(crate) struct Group<'a> {
    /// The other axes' names and values.
    pub(crate) conditions: Vec<(&'a str, &'a str)>,
    pub(crate) members: Vec<Member<'a>>,
}

/// One cell of a group.
pub(crate) struct Member<'a> {
    /// Index of its value in [`Layout::series`]: its colour.
    pub(crate) series: usize,
    /// Its value on the series axis.
    pub(crate) name: &'a str,
    pub(crate) cell: &'a CellResult,
}

/// An experiment, ready to be drawn.
pub(crate) struct Layout<'a> {
    pub(crate) experiment: &'a ExperimentResult,
    /// Values of the series axis, in its order.
    pub(crate) series: Vec<&'a str>,
    /// In the order of the cells.
    pub(crate) groups: Vec<Group<'a>>,
    /// The metric that comes first.
    pub(crate) headline: Column,
    /// The other metrics to show.
    pub(crate) further: Vec<Column>,
    /// Metrics' names that are none.
    pub(crate) unknown: Vec<&'a str>,
    /// The stack that others are compared with, where there are several.
    pub(crate) baseline: Option<&'a str>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(experiment: &'a ExperimentResult) -> Self {
        let axis = metric::series_axis(experiment);
        let mut series: Vec<&str> = axis
            .and_then(|axis| experiment.axes.get(axis))
            .map(|axis| axis.values.iter().map(String::as_str).collect())
            .unwrap_or_default();
        let mut groups: Vec<Group<'a>> = Vec::new();
        for cell in &experiment.cells {
            let name = axis.and_then(|axis| cell.coordinates.get(axis)).map_or("all", String::as_str);
            let index = series.iter().position(|other| *other == name).unwrap_or_else(|| {
                series.push(name);
                series.len() - 1
            });
            let conditions = conditions(experiment, cell, axis);
            let member = Member { series: index, name, cell };
            match groups.iter_mut().find(|group| group.conditions == conditions) {
                Some(group) => group.members.push(member),
                None => groups.push(Group { conditions, members: vec![member] }),
            }
        }
        let mut columns: Vec<Column> = Vec::new();
        let mut unknown = Vec::new();
        for name in &experiment.metrics {
            match metric::find(name) {
                Ok(column) => columns.push(column),
                Err(_) => unknown.push(name.as_str()),
            }
        }
        let headline = if columns.is_empty() { first_metric() } else { columns.remove(0) };
        // The ratio to the limit has a column of its own, and so have the headline's quantiles.
        columns.retain(|column| {
            let is_headline = std::ptr::eq(column.metric, headline.metric);
            !(is_headline || column.to_string() == "to-limit")
        });
        let baseline = metric::baseline(experiment).filter(|_| series.len() > 1);
        Self { experiment, series, groups, headline, further: columns, unknown, baseline }
    }

    /// True if the headline is a time that a limit can be set beside.
    pub(crate) fn is_completion(&self) -> bool {
        self.headline.metric.name == "completion"
    }

    /// The headline metric of a cell.
    pub(crate) fn sample(&self, cell: &CellResult) -> Sample {
        self.headline.metric.sample(self.experiment, cell)
    }

    /// The headline metric of a cell over that of the baseline in the same conditions, seed by seed; `None` for the
    /// baseline itself.
    pub(crate) fn against_baseline(&self, cell: &CellResult) -> Option<Paired> {
        let base = metric::sibling(self.experiment, cell, self.baseline?)?;
        if std::ptr::eq(base, cell) {
            return None;
        }
        statistics::compare_paired(&self.sample(cell).values, &self.sample(base).values)
    }

    /// For each group, a scale with the digits that it needs; the unit is the same for all groups.
    pub(crate) fn scales(&self, column: Column) -> Vec<Scale> {
        let greatest = |cells: &mut dyn Iterator<Item = &CellResult>| {
            let values = cells.filter_map(|cell| column.value(self.experiment, cell));
            values.filter(|value| value.is_finite()).map(f64::abs).fold(0.0, f64::max)
        };
        let overall = column.unit().scale(greatest(&mut self.experiment.cells.iter()));
        let groups = self.groups.iter();
        groups
            .map(|group| overall.fitted(greatest(&mut group.members.iter().map(|member| member.cell))))
            .collect()
    }

    /// The name of a series, with a mark if runs of it do not repeat.
    pub(crate) fn series_label(&self, series: usize) -> String {
        let mut members = self.groups.iter().flat_map(|group| &group.members);
        let is_marked = members.any(|member| member.series == series && !member.is_repeatable());
        self.series[series].chars().chain(is_marked.then_some(UNREPEATABLE)).collect()
    }

    /// True if runs of some cell do not repeat.
    pub(crate) fn has_unrepeatable(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.members).any(|member| !member.is_repeatable())
    }

    /// True if the same seeds give the same runs of a cell.
    pub(crate) fn is_repeatable(&self, cell: &CellResult) -> bool {
        let mut members = self.groups.iter().flat_map(|group| &group.members);
        members.find(|member| std::ptr::eq(member.cell, cell)).is_none_or(Member::is_repeatable)
    }

    /// True if some run did not finish.
    pub(crate) fn has_incomplete(&self) -> bool {
        self.experiment.cells.iter().any(|cell| Incomplete::of(cell).total() > 0)
    }

    /// True if some cell has a limit and the headline is what it bounds.
    pub(crate) fn has_limits(&self) -> bool {
        self.is_completion() && self.experiment.cells.iter().any(|cell| cell.limit.is_some())
    }
}

fn first_metric() -> Column {
    Column { metric: &metric::CATALOGUE[0], statistic: metric::Statistic::P50 }
}

fn conditions<'a>(
    experiment: &'a ExperimentResult,
    cell: &'a CellResult,
    series: Option<usize>,
) -> Vec<(&'a str, &'a str)> {
    let named = experiment.axes.iter().zip(&cell.coordinates).enumerate();
    named
        .filter(|(index, _)| Some(*index) != series)
        .map(|(_, (axis, value))| (axis.name.as_str(), value.as_str()))
        .collect()
}

/// What stands behind the name of a stack whose runs do not repeat.
/// The stack whose runs with one seed differ: its names begin so.
const UNREPEATABLE_STACK: &str = "noq:bbr3";

pub(crate) const UNREPEATABLE: char = '\u{2020}';

/// What [`UNREPEATABLE`] means.
pub(crate) const UNREPEATABLE_NOTE: &str = "Its controller draws from a generator that the operating system seeds, so a \
    seed gives similar runs, not the same; all else repeats bit for bit";

impl Member<'_> {
    /// True if the same seeds give the same runs, bit for bit.
    pub(crate) fn is_repeatable(&self) -> bool {
        let flows = self.cell.runs.iter().take(1).flat_map(|run| &run.flows);
        let mut stacks = flows.map(|flow| flow.stack.as_str()).chain([self.name]);
        // What is no stack's name (another axis may be the series) draws nothing.
        !stacks.any(|name| name.starts_with(UNREPEATABLE_STACK))
    }

    /// Its name, with a mark if its runs do not repeat.
    pub(crate) fn label(&self) -> String {
        let mark = (!self.is_repeatable()).then_some(UNREPEATABLE);
        self.name.chars().chain(mark).collect()
    }
}

impl Group<'_> {
    /// `bad, 1MB`: the values alone where they speak for themselves, else with their axes' names.
    pub(crate) fn label(&self) -> String {
        let parts = self.conditions.iter().map(|(name, value)| {
            // A bare number says nothing.
            let is_number = value.parse::<f64>().is_ok();
            if is_number { format!("{name} {value}") } else { (*value).to_owned() }
        });
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() { "all runs".to_owned() } else { parts.join(", ") }
    }
}

/// Runs of a cell that did not give what they were for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Incomplete<'a> {
    pub(crate) runs: usize,
    /// Runs that met their deadline.
    pub(crate) deadline: usize,
    /// Runs that failed.
    pub(crate) failed: usize,
    /// Runs that ended well and have no completion time all the same.
    pub(crate) unfinished: usize,
    /// The first reason given.
    pub(crate) reason: Option<&'a str>,
    /// The last virtual second of a run that met its deadline, rounded.
    pub(crate) deadline_seconds: u64,
}

impl<'a> Incomplete<'a> {
    pub(crate) fn of(cell: &'a CellResult) -> Self {
        let mut counted = Self { runs: cell.runs.len(), ..Self::default() };
        for run in &cell.runs {
            match &run.outcome {
                Outcome::Deadline => {
                    counted.deadline += 1;
                    counted.deadline_seconds =
                        counted.deadline_seconds.max(run.virtual_seconds.round() as u64);
                }
                Outcome::Failed(why) => {
                    counted.failed += 1;
                    counted.reason = counted.reason.or(Some(why));
                }
                Outcome::Completed => {
                    let is_finished = run.flows.first().is_none_or(|flow| flow.completion.is_some());
                    counted.unfinished += usize::from(!is_finished);
                }
            }
        }
        counted
    }

    pub(crate) fn total(&self) -> usize {
        self.deadline + self.failed + self.unfinished
    }

    /// `3 of 50 (2 by the deadline of 300 s, 1 failed: reason)`; `None` if all is well.
    pub(crate) fn describe(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.deadline > 0 {
            parts.push(format!("{} by the deadline of {} s", self.deadline, self.deadline_seconds));
        }
        if self.failed > 0 {
            let reason = self.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            parts.push(format!("{} failed{reason}", self.failed));
        }
        if self.unfinished > 0 {
            parts.push(format!("{} without a completion time", self.unfinished));
        }
        let parts = parts.join(", ");
        (self.total() > 0).then(|| format!("{} of {} ({parts})", self.total(), self.runs))
    }
}

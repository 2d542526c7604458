//! Figures that others have published, set beside the cells that they are about.
//!
//! ```toml
//! [[published]]
//! file = "history_start.csv"        # in reference/, or beside the experiment
//! rows = { experiment = "hs-simple", metric = "latency_mean" }   # a column's text, or several
//! axes = { path = "network", object = "object" }  # which column says where on an axis a row belongs
//! at = { stack = "cubic" }          # where it belongs on axes that the file does not know
//! metric = "completion"             # what of ours it is set beside
//! value = "baseline_value"          # the column with the figure
//! unit = "s"                        # its unit; the column `unit` unless given
//! note = "..."                      # added to where it stands (optional)
//! verdict = "..."                   # whether it can be reproduced, and why not, where that is known (optional)
//! ```
//!
//! An axis that neither `axes` nor `at` names is no matter: the figure stands at all of its values. A column whose
//! texts are not the axis's labels is translated: `axes.object = { column = "object_kb", labels = { 500 = "500kB" } }`,
//! to one label or several. Rows whose figure is not one number, or that belong to no cell, are kept as text; so are
//! all rows of an entry without `metric` and `value`.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;

use super::error::Fault;
use super::file::PublishedFile;
use super::rows::{Choice, Placement, Table};
use super::{Cell, check};
use crate::experiment_result::{Axis, Published};

/// A row of a file of published figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedRow {
    /// The file.
    pub file: String,
    /// The row, counted from 1, the heading left out.
    pub row: usize,
    /// Columns that are not empty, in the file's order: heading and text.
    pub columns: Vec<(String, String)>,
    /// Cells that it is set beside, with each figure taken from it.
    pub figures: Vec<Figure>,
}

/// A figure that was taken from a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The metric that it is set beside.
    pub metric: String,
    /// How many cells it stands at.
    pub cells: usize,
}

/// Puts each figure at its cells; all rows that were chosen.
pub(super) fn attach(
    entries: &[Spanned<PublishedFile>],
    folder: Option<&Path>,
    axes: &[Axis],
    cells: &mut [Cell],
) -> Result<Vec<PublishedRow>, Fault> {
    let mut rows: BTreeMap<(String, usize), PublishedRow> = BTreeMap::new();
    for entry in entries {
        attach_entry(entry.get_ref(), folder, axes, cells, &mut rows)
            .map_err(|message| Fault::at(entry.span(), format!("published: {message}")))?;
    }
    Ok(rows.into_values().collect())
}

fn attach_entry(
    entry: &PublishedFile,
    folder: Option<&Path>,
    axes: &[Axis],
    cells: &mut [Cell],
    rows: &mut BTreeMap<(String, usize), PublishedRow>,
) -> Result<(), String> {
    if let Some(metric) = &entry.metric {
        check::metric(metric)?;
    }
    let table = Table::read(&entry.file, folder)?;
    let plan = Plan::new(entry, &table, axes)?;
    let mut chosen = 0;
    let mut placed = 0;
    for (index, row) in table.rows.iter().enumerate() {
        if !plan.choice.chooses(row) {
            continue;
        }
        chosen += 1;
        let shown = rows.entry((entry.file.clone(), index)).or_insert_with(|| PublishedRow {
            file: entry.file.clone(),
            row: index + 1,
            columns: table.columns_of(row),
            figures: Vec::new(),
        });
        let Some(figure) = plan.figure(index, row) else { continue };
        let mut count = 0;
        for cell in cells.iter_mut().filter(|cell| plan.placement.is_at(row, &cell.coordinates)) {
            cell.published.push(figure.clone());
            count += 1;
        }
        if count > 0 {
            shown.figures.push(Figure { metric: figure.metric, cells: count });
            placed += 1;
        }
    }
    if chosen == 0 {
        return Err(format!("`rows` chooses none of `{}`", entry.file));
    }
    match &entry.value {
        Some(value) if placed == 0 => Err(format!(
            "none of the {chosen} rows chosen from `{}` has a number in `{value}` and belongs to a cell",
            entry.file
        )),
        _ => Ok(()),
    }
}

/// One `[[published]]` entry, its names turned into positions.
struct Plan<'a> {
    entry: &'a PublishedFile,
    choice: Choice,
    placement: Placement<'a>,
    /// What it is set beside, and the column with the figure.
    figure: Option<(&'a str, usize)>,
    unit: Option<usize>,
    place: Option<usize>,
}

impl<'a> Plan<'a> {
    fn new(entry: &'a PublishedFile, table: &Table, axes: &[Axis]) -> Result<Self, String> {
        Ok(Self {
            entry,
            choice: Choice::new(&entry.rows, table)?,
            placement: Placement::new(&entry.axes, &entry.at, table, axes)?,
            figure: match (&entry.metric, &entry.value) {
                (Some(metric), Some(value)) => Some((metric, table.column(value)?)),
                (None, None) => None,
                _ => return Err("`metric` and `value` need each other".to_owned()),
            },
            unit: table.column("unit").ok(),
            place: table.column("where").ok(),
        })
    }

    /// The row's figure, if it is one number.
    fn figure(&self, index: usize, row: &[String]) -> Option<Published> {
        let (metric, column) = self.figure?;
        let value = row[column].parse().ok()?;
        let unit = self.entry.unit.clone().or_else(|| self.unit.map(|unit| row[unit].clone()));
        let place = self.place.map(|column| format!(", {}", row[column])).unwrap_or_default();
        let note = self.entry.note.as_ref().map(|note| format!(", {note}")).unwrap_or_default();
        Some(Published {
            metric: metric.to_owned(),
            value,
            unit: unit.unwrap_or_default(),
            source: format!("{} row {}{place}{note}", self.entry.file, index + 1),
            verdict: self.entry.verdict.clone(),
        })
    }
}

//! Rows of a file of published figures: which are meant, and at which cells of a grid they stand.

use std::collections::BTreeMap;
use std::path::Path;

use super::file::{Column, OneOrMany, read_bounded};
use super::{MAX_FILE, built_in, grid};
use crate::experiment_result::Axis;

/// A file of published figures.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// Its name.
    pub(crate) file: String,
    /// What its columns are called.
    pub(crate) headings: Vec<String>,
    /// A text for each column.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// The built-in file of this name, or the one in `folder`.
    pub(crate) fn read(name: &str, folder: Option<&Path>) -> Result<Self, String> {
        let known = built_in::REFERENCES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let text = match (known, folder) {
            (Some(text), _) => text.to_owned(),
            (None, Some(folder)) => read_bounded(&folder.join(name), MAX_FILE)
                .map_err(|reason| format!("cannot read `{name}`: {reason}"))?,
            (None, None) => {
                let names: Vec<&str> = built_in::REFERENCES.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "there is no file `{name}` of published figures; there are {}",
                    names.join(", ")
                ));
            }
        };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let fail = |error: csv::Error| format!("`{name}` is no CSV file: {error}");
        let fields = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let headings = fields(reader.headers().map_err(fail)?);
        let rows = reader
            .records()
            .map(|record| record.map(|record| fields(&record)).map_err(fail))
            .collect::<Result<_, _>>()?;
        Ok(Self { file: name.to_owned(), headings, rows })
    }

    /// The position of a column.
    pub(crate) fn column(&self, heading: &str) -> Result<usize, String> {
        self.headings.iter().position(|known| known == heading).ok_or_else(|| {
            format!("`{}` has no column `{heading}`; there are {}", self.file, self.headings.join(", "))
        })
    }

    /// Columns of a row that are not empty, in the file's order: heading and text.
    pub(crate) fn columns_of(&self, row: &[String]) -> Vec<(String, String)> {
        std::iter::zip(&self.headings, row)
            .filter(|(_, text)| !text.is_empty())
            .map(|(heading, text)| (heading.clone(), text.clone()))
            .collect()
    }
}

/// Some rows of a file: those whose columns have these texts.
#[derive(Debug)]
pub(crate) struct Choice(Vec<(usize, Vec<String>)>);

impl Choice {
    /// `rows`: a column's text, or several that are alternatives.
    pub(crate) fn new(rows: &BTreeMap<String, OneOrMany>, table: &Table) -> Result<Self, String> {
        let columns = rows.iter().map(|(heading, texts)| Ok((table.column(heading)?, texts.all().to_vec())));
        Ok(Self(columns.collect::<Result<_, String>>()?))
    }

    /// True if the row is one of them.
    pub(crate) fn chooses(&self, row: &[String]) -> bool {
        self.0.iter().all(|(column, texts)| texts.contains(&row[*column]))
    }

    /// A text that no row has in its column, with the column's position.
    pub(crate) fn stray(&self, table: &Table) -> Option<(usize, &str)> {
        let mut texts = self.0.iter().flat_map(|(column, texts)| texts.iter().map(|text| (*column, text)));
        let stray = texts.find(|(column, text)| table.rows.iter().all(|row| row[*column] != **text));
        stray.map(|(column, text)| (column, text.as_str()))
    }
}

/// A column's texts and the labels that stand for them; `None`: they are the same.
type Translation<'a> = Option<&'a BTreeMap<String, OneOrMany>>;

/// Where on the axes of a grid rows stand.
#[derive(Debug)]
pub(crate) struct Placement<'a> {
    /// Axis, column, translation.
    columns: Vec<(usize, usize, Translation<'a>)>,
    /// Axis, labels.
    at: Vec<(usize, &'a [String])>,
}

impl<'a> Placement<'a> {
    /// `columns` says which column gives the value of an axis, `at` gives values of axes that no column tells.
    pub(crate) fn new(
        columns: &'a BTreeMap<String, Column>,
        at: &'a BTreeMap<String, OneOrMany>,
        table: &Table,
        axes: &[Axis],
    ) -> Result<Self, String> {
        let position_of = |name: &str| {
            axes.iter().position(|axis| axis.name == name).ok_or_else(|| {
                let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
                format!("there is no axis `{name}`; there are {}", names.join(", "))
            })
        };
        let check = |name: &str, labels: &OneOrMany| {
            labels.all().iter().try_for_each(|label| {
                grid::find(axes.iter().cloned(), name, label).map(|_| ()).map_err(|error| error.to_string())
            })
        };
        let columns = columns.iter().map(|(name, how)| match how {
            Column::Name(heading) => Ok((position_of(name)?, table.column(heading)?, None)),
            Column::Labelled { column: heading, labels } => {
                let position = position_of(name)?;
                labels.values().try_for_each(|labels| check(name, labels))?;
                Ok((position, table.column(heading)?, Some(labels)))
            }
        });
        let at = at.iter().map(|(name, labels)| {
            check(name, labels)?;
            Ok((position_of(name)?, labels.all()))
        });
        Ok(Self { columns: columns.collect::<Result<_, String>>()?, at: at.collect::<Result<_, String>>()? })
    }

    /// True if `row` stands at the cell with these `coordinates`.
    pub(crate) fn is_at(&self, row: &[String], coordinates: &[String]) -> bool {
        let by_column = self.columns.iter().all(|(axis, column, labels)| {
            let text = &row[*column];
            let here = &coordinates[*axis];
            match labels {
                Some(labels) => labels.get(text).is_some_and(|labels| labels.all().contains(here)),
                None => text == here,
            }
        });
        by_column && self.at.iter().all(|(axis, labels)| labels.contains(&coordinates[*axis]))
    }
}

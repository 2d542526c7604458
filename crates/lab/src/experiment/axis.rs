//! What is varied: values, and where they go in `[run]`.

use serde::Deserialize;
use toml::Spanned;

use super::error::Fault;
use super::file::{AxisFile, File};
use super::{MAX_AXES, MAX_VALUES};
use crate::experiment_result::Axis;

/// An axis of the grid.
#[derive(Debug)]
pub(super) struct GridAxis {
    pub(super) name: String,
    pub(super) values: Vec<GridValue>,
}

/// A value of an axis.
#[derive(Debug)]
pub(super) struct GridValue {
    pub(super) label: String,
    /// What is put where in `[run]`.
    pub(super) settings: Vec<(String, toml::Value)>,
    /// Where it stands in the file.
    pub(super) span: std::ops::Range<usize>,
}

/// A value that has a label.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Labelled {
    label: String,
    #[serde(default)]
    value: Option<toml::Value>,
    #[serde(default)]
    set: Option<toml::Table>,
}

impl GridAxis {
    pub(super) fn labels(&self) -> Axis {
        let values = self.values.iter().map(|value| value.label.clone()).collect();
        Axis { name: self.name.clone(), values }
    }
}

/// The axes of a file.
pub(super) fn read(file: &File) -> Result<Vec<GridAxis>, Fault> {
    if let Some(beyond) = file.axes.get(MAX_AXES) {
        return Err(Fault::at(beyond.span(), format!("at most {MAX_AXES} axes are possible")));
    }
    let mut all: Vec<GridAxis> = Vec::new();
    for spanned in &file.axes {
        let axis = spanned.get_ref();
        let name = axis.name.get_ref();
        let fault = |message: String| Fault::at(axis.name.span(), message);
        axis_name(name).map_err(|reason| fault(format!("axis `{name}`: its name {reason}")))?;
        if all.iter().any(|other| other.name == *name) {
            return Err(fault(format!("there are two axes `{name}`")));
        }
        if axis.values.is_empty() {
            return Err(fault(format!("axis `{name}` has no values: give one at least")));
        }
        if axis.values.len() > MAX_VALUES {
            let message =
                format!("axis `{name}` has {}; at most {MAX_VALUES} are possible", axis.values.len());
            return Err(fault(message));
        }
        let values = values(axis, &file.run)?;
        all.push(GridAxis { name: name.clone(), values });
    }
    Ok(all)
}

fn values(axis: &AxisFile, run: &toml::Table) -> Result<Vec<GridValue>, Fault> {
    let name = axis.name.get_ref();
    let keys = axis.key.as_ref().map_or(&[][..], |key| key.get_ref().all());
    if let Some(spanned) = &axis.key {
        if keys.is_empty() {
            return Err(Fault::at(spanned.span(), format!("axis `{name}`: its key is empty")));
        }
        for key in keys {
            names_something(run, key)
                .map_err(|message| Fault::at(spanned.span(), format!("axis `{name}`: {message}")))?;
        }
    }
    let mut values: Vec<GridValue> = Vec::new();
    for spanned in &axis.values {
        let fault = |message: String| Fault::at(spanned.span(), format!("axis `{name}`: {message}"));
        let value = value(spanned, keys).map_err(fault)?;
        for (key, _) in &value.settings {
            names_something(run, key)
                .map_err(|reason| fault(format!("value `{}`: {reason}", value.label)))?;
        }
        if values.iter().any(|other| other.label == value.label) {
            return Err(fault(format!("there are two values `{}`", value.label)));
        }
        values.push(value);
    }
    Ok(values)
}

fn value(spanned: &Spanned<toml::Value>, keys: &[String]) -> Result<GridValue, String> {
    let mut settings = Vec::new();
    let mut everywhere = |value: toml::Value| {
        if keys.is_empty() {
            return Err("a value needs to know where it goes: give the axis a `key`, or the value a `set`");
        }
        settings.extend(keys.iter().map(|key| (key.clone(), value.clone())));
        Ok(())
    };
    let label = match spanned.get_ref() {
        toml::Value::Table(table) => {
            let labelled = Labelled::deserialize(table.clone()).map_err(|error| {
                format!("a table here is {{ label, value }} or {{ label, set }}: {}", error.message())
            })?;
            if labelled.value.is_none() && labelled.set.is_none() {
                return Err(format!("value `{}` needs a `value` or a `set`", labelled.label));
            }
            if let Some(value) = labelled.value {
                everywhere(value)?;
            }
            settings.extend(labelled.set.into_iter().flatten());
            labelled.label
        }
        toml::Value::Array(_) => {
            return Err("a list needs a label: { label = \"...\", value = [...] }".to_owned());
        }
        scalar => {
            everywhere(scalar.clone())?;
            match scalar {
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            }
        }
    };
    self::label(&label).map_err(|reason| format!("the label `{label}` {reason}"))?;
    Ok(GridValue { label, settings, span: spanned.span() })
}

/// Names of axes stand in commands as labels do, and before an equal sign.
fn axis_name(text: &str) -> Result<(), &'static str> {
    if text.contains('=') {
        return Err("must not have equal signs: `--cells` could not name it");
    }
    label(text)
}

/// Labels stand in commands, between commas.
fn label(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || text.trim() != text {
        return Err("must not be empty, nor begin or end with space");
    }
    if text.chars().any(|character| character.is_control() || character == ',') {
        return Err("must not have commas or control characters: `--cells` could not name it");
    }
    if text.len() > 100 { Err("is longer than 100 bytes") } else { Ok(()) }
}

/// Whether `[run]` has a place for `key`: all of its parts but the last exist.
fn names_something(run: &toml::Table, key: &str) -> Result<(), String> {
    place(&mut run.clone(), key).map(|_| ())
}

/// Puts `value` at `key`.
pub(super) fn substitute(run: &mut toml::Table, key: &str, value: toml::Value) -> Result<(), String> {
    match place(run, key)? {
        Place::Entry(table, last) => {
            table.insert(last, value);
        }
        Place::Element(element) => *element = value,
    }
    Ok(())
}

enum Place<'a> {
    Entry(&'a mut toml::Table, String),
    Element(&'a mut toml::Value),
}

fn place<'a>(run: &'a mut toml::Table, key: &str) -> Result<Place<'a>, String> {
    let parts: Vec<&str> = key.split('.').collect();
    let Some((last, parents)) = parts.split_last() else { return Err("its key is empty".to_owned()) };
    if parts.iter().any(|part| part.is_empty()) {
        return Err(format!("the key `{key}` has an empty part"));
    }
    let Some((first, parents)) = parents.split_first() else {
        return Ok(Place::Entry(run, (*last).to_owned()));
    };
    let choices = keys_of(run);
    let mut here = run.get_mut(*first).ok_or_else(|| {
        format!("the key `{key}` names nothing: [run] has no `{first}`; there are {choices}")
    })?;
    let mut walked = (*first).to_owned();
    for part in parents {
        here = child(here, part, &walked)
            .map_err(|reason| format!("the key `{key}` names nothing: {reason}"))?;
        walked = format!("{walked}.{part}");
    }
    match here {
        toml::Value::Table(table) => Ok(Place::Entry(table, (*last).to_owned())),
        other => child(other, last, &walked)
            .map(Place::Element)
            .map_err(|reason| format!("the key `{key}` names nothing: {reason}")),
    }
}

fn child<'a>(value: &'a mut toml::Value, part: &str, walked: &str) -> Result<&'a mut toml::Value, String> {
    match value {
        toml::Value::Table(table) => {
            let choices = keys_of(table);
            table.get_mut(part).ok_or_else(|| format!("`{walked}` has no `{part}`; there are {choices}"))
        }
        toml::Value::Array(values) => {
            let count = values.len();
            let element = part.parse::<usize>().ok().and_then(|index| values.get_mut(index));
            element.ok_or_else(|| {
                format!("`{walked}` is a list of {count}, counted from 0, and has no `{part}`")
            })
        }
        other => Err(format!("`{walked}` is a {} and has no parts", other.type_str())),
    }
}

fn keys_of(table: &toml::Table) -> String {
    table.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

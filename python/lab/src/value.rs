//! Python's values as TOML's.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml::Value;

use crate::errors::spec_error;

/// Levels that a description may have; one that contains itself has more.
const MAX_DEPTH: usize = 32;

/// What has a description of its own: `Path`, `Profile`.
const METHOD: &str = "_spec";

/// The value as TOML; `key` says where it stands.
pub(crate) fn read(value: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Value> {
    let py = value.py();
    let wrong = |message: String| Err(spec_error(py, &format!("{key}: {message}"), None, Some(key)));
    if depth > MAX_DEPTH {
        return wrong(format!("more than {MAX_DEPTH} levels"));
    }
    if value.is_instance_of::<PyBool>() {
        Ok(Value::Boolean(value.extract()?))
    } else if value.is_instance_of::<PyInt>() {
        match value.extract() {
            Ok(number) => Ok(Value::Integer(number)),
            Err(_) => wrong(format!("{value} has more than 64 bits")),
        }
    } else if value.is_instance_of::<PyFloat>() {
        Ok(Value::Float(value.extract()?))
    } else if value.is_instance_of::<PyString>() {
        Ok(Value::String(value.extract()?))
    } else if let Ok(table) = value.cast::<PyDict>() {
        let mut read_table = toml::Table::new();
        for (name, value) in table {
            let Ok(name) = name.extract::<String>() else {
                return wrong(format!("the key {} is not a text", name.repr()?));
            };
            let inner = read(&value, &format!("{key}.{name}"), depth + 1)?;
            read_table.insert(name, inner);
        }
        Ok(Value::Table(read_table))
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.enumerate();
        let items = items.map(|(index, item)| read(&item?, &format!("{key}.{index}"), depth + 1));
        items.collect::<PyResult<_>>().map(Value::Array)
    } else if value.hasattr(METHOD)? {
        read(&value.call_method0(METHOD)?, key, depth + 1)
    } else {
        let kind = value.get_type().name()?;
        wrong(format!(
            "{kind} is not possible here: write a text such as \"50ms\", a number, a bool, a list, a dict, a Path or a Profile"
        ))
    }
}

/// A dict as TOML's text.
#[pyfunction]
pub(crate) fn to_toml(table: &Bound<'_, PyDict>, key: &str) -> PyResult<String> {
    let py = table.py();
    toml::to_string(&read(table, key, 0)?)
        .map_err(|error| spec_error(py, &format!("{key}: {error}"), None, Some(key)))
}

//! Capacity traces that `[run]` names as files, `trace-file = "lte.csv"`: their text takes the name's place.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use posthaste_path::{SpecError, inline_traces};

use super::file::read_bounded;

/// Bytes that a trace may have.
const MAX_TRACE: u64 = 16 << 20;
/// Bytes that the traces of all cells together may have: each cell has its own.
const MAX_TRACES: usize = 1 << 30;

/// Reads trace files, each once.
pub(super) struct Traces<'a> {
    folder: Option<&'a Path>,
    texts: RefCell<BTreeMap<String, String>>,
    bytes: RefCell<usize>,
}

/// Why a trace cannot be had.
struct TraceFault(String);

impl From<SpecError> for TraceFault {
    fn from(error: SpecError) -> Self {
        Self(error.to_string())
    }
}

impl<'a> Traces<'a> {
    /// Names are relative to `folder`; built-in experiments have none and no files.
    pub(super) fn of(folder: Option<&'a Path>) -> Self {
        Self { folder, texts: RefCell::default(), bytes: RefCell::default() }
    }

    /// `run` with its traces' text in it.
    pub(super) fn inline(&self, run: toml::Table) -> Result<toml::Table, String> {
        let mut value = toml::Value::Table(run);
        inline_traces(&mut value, &mut |name: &str| self.read(name).map_err(TraceFault))
            .map_err(|TraceFault(message)| message)?;
        match value {
            toml::Value::Table(run) => Ok(run),
            other => Err(format!("[run] is a {}", other.type_str())),
        }
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let mut texts = self.texts.borrow_mut();
        if !texts.contains_key(name) {
            let folder = self.folder.ok_or_else(|| {
                format!("cannot read the trace `{name}`: a built-in experiment has no files")
            })?;
            let text = read_bounded(&folder.join(name), MAX_TRACE)
                .map_err(|reason| format!("cannot read the trace `{name}`: {reason}"))?;
            texts.insert(name.to_owned(), text);
        }
        let text = texts.get(name).cloned().unwrap_or_default();
        let mut bytes = self.bytes.borrow_mut();
        *bytes += text.len();
        if *bytes > MAX_TRACES {
            return Err(format!("the traces of all cells together have more than {MAX_TRACES} bytes"));
        }
        Ok(text)
    }
}

/// Whether anything in `value` names a trace's file.
pub(super) fn has_files(value: &toml::Value) -> bool {
    match value {
        toml::Value::Array(values) => values.iter().any(has_files),
        toml::Value::Table(table) => table
            .iter()
            .any(|(key, value)| matches!(key.as_str(), "trace-file" | "up-trace-file") || has_files(value)),
        _ => false,
    }
}

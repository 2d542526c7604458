//! Paths by name or from a file.

use std::path::Path;

use posthaste_path::{PathSpec, SpecError, inline_traces};

use crate::exit::Failure;
use crate::profile::is_file;

/// The path with this name, or the one in the file `name`.
pub(crate) fn find(name: &str) -> Result<PathSpec, Failure> {
    if let Some(path) = PathSpec::named(name) {
        return Ok(path);
    }
    if !is_file(name) {
        return Err(Failure::usage(format!(
            "there is no path `{name}`; there are: {}",
            PathSpec::names().join(", ")
        ))
        .hint("a file name must end in .toml or contain a slash: --path ./mine.toml"));
    }
    let read = |file: &str| {
        std::fs::read_to_string(file).map_err(|error| {
            Failure::usage(format!("cannot read {file}, which --path {name} needs: {error}"))
        })
    };
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("the path {name}: {error}"));
    let text = read(name)?;
    // Traces are named beside the path, and read from there.
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let text = match text.parse::<toml::Table>() {
        Ok(table) if table.contains_key("trace-file") || table.contains_key("up-trace-file") => {
            let mut value = toml::Value::Table(table);
            inline_traces(&mut value, &mut |file| read(&folder.join(file).to_string_lossy()))?;
            toml::to_string(&value).map_err(|error| wrong(&error))?
        }
        _ => text,
    };
    PathSpec::from_toml(&text).map_err(|error| wrong(&error))
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Self::usage(format!("the path: {error}"))
    }
}

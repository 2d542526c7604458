//! Which build this is: results of another one do not go together with its own.

use std::path::PathBuf;
use std::sync::OnceLock;

use posthaste_campaign::identity::Identity;
use pyo3::prelude::*;

use crate::errors::run_error;

/// The digest of this extension's file, read once.
pub(crate) fn identity(py: Python<'_>) -> PyResult<Identity> {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    if let Some(identity) = IDENTITY.get() {
        return Ok(identity.clone());
    }
    let path: PathBuf = py.import("posthaste_lab._native")?.getattr("__file__")?.extract()?;
    let identity = Identity::of_file(&path)
        .map_err(|error| run_error(py, &format!("cannot read {}: {error}", path.display())))?;
    Ok(IDENTITY.get_or_init(|| identity).clone())
}

/// SHA-256 of this extension's file, as 64 hexadecimal digits.
#[pyfunction]
pub(crate) fn build(py: Python<'_>) -> PyResult<String> {
    identity(py).map(|identity| identity.hexadecimal(32))
}

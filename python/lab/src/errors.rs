//! The lab's errors as Python's exceptions, with the messages of the command line.

use posthaste_lab::experiment::ExperimentError;
use posthaste_schemes::ProfileError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// `posthaste_lab.SpecError`.
pub(crate) fn spec_error(py: Python<'_>, message: &str, line: Option<usize>, key: Option<&str>) -> PyErr {
    raise(py, "SpecError", (message, line, key))
}

/// `posthaste_lab.RunError`: a run, or what is done with results, came to nothing.
pub(crate) fn run_error(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "RunError", (message,))
}

fn raise<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let error = || {
        let module = MODULE.get_or_try_init(py, || py.import("posthaste_lab._errors").map(Bound::unbind))?;
        let class = module.bind(py).getattr(class)?.cast_into::<PyType>()?;
        class.call1(arguments)
    };
    error().map_or_else(|error| error, PyErr::from_value)
}

/// An experiment's error; lines count only `in_text` of the user's own.
pub(crate) fn of_experiment(py: Python<'_>, error: ExperimentError, in_text: bool) -> PyErr {
    let mut error = error;
    if let ExperimentError::Invalid { line, .. } = &mut error
        && !in_text
    {
        *line = None;
    }
    let (line, key) = match &error {
        ExperimentError::Invalid { line, key, .. } => (*line, key.as_deref()),
        _ => (None, None),
    };
    spec_error(py, &error.to_string(), line, key)
}

/// A profile's error.
pub(crate) fn of_profile(py: Python<'_>, error: &ProfileError) -> PyErr {
    let line = match error {
        ProfileError::Invalid { line, .. } => *line,
        _ => None,
    };
    spec_error(py, &error.to_string(), line, None)
}

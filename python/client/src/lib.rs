//! The HTTP/3 client of Posthaste as a Python module.

use pyo3::prelude::*;

#[pymodule]
mod _native {}

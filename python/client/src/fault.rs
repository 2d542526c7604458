//! Failures on their way to Python: the name of an exception's class, and its text.

use std::sync::{Mutex, MutexGuard, PoisonError};

use posthaste_http::ClientError;
use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;

/// The Python module that defines the classes.
const CLASSES: &str = "posthaste._errors";

/// A failure that is not an exception yet, since threads without the interpreter's lock have them, too.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    class: &'static str,
    message: String,
}

impl Fault {
    /// A setting of the client cannot be used.
    pub(crate) fn config(message: impl ToString) -> Self {
        Self { class: "ConfigError", message: message.to_string() }
    }

    /// A request cannot be sent as it is.
    pub(crate) fn request(message: impl ToString) -> Self {
        Self { class: "InvalidRequest", message: message.to_string() }
    }

    /// The client, or the interpreter, is at its end.
    pub(crate) fn closed(message: impl ToString) -> Self {
        Self { class: "ClosedError", message: message.to_string() }
    }

    /// The object belongs to the process that this one was forked from.
    pub(crate) fn forked() -> Self {
        let message = "this was made before the process was forked, and belongs to the other process; \
                       make a new posthaste.Client after the fork";
        Self { class: "ForkError", message: message.to_owned() }
    }

    /// A body is larger than the caller permits.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!(
            "the body has more than {limit} bytes; read it in pieces (`async for chunk in response`), \
             or permit more with read(limit=BYTES)"
        );
        Self { class: "BodyTooLarge", message }
    }

    /// The exception.
    pub(crate) fn to_exception<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import(CLASSES)?.getattr(self.class)?.call1((&self.message,))
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        Python::attach(|py| match fault.to_exception(py) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        })
    }
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        let class = match &error {
            ClientError::Uri(_) => "InvalidRequest",
            ClientError::NoAnswer { .. } => "ConnectTimeout",
            ClientError::Certificate { .. } => "CertificateError",
            ClientError::Resolve { .. }
            | ClientError::Socket(_)
            | ClientError::Connect { .. }
            | ClientError::NoHttp3 { .. } => "ConnectError",
            ClientError::FirstByteTimeout(_) | ClientError::IdleTimeout(_) => "TimeoutError",
            ClientError::Redirect { .. } | ClientError::TooManyRedirects { .. } => "RedirectError",
            ClientError::Protocol { .. } => "ProtocolError",
            _ => "TransferError",
        };
        let hint = match &error {
            ClientError::Certificate { .. } => {
                "; for your own server, give its certificate with verify=FILE; \
                 verify=False accepts any, for tests on a network that you trust"
            }
            _ => "",
        };
        Self { class, message: format!("{error}{hint}") }
    }
}

/// The data behind the locks here are whole after every statement, so a panic elsewhere does not spoil them.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

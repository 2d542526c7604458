//! The HTTP/3 client of Posthaste as a Python module, `posthaste._native`. The package's Python half, in `python/posthaste`,
//! is what programs import; this half has no coroutines and calls nothing of Python's.
//!
//! One thread of tokio's drives all sockets. It never takes the interpreter's lock and never touches a Python object:
//! what it has to say it puts into a [`completions::Completions`], which makes a descriptor readable, and the event loop
//! fetches it. So bytes move while Python computes, and an interpreter that exits cannot be called from a foreign
//! thread. Conversely no function here releases the lock while it waits, except [`shut_down`] at the exit.

use pyo3::prelude::*;

mod completions;
mod fault;
mod inbox;
mod options;
mod outbox;
mod process;
mod request;
mod response;
mod session;

/// The native half of the package `posthaste`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::outbox::Outgoing;
    #[pymodule_export]
    use super::process::shut_down;
    #[pymodule_export]
    use super::response::Incoming;
    #[pymodule_export]
    use super::session::Session;
}

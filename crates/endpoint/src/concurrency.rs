//! What locks and runs. `tests/schedules` puts its own in place of these, and so decides who gets the processor next.

pub(crate) use std::sync::{Mutex, MutexGuard};

/// Runs a future on a task of its own.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

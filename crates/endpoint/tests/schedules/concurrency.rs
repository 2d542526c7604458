//! Shuttle's locks and tasks in place of `src/concurrency.rs`.

pub(crate) use shuttle::sync::{Mutex, MutexGuard};

/// Runs a future on a task of its own. That a driver waits is no deadlock when all others are done.
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(shuttle::future::spawn(task));
}

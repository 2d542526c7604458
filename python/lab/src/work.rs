//! Long work without the GIL.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::run_error;

/// How often Python's signals are looked for.
const TICK: Duration = Duration::from_millis(100);

/// Work that is under way.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// True in a process that was forked while work was under way: its locks may be held by threads that it lacks.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

/// Counts work for as long as it lives.
struct Counted;

impl Counted {
    fn new() -> Self {
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Does `work` on a thread of its own while other Python threads go on. A signal's exception, such as
/// `KeyboardInterrupt`, returns at once: `cancel` is set, and the rest of the work is left to itself.
pub(crate) fn detached<T: Send + 'static>(
    py: Python<'_>,
    cancel: &dyn Fn(),
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    if IS_BROKEN.load(Ordering::SeqCst) {
        return Err(run_error(
            py,
            "this process was forked while runs were under way, and can make none itself: start processes with \
             subprocess, or with multiprocessing's method \"spawn\"",
        ));
    }
    let counted = Counted::new();
    let (sender, mut receiver) = channel();
    let thread = std::thread::Builder::new().name("lab".to_owned());
    let thread = thread.spawn(move || {
        let result = work();
        drop(counted);
        // One that was interrupted waits no longer.
        let _ = sender.send(result);
    });
    thread.map_err(|error| run_error(py, &format!("the system permits no thread: {error}")))?;
    loop {
        let outcome;
        (receiver, outcome) = py.detach(move || {
            let outcome = receiver.recv_timeout(TICK);
            (receiver, outcome)
        });
        match outcome {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupted) = py.check_signals() {
                    cancel();
                    return Err(interrupted);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(run_error(py, "the work ended in a panic")),
        }
    }
}

/// To be called in a child after `fork`.
#[pyfunction]
pub(crate) fn after_fork() {
    IS_BROKEN
        .store(UNDER_WAY.swap(0, Ordering::SeqCst) > 0 || IS_BROKEN.load(Ordering::SeqCst), Ordering::SeqCst);
}

//! Threads that make runs.

use std::any::Any;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use posthaste_campaign::keyed::Key;
use posthaste_transport::QlogSink;
use posthaste_units::Duration;

use super::QlogMaker;
use crate::experiment::Cell;
use crate::result::RunResult;
use crate::run::RunError;
use crate::spec::RunSpec;

/// What makes a run: [`crate::run::run`], or a test's own.
pub(super) type Runner =
    dyn Fn(&RunSpec, u64, Option<Arc<dyn QlogSink>>) -> Result<RunResult, RunError> + Send + Sync;

/// One run to be made.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// Which of the chosen cells it belongs to.
    pub(super) position: usize,
    /// Which of the cell's runs it is.
    pub(super) run: usize,
    /// The cell's index in the grid.
    pub(super) index: usize,
    pub(super) seed: u64,
    pub(super) series: Option<Duration>,
    pub(super) key: Key,
    pub(super) cell: Arc<Cell>,
}

/// An item, and its result or why there is none.
pub(super) type Done = (Item, Result<RunResult, String>);

/// Starts `jobs` threads that take the items in order. They end when nothing is left, or when the receiver is gone
/// and their present run is over; nobody waits for them.
pub(super) fn start(
    items: Vec<Item>,
    jobs: NonZeroUsize,
    runner: &Arc<Runner>,
    qlog: Option<&Arc<QlogMaker>>,
) -> Receiver<Done> {
    let (sender, receiver) = channel();
    let next = Arc::new(AtomicUsize::new(0));
    let items: Arc<[Item]> = items.into();
    for worker in 0..jobs.get().min(items.len()) {
        let (sender, next, items) = (sender.clone(), Arc::clone(&next), Arc::clone(&items));
        let (runner, qlog) = (Arc::clone(runner), qlog.cloned());
        let work = move || {
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcome = attempt(&item.cell, item.seed, item.series, |spec| {
                    let sink = qlog.as_deref().and_then(|make| make(item.index, &item.cell, item.seed));
                    runner(spec, item.seed, sink)
                });
                if sender.send((item.clone(), outcome)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("lab-{worker}"));
        // One that cannot start leaves the work to the others; without any the channel closes.
        drop(thread.spawn(work));
    }
    receiver
}

/// A run that panics is a run that failed: the others go on.
pub(super) fn attempt(
    cell: &Cell,
    seed: u64,
    series: Option<Duration>,
    run: impl FnOnce(&RunSpec) -> Result<RunResult, RunError>,
) -> Result<RunResult, String> {
    let spec = RunSpec { series, ..cell.spec.clone() };
    match catch_unwind(AssertUnwindSafe(|| run(&spec))) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => {
            let cell = cell.coordinates.join(", ");
            Err(format!("panicked in the cell ({cell}) with the seed {seed}: {}", words(&*panic)))
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a word")
}

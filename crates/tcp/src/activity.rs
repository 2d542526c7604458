//! What moves on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Counters that the requests of one connection share with the task that watches it.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Requests that are not over.
    open: AtomicUsize,
    /// Responses whose next frame the client has to make room for.
    waiting: AtomicUsize,
    /// Moves with each frame that the client has made room for, and with each request.
    progress: AtomicU64,
}

impl Activity {
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// True while a response waits for the client.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    fn note(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    activity: Arc<Activity>,
    is_waiting: AtomicBool,
}

impl Open {
    pub(crate) fn new(activity: &Arc<Activity>) -> Self {
        activity.open.fetch_add(1, Ordering::Relaxed);
        activity.note();
        Self { activity: Arc::clone(activity), is_waiting: AtomicBool::new(false) }
    }

    /// Notes that the response waits for its client, or no longer does.
    pub(crate) fn set_waiting(&self, waits: bool) {
        self.activity.note();
        if self.is_waiting.swap(waits, Ordering::Relaxed) == waits {
            return;
        }
        if waits {
            self.activity.waiting.fetch_add(1, Ordering::Relaxed);
        } else {
            self.activity.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.set_waiting(false);
        self.activity.open.fetch_sub(1, Ordering::Relaxed);
    }
}

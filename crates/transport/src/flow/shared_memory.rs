//! Memory that connections share: a pool, and what each has taken of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many bytes for all.
#[derive(Debug)]
pub(crate) struct Pool {
    capacity: u64,
    taken: AtomicU64,
}

impl Pool {
    pub(crate) fn new(capacity: u64) -> Self {
        Self { capacity, taken: AtomicU64::new(0) }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many bytes are taken: never more than [`Self::capacity`].
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.taken())
    }
}

/// Adds `amount` if the sum stays within `bound`. True if it was added.
pub(crate) fn take(taken: &AtomicU64, amount: u64, bound: u64) -> bool {
    let add = |now: u64| now.checked_add(amount).filter(|sum| *sum <= bound);
    taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

/// What one connection has taken of a pool; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<Pool>,
    held: u64,
}

impl Share {
    /// Nothing yet.
    pub(crate) fn of(pool: &Arc<Pool>) -> Self {
        Self { pool: Arc::clone(pool), held: 0 }
    }

    /// What it has taken.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// What nobody has taken.
    pub(crate) fn free(&self) -> u64 {
        self.pool.free()
    }

    /// How much it may hold now: as much as it leaves over, so that later ones find something.
    pub(crate) fn allowance(&self) -> u64 {
        self.held.max(self.free().saturating_add(self.held) / 2)
    }

    /// Makes the share `wanted` bytes, or as many as there are. Returns how many it holds.
    pub(crate) fn hold(&mut self, wanted: u64) -> u64 {
        if wanted < self.held {
            self.pool.taken.fetch_sub(self.held - wanted, Ordering::Relaxed);
            self.held = wanted;
        }
        // Another thread may have been faster.
        while wanted > self.held {
            let more = (wanted - self.held).min(self.free());
            if more == 0 {
                break;
            }
            if take(&self.pool.taken, more, self.pool.capacity) {
                self.held += more;
            }
        }
        self.held
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.taken.fetch_sub(self.held, Ordering::Relaxed);
    }
}

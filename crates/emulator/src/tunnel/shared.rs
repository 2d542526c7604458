//! What a tunnel's threads and its handle share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use posthaste_path::PathStats;
use posthaste_units::ByteCount;

use super::log::Direction;
use crate::lateness::LatenessHistogram;

/// Everything that is counted in one direction.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) stats: PathStats,
    /// Bytes waiting at the bottleneck.
    pub(super) queue: ByteCount,
    /// Packets that the receiving interface did not take.
    pub(super) refused: u64,
    /// Packets for an interface that somebody had taken down.
    pub(super) undeliverable: u64,
    pub(super) lateness: LatenessHistogram,
    pub(super) is_real_time: bool,
    /// Why the direction broke off.
    pub(super) failure: Option<String>,
}

/// Both directions' counts.
#[derive(Debug, Default)]
pub(super) struct Shared {
    down: Mutex<Counts>,
    up: Mutex<Counts>,
}

impl Shared {
    /// Counts stay whole even if a thread panicked while it held them: every update is a plain assignment or addition.
    pub(super) fn counts(&self, direction: Direction) -> MutexGuard<'_, Counts> {
        let counts = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

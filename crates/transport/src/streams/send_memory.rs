//! How much a connection keeps until it is acknowledged: as much as its congestion window needs, within the budget of
//! all, and more for urgent streams than for others.

use posthaste_units::ByteCount;

use super::schedule::URGENCIES;
use crate::flow::send_budget::SendShare;
use crate::limits::LEAST_KEPT;

/// Least bound of what writers may leave behind: with none at all, no write would ever take anything.
pub(super) const MIN_BUFFER: u64 = 4096;

/// Congestion windows that are kept: everything from the first byte on that is not acknowledged. A packet that is lost
/// twice holds two round trips of what follows it, and the search for its loss one more.
const WINDOWS: u64 = 4;

/// Parts of the bound for ordinary streams by which it differs from one urgency to the next: so much each urgency finds
/// free, whatever less urgent streams have left behind.
const PARTS: u64 = 16;

/// The urgency of streams that nobody has said anything about.
const ORDINARY: u64 = 3;

/// Parts of the bound in all: what the most urgent may keep.
const ALL_PARTS: u64 = PARTS + ORDINARY;

/// The bytes kept for all streams of a connection.
#[derive(Debug)]
pub(super) struct SendMemory {
    share: SendShare,
    kept: u64,
    /// What may be kept however small the congestion window is, if the budget has it.
    least: u64,
    window: u64,
}

impl SendMemory {
    pub(super) fn new(share: SendShare, least: ByteCount) -> Self {
        Self { share, kept: 0, least: least.get().max(MIN_BUFFER), window: 0 }
    }

    /// Bytes kept.
    pub(super) fn kept(&self) -> u64 {
        self.kept
    }

    /// The congestion window is so large now.
    pub(super) fn set_window(&mut self, window: ByteCount) {
        self.window = window.get();
    }

    /// How much may be kept before streams of this urgency must wait.
    fn bound(&self, urgency: u8) -> u64 {
        self.bound_of(ALL_PARTS - u64::from(urgency.min(URGENCIES - 1)))
    }

    /// So many parts of what all streams may keep.
    fn bound_of(&self, parts: u64) -> u64 {
        let wanted = self.window.saturating_mul(WINDOWS).max(self.least);
        // The most urgent may go beyond, and yet stay within the allowance.
        let allowed = self.share.allowance() / ALL_PARTS * PARTS;
        let bound = (wanted.min(allowed) / PARTS * parts).max(MIN_BUFFER);
        if wanted <= allowed {
            return bound;
        }
        // Less urgent streams may have taken more while the budget had it: beyond what it covers there is the uncounted part.
        bound.max(self.share.held().saturating_add(uncounted(parts)))
    }

    /// How much a stream of this urgency may leave now.
    pub(super) fn room(&self, urgency: u8) -> u64 {
        self.bound(urgency).saturating_sub(self.kept)
    }

    /// True if enough is free to wake a writer: one part, or each ack would wake them all. What less urgent streams may leave
    /// behind does not keep it waiting.
    pub(super) fn is_open(&self, urgency: u8) -> bool {
        self.kept <= self.bound_of(ALL_PARTS - 1 - u64::from(urgency.min(URGENCIES - 1)))
    }

    /// Keeps `bytes` more of a stream of this urgency, which the caller has found room for, or as many as the budget still
    /// has. Returns how many.
    pub(super) fn keep(&mut self, bytes: u64, urgency: u8) -> u64 {
        let free = uncounted(ALL_PARTS - u64::from(urgency.min(URGENCIES - 1)));
        let wanted = self.kept.saturating_add(bytes).saturating_sub(free);
        let covered = self.share.hold(wanted.max(self.share.held())).saturating_add(free);
        let kept = bytes.min(covered.saturating_sub(self.kept));
        self.kept += kept;
        kept
    }

    /// `bytes` need no longer be kept.
    pub(super) fn release(&mut self, bytes: u64) {
        self.kept = self.kept.saturating_sub(bytes);
        // What the least urgent may keep uncounted; the rest of that stays free for the others.
        let free = uncounted(ALL_PARTS + 1 - u64::from(URGENCIES));
        self.share.hold(self.kept.saturating_sub(free).min(self.share.held()));
    }
}

/// Of what each connection may keep uncounted, what streams may take that have so many parts of the bound.
fn uncounted(parts: u64) -> u64 {
    LEAST_KEPT * parts / ALL_PARTS
}

#[cfg(test)]
mod tests;

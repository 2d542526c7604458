//! The recovery period (RFC 9002 section 7.3.2) and what it takes to prove that it should not have been.

use posthaste_units::Time;

/// Which packets a reduction has already answered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Recovery {
    start: Option<Time>,
    is_active: bool,
}

impl Recovery {
    /// A period that began with a reduction at `now`.
    pub(super) const fn begun(now: Time) -> Self {
        Self { start: Some(now), is_active: true }
    }

    /// True if a packet sent then left before the last reduction: its loss calls for no other, and its
    /// acknowledgment for no growth.
    pub(super) fn covers(&self, sent_at: Time) -> bool {
        self.start.is_some_and(|start| sent_at <= start)
    }

    /// True until a packet sent after the reduction has been acknowledged.
    pub(super) const fn is_active(&self) -> bool {
        self.is_active
    }

    /// A packet sent after the reduction has been acknowledged.
    pub(super) fn end(&mut self) {
        self.is_active = false;
    }
}

/// A reduction that was made for losses, and the state before it: undone once all of them prove spurious.
#[derive(Debug, Clone)]
pub(super) struct Episode<S> {
    saved: S,
    /// The recovery period before this one; packets that it covers are not this episode's.
    before: Recovery,
    lost: u64,
    spurious: u64,
}

impl<S> Episode<S> {
    /// An episode that begins now, with the state to go back to.
    pub(super) const fn new(saved: S, before: Recovery) -> Self {
        Self { saved, before, lost: 0, spurious: 0 }
    }

    /// Counts a packet declared lost if its loss belongs to this episode.
    pub(super) fn on_lost(&mut self, sent_at: Time) {
        self.on_many_lost(sent_at, 1);
    }

    /// Counts packets declared lost that were sent at about this time, if their losses belong to this episode.
    pub(super) fn on_many_lost(&mut self, sent_at: Time, packets: u64) {
        if !self.before.covers(sent_at) {
            self.lost = self.lost.saturating_add(packets);
        }
    }

    /// Counts packets that arrived after all, the oldest of them sent at `sent_at`; true if nothing is left that
    /// justified the reduction.
    pub(super) fn on_spurious(&mut self, packets: u64, sent_at: Time) -> bool {
        // An older episode's packets prove nothing about this one, and a batch of both cannot be told apart.
        if !self.before.covers(sent_at) {
            self.spurious = self.spurious.saturating_add(packets);
        }
        self.spurious >= self.lost
    }

    /// The state to go back to.
    pub(super) const fn saved_mut(&mut self) -> &mut S {
        &mut self.saved
    }

    /// The state and the recovery period before the episode.
    pub(super) fn into_saved(self) -> (S, Recovery) {
        (self.saved, self.before)
    }
}

//! What is known of window updates that travel with acknowledgements (`ack_updates.rs` sends them).

use std::collections::VecDeque;

use posthaste_policy::AckRide;
use posthaste_wire::StreamId;

use crate::limits::ACK_WINDOW_STREAMS;

/// What is known of updates that ride.
#[derive(Debug, Default)]
pub(super) struct Riding {
    ride: Option<AckRide>,
    /// The peer takes `ACK_WINDOW` frames.
    pub(super) is_understood: bool,
    /// Streams whose limits the peer may not know, the newest first; at most [`ACK_WINDOW_STREAMS`].
    pub(super) recent: VecDeque<StreamId>,
    /// The peer may not know the newest limits.
    is_unconfirmed: bool,
    /// The last `ACK_WINDOW` frame had no room for all that is to be repeated.
    pub(super) is_partial: bool,
    /// Counts changes of limits that have been told inside ACK frames.
    edition: u64,
}

impl Riding {
    pub(super) fn new(ride: Option<AckRide>) -> Self {
        Self { ride, ..Self::default() }
    }

    /// True if limits travel inside ACK frames.
    pub(super) fn is_combined(&self) -> bool {
        self.is_understood && self.ride.is_some_and(|ride| ride.is_combined)
    }

    /// Bytes that limits may take in an ACK frame.
    pub(super) fn field(&self) -> usize {
        let field = self.ride.and_then(|ride| ride.field).unwrap_or(u64::MAX);
        usize::try_from(field).unwrap_or(usize::MAX)
    }

    /// Puts a stream before all others whose limits are repeated. Returns the last if that is one too many.
    pub(super) fn remember(&mut self, id: StreamId) -> Option<StreamId> {
        self.recent.retain(|other| *other != id);
        self.recent.push_front(id);
        if self.recent.len() > ACK_WINDOW_STREAMS { self.recent.pop_back() } else { None }
    }

    /// Limits have changed that the next ACK frame is to carry.
    pub(super) fn begin_edition(&mut self) {
        self.edition += 1;
        self.is_unconfirmed = true;
    }

    /// The edition that the peer may not know.
    pub(super) fn unconfirmed(&self) -> Option<u64> {
        self.is_unconfirmed.then_some(self.edition)
    }

    /// An `ACK_WINDOW` frame has arrived: nothing need be repeated if it was complete and of the newest edition.
    pub(super) fn confirm(&mut self, edition: u64) {
        if edition == self.edition && !self.is_partial {
            self.is_unconfirmed = false;
            self.recent.clear();
        }
    }
}

//! One stream: its two halves, and what makes it.

use std::fmt;

use posthaste_policy::Credit;
use posthaste_wire::{Direction, Side, StreamId};

use super::recv::RecvHalf;
use super::send::{Ending, SendHalf};
use crate::flow::ReceiveWindow;

/// Makes the credit policy of a new stream.
pub(crate) type CreditFactory = Box<dyn Fn() -> Box<dyn Credit> + Send + Sync>;

/// An open stream. A half that this end does not have, or that is over, is `None` and takes no memory: HTTP/3 keeps six
/// unidirectional streams for as long as a connection lives. The stream is over with both.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) send: Option<Box<SendHalf>>,
    pub(super) recv: Option<Box<RecvHalf>>,
    /// Memory of halves that are over, for the next stream in this one's place, until the connection rests.
    pub(super) spent: (Option<Box<SendHalf>>, Option<Box<RecvHalf>>),
    /// True while the stream stands in the queue of streams with control frames due.
    pub(super) is_control_queued: bool,
    /// True while the stream is counted as blocked by its limit.
    pub(super) is_counted_blocked: bool,
    /// How the stream is counted in the connection's tail.
    pub(super) counted_ending: Ending,
    /// While the stream waits for room in what the connection keeps: its urgency and its number there.
    pub(super) waits_for_memory: Option<(u8, u64)>,
}

impl Stream {
    /// The sending half is over.
    pub(super) fn end_send(&mut self) {
        if let Some(mut send) = self.send.take() {
            send.empty();
            self.spent.0 = Some(send);
        }
    }

    /// The receiving half is over.
    pub(super) fn end_recv(&mut self) {
        if let Some(mut recv) = self.recv.take() {
            recv.empty();
            self.spent.1 = Some(recv);
        }
    }

    /// Gives back room that is not in use.
    pub(super) fn shrink(&mut self) {
        self.spent = (None, None);
        if let Some(recv) = &mut self.recv {
            recv.shrink();
        }
    }

    pub(super) fn has_control(&self) -> bool {
        self.send.as_deref().is_some_and(SendHalf::has_control)
            || self.recv.as_deref().is_some_and(RecvHalf::has_control)
    }
}

/// The peer's initial limits of streams (RFC 9000 section 18.2), by who opens the stream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PeerLimits {
    /// Bidirectional streams that this end opens.
    pub(super) local_bidirectional: u64,
    /// Bidirectional streams that the peer opens.
    pub(super) remote_bidirectional: u64,
    /// Unidirectional streams that this end opens.
    pub(super) local_unidirectional: u64,
}

/// Makes streams.
pub(super) struct Maker {
    pub(super) side: Side,
    pub(super) stream_credit: CreditFactory,
    /// The window that every stream starts with, as the transport parameters say.
    pub(super) initial_window: u64,
    pub(super) peer_limits: PeerLimits,
    /// How many streams this end may open, by direction.
    pub(super) permitted: [u64; 2],
}

impl Maker {
    /// True if this end sends on the stream.
    pub(super) fn sends_on(&self, id: StreamId) -> bool {
        id.direction() == Direction::Bidirectional || id.initiator() == self.side
    }

    /// True if the peer sends on the stream.
    pub(super) fn receives_on(&self, id: StreamId) -> bool {
        id.direction() == Direction::Bidirectional || id.initiator() != self.side
    }

    /// True if the peer permits that frames name the stream. Streams opened before the peer's limits were known
    /// may have to wait for that.
    pub(super) fn is_permitted(&self, id: StreamId) -> bool {
        let [bidirectional, unidirectional] = self.permitted;
        id.initiator() != self.side
            || id.index()
                < match id.direction() {
                    Direction::Bidirectional => bidirectional,
                    Direction::Unidirectional => unidirectional,
                }
    }

    /// The peer's initial limit for a stream.
    pub(super) fn send_limit(&self, id: StreamId) -> u64 {
        if !self.is_permitted(id) {
            return 0;
        }
        match (id.initiator() == self.side, id.direction()) {
            (true, Direction::Bidirectional) => self.peer_limits.local_bidirectional,
            (false, Direction::Bidirectional) => self.peer_limits.remote_bidirectional,
            (true, Direction::Unidirectional) => self.peer_limits.local_unidirectional,
            (false, Direction::Unidirectional) => 0,
        }
    }

    /// Makes the stream, in memory of one that is over or has never been.
    pub(super) fn make(&self, id: StreamId, stream: &mut Stream) {
        if self.sends_on(id) {
            let mut half = stream.spent.0.take().unwrap_or_default();
            half.begin(self.send_limit(id));
            stream.send = Some(half);
        }
        if self.receives_on(id) {
            let mut half = stream.spent.1.take().unwrap_or_default();
            half.begin(ReceiveWindow::of_stream(self.initial_window));
            stream.recv = Some(half);
        }
        stream.is_control_queued = false;
        stream.is_counted_blocked = false;
        stream.counted_ending = Ending::default();
        stream.waits_for_memory = None;
    }
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maker")
            .field("side", &self.side)
            .field("initial_window", &self.initial_window)
            .field("peer_limits", &self.peer_limits)
            .field("permitted", &self.permitted)
            .finish_non_exhaustive()
    }
}

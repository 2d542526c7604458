//! A TCP connection with TLS on it: records on tapes, and how far the handshakes have come.

use std::collections::VecDeque;
use std::rc::Rc;

use posthaste_units::Time;

use super::connection::Connection;
use super::tape::{Content, Direction, SharedTapes};
use crate::peer::StreamKey;

/// Bytes that lie in the socket beyond what can leave at once: as a server does that limits what is not sent
/// (`TCP_NOTSENT_LOWAT`), so that a new stream's frames do not wait behind all of an old one's.
const LOW_WATER: u64 = 32 << 10;

/// How far TLS has come at this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// A client waits for TCP, a server for `ClientHello`.
    Begin,
    /// A flight was sent and its answer has not come.
    Greeted,
    /// Streams can be used.
    Ready,
}

/// The connection at one end.
#[derive(Debug)]
pub(super) struct Channel {
    number: usize,
    pub(super) connection: Connection,
    tapes: SharedTapes,
    /// The way of what this end sends, and of what it gets.
    outgoing: Direction,
    incoming: Direction,
    pub(super) stage: Stage,
    /// End of the last record taken.
    taken: u64,
    /// Streams with something to send, in turn.
    pub(super) turns: VecDeque<StreamKey>,
    /// HTTP/1.1: the exchange that has the connection.
    pub(super) exchange: Option<StreamKey>,
    /// The stream whose reader is so slow that nothing more is taken.
    pub(super) held_by: Option<StreamKey>,
}

impl Channel {
    pub(super) fn new(number: usize, connection: Connection, is_client: bool, tapes: &SharedTapes) -> Self {
        let (outgoing, incoming) =
            if is_client { (Direction::Up, Direction::Down) } else { (Direction::Down, Direction::Up) };
        Self {
            number,
            connection,
            tapes: Rc::clone(tapes),
            outgoing,
            incoming,
            stage: Stage::Begin,
            taken: 0,
            turns: VecDeque::new(),
            exchange: None,
            held_by: None,
        }
    }

    /// Puts a record of `length` bytes into the socket.
    pub(super) fn append(&mut self, now: Time, length: u64, contents: impl IntoIterator<Item = Content>) {
        self.tapes.borrow_mut().tape(self.number, self.outgoing).append(length, contents);
        self.connection.sender.write(now, length);
    }

    /// The next content that has arrived completely.
    pub(super) fn take(&mut self) -> Option<Content> {
        let arrived = self.connection.arrived();
        let (end, content) = self.tapes.borrow_mut().tape(self.number, self.incoming).take(arrived)?;
        self.taken = end;
        Some(content)
    }

    /// Tells the connection what has been read of its buffer: all of it, for TLS keeps the beginning of a record,
    /// unless nothing is taken now.
    pub(super) fn tell_consumed(&mut self, now: Time) {
        let consumed = if self.held_by.is_some() { self.taken } else { self.connection.arrived() };
        self.connection.on_consumed(now, consumed);
    }

    /// True if the socket takes more of what waits in streams.
    pub(super) fn wants_frames(&self) -> bool {
        self.stage == Stage::Ready && !self.turns.is_empty() && self.connection.sender.unsent() < LOW_WATER
    }
}

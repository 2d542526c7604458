//! QUIC DATAGRAM (RFC 9221): messages that are congestion-controlled and never sent again.
//!
//! Both queues are bounded: what does not fit makes the oldest message go, which is counted.

use std::collections::VecDeque;

use bytes::Bytes;
use posthaste_wire::Frame;
use posthaste_wire::frame::datagram_len;

use crate::connection::Connection;
use crate::error::{PeerError, TransportErrorCode};
use crate::events::Event;
use crate::limits;
use crate::packet::frame_owner::FrameOwner;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// Bytes of a 1-RTT packet around its frames, but for the peer's connection ID: the first byte, the longest packet
/// number and the AEAD's tag.
const PACKET_OVERHEAD: usize = 1 + 4 + 16;

/// What happens to a message for which there is no room in the queue of unsent ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest unsent messages are dropped for it, as fits live media.
    DropOldest,
    /// It is refused; [`Event::DatagramsUnblocked`] tells when to try again.
    Refuse,
}

/// Which goes first when both messages and stream data wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DatagramOrder {
    /// Messages: streams get what is left of window and pacing rate.
    #[default]
    BeforeStreams,
    /// Streams: a message waits until they have nothing to send, or no flow-control credit.
    AfterStreams,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendDatagramError {
    /// The peer takes no DATAGRAM frames, or its transport parameters are not known yet.
    #[error("the peer takes no datagrams, or the handshake is not complete")]
    Unsupported,
    /// It does not fit: [`Connection::max_datagram_size`](crate::Connection::max_datagram_size) says what does.
    #[error("a datagram may have {max} bytes at most")]
    TooLarge {
        /// The most bytes that fit now.
        max: usize,
    },
    /// There is no room, and [`WhenFull::Refuse`] was asked for.
    #[error("too many datagrams wait to be sent")]
    Full,
    /// The connection is over.
    #[error("the connection is over")]
    Closed,
}

/// What a connection has counted of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DatagramStats {
    /// Messages sent. Whether they arrive is not known.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Messages dropped unsent: others took their place, or the path's datagrams have become too small for them.
    pub dropped_unsent: u64,
    /// Messages received and dropped unread, because the application was too slow.
    pub dropped_unread: u64,
}

/// Messages in the order in which they came, within bounds.
#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Bytes>,
    bytes: usize,
}

impl Queue {
    fn has_room(&self, len: usize) -> bool {
        self.messages.len() < limits::QUEUED_DATAGRAMS && self.bytes + len <= limits::QUEUED_DATAGRAM_BYTES
    }

    fn pop(&mut self) -> Option<Bytes> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// Appends a message; how many had to go for it.
    fn push(&mut self, message: Bytes) -> u64 {
        let mut dropped = 0;
        while !self.has_room(message.len()) && self.pop().is_some() {
            dropped += 1;
        }
        self.bytes += message.len();
        self.messages.push_back(message);
        dropped
    }
}

/// The messages of one connection.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    /// Largest frame that this end takes; 0 for none.
    local_limit: u64,
    /// Largest frame that the peer takes; 0 for none.
    peer_limit: u64,
    order: DatagramOrder,
    unsent: Queue,
    received: Queue,
    stats: DatagramStats,
    /// A message was refused for want of room, and nobody has been told of room since.
    is_waited_for: bool,
    /// The application is to be told of messages, or of room.
    is_readable_due: bool,
    is_room_due: bool,
}

impl Datagrams {
    /// `local_limit` is this end's `max_datagram_frame_size`.
    pub(crate) fn new(local_limit: u64) -> Self {
        Self { local_limit, ..Self::default() }
    }

    /// The peer's `max_datagram_frame_size`.
    pub(crate) fn set_peer_limit(&mut self, limit: u64) {
        self.peer_limit = limit;
    }

    /// True if streams go first.
    pub(crate) fn yields(&self) -> bool {
        self.order == DatagramOrder::AfterStreams
    }

    pub(crate) fn stats(&self) -> DatagramStats {
        self.stats
    }

    /// The most bytes of a message that fit into `room` bytes of frames and into what the peer takes.
    pub(crate) fn largest(&self, room: usize) -> Option<usize> {
        // spec: rfc9221 3 not-before-parameter, 3 within-parameter
        let frame = room.min(usize::try_from(self.peer_limit).unwrap_or(usize::MAX));
        frame.checked_sub(datagram_len(frame) - frame)
    }

    /// A frame has arrived.
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION` if this end takes none, or none so large.
    pub(crate) fn on_frame(&mut self, message: &Bytes) -> Result<(), PeerError> {
        // A frame may do without its length.
        let frame_len = 1 + message.len() as u64;
        // spec: rfc9221 3 unannounced-closes, 3 oversized-closes
        if self.local_limit == 0 || frame_len > self.local_limit {
            let reason = "a DATAGRAM frame larger than max_datagram_frame_size";
            return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
        }
        self.stats.received += 1;
        // A copy: a small message that waits must not keep a whole batch of datagrams in memory.
        let dropped = self.received.push(Bytes::copy_from_slice(message));
        self.stats.dropped_unread += dropped;
        self.is_readable_due = true;
        Ok(())
    }

    /// Takes a message that is not longer than `largest`.
    pub(crate) fn send(&mut self, message: Bytes, when_full: WhenFull) -> Result<(), SendDatagramError> {
        if when_full == WhenFull::Refuse && !self.unsent.has_room(message.len()) {
            self.is_waited_for = true;
            return Err(SendDatagramError::Full);
        }
        self.stats.dropped_unsent += self.unsent.push(message);
        Ok(())
    }

    /// Drops what waits at the front and has become too long, so that it does not keep the others from leaving.
    pub(crate) fn drop_longer_than(&mut self, largest: usize) {
        while self.unsent.messages.front().is_some_and(|message| message.len() > largest) {
            self.unsent.pop();
            self.stats.dropped_unsent += 1;
            self.note_room();
        }
    }

    fn note_room(&mut self) {
        self.is_room_due |= std::mem::take(&mut self.is_waited_for);
    }

    /// What the application is to be told.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.is_readable_due) {
            return Some(Event::DatagramsReceived);
        }
        std::mem::take(&mut self.is_room_due).then_some(Event::DatagramsUnblocked)
    }
}

impl FrameOwner for Datagrams {
    fn has_unsent(&self) -> bool {
        !self.unsent.messages.is_empty()
    }

    // spec: rfc9221 5.4 congestion-controlled
    // Owners write only what window and pacer let out.
    fn write(&mut self, writer: &mut FrameWriter<'_>) {
        while let Some(message) = self.unsent.messages.front() {
            if !writer.push(&Frame::Datagram(message.clone()), None) {
                break;
            }
            self.unsent.pop();
            self.stats.sent += 1;
            self.note_room();
        }
    }

    // spec: rfc9221 5.2 ack-eliciting
    // The frames leave no record: a lost message is not sent again.
    fn on_acked(&mut self, _: &SentFrame) -> bool {
        false
    }

    fn on_lost(&mut self, _: &SentFrame) -> bool {
        false
    }
}

impl Connection {
    /// The most bytes that a message may have now ([`Self::send_datagram`]): what fits into one packet of the path in
    /// use, and what the peer takes. `None` if the peer takes none, or its transport parameters are not known yet. It
    /// changes with the path, and may fall.
    pub fn max_datagram_size(&self) -> Option<usize> {
        let overhead = PACKET_OVERHEAD + self.remote_ids.current().len();
        self.datagrams.largest(self.path.max_datagram_size().saturating_sub(overhead))
    }

    /// Sends a message in one DATAGRAM frame (RFC 9221) as soon as window and pacer let it out. It may be lost, and is
    /// not sent again; messages may arrive in another order.
    ///
    /// # Errors
    /// [`SendDatagramError`] if it cannot be sent; nothing has been queued then.
    pub fn send_datagram(&mut self, message: Bytes, when_full: WhenFull) -> Result<(), SendDatagramError> {
        if self.is_closed() {
            return Err(SendDatagramError::Closed);
        }
        // spec: rfc9221 5 one-frame-each
        let max = self.max_datagram_size().ok_or(SendDatagramError::Unsupported)?;
        if message.len() > max {
            return Err(SendDatagramError::TooLarge { max });
        }
        self.datagrams.send(message, when_full)
    }

    /// The next message of the peer's. At most 1,024 messages and 1 MiB wait; more make the oldest go, as
    /// [`DatagramStats::dropped_unread`] counts.
    pub fn receive_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.received.pop()
    }

    /// Ranks messages against stream data. Default: messages first.
    pub fn set_datagram_order(&mut self, order: DatagramOrder) {
        self.datagrams.order = order;
    }

    /// The path's datagrams may have become smaller since a message was taken.
    pub(crate) fn fit_datagrams(&mut self) {
        if self.datagrams.has_unsent() {
            let largest = self.max_datagram_size().unwrap_or(0);
            self.datagrams.drop_longer_than(largest);
        }
    }
}

#[cfg(test)]
mod tests;

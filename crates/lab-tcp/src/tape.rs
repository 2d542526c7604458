//! The content of one direction of a TCP connection, beside its segments.
//!
//! The trick of the model: both ends are in one process, so segments carry numbers only, and the bytes wait on a
//! tape that the two ends share. The sender appends TLS records when its stack takes them; the receiver takes a
//! record once the model has brought all sequence numbers up to the record's end. So applications still see
//! exactly the bytes that were written, in order and once: a model that skipped, lost or repeated a sequence
//! number would hand out wrong content or nothing. What it cannot show is bytes damaged inside a segment; the
//! receiver's checksum drops those.
//!
//! A record is handed out whole, as TLS does: its tag is at its end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

use crate::peer::StreamKey;

/// What a record brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// TLS: the client's first flight.
    ClientHello,
    /// TLS: the server's flight.
    ServerFlight,
    /// TLS: the client's second flight.
    ClientFinished,
    /// HTTP/2: an end's settings, from the server with its acknowledgement of the client's.
    Settings,
    /// HTTP/2: the client's acknowledgement of the server's.
    SettingsAck,
    /// A part of a stream.
    Frame {
        /// The stream.
        stream: StreamKey,
        /// Its next bytes.
        bytes: Bytes,
        /// True if nothing follows.
        is_last: bool,
    },
}

#[derive(Debug)]
struct Entry {
    /// Sequence number at which the record is complete.
    end: u64,
    content: Content,
}

/// One direction's records that the receiver has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Tape {
    entries: VecDeque<Entry>,
    written: u64,
}

impl Tape {
    /// Appends a record of `length` bytes on the wire that brings all of `contents`.
    pub(super) fn append(&mut self, length: u64, contents: impl IntoIterator<Item = Content>) {
        self.written += length;
        let end = self.written;
        self.entries.extend(contents.into_iter().map(|content| Entry { end, content }));
    }

    /// Takes out the next content whose record is complete once all bytes before `arrived` are there, with the
    /// record's end.
    pub(super) fn take(&mut self, arrived: u64) -> Option<(u64, Content)> {
        if self.entries.front()?.end > arrived {
            return None;
        }
        self.entries.pop_front().map(|entry| (entry.end, entry.content))
    }
}

/// Both directions of all connections between two hosts.
#[derive(Debug, Default)]
pub(super) struct Tapes {
    connections: Vec<[Tape; 2]>,
}

/// The tapes as both hosts hold them.
pub(super) type SharedTapes = Rc<RefCell<Tapes>>;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the client.
    Up,
    /// From the server.
    Down,
}

impl Tapes {
    /// The tape of a direction of a connection; made when it is first asked for.
    pub(super) fn tape(&mut self, connection: usize, direction: Direction) -> &mut Tape {
        if self.connections.len() <= connection {
            self.connections.resize_with(connection + 1, Default::default);
        }
        &mut self.connections[connection][direction as usize]
    }
}

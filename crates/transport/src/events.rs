//! What a connection tells its user, and why one ends.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use posthaste_policy::Notice;

use crate::error::{PeerError, TransportErrorCode};
use crate::streams::StreamEvent;

/// Something that a connection's user may want to act on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A server endpoint has accepted a connection; its handshake is under way.
    Incoming,
    /// On a server: what the client sends before the handshake is complete is read; it may be somebody's repetition of
    /// an earlier connection's. On a client: the server has read what was sent so.
    EarlyDataAccepted,
    /// On a client: the server has dropped what was sent before the handshake was complete. All of it is sent again;
    /// streams stay as they are. The application protocol may be another than last time. On a server: the client has sent
    /// such data, which are not read.
    EarlyDataRejected,
    /// The handshake is complete: the peer is authenticated, its parameters are known.
    Connected,
    /// The handshake is confirmed (RFC 9001 section 4.1.2).
    Confirmed,
    /// On a client: the server has put the connection into a group, or another one
    /// ([`Connection::group_token`](crate::Connection::group_token)).
    Grouped,
    /// The peer has sent messages in DATAGRAM frames: read them until there are none
    /// ([`Connection::receive_datagram`](crate::Connection::receive_datagram)).
    DatagramsReceived,
    /// There is room for a message again, after one was refused
    /// ([`WhenFull::Refuse`](crate::WhenFull::Refuse)).
    DatagramsUnblocked,
    /// Something about streams.
    Stream(StreamEvent),
    /// A policy has something to say to whoever runs this end, such as that a promise is not kept. Belongs in a log.
    Notice(Notice),
    /// The connection is over. No other event of it follows but [`Event::Drained`].
    Closed(CloseReason),
    /// The endpoint has forgotten the connection: its handle is dead.
    Drained,
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// This end's application closed it.
    Local {
        /// The application's code.
        error_code: u64,
    },
    /// The peer's application closed it.
    PeerApplication {
        /// The peer application's code.
        error_code: u64,
        /// Its reason, for people.
        reason: Bytes,
    },
    /// The peer's transport closed it.
    PeerTransport {
        /// Why.
        code: TransportErrorCode,
        /// Type of the frame that the peer blames, 0 if none.
        frame_type: u64,
        /// Its reason, for people.
        reason: Bytes,
    },
    /// The peer broke the protocol, and this end closed.
    Violation(PeerError),
    /// TLS failed at this end: the alert sent and what was wrong (an untrusted certificate, say).
    Tls {
        /// The TLS alert.
        alert: u8,
        /// What was wrong.
        reason: String,
    },
    /// Nothing was heard for the idle timeout.
    IdleTimeout,
    /// The peer has lost the connection's state (RFC 9000 section 10.3).
    StatelessReset,
    /// The server speaks none of this end's versions; these are the ones that it offered.
    VersionMismatch(Vec<u32>),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::Local { error_code } => write!(f, "closed here (code {error_code:#x})"),
            Self::PeerApplication { error_code, reason } => {
                write!(f, "closed by the peer (code {error_code:#x}) {}", text(reason))
            }
            Self::PeerTransport { code, reason, .. } => {
                write!(f, "closed by the peer's transport: {code:?} {}", text(reason))
            }
            Self::Violation(error) => write!(f, "the peer broke the protocol: {error}"),
            Self::Tls { alert, reason } => write!(f, "TLS failed: {reason} (alert {alert})"),
            Self::IdleTimeout => f.write_str("timed out: nothing was heard from the peer"),
            Self::StatelessReset => f.write_str("reset: the peer no longer knows the connection"),
            Self::VersionMismatch(versions) => {
                write!(f, "the server speaks none of our QUIC versions; it offers {versions:x?}")
            }
        }
    }
}

impl std::error::Error for CloseReason {}

/// Events that nobody has asked for yet.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    events: VecDeque<Event>,
    /// True once [`Event::Closed`] has been handed out.
    is_end_told: bool,
}

impl EventQueue {
    pub(crate) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Gives back room that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.events.shrink_to_fit();
    }

    /// The next event: the connection's own before those of its data, but for its end, which nothing follows.
    #[inline]
    pub(crate) fn next(&mut self, data_event: impl FnOnce() -> Option<Event>) -> Option<Event> {
        if self.is_end_told {
            return None;
        }
        if let Some(Event::Closed(_)) | None = self.events.front()
            && let Some(event) = data_event()
        {
            return Some(event);
        }
        let event = self.events.pop_front()?;
        self.is_end_told = matches!(event, Event::Closed(_));
        Some(event)
    }
}

//! HTTP/3 (RFC 9114) with QPACK (RFC 9204) and priorities (RFC 9218), without I/O.
//!
//! The crate is independent of a QUIC library, a runtime and a clock. Its input is the bytes of streams. Its output is
//! parts of messages, events of the connection, and for a violation the error code for the peer.
//!
//! - [`MessageReader`] reads one request or response from the bytes of its stream; [`encode`] writes them.
//! - [`Peer`] reads the peer's unidirectional streams: settings, GOAWAY, priority updates, QPACK instructions.
//! - [`Priorities`] tracks the priority of each request.
//! - [`qpack::Tables`] is the QPACK state of a connection that uses dynamic tables; without it, sections stand for
//!   themselves, and a peer that refers to a table gets an error.
//!
//! Bodies pass through as the slices in which they arrived.
//!
//! # Example
//! Encode a request and read it again:
//! ```
//! use posthaste_http3::{MessageKind, MessageReader, Part, encode};
//!
//! let request = http::Request::get("https://localhost/a?b").header("accept", "*/*").body(()).unwrap();
//! let mut stream = encode::request(&request).unwrap().into();
//!
//! let mut reader = MessageReader::new(MessageKind::Request, 16_384);
//! let Ok(Some(Part::Request(received))) = reader.next(&mut stream) else { panic!("a whole request") };
//! assert_eq!(received.uri(), request.uri());
//! assert_eq!(received.headers()["accept"], "*/*");
//! reader.end().unwrap();
//! ```

// A panic that a peer can reach is the worst bug there is.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod control;
mod cursor;
pub mod encode;
mod error;
mod fields;
pub mod frame;
mod kept;
mod limits;
mod message;
mod peer;
mod priorities;
mod priority;
pub mod qpack;
mod settings;
mod structured;
mod varint;

pub use error::{Code, Error, MessageError};
pub use fields::ConnectProtocol;
pub use kept::EarlierSettings;
pub use limits::{
    DECODER_TABLE, MAX_BLOCKED_STREAMS, MAX_CONTROL_FRAME, MAX_FRAME_PAYLOAD, MAX_REMEMBERED_UPDATES,
    MAX_UNIDIRECTIONAL_STREAMS,
};
pub use message::{MessageKind, MessageReader, Part};
pub use peer::{Event, Next, Peer, Role, UniStream};
pub use priorities::Priorities;
pub use priority::{Priority, PriorityParameters};
pub use settings::Settings;

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

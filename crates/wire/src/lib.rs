//! QUIC's wire format (RFC 9000 sections 12 to 20). Decoding never panics, and its allocations are proportional to the
//! input. Encoding appends to the caller's buffer.
//!
//! The crate is independent of keys, connections and time.

// A panic that a peer can reach is the worst bug there is.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod connection_id;
mod error;
pub mod frame;
pub mod packet;
pub mod stream_id;
pub mod transport_parameters;
pub mod varint;

pub use connection_id::{ConnectionId, ResetToken};
pub use error::DecodeError;
pub use frame::Frame;
pub use stream_id::{Direction, Side, StreamId};
pub use transport_parameters::{TransportParameters, VersionInformation};

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

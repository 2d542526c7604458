//! A sans-IO QUIC transport (RFC 9000, 9001, 9002) whose decisions about speed are policies.

mod error;
mod frame_writer;
mod limits;
mod sent_frame;
mod space;

pub use error::{LocalError, PeerError, TransportErrorCode};

//! A sans-IO QUIC transport (RFC 9000, 9001, 9002) whose decisions about speed are policies.

mod ack;
mod control;
mod ecn;
mod error;
mod frame_writer;
mod limits;
mod pacing;
mod recovery;
mod sent_frame;
mod space;

pub use ecn::EcnCodepoint;
pub use error::{LocalError, PeerError, TransportErrorCode};

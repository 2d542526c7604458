//! Decoding errors, with the error codes for the peer.

use crate::varint::Truncated;

/// Bytes from the peer that break the protocol: the connection is to be closed with `code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (frame type {frame_type:#04x}, error code {code:#04x})")]
pub struct DecodeError {
    /// The transport error code (RFC 9000 section 20.1) that the RFC demands; one of the constants below.
    pub code: u64,
    /// Type of the offending frame, 0 if there is none.
    pub frame_type: u64,
    /// Description for logs and for the reason phrase.
    pub reason: &'static str,
}

impl DecodeError {
    /// Malformed frame.
    pub const FRAME_ENCODING_ERROR: u64 = 0x07;
    /// Transport parameters that are badly formed, invalid or missing.
    pub const TRANSPORT_PARAMETER_ERROR: u64 = 0x08;
    /// Anything else that the protocol forbids.
    pub const PROTOCOL_VIOLATION: u64 = 0x0a;
}

/// Error within a frame, before the frame's type is added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// The transport error code.
    pub(crate) code: u64,
    /// Description.
    pub(crate) reason: &'static str,
}

impl Fault {
    /// A badly formed frame.
    pub(crate) const fn encoding(reason: &'static str) -> Self {
        Self { code: DecodeError::FRAME_ENCODING_ERROR, reason }
    }

    /// Another violation.
    pub(crate) const fn violation(reason: &'static str) -> Self {
        Self { code: DecodeError::PROTOCOL_VIOLATION, reason }
    }

    /// The error of a frame of type `frame_type`.
    pub(crate) const fn in_frame(self, frame_type: u64) -> DecodeError {
        DecodeError { code: self.code, frame_type, reason: self.reason }
    }
}

impl From<Truncated> for Fault {
    fn from(_: Truncated) -> Self {
        Self::encoding("frame ends within a field")
    }
}

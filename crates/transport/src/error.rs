//! Errors by who is at fault: the peer ([`PeerError`]) or the caller ([`LocalError`]).
//! What is merely dropped is counted in the statistics and is no error.

use std::fmt;

use posthaste_wire::{DecodeError, StreamId};

/// A transport error code (RFC 9000 section 20.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportErrorCode(pub u64);

impl TransportErrorCode {
    /// No error: an orderly close.
    pub const NO_ERROR: Self = Self(0x00);
    /// The endpoint cannot go on for a reason of its own.
    pub const INTERNAL_ERROR: Self = Self(0x01);
    /// The server refuses new connections.
    pub const CONNECTION_REFUSED: Self = Self(0x02);
    /// More data than the credit allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x03);
    /// More streams than the limit allowed.
    pub const STREAM_LIMIT_ERROR: Self = Self(0x04);
    /// A frame for a stream in a state that does not permit it.
    pub const STREAM_STATE_ERROR: Self = Self(0x05);
    /// Data beyond a stream's end, or two ends.
    pub const FINAL_SIZE_ERROR: Self = Self(0x06);
    /// A malformed frame.
    pub const FRAME_ENCODING_ERROR: Self = Self(0x07);
    /// Malformed, absent or forbidden transport parameters.
    pub const TRANSPORT_PARAMETER_ERROR: Self = Self(0x08);
    /// More connection IDs than the limit allowed.
    pub const CONNECTION_ID_LIMIT_ERROR: Self = Self(0x09);
    /// Any other breach of the protocol.
    pub const PROTOCOL_VIOLATION: Self = Self(0x0a);
    /// A client's Initial carried an unusable token.
    pub const INVALID_TOKEN: Self = Self(0x0b);
    /// The application closed during the handshake.
    pub const APPLICATION_ERROR: Self = Self(0x0c);
    /// More CRYPTO data than is buffered.
    pub const CRYPTO_BUFFER_EXCEEDED: Self = Self(0x0d);
    /// Keys were updated wrongly.
    pub const KEY_UPDATE_ERROR: Self = Self(0x0e);
    /// A key has reached its AEAD limit.
    pub const AEAD_LIMIT_REACHED: Self = Self(0x0f);
    /// No path to the peer works.
    pub const NO_VIABLE_PATH: Self = Self(0x10);
    /// The versions that the ends believe in do not go together (RFC 9368 section 10.2).
    pub const VERSION_NEGOTIATION_ERROR: Self = Self(0x11);

    /// The code of a TLS alert (RFC 9001 section 4.8).
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 | alert as u64)
    }

    /// The RFC's name of the code, or the TLS alert number in words.
    pub fn name(self) -> String {
        let name = match self {
            Self::NO_ERROR => "NO_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::CONNECTION_REFUSED => "CONNECTION_REFUSED",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::STREAM_LIMIT_ERROR => "STREAM_LIMIT_ERROR",
            Self::STREAM_STATE_ERROR => "STREAM_STATE_ERROR",
            Self::FINAL_SIZE_ERROR => "FINAL_SIZE_ERROR",
            Self::FRAME_ENCODING_ERROR => "FRAME_ENCODING_ERROR",
            Self::TRANSPORT_PARAMETER_ERROR => "TRANSPORT_PARAMETER_ERROR",
            Self::CONNECTION_ID_LIMIT_ERROR => "CONNECTION_ID_LIMIT_ERROR",
            Self::PROTOCOL_VIOLATION => "PROTOCOL_VIOLATION",
            Self::INVALID_TOKEN => "INVALID_TOKEN",
            Self::APPLICATION_ERROR => "APPLICATION_ERROR",
            Self::CRYPTO_BUFFER_EXCEEDED => "CRYPTO_BUFFER_EXCEEDED",
            Self::KEY_UPDATE_ERROR => "KEY_UPDATE_ERROR",
            Self::AEAD_LIMIT_REACHED => "AEAD_LIMIT_REACHED",
            Self::NO_VIABLE_PATH => "NO_VIABLE_PATH",
            Self(code @ 0x100..=0x1ff) => return format!("CRYPTO_ERROR (TLS alert {})", code & 0xff),
            Self(code) => return format!("error {code:#x}"),
        };
        name.to_owned()
    }
}

impl fmt::Debug for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// The peer broke the protocol: the connection closes with this code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{code:?} in frame {frame_type:#x}: {reason}")]
pub struct PeerError {
    /// The code sent in `CONNECTION_CLOSE`.
    pub code: TransportErrorCode,
    /// Type of the offending frame, 0 if there is none.
    pub frame_type: u64,
    /// What was wrong, for people; sent as the reason phrase.
    pub reason: &'static str,
}

impl PeerError {
    /// An error that no frame is to blame for, or whose frame the caller adds with [`Self::in_frame`].
    pub const fn new(code: TransportErrorCode, reason: &'static str) -> Self {
        Self { code, frame_type: 0, reason }
    }

    /// The same error, blamed on a frame type unless it already names one.
    pub const fn in_frame(mut self, frame_type: u64) -> Self {
        if self.frame_type == 0 {
            self.frame_type = frame_type;
        }
        self
    }
}

/// The caller asked for something that cannot be done; nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LocalError {
    /// The stream does not exist: it was never opened, or it is over and forgotten.
    #[error("{0:?} does not exist or is over")]
    UnknownStream(StreamId),
    /// The stream has no such half at this end.
    #[error("{0:?} does not flow that way at this end")]
    WrongDirection(StreamId),
    /// The stream has been finished or reset by this end already.
    #[error("{0:?} was already finished or reset")]
    Finished(StreamId),
    /// The peer's stream limit does not permit another stream yet; an event tells when it does.
    #[error("the peer permits no further stream yet")]
    StreamLimit,
    /// The connection is closing or closed.
    #[error("the connection is closed")]
    Closed,
    /// The handshake has not come far enough for this.
    #[error("not possible before the handshake is confirmed")]
    TooEarly,
    /// This end, or its present state, does not permit it; the method's documentation tells which.
    #[error("not possible at this end or at this time")]
    NotNow,
    /// This end may not move to another address: it is a server, or its server does not want that.
    #[error("this end may not move to another address")]
    MigrationForbidden,
    /// The peer has not given a connection ID that was never used yet.
    #[error("the peer has given no spare connection ID")]
    NoConnectionId,
}

/// The handshake failed at this end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("TLS alert {alert}: {reason}")]
pub struct CryptoFailure {
    /// The TLS alert that the peer is sent.
    pub alert: u8,
    /// What was wrong, for people.
    pub reason: String,
}

/// What ends a connection from this end's side: the peer's breach, or a failed TLS handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The peer broke the protocol.
    Peer(PeerError),
    /// TLS failed.
    Tls(CryptoFailure),
}

impl From<PeerError> for Fault {
    fn from(error: PeerError) -> Self {
        Self::Peer(error)
    }
}

impl From<CryptoFailure> for Fault {
    fn from(failure: CryptoFailure) -> Self {
        Self::Tls(failure)
    }
}

impl From<DecodeError> for PeerError {
    fn from(error: DecodeError) -> Self {
        Self { code: TransportErrorCode(error.code), frame_type: error.frame_type, reason: error.reason }
    }
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::Peer(error.into())
    }
}

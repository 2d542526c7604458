//! Errors of message bodies.

use std::error::Error;
use std::time::Duration;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Why a body is not whole. What was read of it is a fragment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The peer gave the message up with this code of HTTP/3.
    #[error("the peer gave the message up (code {0:#x})")]
    Reset(u64),
    /// The body has another length than its message announced.
    #[error("the body has {received} bytes or more, {announced} were announced")]
    Length {
        /// What `content-length` says, in bytes.
        announced: u64,
        /// Bytes that came until this was known.
        received: u64,
    },
    /// The message breaks the protocol.
    #[error("{0}")]
    Malformed(String),
    /// The connection is over.
    #[error("{0}")]
    Lost(#[source] BoxError),
    /// The peer sent nothing for this long.
    #[error("the peer sent nothing for {} s", .0.as_secs_f64())]
    Stalled(Duration),
    /// The sender of a body was dropped before it called [`finish`](super::BodySender::finish).
    #[error("the body's sender has left before the end")]
    Unfinished,
    /// The body is longer than the caller of [`collect`](super::Body::collect) allowed.
    #[error("the body is longer than {limit} bytes")]
    TooLong {
        /// What the caller allowed, in bytes.
        limit: usize,
    },
    /// The body's source failed.
    #[error("{0}")]
    Source(#[source] BoxError),
}

impl BodyError {
    /// The error of a body of any kind.
    pub(crate) fn of_source(error: BoxError) -> Self {
        error.downcast::<Self>().map_or_else(Self::Source, |own| *own)
    }
}

impl From<std::io::Error> for BodyError {
    fn from(error: std::io::Error) -> Self {
        Self::Source(Box::new(error))
    }
}

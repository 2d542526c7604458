//! Why an operation on a connection or a stream failed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_transport::{CloseReason, ConnectError, LocalError};

/// Why a connection could not be made, or cannot be used any more.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectionError {
    /// The connection is over.
    #[error(transparent)]
    Closed(#[from] CloseReason),
    /// The connection could not be attempted: the configuration or the server name is unusable.
    #[error("cannot connect: {0}")]
    Connect(#[source] Arc<ConnectError>),
    /// The remote address cannot be reached from this endpoint's socket: its port is 0, or it is an IPv6 address
    /// and the socket is bound to an IPv4 one.
    #[error("{0} cannot be reached from this endpoint's socket")]
    UnusableAddress(SocketAddr),
    /// This end, or its present state, does not permit it; the method's documentation tells which.
    #[error("not possible at this end or at this time")]
    NotNow,
    /// The endpoint's socket failed, or the runtime that drove it has stopped.
    #[error("the endpoint's socket failed: {0}")]
    Socket(#[source] Arc<io::Error>),
}

impl ConnectionError {
    /// Why the connection ended, if it was a connection.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        match self {
            Self::Closed(reason) => Some(reason),
            _ => None,
        }
    }
}

impl From<ConnectError> for ConnectionError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(Arc::new(error))
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match &error {
            ConnectionError::Closed(CloseReason::Local { .. }) => io::ErrorKind::NotConnected,
            ConnectionError::Closed(CloseReason::PeerApplication { .. }) => io::ErrorKind::ConnectionAborted,
            ConnectionError::Closed(CloseReason::IdleTimeout) => io::ErrorKind::TimedOut,
            ConnectionError::Closed(_) => io::ErrorKind::ConnectionReset,
            ConnectionError::Connect(_) | ConnectionError::UnusableAddress(_) | ConnectionError::NotNow => {
                io::ErrorKind::InvalidInput
            }
            ConnectionError::Socket(source) => source.kind(),
        };
        Self::new(kind, error)
    }
}

/// Why an endpoint could not be moved to another local address; nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum RebindError {
    /// The socket cannot be bound.
    #[error("cannot bind another socket: {0}")]
    Bind(#[source] io::Error),
    /// Only clients may move (RFC 9000 section 9): the endpoint accepts connections.
    #[error("an endpoint that accepts connections cannot move")]
    Server,
    /// The old socket is of another address family, so its peers cannot be reached from the new one.
    #[error("the other address must be of the same family as {0}")]
    OtherFamily(SocketAddr),
    /// A connection may not move now.
    #[error("the connection to {remote} may not move: {reason}")]
    Refused {
        /// Its peer.
        remote: SocketAddr,
        /// Why not.
        reason: LocalError,
    },
}

/// Why data could not be written to a stream.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The peer does not want the rest of the stream; this is its application's code.
    #[error("the peer stopped the stream (code {0:#x})")]
    Stopped(u64),
    /// This end has finished or reset the stream already.
    #[error("the stream was already finished or reset")]
    ClosedStream,
    /// The connection is over.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(_) => Self::new(io::ErrorKind::ConnectionReset, error),
            WriteError::ClosedStream => Self::new(io::ErrorKind::NotConnected, error),
            WriteError::ConnectionLost(lost) => lost.into(),
        }
    }
}

/// Why data could not be read from a stream.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The peer has given the stream up; this is its application's code.
    #[error("the peer reset the stream (code {0:#x})")]
    Reset(u64),
    /// This end has stopped the stream already.
    #[error("the stream was already stopped")]
    ClosedStream,
    /// The stream is longer than the caller of [`read_to_end`](crate::RecvStream::read_to_end) allowed.
    #[error("the stream is longer than {limit} bytes")]
    TooLong {
        /// What the caller allowed, in bytes.
        limit: usize,
    },
    /// The connection is over.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(_) => Self::new(io::ErrorKind::ConnectionReset, error),
            ReadError::ClosedStream => Self::new(io::ErrorKind::NotConnected, error),
            ReadError::TooLong { .. } => Self::new(io::ErrorKind::InvalidData, error),
            ReadError::ConnectionLost(lost) => lost.into(),
        }
    }
}

//! Posthaste's transport on tokio and UDP sockets.
//!
//! An [`Endpoint`] is a socket with a task that drives it. It makes [`Connection`]s, and at a server accepts them;
//! a connection has streams, each a [`SendStream`], a [`RecvStream`] or both. How fast they go is decided by the
//! policies of the configuration's profile ([`TransportConfig::profile`]), not here: one that is [`named`], or one that
//! a program builds of its own policies ([`Profile::builder`]).
//!
//! # Example
//! A server that echoes one stream, and its client, in one process:
//! ```
//! use std::sync::Arc;
//! use posthaste_endpoint::{ClientConfig, Endpoint, ServerConfig, default_transport, tls};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! // A certificate that both ends know.
//! let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
//! let mut roots = rustls::RootCertStore::empty();
//! roots.add(identity.cert.der().clone())?;
//! let key = identity.signing_key.serialize_der().try_into()?;
//!
//! let tls = tls::server_config(vec![identity.cert.into()], key, &[b"echo"])?;
//! let config = ServerConfig::new(tls, default_transport());
//! let server = Endpoint::server("127.0.0.1:0".parse()?, config)?;
//! let address = server.local_addr()?;
//! let echo = tokio::spawn(async move {
//!     let connection = server.accept().await.expect("a client comes");
//!     let (mut send, mut recv) = connection.accept_bi().await.expect("it opens a stream");
//!     tokio::io::copy(&mut recv, &mut send).await.expect("the data comes back");
//!     send.finish();
//!     connection.closed().await
//! });
//!
//! let client = Endpoint::client("127.0.0.1:0".parse()?)?;
//! let tls = tls::client_config_with_roots(roots, &[b"echo"])?;
//! let config = ClientConfig::new(tls, default_transport());
//! let connection = client.connect(&config, address, "localhost").await?;
//! let (mut send, mut recv) = connection.open_bi().await?;
//! send.write_all(b"hello").await?;
//! send.finish();
//! assert_eq!(recv.read_to_end(1024).await?, b"hello");
//!
//! connection.close(7, b"thank you");
//! client.wait_idle().await;
//! assert_eq!(echo.await?.to_string(), "closed by the peer (code 0x7) thank you");
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # Ends
//! A connection ends when one end closes it ([`Connection::close`], or by dropping its last handle), when nothing
//! was heard for the idle timeout, or when something goes wrong; [`Connection::closed`] tells which. After that,
//! every operation fails with [`ConnectionError::Closed`] and the same reason.
//!
//! # Moves
//! A client may go from one network to another, from Wi-Fi to cellular say, and its connections go on:
//! [`Endpoint::rebind`] when it is told to, [`Endpoint::follow_network`] by itself. Servers follow their clients.
//!
//! # Limits
//! Received data lives in at most 16 MiB of shared memory an endpoint, beyond which each datagram is copied; what may
//! be outstanding at all is bounded by the flow control that the configuration's profile grants. tokio's timers are
//! 1 ms coarse: deadlines of the pacer that are nearer are served up to a millisecond late.

mod clock;
mod connection;
mod connection_state;
mod driver;
mod endpoint;
mod error;
mod history_store;
mod qlog_files;
mod receive_buffers;
mod roaming;
mod sessions;
mod socket;
mod state;
mod stream;
mod timer;
pub mod tls;
mod token_cache;
mod wait;
mod wakers;

pub use connection::{Connection, EarlyData, SendDatagramError};
pub use endpoint::Endpoint;
pub use error::{ConnectionError, ReadError, RebindError, WriteError};
pub use history_store::{HistoryError, HistoryStore};
pub use qlog_files::QlogDirectory;
pub use sessions::SessionStore;
pub use socket::SocketStats;
pub use stream::{RecvStream, SendStream};
pub use token_cache::TokenCache;

pub use posthaste_policy::{Profile, ProfileBuilder};
pub use posthaste_schemes::{default_profile, named};
pub use posthaste_transport::{
    ClientConfig, CloseReason, ConnectError, ConnectionHandle, ConnectionId, ConnectionStats, DatagramOrder,
    DatagramStats, Direction, EndpointStats, GroupToken, LocalError, MemoryStore, PathMemory, PathStore,
    PeerError, Priority, QlogSink, ReceiveBudget, RetryPolicy, Secret, SendBudget, ServerConfig, Side,
    StreamId, TokenOwner, TokenStore, TokenTimes, Traffic, TransportConfig, TransportErrorCode, Version,
};

/// Transport settings with the default profile.
pub fn default_transport() -> TransportConfig {
    TransportConfig::new(default_profile())
}

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

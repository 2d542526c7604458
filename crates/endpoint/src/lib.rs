//! Posthaste's transport on tokio and UDP sockets.
//!
//! An [`Endpoint`] is a socket with a task that drives it. It makes [`Connection`]s, and at a server accepts them;
//! a connection has streams, each a [`SendStream`], a [`RecvStream`] or both, and messages that may be lost
//! ([`Connection::send_datagram`], if the peer's [`TransportConfig::max_datagram_frame_size`] permits them). How fast they go is decided by the
//! policies of the configuration's profile ([`TransportConfig::profile`]), not here: one that is `named`, or one that
//! a program builds of its own policies ([`Profile::builder`], [`Profile::to_builder`]).
//!
//! # Example
//! A server that echoes one stream, and its client, in one process:
//! ```
//! use std::sync::Arc;
//! use posthaste_endpoint::{ClientConfig, Endpoint, ServerConfig, default_transport, rustls, tls};
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
//! # Features
//! All are on by default; without them the crate compiles without `redb`, `serde_json` and `toml`.
//! - `history-store`: path histories in a file, `HistoryStore`.
//! - `qlog`: traces of connections, as files with `QlogDirectory`.
//! - `profiles-toml`: profiles by name (`named`) and from TOML text.
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
//! # Speed
//! Each call on a stream takes the endpoint's lock once, and each write or end of a stream may leave in a datagram of its
//! own. Calls that do more at once are cheaper: [`Connection::open_bi_with`] for a request that is at hand,
//! [`SendStream::finish_with`] for a response, [`SendStream::write_all_chunks`] for data in pieces,
//! [`RecvStream::read_chunks`] for data of any length. All of these and [`SendStream::write_bytes`] hand [`bytes::Bytes`]
//! of at least 1 KiB through; smaller writes, and calls that take or fill slices, copy.
//!
//! # Limits
//! Received data lives in at most 16 MiB of shared memory an endpoint, beyond which each datagram is copied; what may
//! be outstanding at all is bounded by the flow control that the configuration's profile grants. tokio's timers are
//! 1 ms coarse: deadlines of the pacer that are nearer are served up to a millisecond late.

mod clock;
mod concurrency;
mod connection;
mod connection_state;
mod datagrams;
mod driver;
mod endpoint;
mod error;
#[cfg(feature = "history-store")]
mod history_store;
mod inbox;
#[cfg(test)]
mod inbox_tests;
#[cfg(feature = "qlog")]
mod qlog_files;
mod receive_buffers;
mod roaming;
mod sessions;
mod socket;
mod state;
mod stream;
mod stream_table;
mod timer;
pub mod tls;
mod token_cache;
mod trouble;
mod wait;
mod wakers;
mod workers;

pub use connection::{Connection, EarlyData};
pub use datagrams::SendDatagramError;
pub use endpoint::Endpoint;
pub use error::{ConnectionError, ReadError, RebindError, WriteError};
#[cfg(feature = "history-store")]
pub use history_store::{HistoryError, HistoryStore};
#[cfg(feature = "qlog")]
pub use qlog_files::QlogDirectory;
pub use roaming::source_towards;
pub use sessions::SessionStore;
pub use socket::SocketStats;
pub use stream::{RecvStream, SendStream};
pub use token_cache::TokenCache;
pub use workers::Worker;

/// The buffers of streams and messages.
pub use bytes::{self, Bytes};
/// The traits of policies and what they are told, for programs that bring their own.
pub use posthaste_policy as policy;
pub use posthaste_policy::sample::RttView;
pub use posthaste_policy::{CongestionState, Jumps, Profile, ProfileBuilder};
/// The policies that come with Posthaste, and profiles made of them.
pub use posthaste_schemes as schemes;
pub use posthaste_schemes::default_profile;
#[cfg(feature = "profiles-toml")]
pub use posthaste_schemes::{ProfileError, named};
#[cfg(feature = "qlog")]
pub use posthaste_transport::QlogSink;
pub use posthaste_transport::{
    ClientConfig, CloseReason, ConnectError, ConnectionHandle, ConnectionId, ConnectionStats, DatagramOrder,
    DatagramStats, Direction, EcnState, EndpointStats, GroupToken, KeyLimits, LocalError, MemoryStore,
    PathMemory, PathStore, PeerError, Priority, ReceiveBudget, RetryPolicy, Secret, SendBudget,
    SendDatagramError as DatagramRefusal, ServerConfig, Side, Steering, StreamId, StreamsStats, TokenOwner,
    TokenStore, TokenTimes, Traffic, TransportConfig, TransportErrorCode, Version, Waited,
};
/// Integer time, byte counts and rates, in which policies and statistics speak. Their times convert from and into those of
/// std, which settings have.
pub use posthaste_units as units;
pub use posthaste_units::{ByteCount, Rate};
/// The TLS library whose configurations [`tls`] makes.
pub use rustls;

/// Transport settings with the default profile.
pub fn default_transport() -> TransportConfig {
    TransportConfig::new(default_profile())
}

/// The examples of the package's README are tests, too.
#[cfg(all(doctest, feature = "profiles-toml"))]
#[doc = include_str!("../README.md")]
struct Readme;

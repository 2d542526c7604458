//! A sans-IO QUIC transport (RFC 9000, 9001, 9002) whose decisions about speed are policies.
//!
//! An [`Endpoint`] owns connections and finds each datagram's connection; a [`Connection`] is a conductor over
//! parts that each own their state. Neither reads a clock, opens a socket or draws randomness of its own: the
//! caller passes `now` and datagrams in, and takes datagrams, events and the next timeout out. Programs on tokio use
//! `posthaste-endpoint`, which does that with sockets.
//!
//! # The loop
//! 1. [`Endpoint::on_datagram`] with what the socket received, [`Endpoint::on_timeout`] when [`Endpoint::next_timeout`] is
//!    reached, and methods of [`Connection`] for what the application wants.
//! 2. [`Endpoint::poll_event`] until there is none: what connections tell the application.
//! 3. [`Endpoint::poll_transmit`] until there is none: what the socket must send. Only then is the next timeout right.
//!
//! # Example
//! A client sends a greeting to a server, both in memory:
//! ```
//! use std::net::SocketAddr;
//! use std::sync::Arc;
//!
//! use posthaste_transport::bytes::{Bytes, BytesMut};
//! use posthaste_transport::units::{Duration, Time};
//! use posthaste_transport::{
//!     ClientConfig, DatagramInfo, Direction, Endpoint, Event, Read, ServerConfig, TransportConfig, rustls,
//! };
//!
//! /// Hands everything that `from` has to send to `to`: a program has sockets here.
//! fn carry(now: Time, from: &mut Endpoint, source: SocketAddr, to: &mut Endpoint) {
//!     let mut buffer = Vec::new();
//!     while let Some(transmit) = from.poll_transmit(now, &mut buffer, 1) {
//!         let info = DatagramInfo { remote: source, local_ip: None, ecn: transmit.ecn };
//!         to.on_datagram(now, &info, BytesMut::from(&buffer[..]));
//!         buffer.clear();
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // TLS 1.3 with an application protocol, which QUIC requires.
//! let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
//! let key = identity.signing_key.serialize_der().try_into()?;
//! let mut roots = rustls::RootCertStore::empty();
//! roots.add(identity.cert.der().clone())?;
//! let tls13 = &[&rustls::version::TLS13];
//! let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
//! let mut client_tls = rustls::ClientConfig::builder_with_provider(provider.clone())
//!     .with_protocol_versions(tls13)?
//!     .with_root_certificates(roots)
//!     .with_no_client_auth();
//! client_tls.alpn_protocols = vec![b"greeting".to_vec()];
//! let mut server_tls = rustls::ServerConfig::builder_with_provider(provider)
//!     .with_protocol_versions(tls13)?
//!     .with_no_client_auth()
//!     .with_single_cert(vec![identity.cert.into()], key)?;
//! server_tls.alpn_protocols = vec![b"greeting".to_vec()];
//!
//! // The profile decides about speed; 32 bytes of the system's randomness belong where the constants are.
//! let transport = Arc::new(TransportConfig::new(posthaste_schemes::default_profile()));
//! let mut server = Endpoint::new([1; 32], Some(ServerConfig::new(Arc::new(server_tls), transport.clone())));
//! let mut client = Endpoint::new([2; 32], None);
//! let (here, there) = ("192.0.2.1:5000".parse()?, "192.0.2.2:443".parse()?);
//!
//! let mut now = Time::ZERO;
//! let config = ClientConfig::new(Arc::new(client_tls), transport);
//! let handle = client.connect(now, &config, there, "localhost")?;
//! let mut received = Vec::new();
//! while received != b"hello" {
//!     carry(now, &mut client, here, &mut server);
//!     carry(now, &mut server, there, &mut client);
//!     while let Some((_, event)) = client.poll_event() {
//!         if event == Event::Connected {
//!             let connection = client.connection_mut(handle).expect("it lives");
//!             let stream = connection.open(Direction::Unidirectional)?;
//!             connection.write(stream, &mut Bytes::from_static(b"hello"))?;
//!             connection.finish(stream)?;
//!         }
//!     }
//!     while let Some((handle, event)) = server.poll_event() {
//!         let Some(connection) = server.connection_mut(handle) else { continue };
//!         if let Event::Closed(reason) = event {
//!             return Err(reason.to_string().into());
//!         }
//!         while let Some(stream) = connection.accept(Direction::Unidirectional) {
//!             while let Read::Data(data) = connection.read(now, stream, usize::MAX)? {
//!                 received.extend_from_slice(&data);
//!             }
//!         }
//!     }
//!     now += Duration::from_millis(1);
//!     client.on_timeout(now);
//!     server.on_timeout(now);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//! `qlog`, on by default: traces of connections. Without it the crate compiles without `serde_json`.

// A panic that a peer can reach is the worst bug there is.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]
// Some parts exist for traces only.
#![cfg_attr(not(feature = "qlog"), allow(dead_code, unused_imports))]

mod acks;
mod config;
mod connection;
mod control;
mod crypto;
mod error;
mod events;
mod flow;
mod group;
mod handshake;
mod limits;
mod packet;
mod path;
#[cfg(feature = "qlog")]
mod qlog;
#[cfg(not(feature = "qlog"))]
#[path = "qlog/off.rs"]
mod qlog;
mod recovery;
mod router;
mod steering;
mod streams;
mod tokens;

#[cfg(feature = "qlog")]
pub use config::QlogSink;
pub use config::{ClientConfig, RetryPolicy, Secret, ServerConfig, TransportConfig, Version};
pub use connection::*;
pub use crypto::{CryptoSession, KeyLimits};
pub use error::{CryptoFailure, LocalError, PeerError, TransportErrorCode};
pub use events::{CloseReason, Event};
pub use flow::receive_budget::ReceiveBudget;
pub use flow::send_budget::SendBudget;
pub use group::GroupToken;
pub use packet::datagram::{DatagramInfo, Transmit};
pub use packet::ecn::{EcnCodepoint, EcnState};
pub use path::history::{MemoryStore, PathMemory, PathStore, path_to_server};
/// The traits of policies, and profiles made of them.
pub use posthaste_policy as policy;
pub use posthaste_policy::Notice;
/// Time, byte counts and rates.
pub use posthaste_units as units;
pub use posthaste_wire::{ConnectionId, Direction, Side, StreamId};
pub use router::slots::ConnectionHandle;
pub use router::stats::EndpointStats;
pub use router::{ConnectError, Endpoint, Misplaced};
pub use steering::Steering;
pub use streams::{Priority, Read, ReadError, StreamEvent, StreamsStats, WriteError};
pub use tokens::address::TokenTimes;
pub use tokens::new_token::{TokenOwner, TokenStore};
/// The buffers of datagrams and streams, and the TLS library.
pub use {bytes, rustls};

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

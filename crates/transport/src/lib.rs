//! A sans-IO QUIC transport (RFC 9000, 9001, 9002) whose decisions about speed are policies.
//!
//! An [`Endpoint`] owns connections and finds each datagram's connection; a [`Connection`] is a conductor over
//! parts that each own their state. Neither reads a clock, opens a socket or draws randomness of its own: the
//! caller passes `now` and datagrams in, and takes datagrams, events and the next timeout out.

// A panic that a peer can reach is the worst bug there is.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod acks;
mod config;
mod connection;
mod control;
mod crypto;
mod datagrams;
mod error;
mod events;
mod flow;
mod group;
mod handshake;
mod limits;
mod packet;
mod path;
mod qlog;
mod recovery;
mod router;
mod stats;
mod streams;
mod tokens;

pub use config::{ClientConfig, QlogSink, RetryPolicy, Secret, ServerConfig, TransportConfig, Version};
pub use connection::Connection;
pub use connection::Move;
pub use crypto::{CryptoSession, KeyLimits};
pub use datagrams::{DatagramOrder, DatagramStats, SendDatagramError, WhenFull};
pub use error::{CryptoFailure, LocalError, PeerError, TransportErrorCode};
pub use events::{CloseReason, Event};
pub use flow::receive_budget::ReceiveBudget;
pub use flow::send_budget::SendBudget;
pub use group::GroupToken;
pub use packet::datagram::{DatagramInfo, Transmit};
pub use packet::ecn::EcnCodepoint;
pub use path::history::{MemoryStore, PathMemory, PathStore};
pub use posthaste_policy::Notice;
pub use posthaste_wire::{ConnectionId, Direction, Side, StreamId};
pub use router::slots::ConnectionHandle;
pub use router::{ConnectError, Endpoint};
pub use stats::{ConnectionStats, EndpointStats, Traffic};
pub use streams::{Priority, Read, ReadError, StreamEvent, StreamsStats, WriteError};
pub use tokens::address::TokenTimes;
pub use tokens::new_token::{TokenOwner, TokenStore};

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

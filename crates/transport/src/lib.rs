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

mod ack;
mod ack_frequency;
mod address_token;
mod api;
mod arrivals;
mod birth;
mod budget;
mod cids;
mod config;
mod connection;
mod control;
mod crypto;
mod datagram;
mod datagram_builder;
mod datagrams;
mod dispatch;
mod early;
mod ecn;
mod eliciting;
mod error;
mod events;
mod flow;
mod frame_owner;
mod frame_writer;
mod grease;
mod grouping;
mod handshake;
mod idle;
mod keyed_map;
mod lifecycle;
mod limits;
mod membership;
mod new_tokens;
mod owners;
mod pacing;
mod parameters;
mod path;
mod path_history;
mod qlog;
mod rate_cap;
mod receive;
mod receive_budget;
mod recovery;
mod repair;
mod retry;
mod router;
mod send_budget;
mod sent_frame;
mod sessions;
mod settle;
mod setup;
mod shared_memory;
mod slots;
mod space;
mod stateless;
mod stats;
mod streams;
mod timers;
mod token;
mod token_guard;
mod transmit;

pub use address_token::TokenTimes;
pub use config::{
    ClientConfig, KeyLimits, QlogSink, RetryPolicy, Secret, ServerConfig, TransportConfig, Version,
};
pub use connection::Connection;
pub use crypto::{CryptoFailure, CryptoSession};
pub use datagram::{DatagramInfo, Transmit};
pub use datagrams::{DatagramOrder, DatagramStats, SendDatagramError, WhenFull};
pub use ecn::EcnCodepoint;
pub use error::{LocalError, PeerError, TransportErrorCode};
pub use events::{CloseReason, Event};
pub use grouping::GroupToken;
pub use new_tokens::{TokenOwner, TokenStore};
pub use path::Move;
pub use path_history::{MemoryStore, PathMemory, PathStore};
pub use posthaste_policy::Notice;
pub use posthaste_wire::{ConnectionId, Direction, Side, StreamId};
pub use receive_budget::ReceiveBudget;
pub use router::{ConnectError, Endpoint};
pub use send_budget::SendBudget;
pub use slots::ConnectionHandle;
pub use stats::{ConnectionStats, EndpointStats, Traffic};
pub use streams::{Priority, Read, ReadError, StreamEvent, StreamsStats, WriteError};

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

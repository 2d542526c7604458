//! What a new connection is made of.

use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_units::Rng;
use posthaste_wire::{ConnectionId, Side};

use crate::config::TransportConfig;
use crate::crypto::{CryptoSession, Keys};
use crate::handshake::setup::HandshakeSetup;
use crate::streams::Streams;

/// The parts that the router hands to a new connection.
pub(crate) struct Birth {
    pub(crate) side: Side,
    pub(crate) config: Arc<TransportConfig>,
    pub(crate) session: Box<dyn CryptoSession>,
    pub(crate) initial_keys: Keys,
    pub(crate) remote: SocketAddr,
    pub(crate) local_id: ConnectionId,
    /// What the peer is called at first.
    pub(crate) remote_id: ConnectionId,
    pub(crate) setup: HandshakeSetup,
    pub(crate) streams: Streams,
    /// The connection's own generator.
    pub(crate) rng: Rng,
    /// `group_size` has been sent.
    pub(crate) offers_group: bool,
}

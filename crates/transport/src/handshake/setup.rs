//! The state of a connection's handshake besides TLS: IDs, Retry, address tokens (RFC 9000 section 8.1), early data, and
//! packets that wait for their keys.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_wire::ConnectionId;
use posthaste_wire::packet::ProtectedPacket;

use crate::crypto::InitialKeys;
use crate::handshake::early::EarlyData;
use crate::packet::datagram::Arrived;
use crate::tokens::new_token::TokenStore;

/// What a connection keeps for its handshake.
pub(crate) struct HandshakeSetup {
    /// The client's address counts as validated from the start.
    pub(crate) is_validated: bool,
    /// What the client's very first Initial was sent to.
    pub(crate) original_destination: ConnectionId,
    /// What the first Initial of this connection was sent to; not the client's very first if that got a Retry.
    pub(crate) initial_destination: ConnectionId,
    /// On a client: what a Retry has named the server.
    pub(crate) retry_source: Option<ConnectionId>,
    /// On a client: makes the Initial keys anew after a Retry.
    pub(crate) initial_suite: Option<InitialKeys>,
    /// On a client: the address token that Initial packets carry.
    pub(crate) token: Bytes,
    /// On a client: where the server's tokens are kept.
    pub(crate) keeper: Option<TokenKeeper>,
    /// On a server: what came in the client's token.
    pub(crate) payload: Option<Box<[u8]>>,
    /// True once the peer's handshake ID is known and may no longer change.
    pub(crate) peer_id_is_fixed: bool,
    /// On a client: the server is known to have validated our address.
    pub(crate) peer_validated_address: bool,
    pub(crate) early: EarlyData,
    /// Packets that wait for their keys.
    pub(crate) kept_packets: Vec<KeptPacket>,
}

/// A packet that waits for its keys.
pub(crate) struct KeptPacket {
    pub(crate) packet: ProtectedPacket,
    pub(crate) arrived: Arrived,
}

/// Where a client keeps a server's tokens.
pub(crate) struct TokenKeeper {
    pub(crate) store: Arc<dyn TokenStore>,
    /// The server's name there.
    pub(crate) server_name: Box<str>,
}

impl HandshakeSetup {
    /// A client's, whose Initial packets carry this token.
    pub(crate) fn of_client(
        destination: ConnectionId,
        suite: InitialKeys,
        token: Bytes,
        keeper: Option<TokenKeeper>,
    ) -> Self {
        let server = Self::of_server(destination, destination, true, None);
        Self {
            token,
            keeper,
            initial_suite: Some(suite),
            peer_id_is_fixed: false,
            peer_validated_address: false,
            ..server
        }
    }

    /// A server's, whose client's Initial was sent to `destination` (its very first, before a Retry, to `original`) and
    /// had this payload in its token.
    pub(crate) fn of_server(
        original: ConnectionId,
        destination: ConnectionId,
        is_validated: bool,
        payload: Option<Box<[u8]>>,
    ) -> Self {
        Self {
            is_validated,
            original_destination: original,
            initial_destination: destination,
            retry_source: None,
            initial_suite: None,
            token: Bytes::new(),
            keeper: None,
            payload,
            peer_id_is_fixed: true,
            peer_validated_address: true,
            early: EarlyData::None,
            kept_packets: Vec::new(),
        }
    }
}

impl fmt::Debug for HandshakeSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeSetup").field("is_validated", &self.is_validated).finish_non_exhaustive()
    }
}

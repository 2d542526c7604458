//! The state of a connection's handshake besides TLS: IDs, Retry, address tokens (RFC 9000 section 8.1), early data, and
//! packets that wait for their keys.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_wire::packet::ProtectedPacket;
use posthaste_wire::{ConnectionId, Side, TransportParameters};

use crate::crypto::InitialKeys;
use crate::error::{PeerError, TransportErrorCode};
use crate::handshake::early::EarlyData;
use crate::packet::datagram::Arrived;
use crate::tokens::new_token::TokenStore;

/// What a connection keeps for its handshake.
pub(crate) struct HandshakeSetup {
    /// The QUIC version: the client's choice, which does not change.
    pub(crate) version: u32,
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
        version: u32,
        destination: ConnectionId,
        suite: InitialKeys,
        token: Bytes,
        keeper: Option<TokenKeeper>,
    ) -> Self {
        let server = Self::of_server(version, destination, destination, true, None);
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
        version: u32,
        original: ConnectionId,
        destination: ConnectionId,
        is_validated: bool,
        payload: Option<Box<[u8]>>,
    ) -> Self {
        Self {
            version,
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

    /// Compares what the peer's transport parameters say of the handshake with what has been seen of it: `peer` is
    /// what the peer is called.
    ///
    /// # Errors
    /// `TRANSPORT_PARAMETER_ERROR` or `VERSION_NEGOTIATION_ERROR` if somebody has changed its packets on the way.
    pub(crate) fn authenticate(
        &self,
        side: Side,
        peer: &ConnectionId,
        parameters: &TransportParameters,
    ) -> Result<(), PeerError> {
        let error = |reason| Err(PeerError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, reason));
        // spec: rfc9000 7.3 ids-match, 7.3 ids-compared, 7.3 absent-ids-close, 7.3 mismatch-closes
        // RFC 9000 section 7.3: both ends prove which IDs the handshake used.
        if parameters.initial_source_connection_id.as_ref() != Some(peer) {
            return error("initial_source_connection_id does not match the handshake's");
        }
        // RFC 9368 section 4: both ends prove which version the handshake used. Peers that say nothing are older.
        let information = parameters.version_information.as_ref();
        // spec: rfc9368 2.3 from-clients-list, rfc9369 4 version-information
        // spec: rfc9368 4 server-compares, 4 difference-closes, 4 unoffered-closes
        // spec: rfc9368 4 negotiated-compared, 4 mismatch-closes
        if information.is_some_and(|information| information.chosen != self.version) {
            let reason = "version_information names another version than the handshake's";
            return Err(PeerError::new(TransportErrorCode::VERSION_NEGOTIATION_ERROR, reason));
        }
        if side == Side::Client {
            // spec: rfc9000 7.3 ids-compared, 7.3 absent-ids-close, 7.3 mismatch-closes
            if parameters.original_destination_connection_id != Some(self.original_destination) {
                return error("original_destination_connection_id does not match the first Initial's");
            }
            // spec: rfc9000 7.3 retry-id-missing, 7.3 retry-id-uncalled-for
            if parameters.retry_source_connection_id != self.retry_source {
                return error("retry_source_connection_id does not match the Retry's, or lack of one");
            }
        }
        Ok(())
    }
}

impl fmt::Debug for HandshakeSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeSetup").field("is_validated", &self.is_validated).finish_non_exhaustive()
    }
}

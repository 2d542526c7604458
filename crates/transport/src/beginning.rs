//! How a connection began: what came of Retry and address tokens (RFC 9000 section 8.1).

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_wire::ConnectionId;

use crate::crypto::InitialKeys;
use crate::new_tokens::TokenStore;

/// What is known of a connection's first packets.
pub(crate) struct Beginning {
    /// The client's address counts as validated from the start.
    pub(crate) is_validated: bool,
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
}

/// Where a client keeps a server's tokens.
pub(crate) struct TokenKeeper {
    pub(crate) store: Arc<dyn TokenStore>,
    /// The server's name there.
    pub(crate) server_name: Box<str>,
}

impl Beginning {
    /// A client's, whose Initial packets carry this token.
    pub(crate) fn of_client(
        destination: ConnectionId,
        suite: InitialKeys,
        token: Bytes,
        keeper: Option<TokenKeeper>,
    ) -> Self {
        Self { token, keeper, initial_suite: Some(suite), ..Self::of_server(destination, true, None) }
    }

    /// A server's, whose client's Initial was sent to `destination` and had this payload in its token.
    pub(crate) fn of_server(
        destination: ConnectionId,
        is_validated: bool,
        payload: Option<Box<[u8]>>,
    ) -> Self {
        Self {
            is_validated,
            initial_destination: destination,
            retry_source: None,
            initial_suite: None,
            token: Bytes::new(),
            keeper: None,
            payload,
        }
    }
}

impl fmt::Debug for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beginning").field("is_validated", &self.is_validated).finish_non_exhaustive()
    }
}

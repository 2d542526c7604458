//! The tokens of a connection for the next one.

use bytes::Bytes;
use posthaste_wire::Side;

use crate::connection::Connection;
use crate::error::{LocalError, PeerError, TransportErrorCode};
use crate::handshake::setup::TokenKeeper;
use crate::limits;
use crate::tokens::new_token::TokenOwner;

impl Connection {
    /// On a server: gives the client a token with which its next connection's address counts as validated.
    /// `payload`, at most 64 bytes, travels in it, sealed, and is [`Self::token_payload`] then.
    ///
    /// # Errors
    /// [`LocalError::TooEarly`] before the handshake is confirmed; [`LocalError::NotNow`] on a client, for a longer
    /// payload, or while four tokens are on their way already.
    pub fn offer_token(&mut self, payload: &[u8]) -> Result<(), LocalError> {
        if self.is_closed() {
            return Err(LocalError::Closed);
        }
        if !self.handshake.is_confirmed() {
            return Err(LocalError::TooEarly);
        }
        // spec: rfc9000 19.7 client-sends-none
        let is_fit = self.side() == Side::Server && payload.len() <= limits::TOKEN_PAYLOAD;
        if !is_fit || self.new_tokens.pending() >= limits::PENDING_TOKENS {
            return Err(LocalError::NotNow);
        }
        self.new_tokens.wanted.push_back(payload.into());
        Ok(())
    }

    /// The payload of the next token that the router is to make.
    pub(crate) fn take_wanted_token(&mut self) -> Option<Box<[u8]>> {
        self.new_tokens.take_wanted()
    }

    /// The router has made a token: it is sent to the client.
    pub(crate) fn send_token(&mut self, token: Vec<u8>) {
        self.new_tokens.push(token);
    }

    /// On a server: what was given along with the token by which the client is known; `None` if it showed none.
    pub fn token_payload(&self) -> Option<&[u8]> {
        self.setup.payload.as_deref()
    }

    /// The server gives a token (section 19.7).
    pub(crate) fn on_new_token(&mut self, token: &Bytes) -> Result<(), PeerError> {
        if self.side() == Side::Server {
            // spec: rfc9000 19.7 from-client-closes
            return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, "a client sent NEW_TOKEN"));
        }
        if token.is_empty() {
            // spec: rfc9000 19.7 empty-token-closes
            return Err(PeerError::new(TransportErrorCode::FRAME_ENCODING_ERROR, "an empty token"));
        }
        if let Some(TokenKeeper { store, server_name }) = &self.setup.keeper
            && token.len() <= limits::NEW_TOKEN
        {
            let port = self.path.remote.port();
            // spec: rfc9000 8.1.3 token-for-its-server
            let owner = TokenOwner { server_name, port, version: self.setup.version };
            // A copy: the frame is a slice of a whole datagram, and tokens are kept for long.
            store.put(&owner, Bytes::copy_from_slice(token));
        }
        Ok(())
    }
}

//! Stateless reset tokens (RFC 9000 section 10.3.2). Address tokens are in `address.rs`.

use aws_lc_rs::hmac;
use posthaste_wire::{ConnectionId, ResetToken};

/// Derives the reset token of each of an endpoint's connection IDs, so that a reset needs no state.
pub(crate) struct ResetKey(hmac::Key);

impl ResetKey {
    /// The key that follows from the endpoint's secret.
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let key = hmac::sign(&secret, b"posthaste stateless reset");
        Self(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
    }

    /// The token of a connection ID.
    pub(crate) fn token(&self, id: &ConnectionId) -> ResetToken {
        // spec: rfc9000 10.3.2 reset-token-unguessable, 10.3.2 token-for-one-id
        let tag = hmac::sign(&self.0, id.as_slice());
        let mut token = [0; 16];
        for (to, from) in token.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        ResetToken(token)
    }
}

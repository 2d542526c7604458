//! Stateless reset tokens (RFC 9000 section 10.3.2). Address tokens come with a later issue.

use aws_lc_rs::hmac;
use posthaste_units::Rng;
use posthaste_wire::{ConnectionId, ResetToken};

/// Derives the reset token of each of an endpoint's connection IDs, so that a reset needs no state.
pub(crate) struct ResetKey(hmac::Key);

impl ResetKey {
    /// A key drawn from the endpoint's generator.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let mut key = [0; 32];
        rng.fill(&mut key);
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// The token of a connection ID.
    pub(crate) fn token(&self, id: &ConnectionId) -> ResetToken {
        let tag = hmac::sign(&self.0, id.as_slice());
        let mut token = [0; 16];
        for (to, from) in token.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        ResetToken(token)
    }
}

//! Connection IDs of this endpoint (RFC 9000 section 5.1).

use bytes::BytesMut;
use posthaste_units::Rng;
use posthaste_wire::ConnectionId;

use super::{Endpoint, Misplaced};
use crate::connection::Connection;
use crate::connection::ids::LOCAL_ID_LEN;
use crate::steering::Steering;

impl Endpoint {
    /// Gives the peer more names for a connection.
    pub(super) fn issue_ids(&mut self, index: u32) {
        while self.slots.get(index).is_some_and(Connection::wants_connection_id) {
            let id = self.fresh_id();
            let token = self.reset_key.token(&id);
            if let Some(connection) = self.slots.get_mut(index) {
                connection.issue_connection_id(id, token);
            }
            // The peer may use it before the connection settles.
            self.routes.insert(id, index);
        }
    }

    /// An ID that names no connection yet, and that this endpoint owns where several share a port.
    pub(super) fn fresh_id(&mut self) -> ConnectionId {
        // spec: rfc9000 5.1 ids-tell-nothing, 5.1 id-issued-once, 10.3.2 id-and-key-once
        // spec: rfc9000 10.3.2 reset-id-not-reused
        loop {
            let id = random_id(&mut self.rng);
            let is_own = self.steering().is_none_or(|steering| steering.owns(id.as_slice()));
            if is_own && !self.routes.contains(&id) {
                return id;
            }
        }
    }

    /// A datagram whose ID names no connection here and that another endpoint on the same port owns. What it is and
    /// whether it deserves an answer is for that one to say: a stateless reset from here would end a connection that lives.
    pub(super) fn misplaced(&mut self, id: &ConnectionId, data: BytesMut) -> Result<BytesMut, Misplaced> {
        match self.steering().and_then(|steering| Some((steering, steering.owner(id.as_slice())?))) {
            Some((steering, owner)) if owner != steering.index() => {
                self.stats.misplaced += 1;
                Err(Misplaced { owner, data })
            }
            _ => Ok(data),
        }
    }

    fn steering(&self) -> Option<Steering> {
        self.server.as_ref().and_then(|server| server.steering)
    }
}

/// A random ID of the length that this end's IDs have.
pub(super) fn random_id(rng: &mut Rng) -> ConnectionId {
    let mut bytes = [0; LOCAL_ID_LEN];
    rng.fill(&mut bytes);
    ConnectionId::new(&bytes).unwrap_or_default()
}

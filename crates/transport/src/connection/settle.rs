//! What the router learns of a connection that has nothing more to send.

use posthaste_units::Time;
use posthaste_wire::{ConnectionId, ResetToken};

use crate::connection::Connection;
use crate::connection::ids::RouteChange;

/// All that the router brings up to date for a connection.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each named where it is used")]
pub(crate) struct Settled {
    /// Names that the router adds or removes.
    pub(crate) route_changes: Vec<RouteChange>,
    /// The reset tokens of the IDs in use, if they or the peer's address have changed.
    pub(crate) reset_tokens: Option<Vec<ResetToken>>,
    /// The peer's address has changed.
    pub(crate) has_moved: bool,
    /// The peer has shown that it receives at its new address.
    pub(crate) is_newly_valid: bool,
    pub(crate) is_handshaking: bool,
    pub(crate) is_closed: bool,
    /// Nothing more will come of the connection.
    pub(crate) is_drained: bool,
    /// When the connection wants to be called.
    pub(crate) deadline: Option<Time>,
}

impl Connection {
    /// The connection has nothing more to send: what has changed for the router since the last call.
    pub(crate) fn settle(&mut self) -> Settled {
        let has_moved = std::mem::take(&mut self.roaming.has_moved);
        let is_renewed = self.remote_ids.take_renewal() || has_moved;
        Settled {
            route_changes: self.local_ids.take_changes(),
            reset_tokens: is_renewed.then(|| self.remote_ids.reset_tokens().collect()),
            has_moved,
            is_newly_valid: std::mem::take(&mut self.roaming.is_newly_valid),
            is_handshaking: self.is_handshaking(),
            is_closed: self.is_closed(),
            is_drained: self.lifecycle.is_drained(),
            deadline: self.timers.next(),
        }
    }

    /// True if the peer would take more names for this end.
    pub(crate) fn wants_connection_id(&self) -> bool {
        self.lifecycle.is_open() && self.handshake.is_complete() && self.local_ids.wants_more()
    }

    /// A further name for this end.
    pub(crate) fn issue_connection_id(&mut self, id: ConnectionId, token: ResetToken) {
        self.local_ids.issue(id, token);
    }

    /// Every name that routes lead to the connection by.
    pub(crate) fn names(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.local_ids.all().chain([self.setup.initial_destination])
    }

    /// True once an authentic packet has come.
    pub(crate) fn has_heard_peer(&self) -> bool {
        self.counters.packets_received > 0
    }

    /// True if it takes a share of the path to its peer: the handshake is complete, and something is in flight.
    pub(crate) fn is_live(&self) -> bool {
        !self.is_handshaking() && !self.is_closed() && !self.path.control.bytes_in_flight().is_zero()
    }
}

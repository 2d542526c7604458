//! What a connection gives back when nothing happens on it: the memory that its collections keep from busier times.
//! Most connections of a server are idle, and what they keep is what a server is made of.

use posthaste_units::Time;

use crate::connection::Connection;
use crate::packet::space::PacketSpace;

impl Connection {
    /// When the connection rests, if nothing happens before: not while anything waits for its acknowledgement.
    pub(crate) fn rest_at(&self) -> Option<Time> {
        let is_busy =
            !self.handshake.is_confirmed() || self.recovery.has_ack_eliciting_in_flight(PacketSpace::Data);
        self.idle.rest_at().filter(|_| !is_busy)
    }

    /// Gives back what is not in use.
    pub(crate) fn rest(&mut self) {
        self.idle.on_rest();
        self.outcome = None;
        self.handshake.rest();
        self.chance.rest();
        self.recovery.shrink();
        self.acks.shrink();
        self.streams.shrink();
        self.events.shrink();
        self.local_ids.shrink();
        self.remote_ids.shrink();
        self.new_tokens.shrink();
    }
}

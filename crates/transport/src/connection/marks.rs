//! Marks: 1-RTT packets with a PING and nothing else, at the ends of the last two datagrams of a server's first flight.
//!
//! A client acknowledges them in 1-RTT packets, which the server still reads when its Handshake keys are gone. Between them
//! a packet number is left out, so that the second is acknowledged at once (RFC 9000 section 13.2.1), and by itself: how
//! far behind the client's own data that comes tells a thin uplink from a slow path.

use posthaste_wire::Side;

use crate::connection::Connection;
use crate::packet::space::PacketSpace;

impl Connection {
    /// Has a mark written behind the Handshake packet of the datagram under construction, if it is the second datagram of a
    /// server's first flight (`is_split`) or the copy that follows it. True if it is due: a PING then waits.
    pub(super) fn mark_datagram(&mut self, is_split: bool) -> bool {
        let is_measured = self.side() == Side::Server
            && !self.handshake.is_complete()
            && self.path.control.measures_handshake()
            && self.handshake.has_keys(PacketSpace::Data);
        // The answer to a request that came early is acknowledged like a mark.
        if !is_measured || self.has_frames(PacketSpace::Data) {
            return false;
        }
        match self.recovery.next_number(PacketSpace::Data) {
            0 if is_split => {}
            1 if self.repairs.copies_handshake() => self.recovery.skip_next(),
            _ => return false,
        }
        self.path.control.on_mark(self.recovery.next_number(PacketSpace::Data));
        self.eliciting.ping();
        true
    }
}

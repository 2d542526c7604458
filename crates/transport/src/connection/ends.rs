//! 1-RTT packets with a PING and nothing else, at the ends of the last two datagrams of a server's first flight.
//!
//! A client acknowledges them in 1-RTT packets, which the server still reads when its Handshake keys are gone. Between them
//! a packet number is left out, so that the second is acknowledged at once (RFC 9000 section 13.2.1), and by itself: how
//! far behind the client's own data that comes tells a thin uplink from a slow path.

use posthaste_wire::Side;

use crate::connection::Connection;
use crate::packet::builder::DatagramBuilder;
use crate::packet::space::PacketSpace;

/// The size of such a packet at the most: a short header with the longest connection ID, a payload large enough for header
/// protection, and the tag.
const END_LEN: usize = 1 + 20 + 4 + 4 + 16;

impl Connection {
    /// Has such a packet written behind the Handshake packet of `datagram`, if that is the second of a server's first flight
    /// (`is_split`) or the copy that follows it. The packet before it takes the padding, because how much of the handshake
    /// was acknowledged counts too.
    pub(super) fn end_datagram(&mut self, is_split: bool, datagram: &mut DatagramBuilder<'_>) {
        let is_measured = self.side() == Side::Server
            && !self.handshake.is_complete()
            && self.path.control.measures_handshake()
            && self.handshake.has_keys(PacketSpace::Data);
        // The answer to a request that came early is acknowledged like such a packet.
        if !is_measured || self.has_frames(PacketSpace::Data) {
            return;
        }
        let number = self.recovery.next_number(PacketSpace::Data);
        let is_second = number == 0 && is_split;
        let is_third = number == 1 && self.repairs.copies_handshake();
        if !(is_second || is_third) || !datagram.pad_last(END_LEN) {
            return;
        }
        if is_third {
            self.recovery.skip_next();
        }
        self.path.control.on_datagram_end(self.recovery.next_number(PacketSpace::Data));
        self.eliciting.ping();
    }
}

//! A client's answer to a Retry (RFC 9000 section 17.2.5.2).

use bytes::Bytes;
use posthaste_units::Time;
use posthaste_wire::Side;
use posthaste_wire::packet::{Header, PacketType, ProtectedPacket};

use super::Connection;
use super::receive::Outcome;
use crate::limits;
use crate::packet::datagram::Dropped;
use crate::packet::retry::is_intact;
use crate::packet::space::PacketSpace;

impl Connection {
    /// The server wants the client to show that it receives at its address: the handshake starts over, with the
    /// server's token and to the ID that it has chosen (section 17.2.5.2).
    pub(crate) fn on_retry(&mut self, now: Time, packet: &ProtectedPacket) -> Outcome {
        let token = packet.token();
        // Only the first answer counts, and only one Retry.
        // spec: rfc9000 17.2.5.2 one-retry, 17.2.5.2 late-retry-dropped
        let is_late = self.setup.peer_id_is_fixed || self.setup.retry_source.is_some();
        let is_acceptable = matches!(
            packet.header,
            // spec: rfc9000 17.2.5.1 retry-same-id-dropped
            Header::Retry { scid, .. } if scid != *self.remote_ids.current()
        ) && self.side() == Side::Client
            && !is_late
            && token.len() <= limits::RETRY_TOKEN
            // spec: rfc9000 17.2.5.2 retry-tag-checked
            && is_intact(self.setup.version, &self.setup.original_destination, &packet.bytes);
        let (true, Some(source), Some(suite)) =
            (is_acceptable, packet.header.scid(), &self.setup.initial_suite)
        else {
            return self.drop_packet(now, Some(PacketType::Retry), Dropped::Invalid);
        };
        self.handshake.replace_initial_keys(suite.derive(self.setup.version, &source, self.side()));
        // spec: rfc9000 8.1.3 retry-token-at-once, 8.1.3 retry-token-not-kept
        self.setup.token = Bytes::copy_from_slice(token);
        self.setup.retry_source = Some(source);
        // spec: rfc9000 17.2.5.1 retry-id-used, 17.2.5.2 source-id-kept
        self.remote_ids.set_handshake_id(source);
        self.log.retry_received(now, packet.bytes.len());
        // spec: rfc9000 17.2.5.3 numbers-go-on, 17.2.5.3 same-hello, 17.2.3 new-numbers-after-retry
        // Packet numbers go on (section 17.2.5.3); what they carried goes again, and congestion has not been shown.
        self.repairs.on_retry();
        for space in [PacketSpace::Initial, PacketSpace::Data] {
            let forgotten = self.recovery.requeue_all(space, self.outcome.get_or_insert_default());
            self.path.control.on_forgotten(now, forgotten);
        }
        self.settle_outcome(now);
        // Nothing vouches for the sender but that it has seen our packet: it does not count as authentic.
        Outcome::Dropped
    }
}

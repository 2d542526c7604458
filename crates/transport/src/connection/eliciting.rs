//! Packets that the peer must acknowledge though there is nothing to tell it: probes and PING frames (RFC 9000
//! section 13.2.4, RFC 9002 section 6.2.4).

use posthaste_wire::{Frame, Side};

use crate::packet::frame_owner::FrameOwner;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;
use crate::packet::space::{PacketSpace, PerSpace};

/// Packets of ACK alone in a row after which one may ask for an ACK.
const BARE_ACKS_BEFORE_PING: u32 = 16;

/// What a connection owes in ack-eliciting packets.
#[derive(Debug)]
pub(crate) struct Eliciting {
    side: Side,
    /// Probe packets owed.
    probes: PerSpace<u8>,
    ping_is_due: bool,
    /// Packets without anything ack-eliciting sent in a row.
    bare_acks: u32,
}

impl Eliciting {
    pub(crate) fn new(side: Side) -> Self {
        Self { side, probes: PerSpace::default(), ping_is_due: false, bare_acks: 0 }
    }

    /// A probe timeout has expired: so many packets must leave, whatever the window says.
    pub(crate) fn owe_probes(&mut self, space: PacketSpace, packets: u8) {
        self.probes[space] = packets;
    }

    /// At least one packet of the space must leave as a probe would.
    pub(crate) fn owe_probe(&mut self, space: PacketSpace) {
        self.probes[space] = self.probes[space].max(1);
    }

    /// True if the space's next packet is a probe.
    pub(crate) fn owes_probe(&self, space: PacketSpace) -> bool {
        self.probes[space] > 0
    }

    /// The space's keys are gone.
    pub(crate) fn discard_space(&mut self, space: PacketSpace) {
        self.probes[space] = 0;
    }

    /// Sends a PING with the next packet.
    pub(crate) fn ping(&mut self) {
        self.ping_is_due = true;
    }

    pub(crate) fn is_ping_due(&self) -> bool {
        self.ping_is_due
    }

    /// A packet leaves.
    pub(crate) fn on_packet_sent(&mut self, space: PacketSpace, ack_eliciting: bool) {
        if ack_eliciting {
            self.bare_acks = 0;
            self.probes[space] = self.probes[space].saturating_sub(1);
        } else {
            self.bare_acks = self.bare_acks.saturating_add(1);
        }
    }

    /// True if a packet of ACK alone may ask for an ACK. Those between keep two ends from acknowledging each other's
    /// acks.
    pub(crate) fn may_elicit(&self) -> bool {
        // spec: rfc9000 13.2.1 not-all-elicit
        self.bare_acks >= BARE_ACKS_BEFORE_PING
    }
}

impl FrameOwner for Eliciting {
    fn has_unsent(&self) -> bool {
        self.ping_is_due
    }

    fn write(&mut self, writer: &mut FrameWriter<'_>) {
        // Alone, NEW_CONNECTION_ID would only probe the path (RFC 9000 section 9.1): a server that has lost sight of a
        // client that has moved would not follow.
        let is_id = |frame: &SentFrame| matches!(frame, SentFrame::NewConnectionId(_));
        self.ping_is_due |= self.side == Side::Client && writer.records().iter().any(is_id);
        if self.ping_is_due {
            self.ping_is_due = !writer.push(&Frame::Ping, None);
        }
    }

    fn on_acked(&mut self, _: &SentFrame) -> bool {
        false
    }

    fn on_lost(&mut self, _: &SentFrame) -> bool {
        false
    }
}

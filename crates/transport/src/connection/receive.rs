//! A datagram in: split, unprotect, decode, hand each frame to its owner (RFC 9000 section 12, RFC 9001
//! section 5).

use bytes::BytesMut;
use posthaste_units::Time;
use posthaste_wire::Side;
use posthaste_wire::frame;
use posthaste_wire::packet::header::{KEY_PHASE, LONG_RESERVED, SHORT_RESERVED};
use posthaste_wire::packet::{Header, PacketType, ProtectedPacket, number};

use crate::acks::received::Arrival;
use crate::connection::Connection;
use crate::connection::ids::LOCAL_ID_LEN;
use crate::crypto::{Opened, remove_header_protection};
use crate::error::{Fault, PeerError, TransportErrorCode};
use crate::events::CloseReason;
use crate::handshake::setup::KeptPacket;
use crate::limits;
use crate::packet::builder::MIN_INITIAL_DATAGRAM;
use crate::packet::datagram::{Arrived, DatagramInfo, Dropped, PacketContext};
use crate::packet::space::PacketSpace;

/// What became of a packet.
pub(crate) enum Outcome {
    /// It was authentic (a duplicate included).
    Authentic,
    /// It was dropped.
    Dropped,
}

impl Connection {
    /// Takes in a datagram that the router found to be for this connection. False if it was noise that changed
    /// nothing, so that the connection need not be polled: a flood of forged packets then costs little more than
    /// to find them forged.
    ///
    /// Never fails: what is wrong with it is counted, or closes the connection.
    pub(crate) fn on_datagram(&mut self, now: Time, info: &DatagramInfo, data: BytesMut) -> bool {
        let arrived = Arrived { info: *info, len: data.len() };
        if !self.admit(&arrived) {
            self.counters.packets_dropped += 1;
            return false;
        }
        self.counters.received.add(data.len());
        if !self.lifecycle.is_open() {
            self.lifecycle.on_datagram();
            return true;
        }
        self.expire_early_keys(now);
        // A client leaves the choice to the system, which knows when the network changes.
        if self.path.local_ip.is_none() && self.side() == Side::Server {
            self.path.local_ip = info.local_ip;
        }
        let trailer = last_bytes(&data);
        let mut is_authentic = false;
        let is_small = data.len() < MIN_INITIAL_DATAGRAM;
        // spec: rfc9000 12.2 each-packet-itself, 12.2 rest-is-tried
        let packets = posthaste_wire::packet::split(data, LOCAL_ID_LEN);
        // spec: rfc9287 3 cleared-accepted
        for packet in packets.taking_any_fixed_bit(self.config.grease) {
            let Ok(packet) = packet else {
                self.drop_packet(now, None, Dropped::Invalid);
                continue;
            };
            // spec: rfc9369 4.1 others-dropped
            // spec: rfc9000 5.2.1 other-version-dropped
            let is_other_version =
                packet.header.version().is_some_and(|version| version != self.setup.version);
            if is_other_version || self.is_improper_initial(&packet, is_small) {
                self.drop_packet(now, Some(packet.header.packet_type()), Dropped::Invalid);
                continue;
            }
            is_authentic |= matches!(self.on_packet(now, arrived, packet), Outcome::Authentic);
            if !self.lifecycle.is_open() {
                break;
            }
        }
        if is_authentic {
            self.idle.on_peer_heard(now);
            if self.handshake.is_confirmed() {
                self.recovery.on_peer_heard();
            }
            if self.side() == Side::Client {
                self.note_local_ip(now, info.local_ip);
            }
        } else if trailer.is_some_and(|token| self.remote_ids.is_reset_token(&token)) {
            // spec: rfc9000 10.3.1 token-compared, 10.3.1 reset-drains
            self.drain(now, CloseReason::StatelessReset);
        }
        if !is_authentic && self.is_deaf_to_noise() {
            return false;
        }
        self.timers.set_stale();
        if self.lifecycle.is_open() {
            self.trace_state(now);
        }
        true
    }

    /// True if a datagram without an authentic packet can have changed nothing but counters. Before the handshake is
    /// confirmed it may begin anew or wait for its keys; an address that is not validated may be sent more for it.
    fn is_deaf_to_noise(&self) -> bool {
        self.lifecycle.is_open()
            && self.handshake.is_confirmed()
            && self.path.validation.is_valid()
            && self.roaming.others.is_empty()
    }

    /// A client's Initial must come in a full datagram (RFC 9000 section 14.1), a server's carries no token
    /// (section 17.2.2).
    fn is_improper_initial(&self, packet: &ProtectedPacket, is_small: bool) -> bool {
        // spec: rfc9000 14.1 small-initial-dropped, 14 size-closes-nothing, 8.2.1 small-challenge-taken
        // spec: rfc9000 17.2.2 server-token-refused
        matches!(packet.header, Header::Initial { .. })
            && match self.side() {
                Side::Server => is_small,
                Side::Client => !packet.token().is_empty(),
            }
    }

    fn on_packet(&mut self, now: Time, arrived: Arrived, packet: ProtectedPacket) -> Outcome {
        let (space, packet_type) = match &packet.header {
            Header::Initial { .. } => (PacketSpace::Initial, PacketType::Initial),
            Header::Handshake { .. } => (PacketSpace::Handshake, PacketType::Handshake),
            Header::Short { .. } => (PacketSpace::Data, PacketType::Short),
            Header::VersionNegotiation { .. } => return self.on_version_negotiation(now, &packet),
            Header::Retry { .. } => return self.on_retry(now, &packet),
            Header::ZeroRtt { .. } => (PacketSpace::Data, PacketType::ZeroRtt),
        };
        if !self.is_readable(space, packet_type) {
            return self.keep(now, packet, arrived, space, packet_type);
        }
        let source = packet.header.scid();
        // spec: rfc9000 7.2 renamed-server-dropped, 7.2 renamed-initial-dropped
        let is_renamed = source.is_some_and(|source| source != *self.remote_ids.current());
        if self.setup.peer_id_is_fixed && is_renamed {
            // RFC 9000 section 7.2: the peer's ID does not change in the handshake.
            return self.drop_packet(now, Some(packet_type), Dropped::Invalid);
        }
        let (destination, size) = (packet.header.dcid(), packet.bytes.len());
        let opened = match packet_type {
            PacketType::ZeroRtt => Ok(self.open_early(packet)),
            _ => self.unprotect(now, space, packet),
        };
        let opened = match opened {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.drop_packet(now, Some(packet_type), Dropped::Undecryptable),
            Err(fault) => {
                self.fail(now, fault);
                return Outcome::Authentic;
            }
        };
        // spec: rfc9000 7.2 client-renames-once
        if let (false, Some(source)) = (self.setup.peer_id_is_fixed, source) {
            self.remote_ids.set_handshake_id(source);
            self.setup.peer_id_is_fixed = true;
        }
        let context = PacketContext { now, space, packet_type, destination, size, arrived };
        if let Err(fault) = self.on_opened(&context, opened) {
            self.fail(now, fault);
        }
        Outcome::Authentic
    }

    /// True if there are keys for the packet, and it may be processed.
    fn is_readable(&self, space: PacketSpace, packet_type: PacketType) -> bool {
        match packet_type {
            // Only clients send them.
            // spec: rfc9001 5.6 client-drops-early
            PacketType::ZeroRtt => self.side() == Side::Server && self.handshake.early_keys().is_some(),
            // spec: rfc9001 5.7 no-early-opening, 5.7 server-waits, 5.7 client-waits
            // 1-RTT packets must not be processed before the handshake is complete (RFC 9001 section 5.7).
            PacketType::Short => self.handshake.is_complete() && self.handshake.has_keys(space),
            _ => self.handshake.has_keys(space),
        }
    }

    pub(crate) fn drop_packet(&mut self, now: Time, of: Option<PacketType>, why: Dropped) -> Outcome {
        self.counters.packets_dropped += 1;
        self.log.packet_dropped(now, of, why);
        Outcome::Dropped
    }

    /// Keeps a packet whose keys have yet to come.
    fn keep(
        &mut self,
        now: Time,
        packet: ProtectedPacket,
        arrived: Arrived,
        space: PacketSpace,
        packet_type: PacketType,
    ) -> Outcome {
        let is_awaited = match packet_type {
            PacketType::ZeroRtt => self.handshake.awaits_early_keys(),
            _ => self.handshake.awaits_keys(space),
        };
        if is_awaited && self.setup.kept_packets.len() < limits::UNDECRYPTABLE_PACKETS {
            self.log.packet_kept(now, packet_type, packet.bytes.len());
            self.setup.kept_packets.push(KeptPacket { packet, arrived });
            return Outcome::Dropped;
        }
        if packet_type == PacketType::ZeroRtt {
            self.note_early_refusal();
        }
        self.drop_packet(now, Some(packet_type), Dropped::NoKeys)
    }

    /// New keys have come: tries the packets that were kept. Those whose keys are still to come stay.
    pub(crate) fn open_kept_packets(&mut self, now: Time) {
        for kept in std::mem::take(&mut self.setup.kept_packets) {
            if !self.lifecycle.is_open() {
                return;
            }
            if matches!(self.on_packet(now, kept.arrived, kept.packet), Outcome::Authentic) {
                self.idle.on_peer_heard(now);
            }
        }
    }

    /// Removes a packet's protection; `None` if it is not authentic.
    fn unprotect(
        &mut self,
        now: Time,
        space: PacketSpace,
        mut packet: ProtectedPacket,
    ) -> Result<Option<Opened>, Fault> {
        // spec: rfc9001 9.5 opening-without-side-channel
        let largest = self.acks.received[space].largest();
        let number_at = packet.number_at;
        if space != PacketSpace::Data {
            let Some(keys) = self.handshake.long_keys(space) else { return Ok(None) };
            let header_key = &*keys.remote.header;
            let Some(unmasked) = remove_header_protection(&mut packet.bytes, number_at, header_key) else {
                return Ok(None);
            };
            let number = number::decode(largest, unmasked.truncated, unmasked.number_len);
            return Ok(crate::crypto::open(packet.bytes, number_at, unmasked, number, &*keys.remote.packet));
        }
        // Keys of the phase before are kept for three probe timeouts (RFC 9001 section 6.5).
        let discard_at = now + self.probe_timeout() * 3;
        let Some(keys) = self.handshake.one_rtt_mut() else { return Ok(None) };
        let Some(unmasked) = remove_header_protection(&mut packet.bytes, number_at, keys.remote_header())
        else {
            return Ok(None);
        };
        let number = number::decode(largest, unmasked.truncated, unmasked.number_len);
        let which = keys.choose(unmasked.first & KEY_PHASE != 0, number);
        let Some(key) = keys.open_key(which) else { return Ok(None) };
        let Some(opened) = crate::crypto::open(packet.bytes, number_at, unmasked, number, key) else {
            // spec: rfc9001 6.6 forged-limit-closes, 5.5 false-update-dropped
            if keys.on_forged() {
                let reason = "too many forged packets for one key";
                return Err(PeerError::new(TransportErrorCode::AEAD_LIMIT_REACHED, reason).into());
            }
            return Ok(None);
        };
        let updates = keys.updates();
        keys.on_opened(which, number, discard_at)?;
        if keys.updates() != updates {
            self.log.keys_updated_by_peer();
        }
        Ok(Some(opened))
    }

    fn on_opened(&mut self, context: &PacketContext, opened: Opened) -> Result<(), Fault> {
        let violation = |reason| PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason);
        let is_short = context.packet_type == PacketType::Short;
        let reserved = if is_short { SHORT_RESERVED } else { LONG_RESERVED };
        // spec: rfc9000 17.2 long-reserved-checked, 17.3.1 short-reserved-checked
        if opened.first & reserved != 0 {
            return Err(violation("reserved header bits are set").into());
        }
        self.counters.packets_received += 1;
        // spec: rfc9000 12.3 duplicates-dropped, 12.3 duplicates-after-opening
        let rtt = self.path.control.rtt();
        let rtt = rtt.is_measured.then_some(rtt.smoothed);
        let Arrival::New { .. } = self.acks.on_packet(context, opened.number, rtt) else {
            self.drop_packet(context.now, Some(context.packet_type), Dropped::Duplicate);
            return Ok(());
        };
        self.log.packet_received(context, opened.number, &opened.payload);
        self.follow_port(context, opened.number);
        if context.space == PacketSpace::Handshake && self.side() == Side::Server {
            // The client has our Handshake keys, hence received at its address (RFC 9000 section 8.1), and
            // needs Initial packets no longer (RFC 9001 section 4.9.1).
            // spec: rfc9001 4.9.1 server-drops-initial
            self.path.validation.set_valid();
            self.discard_space(context.now, PacketSpace::Initial);
        }
        let mut ack_eliciting = false;
        let mut is_probing = true;
        let mut frames = 0_usize;
        for frame in frame::Iter::new(opened.payload) {
            let frame = frame?;
            // spec: rfc9000 12.4 misplaced-frame-closes, 17.2.4 handshake-frames-only
            // spec: rfc9001 8.3 crypto-in-early-closes
            if !frame::is_allowed_in(&frame, context.packet_type) {
                return Err(violation("frame not permitted in this packet")
                    .in_frame(frame.frame_type())
                    .into());
            }
            frames += 1;
            ack_eliciting |= frame.is_ack_eliciting();
            is_probing &= frame.is_probing();
            self.dispatch(context, frame)?;
            if !self.lifecycle.is_open() {
                break;
            }
        }
        // spec: rfc9000 12.4 empty-packet-closes
        if frames == 0 {
            return Err(violation("packet without frames").into());
        }
        // spec: rfc9000 13.1 acked-when-processed
        let ecn = context.arrived.info.ecn;
        self.acks.received[context.space].record(context.now, opened.number, ack_eliciting, ecn);
        let is_newest = self.acks.received[context.space].largest() == Some(opened.number);
        if context.space == PacketSpace::Data && is_newest && !is_probing {
            self.on_newest_packet(context);
        }
        self.after_frames(context, ack_eliciting)
    }

    /// What a packet's frames have set off together: the handshake's next steps.
    fn after_frames(&mut self, context: &PacketContext, ack_eliciting: bool) -> Result<(), Fault> {
        if !self.lifecycle.is_open() {
            return Ok(());
        }
        if self.handshake.take_news() {
            self.advance_handshake(context.now)?;
        } else if ack_eliciting && context.space != PacketSpace::Data {
            self.answer_probe(context.now);
        }
        Ok(())
    }

    /// A server answers a version that it does not speak with a list of those that it does (RFC 9000
    /// section 6.2). Believed only as the very first answer, and only if our version is not in it.
    fn on_version_negotiation(&mut self, now: Time, packet: &ProtectedPacket) -> Outcome {
        let Header::VersionNegotiation { versions, .. } = &packet.header else {
            return self.drop_packet(now, None, Dropped::Invalid);
        };
        // spec: rfc9368 2.1 own-version-ignored, 2.1 wrong-ids-ignored, 2.1 nothing-common-aborts, 4 original-ignored
        // spec: rfc9000 6.2 attempt-abandoned, 6.2 late-negotiation-dropped, 6.2 own-version-in-list
        let is_late = self.setup.peer_id_is_fixed || self.setup.retry_source.is_some();
        // It names the packet that it answers: only who has seen that can have sent it (RFC 9000 section 17.2.1).
        let is_foreign = packet.header.scid() != Some(*self.remote_ids.current());
        let is_wrong = is_late || is_foreign || versions.contains(&self.setup.version);
        if self.side() == Side::Server || is_wrong {
            return self.drop_packet(now, Some(PacketType::VersionNegotiation), Dropped::Invalid);
        }
        let reason = CloseReason::VersionMismatch(versions.clone());
        self.drain(now, reason);
        Outcome::Dropped
    }
}

/// The last 16 bytes of a datagram that is long enough for a stateless reset (RFC 9000 section 10.3).
fn last_bytes(data: &[u8]) -> Option<[u8; 16]> {
    if data.len() < 21 {
        return None;
    }
    data.last_chunk().copied()
}

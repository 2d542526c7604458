//! Who may send now, and what: datagrams out (RFC 9000 section 12, RFC 9002 section 7).

use posthaste_units::Time;
use posthaste_wire::frame::{CloseFrame, CloseKind};
use posthaste_wire::packet::number::{self, TruncatedNumber};
use posthaste_wire::{ConnectionId, Frame, Side};

use crate::acks::received::Written;
use crate::config::ACK_DELAY_EXPONENT;
use crate::connection::Connection;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::timers::Timer;
use crate::connection::waiting::Reason;
use crate::control::budget::{Budget, Limit};
use crate::crypto::{OneRttKeys, SealError, seal};
use crate::error::TransportErrorCode;
use crate::events::CloseReason;
use crate::handshake::Handshake;
use crate::limits;
use crate::packet::builder::{DatagramBuilder, HeaderFields, OpenPacket, Packets, Sealable};
use crate::packet::datagram::Transmit;
use crate::packet::frame_owner::FrameOwner as _;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::space::PacketSpace;
use crate::recovery::{Outgoing, Repeat};

/// Least bytes of packet numbers where packets are repeated: as many as they have in any flight of less than 32,768.
const REPEATED_NUMBER_LEN: u8 = 2;

/// The room that an ACK frame is taken to need: a few ranges, a delay and ECN counts.
const ACK_LEN: usize = 64;

/// Ranges in an ACK frame from which on it is worth to have old ones forgotten.
const RANGES_BEFORE_PING: usize = 8;

/// What a datagram may contain besides acks and probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permit {
    /// Anything: window and pacer have room.
    Everything,
    /// Only what is not congestion-controlled.
    AcksAndProbes,
}

impl Connection {
    /// Appends at most `max_segments` datagrams to `buffer`, all but the last of one size.
    ///
    /// Call until `None` after each call that takes `&mut self`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        max_segments: usize,
    ) -> Option<Transmit> {
        let start = buffer.len();
        self.path.control.begin_batch();
        // spec: rfc9000 12.3 last-number-ends
        if self.lifecycle.is_open() && self.recovery.is_exhausted() {
            let reason = CloseReason::Local { error_code: TransportErrorCode::INTERNAL_ERROR.0 };
            self.log.closed(now, &reason, None);
            self.vanish(reason);
        }
        if self.lifecycle.is_open()
            && let Some(transmit) = self.transmit_alone(now, buffer)
        {
            self.update_timers(now);
            return Some(transmit);
        }
        let segment_size = match &self.lifecycle {
            Lifecycle::Open => self.transmit_open(now, buffer, max_segments),
            Lifecycle::Closing(_) => self.transmit_close(now, buffer),
            // spec: rfc9000 10.2.2 draining-is-silent, 10.2.2 silent-after-close
            Lifecycle::Draining | Lifecycle::Drained => None,
        };
        self.update_timers(now);
        let size = buffer.len() - start;
        let segment_size = segment_size.filter(|_| size > 0)?;
        Some(Transmit {
            remote: self.path.remote,
            local_ip: self.path.local_ip,
            ecn: self.path.control.ecn_codepoint(),
            size,
            segment_size: (size > segment_size).then_some(segment_size),
        })
    }

    /// A datagram that must not be one of a batch.
    fn transmit_alone(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Transmit> {
        self.transmit_probing(now, buffer).or_else(|| self.transmit_mtu_probe(now, buffer))
    }

    /// Fills the buffer datagram by datagram; returns the size of the first.
    fn transmit_open(&mut self, now: Time, buffer: &mut Vec<u8>, max_segments: usize) -> Option<usize> {
        let start = buffer.len();
        let mut first = None;
        for _ in 0..max_segments {
            let limit = first.unwrap_or(self.next_size());
            // spec: rfc9000 8 three-times-at-most, 8.1 server-three-times, 14.1 server-limited
            // spec: rfc9000 9.3 unvalidated-is-limited, 8.1.4 changed-address-limited
            // A datagram that is larger than a batch may be leaves alone.
            let is_full = buffer.len() > start && buffer.len() - start + limit > limits::TRANSMIT_BYTES;
            let is_unproven = self.path.amplification_budget() < limit;
            if is_unproven || is_full {
                self.waiting.set(now, is_unproven.then_some(Reason::Validation));
                break;
            }
            let (permit, room, wants) = self.permit(now);
            let before = buffer.len();
            // A datagram that takes the rest of a window is smaller than the others, and therefore the last.
            let size = room.map_or(limit, |room| limit.min(room));
            let Ok(is_bulk) = self.transmit_datagram(now, buffer, size, permit, wants) else {
                // spec: rfc9001 6.6 no-update-no-connection
                self.fail_locally(now, TransportErrorCode::AEAD_LIMIT_REACHED, "a key is used up");
                break;
            };
            let written = buffer.len() - before;
            if written == 0 {
                break;
            }
            self.path.on_sent(written);
            self.counters.sent.add(written);
            first.get_or_insert(written);
            if !is_bulk || written < limit {
                break;
            }
            self.path.mtu.on_full_datagram();
        }
        if buffer.len() == start { None } else { first }
    }

    /// Size of the next datagram at most: the path's, unless the profile has packets follow the window. What is cut for
    /// whole datagrams (messages, and what a repair policy repeats or codes) would not fit into smaller ones.
    fn next_size(&self) -> usize {
        let largest = self.path.datagram_limit();
        let is_cut = self.datagrams.has_unsent() || !self.repairs.is_idle();
        if is_cut { largest } else { self.path.control.packet_size(largest) }
    }

    /// Asks window and pacer, and sets the pacing timer or notes that the sender has run dry. With the answer comes
    /// the size of the next datagram, where it has to be smaller than others for the window's sake, and whether anything
    /// waits that window and pacer hold back.
    fn permit(&mut self, now: Time) -> (Permit, Option<usize>, bool) {
        let wants = self.has_controlled_frames();
        let (permit, room) = self.permit_for(now, wants);
        let reason = self.reason_to_wait(wants, permit);
        self.waiting.set(now, reason);
        (permit, room, wants)
    }

    /// What sending waits for; `None` while it goes on, or before there is anything to say of the application.
    fn reason_to_wait(&self, wants: bool, permit: Permit) -> Option<Reason> {
        match (wants, permit) {
            (true, Permit::Everything) => None,
            (true, _) if self.timers.get(Timer::Pacing).is_some() => Some(Reason::Pacing),
            (true, _) => Some(Reason::Window),
            (false, _) if self.streams.waits_for_credit() => Some(Reason::Credit),
            (false, _) => self.handshake.is_complete().then_some(Reason::Application),
        }
    }

    fn permit_for(&mut self, now: Time, wants: bool) -> (Permit, Option<usize>) {
        let Budget { bytes, limited_by } = self.path.control.budget(now, wants);
        self.timers.set(Timer::Pacing, None);
        if !wants && self.handshake.is_complete() {
            self.path.control.on_app_limited(now);
        }
        // The probes of a silence go on only while something is in flight that calls for them.
        if self.path.control.holds_back() && self.recovery.has_ack_eliciting_in_flight(PacketSpace::Data) {
            return (Permit::AcksAndProbes, None);
        }
        if !self.repairs.is_idle() {
            if !wants {
                self.repair(now, Budget { bytes, limited_by });
            } else if bytes >= self.path.max_datagram_size().into() && self.answers_early() {
                self.repair_handshake(now, true);
            }
        }
        // spec: rfc9002 7 within-window, 7.5 probes-unblocked
        let is_whole = bytes >= self.path.max_datagram_size().into();
        // Probes are whole datagrams, whatever is left of the window.
        if is_whole || (!bytes.is_zero() && self.eliciting.owes_probe(PacketSpace::Data)) {
            return (Permit::Everything, None);
        }
        // The handshake's datagrams have sizes of their own.
        if !bytes.is_zero() && self.handshake.is_confirmed() {
            return (Permit::Everything, usize::try_from(bytes.get()).ok());
        }
        if let (true, Limit::Pacer { until }) = (wants, limited_by) {
            self.timers.set(Timer::Pacing, Some(until));
        }
        (Permit::AcksAndProbes, None)
    }

    /// True if anything waits that window and pacer hold back.
    fn has_controlled_frames(&mut self) -> bool {
        // Most often it is data, and then the other spaces need no look.
        let mut spaces = PacketSpace::ALL.into_iter().rev();
        spaces.any(|space| self.handshake.can_send(space) && self.has_frames(space))
    }

    pub(crate) fn has_frames(&mut self, space: PacketSpace) -> bool {
        self.handshake.has_frames(space) || (space == PacketSpace::Data && self.has_owned_frames())
    }

    /// True if a packet of the space should leave now.
    fn wants_packet(&mut self, now: Time, space: PacketSpace, permit: Permit, has_data: bool) -> bool {
        self.handshake.can_send(space)
            && (self.eliciting.owes_probe(space)
                || self.acks.received[space].deadline().is_some_and(|deadline| deadline <= now)
                || (permit == Permit::Everything && (has_data || self.has_frames(space))))
    }

    /// Builds one datagram. True if another of the same size may follow: a lone 1-RTT packet.
    fn transmit_datagram(
        &mut self,
        now: Time,
        buffer: &mut Vec<u8>,
        limit: usize,
        permit: Permit,
        wants: bool,
    ) -> Result<bool, SealError> {
        // Once the handshake is confirmed, what waits is for 1-RTT packets, and is not looked for twice.
        let has_data = wants && self.handshake.is_confirmed();
        let mut datagram = DatagramBuilder::new(buffer, limit);
        let mut is_bulk = true;
        let mut has_handshake = false;
        let before = self.streams.sent_and_resent();
        let is_split = self.splits_handshake();
        for space in PacketSpace::ALL {
            self.fill_probe(now, space);
            if space == PacketSpace::Data && has_handshake {
                self.end_datagram(is_split, &mut datagram);
            }
            if !self.wants_packet(now, space, permit, has_data && space == PacketSpace::Data) {
                continue;
            }
            let written = self.add_packet(space, &mut datagram, |connection, writer| {
                connection.write_frames(now, space, permit, writer);
            });
            is_bulk &= !written || space == PacketSpace::Data;
            has_handshake |= written && space == PacketSpace::Handshake;
            if written && is_split {
                datagram.pad_to(limit);
                if space == PacketSpace::Initial {
                    break;
                }
            }
        }
        let Self { handshake, log, eliciting, .. } = self;
        let (_, packets) = datagram.finish(|packet, sealable| {
            let is_probe = eliciting.owes_probe(packet.space) && packet.ack_eliciting;
            log.packet_sent(now, packet, &sealable, is_probe);
            seal_packet(handshake, packet, sealable)
        })?;
        for packet in packets {
            let repeat = self.repetition(now, packet.space, packet.size(), before);
            self.on_packet_sent(now, packet, repeat);
        }
        Ok(is_bulk)
    }

    /// True if the server's first flight, which fits into one datagram, leaves as two full ones for the start policy's
    /// sake: how far apart they are acknowledged is all that is known of the path before data are sent on it.
    fn splits_handshake(&self) -> bool {
        self.side() == Side::Server
            && self.path.control.measures_handshake()
            && self.recovery.next_number(PacketSpace::Handshake) == 0
            && (1..=limits::SPLIT_HANDSHAKE).contains(&self.handshake.unsent(PacketSpace::Handshake))
    }

    /// Seals the datagram; its length and its packets. A key that is used up ends the connection.
    pub(crate) fn seal_datagram(
        &mut self,
        now: Time,
        datagram: DatagramBuilder<'_>,
    ) -> Option<(usize, Packets)> {
        let Self { handshake, log, .. } = self;
        let sealed = datagram.finish(|packet, sealable| {
            log.packet_sent(now, packet, &sealable, false);
            seal_packet(handshake, packet, sealable)
        });
        if sealed.is_err() {
            self.fail_locally(now, TransportErrorCode::AEAD_LIMIT_REACHED, "a key is used up");
        }
        sealed.ok()
    }

    /// A second probe says what the first has said rather than PING: whichever of them arrives leads on (RFC 9002
    /// section 6.2.4). A server that has had nothing but a PING of a client's cannot answer.
    fn fill_probe(&mut self, now: Time, space: PacketSpace) {
        if self.eliciting.owes_probe(space) && self.handshake.has_keys(space) && !self.has_frames(space) {
            self.recovery.frames_to_probe(space, self.outcome.get_or_insert_default());
            self.settle_outcome(now);
        }
    }

    /// Adds a packet of the space whose frames `fill` writes. False if there were none or no room.
    fn add_packet(
        &mut self,
        space: PacketSpace,
        datagram: &mut DatagramBuilder<'_>,
        fill: impl FnOnce(&mut Self, &mut FrameWriter<'_>),
    ) -> bool {
        // spec: rfc9000 12.2 one-id-a-datagram
        let destination = *self.remote_ids.current();
        self.add_packet_to(space, &destination, datagram, fill)
    }

    /// The same, sent to an ID of the peer's that need not be the one in use.
    pub(crate) fn add_packet_to(
        &mut self,
        space: PacketSpace,
        destination: &ConnectionId,
        datagram: &mut DatagramBuilder<'_>,
        fill: impl FnOnce(&mut Self, &mut FrameWriter<'_>),
    ) -> bool {
        // spec: rfc9000 12.3 numbers-used-once
        let number = self.recovery.next_number(space);
        let source = self.local_ids.handshake_id();
        // spec: rfc9000 8.1.2 retry-token-repeated, 8.1.3 kept-token-in-all, 17.2.2 server-token-empty
        let token =
            if space == PacketSpace::Initial { self.setup.token.clone() } else { bytes::Bytes::new() };
        // spec: rfc9287 3.1 no-early-clearing
        let fixed_bit = space != PacketSpace::Data || self.chance.fixed_bit();
        let fields = HeaderFields {
            // spec: rfc9369 4.1 token-in-original, 4.1 crypto-in-negotiated, 4.1 rest-in-negotiated
            version: self.setup.version,
            space,
            // spec: rfc9000 17.2.3 no-early-data-late, rfc9001 5.6 server-never-early, 5.6 no-early-after-data-keys
            is_early: space == PacketSpace::Data && self.handshake.sends_early(),
            number,
            truncated: self.truncated(space, number),
            destination,
            source: &source,
            token: &token,
            fixed_bit,
            key_phase: self.handshake.one_rtt().is_some_and(OneRttKeys::phase),
        };
        datagram.packet(&fields, |writer| fill(self, writer))
    }

    /// The part of a packet number that is sent. Where packets are repeated it has two bytes or more from the start, so that
    /// what filled a packet fits into a later one: a rest in a packet of its own can be lost like the others.
    fn truncated(&self, space: PacketSpace, number: u64) -> TruncatedNumber {
        let least = number::encode(number, self.recovery.largest_acked(space));
        if space == PacketSpace::Data && !self.repairs.is_idle() {
            TruncatedNumber::new(number, least.len.max(REPEATED_NUMBER_LEN))
        } else {
            least
        }
    }

    /// True if an ACK frame that may wait would leave too little room for lost data that would fill the packet.
    fn gives_way(&mut self, now: Time, space: PacketSpace, permit: Permit, room: usize) -> bool {
        let is_due = self.acks.received[space].deadline().is_some_and(|deadline| deadline <= now);
        space == PacketSpace::Data
            && permit == Permit::Everything
            && !is_due
            && !self.repairs.is_idle()
            && self
                .streams
                .next_lost_len()
                .is_some_and(|len| (room.saturating_sub(ACK_LEN)..=room).contains(&len))
    }

    /// Writes all that the space has to say now.
    fn write_frames(&mut self, now: Time, space: PacketSpace, permit: Permit, writer: &mut FrameWriter<'_>) {
        let is_probe = self.eliciting.owes_probe(space);
        // spec: rfc9000 13.2.6 acked-in-its-space, 13.2.6 data-acked-by-data-keys, 13.2.6 early-acked-by-data-keys
        // spec: rfc9000 17.2.3 data-acked-by-data
        if self.acks.received[space].has_news() && !self.gives_way(now, space, permit, writer.remaining()) {
            self.write_ack(now, space, writer);
        }
        if permit == Permit::Everything || is_probe {
            self.handshake.write_frames(space, writer);
            // spec: rfc9000 12.5 others-in-data
            if space == PacketSpace::Data {
                self.write_data_frames(writer);
            }
        }
        // spec: rfc9002 6.2.4 one-probe-least, 6.2.4 probes-elicit
        let is_bare_ack = !writer.is_ack_eliciting();
        if is_bare_ack && (is_probe || self.should_elicit_ack(space)) {
            writer.push(&Frame::Ping, None);
        }
    }

    /// Writes an ACK frame, and has window updates travel with it.
    fn write_ack(&mut self, now: Time, space: PacketSpace, writer: &mut FrameWriter<'_>) {
        let mut limits = None;
        if space == PacketSpace::Data {
            let context = self.credit_context(now);
            self.streams.on_ack_leaving(&context);
            limits = self.streams.limits_to_ride();
        }
        let riding = limits.as_ref().map(|(update, edition)| (update, *edition));
        let written = self.acks.received[space].write_ack(now, writer, ACK_DELAY_EXPONENT, riding);
        if space == PacketSpace::Data {
            let told = limits.as_ref().filter(|_| written == Written::AckWindow);
            self.streams.ack_left(told.map(|(update, _)| update));
        }
        if written == Written::Nothing {
            return;
        }
        self.counters.acks_sent += 1;
        if let (PacketSpace::Data, Some(largest)) = (space, self.acks.received[space].largest())
            && let Some(keys) = self.handshake.one_rtt_mut()
        {
            keys.on_ack_sent(largest);
        }
    }

    /// True if a packet of ACK alone should ask for an ACK in return, so that ranges which the peer has seen need
    /// not be repeated for ever (RFC 9000 section 13.2.4). Only gaps make that worth while, and the packets
    /// between keep two ends from acknowledging each other's acks.
    fn should_elicit_ack(&self, space: PacketSpace) -> bool {
        self.eliciting.may_elicit() && self.acks.received[space].range_count() >= RANGES_BEFORE_PING
    }

    fn write_data_frames(&mut self, writer: &mut FrameWriter<'_>) {
        if self.eliciting.is_ping_due() {
            // A peer that asks for a sign of life again and again keeps probe timeouts from expiring.
            self.local_ids.on_probe();
        }
        for owner in self.frame_owners() {
            owner.write(writer);
        }
    }

    /// Books a packet that is about to leave.
    pub(crate) fn on_packet_sent(&mut self, now: Time, packet: OpenPacket, repeat: Repeat) {
        let size = packet.size();
        let OpenPacket { space, number, frames, ack_eliciting, in_flight, .. } = packet;
        self.counters.packets_sent += 1;
        self.eliciting.on_packet_sent(space, ack_eliciting);
        if ack_eliciting {
            self.counters.ack_eliciting_sent += 1;
            self.idle.on_ack_eliciting_sent(now);
        }
        let ecn_marked = self.path.control.ecn_codepoint().is_some();
        let outgoing = Outgoing {
            space,
            number,
            now,
            bytes: size,
            ack_eliciting,
            in_flight,
            ecn_marked,
            repeat,
            frames,
        };
        self.recovery.on_packet_sent(outgoing, &mut self.path.control);
        if space == PacketSpace::Data {
            self.recovery.plan_skip(self.chance.rng());
        }
        if space == PacketSpace::Handshake && self.side() == Side::Client {
            // spec: rfc9001 4.9.1 client-drops-initial
            // RFC 9001 section 4.9.1: a client needs Initial packets no longer.
            self.discard_space(now, PacketSpace::Initial);
        }
        let is_confirmed = self.handshake.is_confirmed();
        if let (PacketSpace::Data, Some(keys)) = (space, self.handshake.one_rtt_mut()) {
            // spec: rfc9001 6.1 not-before-confirmed
            if is_confirmed && keys.wants_update() {
                keys.rotate();
            }
            if keys.wants_acknowledgement() && !self.recovery.has_ack_eliciting_in_flight(space) {
                self.eliciting.ping();
            }
        }
    }

    /// Writes the close into a packet of every space that the peer may be able to read (RFC 9000
    /// section 10.2.3).
    fn transmit_close(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<usize> {
        let limit = self.path.datagram_limit();
        // spec: rfc9000 10.2.1 close-to-new-address
        if self.path.amplification_budget() < limit {
            return None;
        }
        let close = self.lifecycle.take_due_close()?;
        let start = buffer.len();
        let mut datagram = DatagramBuilder::new(buffer, limit);
        for space in PacketSpace::ALL {
            // spec: rfc9000 10.2.3 confirmed-close-in-data
            let is_needed = space == PacketSpace::Data || !self.handshake.is_confirmed();
            if is_needed && self.handshake.has_keys(space) {
                let frame = readable_close(space, &close);
                self.add_packet(space, &mut datagram, |connection, writer| {
                    connection.write_last_ack(now, space, &frame, writer);
                    writer.push(&Frame::Close(frame), None);
                });
            }
        }
        let Self { handshake, log, .. } = self;
        let sealed = datagram.finish(|packet, sealable| {
            log.packet_sent(now, packet, &sealable, false);
            seal_packet(handshake, packet, sealable)
        });
        let (len, packets) = sealed.ok()?;
        for packet in packets {
            let bytes = packet.size();
            let OpenPacket { space, number, frames, .. } = packet;
            self.counters.packets_sent += 1;
            // Nothing is expected in return; recovery only learns that the number is used.
            let (ack_eliciting, in_flight, ecn_marked) = (false, false, false);
            let repeat = Repeat::default();
            let outgoing =
                Outgoing { space, number, now, bytes, ack_eliciting, in_flight, ecn_marked, repeat, frames };
            self.recovery.on_packet_sent(outgoing, &mut self.path.control);
        }
        self.path.on_sent(len);
        self.counters.sent.add(len);
        (buffer.len() > start).then_some(len)
    }

    /// Acknowledges, in front of the close, what 1-RTT packets have brought: an application that closes once it has read
    /// everything must not leave its peer in doubt whether everything arrived. The close itself keeps its room. A packet that
    /// has broken the rules is not acknowledged, so an end that closes for that says nothing.
    fn write_last_ack(
        &mut self,
        now: Time,
        space: PacketSpace,
        close: &CloseFrame,
        writer: &mut FrameWriter<'_>,
    ) {
        let is_at_peace = close.kind == CloseKind::Application && space == PacketSpace::Data;
        if is_at_peace && self.acks.received[space].has_news() {
            writer.reserve(close.encoded_len());
            self.acks.received[space].write_ack(now, writer, ACK_DELAY_EXPONENT, None);
            writer.reserve(0);
        }
    }

    /// Ends the connection for a reason of this end's own.
    fn fail_locally(&mut self, now: Time, code: TransportErrorCode, reason: &'static str) {
        self.close_with(
            now,
            CloseFrame {
                error_code: code.0,
                kind: CloseKind::Transport { frame_type: 0 },
                reason: bytes::Bytes::from_static(reason.as_bytes()),
            },
            CloseReason::Local { error_code: code.0 },
        );
    }
}

/// The close as the space may carry it: an application's code must not be shown before the handshake is
/// complete (RFC 9000 section 10.2.3).
fn readable_close(space: PacketSpace, close: &CloseFrame) -> CloseFrame {
    // spec: rfc9000 10.2.3 application-close-hidden, 10.2.3 reason-cleared, 12.5 application-close-in-data
    if space == PacketSpace::Data || close.kind != CloseKind::Application {
        return close.clone();
    }
    CloseFrame {
        error_code: TransportErrorCode::APPLICATION_ERROR.0,
        kind: CloseKind::Transport { frame_type: 0 },
        reason: bytes::Bytes::new(),
    }
}

fn seal_packet(
    handshake: &mut Handshake,
    packet: &OpenPacket,
    sealable: Sealable<'_>,
) -> Result<(), SealError> {
    let Sealable { bytes, number_at, header_len } = sealable;
    if packet.is_early {
        let keys = handshake.early_keys_mut().ok_or(SealError)?;
        return keys.seal(bytes, number_at, header_len, packet.number);
    }
    if packet.space == PacketSpace::Data {
        let keys = handshake.one_rtt_mut().ok_or(SealError)?;
        return keys.seal(bytes, number_at, header_len, packet.number);
    }
    let keys = handshake.long_keys(packet.space).ok_or(SealError)?;
    seal(bytes, number_at, header_len, packet.number, &*keys.local.header, &*keys.local.packet)
}

//! What is sent on a path besides data: challenges and their answers (RFC 9000 section 8.2), and probes of its
//! datagram size (section 14.4).

use std::net::SocketAddr;

use posthaste_policy::sample::PacketSample;
use posthaste_units::{Rng, Time};
use posthaste_wire::{ConnectionId, Frame};
use smallvec::SmallVec;

use crate::connection::Connection;
use crate::control::outcome::AckOutcome;
use crate::limits::rate_cap::RateCap;
use crate::packet::builder::{DatagramBuilder, MIN_INITIAL_DATAGRAM, OpenPacket};
use crate::packet::datagram::Transmit;
use crate::packet::ecn::EcnCodepoint;
use crate::packet::sent_frame::SentFrame;
use crate::packet::space::PacketSpace;
use crate::path::Path;
use crate::path::mtu::LargeFates;
use crate::recovery::{Outgoing, Repeat};

/// Room for a challenge and an answer: below it, the anti-amplification limit leaves nothing to say.
const LEAST_PROBING_DATAGRAM: usize = 80;

/// The probing frames of one packet.
type ProbingFrames = SmallVec<[Frame; 4]>;

impl Path {
    /// True if it should be sent a challenge or an answer, and may be.
    fn may_probe(&self, now: Time) -> bool {
        let wants = !self.responses.is_empty() || self.validation.wants_challenge(now);
        wants && self.amplification_budget() >= LEAST_PROBING_DATAGRAM
    }

    /// Size of a datagram of challenges and answers: what every path must carry, if the anti-amplification limit
    /// permits (RFC 9000 section 8.2.1).
    fn probing_size(&self) -> usize {
        // spec: rfc9000 8.2.1 challenge-padded, 8.2.2 response-padded, 8.2.2 response-within-limit
        MIN_INITIAL_DATAGRAM.min(self.amplification_budget())
    }

    fn probing_frames(&mut self, now: Time, responses: &mut RateCap, rng: &mut Rng) -> ProbingFrames {
        let mut frames = ProbingFrames::new();
        // spec: rfc9000 8.2.2 one-response, 8.2.2 response-not-delayed
        while let Some(data) = self.responses.pop_front() {
            if responses.take(now) {
                frames.push(Frame::PathResponse(data));
            }
        }
        if self.validation.wants_challenge(now) {
            let is_full = self.probing_size() >= MIN_INITIAL_DATAGRAM;
            frames.extend(self.validation.challenge(now, is_full, rng).map(Frame::PathChallenge));
        }
        frames
    }

    fn lone_datagram(&self, size: usize, ecn: Option<EcnCodepoint>) -> Transmit {
        Transmit { remote: self.remote, local_ip: self.local_ip, ecn, size, segment_size: None }
    }
}

impl Connection {
    /// One datagram of challenges and answers, on whatever path owes some. They are few, and a path that is not known
    /// to work has no window to wait for.
    pub(crate) fn transmit_probing(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if !self.handshake.has_keys(PacketSpace::Data) || !self.handshake.is_complete() {
            return None;
        }
        if self.path.may_probe(now) {
            let destination = *self.remote_ids.current();
            let size = self.path.probing_size();
            let frames = self.path.probing_frames(now, &mut self.roaming.responses, self.chance.rng());
            if let Some(size) = self.write_probing(now, &destination, &frames, size, buffer) {
                self.path.on_sent(size);
                return Some(self.path.lone_datagram(size, None));
            }
        }
        if self.roaming.others.is_empty() {
            return None;
        }
        let due: SmallVec<[SocketAddr; 4]> =
            self.roaming.others.iter().filter(|path| path.may_probe(now)).map(|path| path.remote).collect();
        due.into_iter().find_map(|remote| {
            let mut path = self.roaming.others.take(remote)?;
            let transmit = self.probe_other(now, &mut path, buffer);
            self.roaming.others.add(path);
            transmit
        })
    }

    fn probe_other(&mut self, now: Time, path: &mut Path, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if !self.name_path(path) {
            return None;
        }
        let lent = path.id_sequence.and_then(|sequence| self.remote_ids.lent(sequence));
        let destination = lent.unwrap_or(*self.remote_ids.current());
        let size = path.probing_size();
        let frames = path.probing_frames(now, &mut self.roaming.responses, self.chance.rng());
        let size = self.write_probing(now, &destination, &frames, size, buffer)?;
        path.on_sent(size);
        Some(path.lone_datagram(size, None))
    }

    /// Writes one packet of probing frames. Recovery learns only that its number is used: what a lost challenge needs
    /// is the validation's to know, and a lost answer is asked for again (RFC 9000 section 13.3).
    fn write_probing(
        &mut self,
        now: Time,
        destination: &ConnectionId,
        frames: &[Frame],
        size: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<usize> {
        let mut datagram = DatagramBuilder::new(buffer, size);
        if size >= MIN_INITIAL_DATAGRAM {
            datagram.pad_to(size);
        }
        self.add_packet_to(PacketSpace::Data, destination, &mut datagram, |_, writer| {
            for frame in frames {
                writer.push(frame, None);
            }
        });
        let (len, packets) = self.seal_datagram(now, datagram)?;
        for packet in packets {
            let bytes = packet.size();
            self.counters.packets_sent += 1;
            self.counters.ack_eliciting_sent += 1;
            let OpenPacket { space, number, frames, .. } = packet;
            let (ack_eliciting, in_flight, ecn_marked) = (false, false, false);
            let repeat = Repeat::default();
            let outgoing =
                Outgoing { space, number, now, bytes, ack_eliciting, in_flight, ecn_marked, repeat, frames };
            self.recovery.on_packet_sent(outgoing, &mut self.path.control);
            self.recovery.plan_skip(self.chance.rng());
        }
        self.counters.sent.add(len);
        (len > 0).then_some(len)
    }

    /// A probe of the path's datagram size, if one is due and window and pacer let it out.
    pub(crate) fn transmit_mtu_probe(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let validation = &self.path.validation;
        let is_settled = validation.is_valid() && !validation.is_running() && self.handshake.is_confirmed();
        if !is_settled || self.eliciting.owes_probe(PacketSpace::Data) {
            return None;
        }
        let size = self.path.mtu.next_probe(now)?;
        if self.path.control.budget(now, false).bytes < size.into() {
            return None;
        }
        let record = SentFrame::MtuProbe { path: self.path.control.id, size: u16::try_from(size).ok()? };
        let destination = *self.remote_ids.current();
        let mut datagram = DatagramBuilder::new(buffer, size);
        datagram.pad_to(size);
        self.add_packet_to(PacketSpace::Data, &destination, &mut datagram, |_, writer| {
            writer.push(&Frame::Ping, Some(record));
        });
        let (len, packets) = self.seal_datagram(now, datagram)?;
        for packet in packets {
            self.on_packet_sent(now, packet, Repeat::default());
        }
        self.path.mtu.on_probe_sent();
        self.path.on_sent(len);
        self.counters.sent.add(len);
        let ecn = self.path.control.ecn_codepoint();
        (len > 0).then(|| self.path.lone_datagram(len, ecn))
    }
}

impl Connection {
    pub(crate) fn on_mtu_probe_acked(&mut self, now: Time, path: u32, size: u16) {
        if path == self.path.control.id && self.path.mtu.on_probe_acked(now, size.into()) {
            self.path.on_mtu_change();
        }
    }

    pub(crate) fn on_mtu_probe_lost(&mut self, now: Time, path: u32, size: u16) {
        if path == self.path.control.id {
            self.path.mtu.on_probe_lost(now, size.into());
        }
    }

    /// Loss recovery has found out what became of packets: whether large ones are among them, and only lost.
    pub(crate) fn look_for_black_hole(&mut self, now: Time, outcome: &AckOutcome) {
        let acked = outcome.acked.map(|acked| acked.space);
        let space = acked.or_else(|| outcome.lost_packets.first().map(|packet| packet.space));
        if space != Some(PacketSpace::Data) {
            return;
        }
        let mtu = &mut self.path.mtu;
        let newest = |packets: &[PacketSample]| {
            packets.iter().rev().find(|packet| mtu.is_large(packet.bytes.get())).map(|packet| packet.number)
        };
        let (acked, lost) = (newest(&outcome.acked_packets), newest(&outcome.lost));
        if mtu.on_fates(now, LargeFates { acked, lost }) {
            self.counters.black_holes += 1;
            self.path.on_mtu_change();
        }
    }

    /// Another probe timeout in a row has expired.
    pub(crate) fn look_for_black_hole_in_silence(&mut self, now: Time) {
        if self.path.mtu.on_probe_timeouts(now, self.recovery.pto_count()) {
            self.counters.black_holes += 1;
            self.path.on_mtu_change();
        }
    }
}

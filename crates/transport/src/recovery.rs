//! Loss recovery (RFC 9002): what was sent, what became of it, and when to look again.
//!
//! Here is what happens to packets; how fast they may leave is the path's ([`PathControl`]).

mod loss;
mod pto;
mod sent;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use posthaste_units::{ByteCount, Duration, Rng, Time};
use posthaste_wire::frame::AckFrame;
use posthaste_wire::varint;

use crate::control::PathControl;
use crate::control::outcome::{AckOutcome, Acked};
use crate::control::rate_sample::Stamp;
use crate::control::rtt::MeasuredPath;
use crate::error::{PeerError, TransportErrorCode};
use crate::limits::{ACK_ONLY_PACKETS, REPAIR_PACKETS, SKIPPED_NUMBERS};
use crate::packet::early_spaces::{Blank, EarlySpaces};
use crate::packet::sent_frame::{SentFrame, SentFrames};
use crate::packet::space::{PacketSpace, PerSpace};

use loss::{LossRun, LostPackets, Thresholds};
use sent::{SentPacket, SentPackets};

/// The peer's `max_ack_delay` unless it says otherwise (RFC 9000 section 18.2).
pub(crate) const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// The `ack_delay_exponent` unless the peer says otherwise, and always in Initial and Handshake packets.
pub(crate) const DEFAULT_ACK_DELAY_EXPONENT: u8 = 3;

/// Packets whose frames one probe timeout has sent again.
const REQUEUED_PACKETS: usize = 2;

/// A packet that has just been sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) space: PacketSpace,
    pub(crate) number: u64,
    pub(crate) now: Time,
    /// The whole packet, as part of a UDP payload.
    pub(crate) bytes: usize,
    pub(crate) ack_eliciting: bool,
    /// True if it counts as in flight (ack-eliciting, or with PADDING).
    pub(crate) in_flight: bool,
    /// True if its datagram was marked ECT(0).
    pub(crate) ecn_marked: bool,
    pub(crate) repeat: Repeat,
    pub(crate) frames: SentFrames,
}

/// How often what a packet carries has left before, as far as repair is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Repeat {
    /// True if all of its stream data were lost before, or if it is a copy of such a packet.
    pub(crate) is_retransmission: bool,
    /// 0 for an original; n for the copy of one whose `repeat.copy` is n - 1.
    pub(crate) copy: u8,
}

/// What recovery must know of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "six independent facts, named at every use")]
pub(crate) struct HandshakeView {
    pub(crate) is_client: bool,
    pub(crate) has_handshake_keys: bool,
    /// The handshake is confirmed (RFC 9001 section 4.1.2).
    pub(crate) is_confirmed: bool,
    /// The peer has validated our address: always true at a server; at a client once a Handshake packet has been
    /// acknowledged or the handshake is confirmed (`PeerCompletedAddressValidation`).
    pub(crate) peer_address_validated: bool,
    /// A server that may not send for the anti-amplification limit.
    pub(crate) amplification_blocked: bool,
    /// The peer receives at its address: a client has the keys that the server's answer brought, a server has validated
    /// the client's address.
    pub(crate) is_peer_present: bool,
}

/// What a timeout turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// Nothing was due.
    Nothing,
    /// Packets were declared lost.
    LossDetected,
    /// This many ack-eliciting packets must be sent in this space, whatever the window says.
    Probe { space: PacketSpace, packets: u8 },
}

/// Packets of ACK alone, for which only what their acknowledgement tells is of interest.
#[derive(Debug, Default)]
struct AckOnlyPackets {
    packets: VecDeque<AckOnly>,
}

#[derive(Debug)]
struct AckOnly {
    number: u64,
    frames: SentFrames,
    is_acked: bool,
}

impl AckOnlyPackets {
    fn push(&mut self, number: u64, frames: SentFrames) {
        if self.packets.len() >= ACK_ONLY_PACKETS {
            self.packets.pop_front();
        }
        self.packets.push_back(AckOnly { number, frames, is_acked: false });
    }

    /// Marks `first..=last` acknowledged and gives the frames of those that were not; their number.
    fn acknowledge(&mut self, first: u64, last: u64, mut frame: impl FnMut(SentFrame)) -> u64 {
        let mut count = 0;
        let from = self.packets.partition_point(|packet| packet.number < first);
        for packet in self.packets.range_mut(from..).take_while(|packet| packet.number <= last) {
            if !packet.is_acked {
                packet.is_acked = true;
                count += 1;
                packet.frames.drain(..).for_each(&mut frame);
            }
        }
        count
    }

    fn was_acked_between(&self, first: u64, last: u64) -> bool {
        self.packets.iter().any(|packet| packet.is_acked && packet.number > first && packet.number < last)
    }
}

/// The ranges of `ack`, oldest first, without those that were `told` before: an ACK frame repeats its ranges for as long as
/// it has room for them.
fn news<'a>(
    told: &'a [RangeInclusive<u64>],
    ack: &'a AckFrame,
) -> impl Iterator<Item = &'a RangeInclusive<u64>> {
    let mut told = told.iter().rev().peekable();
    ack.ranges.iter().rev().filter(move |range| {
        while told.next_if(|told| told.end() < range.start()).is_some() {}
        told.peek().is_none_or(|told| range.start() < told.start() || told.end() < range.end())
    })
}

/// No number is to be skipped: none is ever as large.
const NONE_PLANNED: u64 = u64::MAX;

/// 1-RTT packets between two numbers that are skipped, at the least.
const SKIP_AFTER: u64 = 16;

/// How many more there may be: few enough that a short connection has a trap, many enough that gaps cost nothing.
const SKIP_WITHIN: u64 = 512;

/// Ranges of an ACK frame that are compared with those of the next one.
const TOLD_RANGES: usize = 64;

/// No batch of datagrams begins with a packet number from here on: the last of all must not be used, nor must a close
/// (RFC 9000 section 12.3).
const LAST_NUMBER: u64 = varint::MAX - 1024;

/// One packet number space.
#[derive(Debug, Default)]
struct Space {
    next_number: u64,
    largest_acked: Option<u64>,
    /// The newest ranges of the last ACK frame, as it had them. Nothing in them is outstanding or remembered as lost.
    told: Vec<RangeInclusive<u64>>,
    sent: SentPackets,
    ack_only: AckOnlyPackets,
    lost: LostPackets,
    run: LossRun,
    /// Numbers never used, ascending.
    skipped: VecDeque<u64>,
    loss_time: Option<Time>,
    last_ack_eliciting_at: Time,
    last_sent_at: Time,
}

impl Blank for Space {
    const BLANK: &'static Self = &Self {
        next_number: 0,
        largest_acked: None,
        told: Vec::new(),
        sent: SentPackets::NONE,
        ack_only: AckOnlyPackets { packets: VecDeque::new() },
        lost: LostPackets::NONE,
        run: LossRun::NONE,
        skipped: VecDeque::new(),
        loss_time: None,
        last_ack_eliciting_at: Time::ZERO,
        last_sent_at: Time::ZERO,
    };
}

impl Space {
    /// Takes note of numbers that are passed over.
    fn advance_to(&mut self, number: u64) {
        let newest = number.saturating_sub(SKIPPED_NUMBERS as u64).max(self.next_number);
        for skipped in newest..number {
            if self.skipped.len() >= SKIPPED_NUMBERS {
                self.skipped.pop_front();
            }
            self.skipped.push_back(skipped);
        }
        // spec: rfc9000 12.3 numbers-rise
        self.next_number = self.next_number.max(number.saturating_add(1));
    }

    /// A peer that acknowledges what was never sent is lying or broken (RFC 9000 section 13.1).
    fn validate(&self, ack: &AckFrame) -> Result<(), PeerError> {
        let refuse = |reason| Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
        // spec: rfc9000 13.1 unsent-ack-closes
        if ack.ranges.first().is_some_and(|range| *range.end() >= self.next_number) {
            return refuse("acknowledges a packet that was not sent yet");
        }
        if news(&self.told, ack).any(|range| self.skipped.iter().any(|number| range.contains(number))) {
            return refuse("acknowledges a packet number that was skipped");
        }
        Ok(())
    }
}

/// What one ACK frame newly acknowledges of one space's packets.
#[derive(Debug, Default)]
struct Newly {
    packets: u64,
    ecn_marked: u64,
    any_ack_eliciting: bool,
    newest: Option<(u64, Stamp)>,
}

/// Loss recovery of one connection.
#[derive(Debug)]
pub(crate) struct Recovery {
    spaces: EarlySpaces<Space>,
    /// The numbers that come next in spaces that are discarded: none is used twice.
    discarded_at: PerSpace<u64>,
    thresholds: Thresholds,
    peer_max_ack_delay: Duration,
    peer_ack_delay_exponent: u8,
    pto_count: u32,
    /// What `pto_count` was when the peer was last heard.
    heard_at_count: u32,
    /// The 1-RTT number that will not be used.
    skip_at: u64,
    /// The last probe timeout.
    probed_at: Time,
    /// The last ack-eliciting packet sent or ack received: where a client without anything in flight counts from.
    last_event_at: Time,
}

impl Recovery {
    /// Recovery of a connection whose peer's transport parameters are not known yet.
    pub(crate) fn new() -> Self {
        Self {
            spaces: EarlySpaces::default(),
            discarded_at: PerSpace::default(),
            thresholds: Thresholds::new(),
            peer_max_ack_delay: DEFAULT_MAX_ACK_DELAY,
            peer_ack_delay_exponent: DEFAULT_ACK_DELAY_EXPONENT,
            pto_count: 0,
            heard_at_count: 0,
            skip_at: NONE_PLANNED,
            probed_at: Time::ZERO,
            last_event_at: Time::ZERO,
        }
    }

    /// The peer's `max_ack_delay` and `ack_delay_exponent` (RFC 9000 section 18.2).
    pub(crate) fn set_peer_ack_parameters(&mut self, max_ack_delay: Duration, exponent: u8) {
        self.peer_max_ack_delay = max_ack_delay;
        self.peer_ack_delay_exponent = exponent;
    }

    /// The peer's acks wait this long from now on.
    pub(crate) fn set_peer_max_ack_delay(&mut self, delay: Duration) {
        self.peer_max_ack_delay = delay;
    }

    /// The peer's acks may wait this long soon.
    pub(crate) fn raise_peer_max_ack_delay(&mut self, delay: Duration) {
        self.peer_max_ack_delay = self.peer_max_ack_delay.max(delay);
    }

    /// The number of the space's next packet. It is used up by [`Self::on_packet_sent`], so asking for it and then
    /// not sending costs nothing.
    pub(crate) fn next_number(&self, space: PacketSpace) -> u64 {
        let next = self.spaces[space].next_number.max(self.discarded_at[space]);
        if space == PacketSpace::Data && next == self.skip_at { next + 1 } else { next }
    }

    /// True once a space has used up its packet numbers: nothing may be sent any more.
    pub(crate) fn is_exhausted(&self) -> bool {
        PacketSpace::ALL.into_iter().any(|space| self.next_number(space) >= LAST_NUMBER)
    }

    /// Chooses the next 1-RTT number that is not used, once the last one has been passed: a peer that acknowledges
    /// what it has not received will be caught by it (RFC 9000 section 21.4).
    pub(crate) fn plan_skip(&mut self, rng: &mut Rng) {
        let next = self.spaces[PacketSpace::Data].next_number;
        if next > self.skip_at || self.skip_at == NONE_PLANNED {
            self.skip_at = next + SKIP_AFTER + rng.below(SKIP_WITHIN);
        }
    }

    /// Leaves out the 1-RTT number that would come next: a peer that sees the gap acknowledges at once.
    pub(crate) fn skip_next(&mut self) {
        self.skip_at = self.next_number(PacketSpace::Data);
    }

    /// The largest number that the peer has acknowledged, for the encoding of packet numbers.
    pub(crate) fn largest_acked(&self, space: PacketSpace) -> Option<u64> {
        self.spaces[space].largest_acked
    }

    /// True if an ack-eliciting packet of the space has neither been acknowledged nor declared lost.
    pub(crate) fn has_ack_eliciting_in_flight(&self, space: PacketSpace) -> bool {
        self.spaces[space].sent.has_ack_eliciting()
    }

    /// A packet has been sent. Numbers ascend; one above [`Self::next_number`] skips those between.
    pub(crate) fn on_packet_sent(&mut self, packet: Outgoing, path: &mut PathControl) {
        let Outgoing { space: id, number, ack_eliciting, ecn_marked, frames, .. } = packet;
        let bytes = ByteCount::from(packet.bytes);
        let space = &mut self.spaces[id];
        debug_assert!(number >= space.next_number, "packet numbers are never used twice");
        space.advance_to(number);
        if ecn_marked {
            path.ecn.on_sent(id);
        }
        // Loss detection relies on times that ascend with the numbers.
        let now = packet.now.max(space.last_sent_at);
        space.last_sent_at = now;
        if !packet.in_flight && !ack_eliciting {
            space.ack_only.push(number, frames);
            return;
        }
        // spec: rfc9002 7.5 probes-counted
        let stamp = path.on_sent(now, id, number, bytes, packet.repeat.copy == 0);
        if ack_eliciting {
            space.last_ack_eliciting_at = now;
            self.last_event_at = self.last_event_at.max(now);
        }
        space.sent.push(SentPacket {
            number,
            bytes,
            stamp,
            ack_eliciting,
            ecn_marked,
            path: path.id,
            requeued: false,
            repeat: packet.repeat,
            frames,
        });
    }

    /// An ACK frame has arrived in a packet of `space` (Appendix A.7): adds what it says to `outcome`, and takes the RTT
    /// sample, on which the detection of losses depends. Policies hear nothing from here.
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION` if it acknowledges a packet that was never sent; nothing has changed then.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        id: PacketSpace,
        ack: &AckFrame,
        view: HandshakeView,
        path: &mut MeasuredPath<'_>,
        outcome: &mut AckOutcome,
    ) -> Result<(), PeerError> {
        let Some(largest) = ack.ranges.first().map(|range| *range.end()) else { return Ok(()) };
        self.spaces[id].validate(ack)?;
        let raises_largest = self.spaces[id].largest_acked.is_none_or(|before| largest > before);
        if raises_largest {
            self.spaces[id].largest_acked = Some(largest);
        }
        let newly = self.take_acked(id, ack, path.id, outcome);
        if newly.packets == 0 {
            return Ok(());
        }
        self.last_event_at = self.last_event_at.max(now);
        let newest = newly.newest.filter(|(number, _)| *number == largest);
        let ack_delay = newest.map_or(Duration::ZERO, |_| self.told_delay(id, ack));
        let rtt_sample = match newest {
            // spec: rfc9002 5.1 no-sample-from-bare-acks
            Some((_, stamp)) if newly.any_ack_eliciting => {
                let delay = self.believed_delay(id, ack_delay, view);
                Some(path.rtt.on_sample(now, now.since(stamp.sent_at), delay))
            }
            _ => None,
        };
        outcome.acked = Some(Acked {
            now,
            space: id,
            newest: newly.newest.map(|(_, stamp)| stamp),
            ack_delay,
            rtt_sample,
            largest_sent: self.spaces[id].next_number.saturating_sub(1),
            ecn_marked: newly.ecn_marked,
            // spec: rfc9000 13.4.2.1 old-acks-do-not-fail
            ecn: raises_largest.then_some(ack.ecn),
        });
        self.detect_lost(now, id, path.id, path.rtt, outcome);
        // A client that is not sure of being validated keeps backing off (section 6.2.1).
        if view.peer_address_validated {
            self.pto_count = 0;
        }
        Ok(())
    }

    /// Takes what the frame acknowledges out of the space, oldest first.
    fn take_acked(&mut self, id: PacketSpace, ack: &AckFrame, path: u32, outcome: &mut AckOutcome) -> Newly {
        let mut newly = Newly::default();
        let largest = ack.ranges.first().map_or(0, |range| *range.end());
        let mut told = std::mem::take(&mut self.spaces[id].told);
        for range in news(&told, ack) {
            let (first, last) = (*range.start(), *range.end());
            let space = &mut self.spaces[id];
            newly.packets +=
                space.ack_only.acknowledge(first, last, |frame| outcome.acked_frames.push((id, frame)));
            space.sent.take_range(first, last, |packet| {
                newly.packets += 1;
                newly.ecn_marked += u64::from(packet.ecn_marked);
                // spec: rfc9000 9.4 old-packets-do-not-count
                if packet.path == path {
                    // What was sent on another path says nothing of this one (RFC 9000 section 9.4).
                    newly.any_ack_eliciting |= packet.ack_eliciting;
                    newly.newest = Some((packet.number, packet.stamp));
                    outcome.acked_packets.push(packet.stamp.sample(packet.number, packet.bytes));
                }
                outcome.acknowledge_frames(id, packet.frames);
            });
            if !space.lost.is_empty() {
                self.find_spurious(id, first..=last, largest, outcome);
            }
        }
        told.clear();
        told.extend(ack.ranges.iter().take(TOLD_RANGES).cloned());
        self.spaces[id].told = told;
        newly
    }

    /// The ack delay that the frame tells.
    fn told_delay(&self, id: PacketSpace, ack: &AckFrame) -> Duration {
        let is_data = id == PacketSpace::Data;
        let exponent = if is_data { self.peer_ack_delay_exponent } else { DEFAULT_ACK_DELAY_EXPONENT };
        let factor = 1u64.checked_shl(u32::from(exponent)).unwrap_or(u64::MAX);
        Duration::from_micros(ack.delay.saturating_mul(factor))
    }

    /// What of it is no part of the round trip (section 5.3).
    fn believed_delay(&self, id: PacketSpace, told: Duration, view: HandshakeView) -> Duration {
        match id {
            // A peer acknowledges Initial packets at once; a delay would be the fault of missing keys.
            PacketSpace::Initial => Duration::ZERO,
            // spec: rfc9002 5.3 delay-bounded
            _ if view.is_confirmed => told.min(self.peer_max_ack_delay),
            _ => told,
        }
    }

    /// The space's keys are gone: its packets are forgotten, neither acknowledged nor lost (section 6.4). Answers with
    /// the bytes that leave the flight.
    pub(crate) fn discard_space(&mut self, id: PacketSpace) -> ByteCount {
        // spec: rfc9002 6.4 state-dropped, 6.4 flight-reduced
        let forgotten = self.spaces[id].sent.bytes();
        self.discarded_at[id] = self.next_number(id);
        self.spaces.discard(id);
        // spec: rfc9002 6.2.2 keys-dropped-resets
        // Section 6.2.2 and Appendix A.11: the timers start anew from what is left.
        self.pto_count = 0;
        forgotten
    }

    /// Everything outstanding in the space counts as not sent (Retry, version negotiation, rejected 0-RTT): its
    /// frames are to be sent again, and the congestion controller hears nothing. Answers with the bytes that leave the
    /// flight.
    pub(crate) fn requeue_all(&mut self, id: PacketSpace, outcome: &mut AckOutcome) -> ByteCount {
        let space = &mut self.spaces[id];
        for packet in space.sent.iter().filter(|packet| !packet.requeued) {
            outcome.lose_frames(id, &packet.frames);
        }
        let forgotten = space.sent.bytes();
        space.sent = SentPackets::default();
        space.run.interrupt();
        space.loss_time = None;
        self.pto_count = 0;
        forgotten
    }

    /// After a probe timeout: reports the frames of the oldest packets as to be sent again, so that the probes carry
    /// what the peer most likely misses. The packets stay outstanding; if they are lost, their frames are no news.
    pub(crate) fn frames_to_probe(&mut self, id: PacketSpace, outcome: &mut AckOutcome) {
        let unsettled = self.spaces[id]
            .sent
            .iter_mut()
            .filter(|packet| packet.ack_eliciting && !packet.requeued && !packet.frames.is_empty())
            .filter(|packet| !packet.is_mtu_probe());
        for packet in unsettled.take(REQUEUED_PACKETS) {
            packet.requeued = true;
            outcome.lose_frames(id, &packet.frames);
        }
    }

    /// Reports the frames of the youngest outstanding packet of the path that `is_wanted` accepts, which is told when each
    /// left, as to be sent again, before it is known to be lost; the repetition count of the packet that will carry them.
    ///
    /// The copy answers for the frames from then on: the loss of the packet copied is no news to their owners, that of
    /// the copy is, and the acknowledgement of either settles them.
    pub(crate) fn frames_to_repair(
        &mut self,
        id: PacketSpace,
        path: u32,
        mut is_wanted: impl FnMut(Repeat, Time, &[SentFrame]) -> bool,
        outcome: &mut AckOutcome,
    ) -> Option<Repeat> {
        let youngest = self.spaces[id].sent.iter_mut().rev().take(REPAIR_PACKETS).find(|packet| {
            let is_open = !packet.requeued && packet.ack_eliciting && packet.path == path;
            is_open
                && !packet.is_mtu_probe()
                && is_wanted(packet.repeat, packet.stamp.sent_at, &packet.frames)
        })?;
        youngest.requeued = true;
        outcome.lose_frames(id, &youngest.frames);
        Some(Repeat { copy: youngest.repeat.copy.saturating_add(1), ..youngest.repeat })
    }

    /// The same for the first packets of a handshake's flight, `packets` of them at most. True if there were any.
    pub(crate) fn frames_of_flight(
        &mut self,
        id: PacketSpace,
        packets: usize,
        outcome: &mut AckOutcome,
    ) -> bool {
        let flight = self.spaces[id].sent.iter_mut().take(packets);
        let mut is_any = false;
        for packet in flight.filter(|packet| !packet.requeued && !packet.frames.is_empty()) {
            packet.requeued = true;
            is_any = true;
            outcome.lose_frames(id, &packet.frames);
        }
        is_any
    }

    /// When the space's last ack-eliciting packet left.
    pub(crate) fn last_elicited_at(&self, id: PacketSpace) -> Time {
        self.spaces[id].last_ack_eliciting_at
    }

    /// Gives back room that is not in use.
    pub(crate) fn shrink(&mut self) {
        for space in self.spaces.used() {
            space.told = Vec::new();
            space.sent.shrink();
            space.ack_only.packets.shrink_to_fit();
            space.lost.shrink();
            space.skipped.shrink_to_fit();
        }
    }

    /// The connection goes on with another path: how long the last one was silent is of no account.
    pub(crate) fn on_path_change(&mut self) {
        self.pto_count = 0;
    }

    /// Another path works: what is outstanding on all others has its frames sent again. The packets stay
    /// outstanding; acknowledged or lost, they bear on no controller.
    pub(crate) fn requeue_other_paths(&mut self, path: u32, outcome: &mut AckOutcome) {
        let stranded = self.spaces[PacketSpace::Data]
            .sent
            .iter_mut()
            .filter(|packet| packet.path != path && !packet.requeued && !packet.is_mtu_probe());
        for packet in stranded {
            packet.requeued = true;
            outcome.lose_frames(PacketSpace::Data, &packet.frames);
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests;

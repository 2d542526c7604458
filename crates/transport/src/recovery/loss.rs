//! Loss detection (RFC 9002 section 6.1), reordering that turned out not to be loss, and persistent congestion
//! (section 7.6).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use posthaste_units::{ByteCount, Duration, Time};

use super::sent::{Front, SentPacket};
use super::{Recovery, Space};
use crate::control::outcome::{AckOutcome, LatePackets, LossReason, LostPacket};
use crate::control::rtt::{GRANULARITY, RttEstimator};
use crate::limits::LOST_PACKETS;
use crate::packet::sent_frame::SentFrames;
use crate::packet::space::PacketSpace;

/// `kPacketThreshold` (section 6.1.1): less is not recommended.
const PACKET_THRESHOLD: u64 = 3;

/// The packet threshold is not raised beyond this; the time threshold then decides anyway.
const MAX_PACKET_THRESHOLD: u64 = 300;

/// `kTimeThreshold` in eighths of an RTT (section 6.1.2): 9/8.
const TIME_THRESHOLD_EIGHTHS: u64 = 9;

/// The time threshold is not raised beyond two RTT, the bound of RACK's reordering window (RFC 8985 section 6.2).
const MAX_TIME_THRESHOLD_EIGHTHS: u64 = 16;

/// Raised thresholds fall back after this many losses in a row that were real (RFC 8985 section 6.2: 16 recoveries).
const REORDERING_PERSISTENCE: u32 = 16;

/// `kPersistentCongestionThreshold` (section 7.6.1).
const PERSISTENT_CONGESTION_THRESHOLD: u64 = 3;

/// Lost packets are remembered for this many probe timeouts: a later ack is of no use to anyone.
const LOST_MEMORY: u64 = 3;

/// How much reordering this connection takes for granted.
///
/// RFC 9002 leaves room for thresholds that adapt: section 6.1.1 says that more reordering than three packets calls
/// for raising the packet threshold after a spurious detection, as RACK (RFC 8985) does, and section 6.1.2 that
/// time thresholds above 9/8 trade a slower detection for fewer spurious ones.
#[derive(Debug)]
pub(super) struct Thresholds {
    packets: u64,
    time_eighths: u64,
    /// Batches of losses since the last spurious one.
    real_losses: u32,
}

impl Thresholds {
    pub(super) fn new() -> Self {
        Self { packets: PACKET_THRESHOLD, time_eighths: TIME_THRESHOLD_EIGHTHS, real_losses: 0 }
    }

    /// The time after which a packet older than an acknowledged one is lost.
    pub(super) fn loss_delay(&self, rtt: &RttEstimator) -> Duration {
        // spec: rfc9002 6.1.2 loss-delay-floor
        rtt.loss_base().mul_ratio(self.time_eighths, 8).max(GRANULARITY)
    }

    /// Why the packet is lost, if it is.
    fn judge(&self, packet: &SentPacket, largest_acked: u64, lost_at: Time, now: Time) -> Option<LossReason> {
        if largest_acked.saturating_sub(packet.number) >= self.packets {
            Some(LossReason::PacketThreshold)
        } else {
            (lost_at <= now).then_some(LossReason::TimeThreshold)
        }
    }

    /// A packet declared lost for `reason` has been acknowledged by a frame whose largest number is `distance` ahead.
    fn on_spurious(&mut self, reason: LossReason, distance: u64) {
        self.real_losses = 0;
        match reason {
            LossReason::PacketThreshold => {
                let enough = distance.saturating_add(1).min(MAX_PACKET_THRESHOLD);
                self.packets = self.packets.max(enough);
            }
            LossReason::TimeThreshold => {
                self.time_eighths = (self.time_eighths + 1).min(MAX_TIME_THRESHOLD_EIGHTHS);
            }
        }
    }

    fn on_losses(&mut self) {
        self.real_losses += 1;
        if self.real_losses >= REORDERING_PERSISTENCE {
            *self = Self::new();
        }
    }

    #[cfg(test)]
    pub(super) fn values(&self) -> (u64, u64) {
        (self.packets, self.time_eighths)
    }
}

/// A packet that was declared lost and may yet turn out to have arrived.
#[derive(Debug)]
struct Remembered {
    number: u64,
    bytes: ByteCount,
    sent_at: Time,
    lost_at: Time,
    reason: LossReason,
    frames: SentFrames,
}

/// The packets of one space that were lost lately. Losses are always a prefix of what is outstanding (both
/// thresholds are monotone in the packet number), so they are remembered in ascending order.
#[derive(Debug, Default)]
pub(super) struct LostPackets {
    packets: VecDeque<Remembered>,
}

impl LostPackets {
    pub(super) const NONE: Self = Self { packets: VecDeque::new() };

    fn remember(&mut self, packet: Remembered) {
        if self.packets.len() >= LOST_PACKETS {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }

    fn forget_before(&mut self, time: Time) {
        while self.packets.front().is_some_and(|packet| packet.lost_at < time) {
            self.packets.pop_front();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Gives back room that is not in use.
    pub(super) fn shrink(&mut self) {
        self.packets.shrink_to_fit();
    }

    /// Takes the packet with this number or the next above it out, if that is at most `last`.
    fn take_first(&mut self, first: u64, last: u64) -> Option<Remembered> {
        let index = self.packets.partition_point(|packet| packet.number < first);
        if self.packets.get(index)?.number > last {
            return None;
        }
        self.packets.remove(index)
    }
}

/// A run of lost packets with no acknowledged one between them (section 7.6.2).
#[derive(Debug, Default)]
pub(super) struct LossRun {
    /// When the run's first ack-eliciting packet was sent.
    first_sent_at: Option<Time>,
    /// The run's latest packet number.
    last: Option<u64>,
}

impl LossRun {
    pub(super) const NONE: Self = Self { first_sent_at: None, last: None };

    pub(super) fn interrupt(&mut self) {
        *self = Self::default();
    }

    /// Takes in the next lost packet; the time that the run spans, if it ends with an ack-eliciting packet.
    ///
    /// Packets sent before the first RTT sample do not count: the probe timeout was a guess then.
    fn extend(&mut self, packet: &SentPacket, first_sample_at: Option<Time>) -> Duration {
        self.last = Some(packet.number);
        let sent_at = packet.stamp.sent_at;
        // spec: rfc9002 7.6.2 ends-elicit
        if !packet.ack_eliciting || first_sample_at.is_none_or(|sample| sent_at <= sample) {
            return Duration::ZERO;
        }
        sent_at.since(*self.first_sent_at.get_or_insert(sent_at))
    }
}

impl Recovery {
    /// `(smoothed_rtt + max(4 * rttvar, kGranularity) + max_ack_delay) * kPersistentCongestionThreshold`: the ack
    /// delay counts in every space (section 7.6.1).
    pub(super) fn persistent_duration(&self, rtt: &RttEstimator) -> Duration {
        (rtt.probe_base() + self.peer_max_ack_delay) * PERSISTENT_CONGESTION_THRESHOLD
    }

    /// Declares lost what the thresholds say is, and sets the space's loss time (Appendix A.10).
    pub(super) fn detect_lost(
        &mut self,
        now: Time,
        id: PacketSpace,
        path: u32,
        rtt: &RttEstimator,
        outcome: &mut AckOutcome,
    ) {
        let loss_delay = self.thresholds.loss_delay(rtt);
        let persistent_duration = self.persistent_duration(rtt);
        let forget_before = now - self.pto_interval(rtt) * LOST_MEMORY;
        let first_sample_at = rtt.first_sample_at();
        let Self { spaces, thresholds, .. } = self;
        let space = &mut spaces[id];
        space.loss_time = None;
        space.lost.forget_before(forget_before);
        let mut is_persistent = false;
        let Some(largest_acked) = space.largest_acked else { return };
        while let Some(front) = space.sent.front() {
            let reason = match front {
                Front::Outstanding(packet) if packet.number > largest_acked => break,
                Front::Outstanding(packet) => {
                    let lost_at = packet.stamp.sent_at + loss_delay;
                    let Some(reason) = thresholds.judge(packet, largest_acked, lost_at, now) else {
                        space.loss_time = Some(lost_at);
                        break;
                    };
                    reason
                }
                Front::Acked => {
                    space.sent.pop_front();
                    space.run.interrupt();
                    continue;
                }
            };
            let Some(packet) = space.sent.pop_front() else { continue };
            if space.run.last.is_some_and(|last| space.ack_only.was_acked_between(last, packet.number)) {
                space.run.interrupt();
            }
            if !packet.requeued {
                outcome.lose_frames(id, &packet.frames);
            }
            // A probe of the path's size says nothing of congestion, nor does a packet of another path.
            if packet.is_mtu_probe() || packet.path != path {
                if packet.path == path {
                    outcome.forgotten += packet.bytes;
                }
                continue;
            }
            is_persistent |= space.run.extend(&packet, first_sample_at) > persistent_duration;
            space.lose(id, packet, reason, now, outcome);
        }
        if outcome.lost.is_empty() {
            return;
        }
        thresholds.on_losses();
        if is_persistent {
            space.run.interrupt();
            outcome.persistent_congestion = true;
        }
    }

    /// Looks for packets declared lost in `range`, which the peer has acknowledged after all by a frame whose largest
    /// number is `largest`.
    pub(super) fn find_spurious(
        &mut self,
        id: PacketSpace,
        range: RangeInclusive<u64>,
        largest: u64,
        outcome: &mut AckOutcome,
    ) {
        let space = &mut self.spaces[id];
        while let Some(packet) = space.lost.take_first(*range.start(), *range.end()) {
            self.thresholds.on_spurious(packet.reason, largest.saturating_sub(packet.number));
            space.run.interrupt();
            LatePackets::add(&mut outcome.late, packet.bytes, packet.sent_at);
            outcome.acknowledge_frames(id, packet.frames);
        }
    }
}

impl Space {
    /// Books one lost packet, whose frames have been reported, and keeps it in memory.
    fn lose(
        &mut self,
        id: PacketSpace,
        packet: SentPacket,
        reason: LossReason,
        now: Time,
        outcome: &mut AckOutcome,
    ) {
        let SentPacket { number, bytes, stamp, frames, .. } = packet;
        outcome.lost.push(stamp.sample(number, bytes));
        outcome.lost_marked += u64::from(packet.ecn_marked);
        outcome.lost_packets.push(LostPacket { space: id, number, bytes, reason });
        let sent_at = stamp.sent_at;
        self.lost.remember(Remembered { number, bytes, sent_at, lost_at: now, reason, frames });
    }
}

#[cfg(test)]
mod tests;

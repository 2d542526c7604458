//! What one step of loss recovery has found out.

use posthaste_policy::sample::{PacketSample, SpuriousSample};
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::frame::EcnCounts;

use super::rate_sample::Stamp;
use crate::packet::sent_frame::{SentFrame, SentFrames};
use crate::packet::space::PacketSpace;

/// Why a packet was declared lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossReason {
    /// Enough packets sent later have been acknowledged.
    PacketThreshold,
    /// A packet sent later has been acknowledged, and enough time has passed.
    TimeThreshold,
}

/// A packet declared lost, for logs and statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LostPacket {
    pub(crate) space: PacketSpace,
    pub(crate) number: u64,
    pub(crate) bytes: ByteCount,
    pub(crate) reason: LossReason,
}

/// Packets newly acknowledged by one ACK frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acked {
    pub(crate) now: Time,
    pub(crate) space: PacketSpace,
    /// The stamp of the newest of those that the path in use carried, if it carried any.
    pub(crate) newest: Option<Stamp>,
    /// The adjusted RTT sample, if there is one.
    pub(crate) rtt_sample: Option<Duration>,
    /// What the peer says that it held the newest packet.
    pub(crate) ack_delay: Duration,
    /// Highest packet number sent in the space.
    pub(crate) largest_sent: u64,
    /// How many were sent with an ECN mark, on whatever path.
    pub(crate) ecn_marked: u64,
    /// What the frame says of ECN. `None` if it did not raise the largest acknowledged number: such frames may be
    /// out of order (RFC 9000 section 13.4.2.1).
    pub(crate) ecn: Option<EcnReport>,
}

/// The ECN counts of an ACK frame, if it has any.
pub(crate) type EcnReport = Option<EcnCounts>;

/// What one step of loss recovery (an ACK frame, a timer, a change of keys or paths) has found out.
///
/// Recovery fills it and tells nobody; [`Connection::settle_outcome`] tells the path's policies, MTU discovery, the
/// owners of frames, the counters and the trace, in this order, and clears it for the next step.
///
/// The frames of a packet come up in `lost_frames` at most once and in `acked_frames` at most once; in both if the
/// loss was spurious or a probe has had them sent again.
///
/// [`Connection::settle_outcome`]: crate::connection::Connection::settle_outcome
#[derive(Debug, Default)]
pub(crate) struct AckOutcome {
    /// If any packet was newly acknowledged.
    pub(crate) acked: Option<Acked>,
    /// Those of them that the path in use carried in flight, oldest first.
    pub(crate) acked_packets: Vec<PacketSample>,
    /// The frames of all that were acknowledged.
    pub(crate) acked_frames: Vec<(PacketSpace, SentFrame)>,
    /// Packets of the path in use declared lost, oldest first. The silence policy may excuse some.
    pub(crate) lost: Vec<PacketSample>,
    /// Those that it has excused.
    pub(crate) excused: Vec<PacketSample>,
    /// How many of `lost` were sent with an ECN mark.
    pub(crate) lost_marked: u64,
    /// Frames to be sent again (or no more, if nothing is left to tell).
    pub(crate) lost_frames: Vec<(PacketSpace, SentFrame)>,
    /// The packets of `lost`, for logs and statistics.
    pub(crate) lost_packets: Vec<LostPacket>,
    /// Bytes of lost packets of the path in use that say nothing of congestion: probes of its datagram size.
    pub(crate) forgotten: ByteCount,
    /// Packets declared lost before that have been acknowledged now.
    pub(crate) late: Option<LatePackets>,
    /// Packets newly reported as CE; known once ECN validation has seen the report.
    pub(crate) newly_marked: u64,
    /// True if persistent congestion was established.
    pub(crate) persistent_congestion: bool,
}

impl AckOutcome {
    /// Empties everything but keeps the memory.
    pub(crate) fn clear(&mut self) {
        let Self { acked_packets, acked_frames, lost, excused, lost_frames, lost_packets, .. } = self;
        acked_packets.clear();
        acked_frames.clear();
        lost.clear();
        excused.clear();
        lost_frames.clear();
        lost_packets.clear();
        self.acked = None;
        self.lost_marked = 0;
        self.forgotten = ByteCount::ZERO;
        self.late = None;
        self.newly_marked = 0;
        self.persistent_congestion = false;
    }

    /// Packets that were declared lost before and have been acknowledged now.
    pub(crate) fn spurious_packets(&self) -> u64 {
        self.late.map_or(0, |late| late.packets)
    }

    /// The frames of an acknowledged packet.
    pub(crate) fn acknowledge_frames(&mut self, space: PacketSpace, frames: SentFrames) {
        self.acked_frames.extend(frames.into_iter().map(|frame| (space, frame)));
    }

    /// Frames that are to be sent again.
    pub(crate) fn lose_frames(&mut self, space: PacketSpace, frames: &SentFrames) {
        self.lost_frames.extend(frames.iter().map(|frame| (space, *frame)));
    }
}

/// Packets declared lost that one ACK frame acknowledges after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LatePackets {
    pub(crate) packets: u64,
    pub(crate) bytes: ByteCount,
    /// When the oldest of them was sent.
    pub(crate) oldest: Time,
}

impl LatePackets {
    /// Takes in one more, or the first.
    pub(crate) fn add(late: &mut Option<Self>, bytes: ByteCount, sent_at: Time) {
        let late = late.get_or_insert(Self { packets: 0, bytes: ByteCount::ZERO, oldest: sent_at });
        late.packets += 1;
        late.bytes += bytes;
        late.oldest = late.oldest.min(sent_at);
    }

    /// The same as policies see it.
    pub(crate) fn sample(&self, now: Time) -> SpuriousSample {
        SpuriousSample { now, packets: self.packets, sent_at: self.oldest }
    }
}

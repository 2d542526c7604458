//! What policies are told: plain values, filled by the transport.

use posthaste_units::{ByteCount, Duration, Rate, Time};

use crate::Phase;

/// The path's round-trip time estimate (RFC 9002 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RttView {
    /// The latest adjusted sample; the initial RTT before the first.
    pub latest: Duration,
    /// Exponentially weighted mean.
    pub smoothed: Duration,
    /// Mean deviation.
    pub variance: Duration,
    /// Least sample seen, not adjusted for ack delay.
    pub min: Duration,
    /// False until the first sample: the values are then the initial RTT's.
    pub is_measured: bool,
}

/// A packet number space (RFC 9000 section 12.3). Packet numbers are comparable only within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketSpace {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Data,
}

impl PacketSpace {
    /// All spaces, in the order in which their packets are coalesced.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// One packet that was in flight, as it stood when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSample {
    /// Its packet number.
    pub number: u64,
    /// When it was sent.
    pub sent_at: Time,
    /// Its size: the whole packet, as part of a UDP payload.
    pub bytes: ByteCount,
    /// Bytes in flight when it was sent, itself included.
    pub in_flight: ByteCount,
    /// Bytes delivered on the path before it was sent.
    pub delivered: ByteCount,
    /// Bytes declared lost on the path before it was sent.
    pub lost: ByteCount,
    /// True if the sender had run out of data when it was sent.
    pub app_limited: bool,
}

/// A packet has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentSample {
    /// When.
    pub now: Time,
    /// The space of its packet number.
    pub space: PacketSpace,
    /// Its packet number.
    pub number: u64,
    /// Its size.
    pub bytes: ByteCount,
    /// Bytes in flight before it.
    pub prior_in_flight: ByteCount,
    /// True if nothing else is waiting that window and pacer would let out.
    pub app_limited: bool,
}

/// A delivery-rate sample (draft-ietf-ccwg-bbr section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Delivered bytes over `interval`.
    pub rate: Rate,
    /// Bytes delivered during the sample.
    pub delivered: ByteCount,
    /// The longer of the send and the ack interval.
    pub interval: Duration,
    /// True if the sample's packet was sent while the sender had run out of data: a lower bound only.
    pub app_limited: bool,
}

/// An ACK frame has newly acknowledged in-flight packets.
#[derive(Debug, Clone, Copy)]
pub struct AckSample<'a> {
    /// When it arrived.
    pub now: Time,
    /// The space of the packets' numbers.
    pub space: PacketSpace,
    /// The packets, in ascending order of packet number; never empty.
    pub packets: &'a [PacketSample],
    /// Their sizes summed.
    pub acked: ByteCount,
    /// How long the peer says that it held the newest packet before it acknowledged it, in every space (RFC 9000 section
    /// 19.3); zero where an older ack has told of that packet. Nothing bounds it.
    pub ack_delay: Duration,
    /// The adjusted RTT sample that the ack gave, if it gave one.
    pub rtt_sample: Option<Duration>,
    /// The estimate, this sample included.
    pub rtt: RttView,
    /// Bytes in flight before the ack.
    pub prior_in_flight: ByteCount,
    /// Bytes in flight after it (losses that it revealed are still counted).
    pub in_flight: ByteCount,
    /// Bytes delivered on the path in all, this ack's included.
    pub delivered: ByteCount,
    /// Bytes declared lost on the path in all.
    pub lost: ByteCount,
    /// The delivery rate, where the ack gives a valid sample.
    pub delivery_rate: Option<RateSample>,
    /// Packet-timed round trips so far (a round ends when a packet is acked that was sent after its start).
    pub round: u64,
    /// True if this ack began a new round.
    pub round_started: bool,
    /// True if the sender, not the window or the pacer, bounded the flight that is being acknowledged: the
    /// window must not grow (RFC 9002 section 7.8).
    pub app_limited: bool,
    /// Packets that the ack newly reports as marked CE.
    pub newly_marked: u64,
    /// Highest packet number sent so far in the space, for round-keeping by packet number.
    pub largest_sent: u64,
}

/// Packets have been declared lost together.
#[derive(Debug, Clone, Copy)]
pub struct LossSample<'a> {
    /// When.
    pub now: Time,
    /// The space of the packets' numbers.
    pub space: PacketSpace,
    /// The packets, in ascending order of packet number; never empty.
    pub packets: &'a [PacketSample],
    /// Their sizes summed.
    pub bytes: ByteCount,
    /// Bytes in flight before the loss was declared.
    pub prior_in_flight: ByteCount,
    /// Bytes in flight without the lost packets.
    pub in_flight: ByteCount,
    /// The estimate.
    pub rtt: RttView,
    /// Bytes delivered on the path in all.
    pub delivered: ByteCount,
    /// Bytes declared lost on the path in all, these included.
    pub lost: ByteCount,
}

/// Packets that had been declared lost turned out to have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpuriousSample {
    /// When that was found out.
    pub now: Time,
    /// How many packets.
    pub packets: u64,
    /// When the oldest of them was sent.
    pub sent_at: Time,
}

/// A probe timeout has expired: nothing has been acknowledged for that long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SilenceSample {
    /// When.
    pub now: Time,
    /// Probe timeouts in a row, this one included.
    pub count: u32,
    /// The controller's state.
    pub state: crate::CongestionState,
}

/// What has been learnt of a path before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathHistory {
    /// A measure of bytes a round trip.
    pub window: ByteCount,
    /// The least RTT then.
    pub min_rtt: Duration,
    /// How long ago that was when it is recalled; zero when it is told.
    pub age: Duration,
    /// True if `window` is where an earlier connection of the same client stood, which this one goes on from (0-RTT);
    /// false if it is what the store makes of all that it has seen.
    pub continues: bool,
    /// What it lost where no queue stood.
    pub loss: PathLoss,
}

/// Packets that a path has lost where no queue stood, of how many. None settled: nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathLoss {
    settled: u32,
    lost: u32,
}

impl PathLoss {
    /// Packets that count at most: what is older weighs less.
    pub const MOST: u32 = 2_048;

    /// Nothing is known.
    pub const UNKNOWN: Self = Self { settled: 0, lost: 0 };

    /// `lost` packets of `settled`; [`Self::UNKNOWN`] if that is more than all. More than [`Self::MOST`] count as that many
    /// with the same share.
    pub fn new(settled: u32, lost: u32) -> Self {
        if lost > settled {
            return Self::UNKNOWN;
        }
        let most = settled.min(Self::MOST);
        // At most `MOST`, which the division has made sure of.
        let share = u64::from(lost) * u64::from(most) / u64::from(settled.max(1));
        Self { settled: most, lost: u32::try_from(share).unwrap_or(most) }
    }

    /// What is known with `earlier`, which counts as far as there is room for it.
    pub fn after(self, earlier: Self) -> Self {
        let room = Self::MOST - self.settled;
        let kept = if earlier.settled > room {
            let lost = u64::from(earlier.lost) * u64::from(room) / u64::from(earlier.settled);
            Self { settled: room, lost: u32::try_from(lost).unwrap_or(room) }
        } else {
            earlier
        };
        Self { settled: self.settled + kept.settled, lost: self.lost + kept.lost }
    }

    /// Packets of which it is known whether they arrived.
    pub fn settled(self) -> u32 {
        self.settled
    }

    /// Those of them that were lost.
    pub fn lost(self) -> u32 {
        self.lost
    }

    /// The share lost, 0 to 1; 0 if nothing is known.
    pub fn share(self) -> f64 {
        f64::from(self.lost) / f64::from(self.settled.max(1))
    }
}

/// Where a path stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathView {
    /// The time.
    pub now: Time,
    /// Bytes in flight.
    pub in_flight: ByteCount,
    /// The size of a datagram.
    pub max_datagram_size: ByteCount,
    /// The RTT estimate.
    pub rtt: RttView,
    /// The controller's state.
    pub congestion: crate::CongestionState,
}

/// A path at its end, for [`crate::Start::remember`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathSummary {
    /// The controller's state.
    pub congestion: crate::CongestionState,
    /// The RTT estimate.
    pub rtt: RttView,
    /// Bytes delivered in all.
    pub delivered: ByteCount,
    /// The size of a datagram.
    pub max_datagram_size: ByteCount,
    /// What the controller takes for the path's own loss.
    pub own_loss: PathLoss,
}

/// One receive window, a stream's or the connection's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowView {
    /// The time.
    pub now: Time,
    /// The limit advertised to the peer.
    pub advertised: ByteCount,
    /// Bytes received: the highest offset, or their sum over streams for the connection.
    pub received: ByteCount,
    /// Bytes that the application has read.
    pub consumed: ByteCount,
    /// Bytes that the application could read now: they have arrived, and all before them.
    pub readable: ByteCount,
    /// The smoothed RTT, once there is one.
    pub rtt: Option<Duration>,
    /// Largest datagram that the path carries.
    pub max_datagram_size: ByteCount,
    /// How far the limit may be ahead of what has been read, where memory is rationed: what goes beyond is not granted.
    pub allowance: Option<ByteCount>,
    /// How packets have been arriving.
    pub arrivals: ArrivalView,
    /// True if data have arrived in this window since the last ACK frame: one is due within the ack delay.
    pub is_ack_due: bool,
}

/// How packets arrive at a receiver, round trip by round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrivalView {
    /// Rounds that have been measured: each takes a smoothed RTT, without a pause in it.
    pub round: u64,
    /// Bytes of 1-RTT packets that arrived in the last of them, a second.
    pub rate: Option<Rate>,
    /// How many rounds in a row, up to the last, have left packets missing.
    pub rounds_with_gaps: u32,
}

/// Why a credit policy is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreditMoment {
    /// The application has read data.
    Consumed,
    /// A packet with an ACK frame is about to leave.
    AckLeaving,
    /// The peer says that the limit blocks it.
    Blocked,
}

/// A packet has arrived in the 1-RTT space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedSample {
    /// When.
    pub now: Time,
    /// True if it must be acknowledged.
    pub ack_eliciting: bool,
    /// True if it is below the highest number received, or leaves a gap behind that (RFC 9000 section 13.2.1).
    pub out_of_order: bool,
    /// True if it was marked CE.
    pub marked: bool,
}

/// What one end asks of the other's acks (draft-ietf-quic-ack-frequency section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRequest {
    /// Ack-eliciting packets that may arrive without an ack being sent; 0 asks for an ack for each.
    pub ack_eliciting_threshold: u64,
    /// How long an ack may wait.
    pub max_ack_delay: Duration,
    /// Packet numbers by which a packet must be missing before that calls for an ack at once: 1 for any
    /// reordering, 0 for never.
    pub reordering_threshold: u64,
}

/// What there is to know when a policy may ask the peer for other acks: once a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckView {
    /// What the congestion controller is doing.
    pub phase: Phase,
    /// Its window.
    pub window: ByteCount,
    /// Size of full datagrams.
    pub max_datagram_size: ByteCount,
    /// The round-trip time estimate.
    pub rtt: RttView,
    /// The least delay that the peer can be asked for.
    pub least_delay: Duration,
}

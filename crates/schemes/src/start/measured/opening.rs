//! What the handshake's own flight shows of the path: how far apart its datagrams arrived.

use posthaste_policy::sample::{AckSample, SentSample};
use posthaste_units::{ByteCount, Rate, Time};

/// A path that delivers the handshake's datagrams at this rate or more is fast. A client that computes
/// between its acknowledgements and does not say so makes the path look slower; one that lies about it gets no more than
/// this path's first flight.
pub(super) const FAST: Rate = Rate::from_bits_per_second(12_000_000);

/// From this rate on a whole first flight takes no more than 4 ms of the bottleneck.
pub(super) const VERY_FAST: Rate = Rate::from_bits_per_second(200_000_000);

/// How much larger a client's first datagram is than its second: an Initial is padded to 1,200 bytes (RFC 9000 section
/// 14.1), what follows it is not. A link that is as fast in both directions brings the acknowledgements closer together by
/// that much.
const CLIENT_PADDING: ByteCount = ByteCount::new(800);

/// More than one datagram has been acknowledged: each is 1,200 bytes at the least.
const TWO_DATAGRAMS: ByteCount = ByteCount::new(2_400);

/// What the handshake has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Showing {
    /// Its datagrams came apart, and at [`VERY_FAST`] or more.
    VeryFast,
    /// Its datagrams came apart, and at [`FAST`] or more.
    Fast,
    /// Only one of them was acknowledged, or the second is too small to tell anything.
    Nothing,
    /// More than one, but at the same instant: no slow link has kept them apart, and the radio or the client has
    /// gathered them.
    Together,
    /// They came at this rate.
    Slow(Rate),
}

/// The handshake's first flight, and how it was acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opening {
    /// When the flight left: later packets are repairs.
    sent_at: Option<Time>,
    /// When what was acknowledged first and last arrived, plus the way back.
    first_acked: Option<Time>,
    last_acked: Option<Time>,
    /// Bytes acknowledged at the time of the first acknowledgement, and after it.
    with_first: ByteCount,
    behind_first: ByteCount,
    is_marked: bool,
}

impl Opening {
    /// An Initial or Handshake packet leaves.
    pub(super) fn on_sent(&mut self, sent: &SentSample) {
        self.sent_at.get_or_insert(sent.now);
    }

    /// Initial or Handshake packets are acknowledged.
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>) {
        let of_flight = ack.packets.iter().filter(|packet| self.sent_at == Some(packet.sent_at));
        let bytes: ByteCount = of_flight.map(|packet| packet.bytes).sum();
        let (Some(sent_at), false) = (self.sent_at, bytes.is_zero()) else { return };
        // A browser verifies a certificate for tens of milliseconds before it acknowledges what came with it, and says so.
        let waited = ack.now.since(sent_at);
        let arrived = sent_at + waited.saturating_sub(ack.ack_delay);
        if self.first_acked.is_some_and(|first| first < arrived) {
            self.behind_first += bytes;
            self.last_acked = self.last_acked.max(Some(arrived));
        } else {
            self.with_first += bytes;
        }
        self.first_acked.get_or_insert(arrived);
    }

    /// A packet was marked CE: a queue stands already.
    pub(super) fn on_mark(&mut self) {
        self.is_marked = true;
    }

    /// What has been shown so far.
    pub(super) fn showing(&self) -> Showing {
        let (Some(first), Some(last)) = (self.first_acked, self.last_acked) else {
            let is_together = self.with_first >= TWO_DATAGRAMS && !self.is_marked;
            return if is_together { Showing::Together } else { Showing::Nothing };
        };
        // No more than the padding may have been: the time between the two is of something else.
        let behind = self.behind_first - CLIENT_PADDING;
        if behind.is_zero() {
            return Showing::Nothing;
        }
        let rate = Rate::from_transfer(behind, last.since(first));
        if rate < FAST || self.is_marked {
            Showing::Slow(rate.min(FAST))
        } else if rate < VERY_FAST {
            Showing::Fast
        } else {
            Showing::VeryFast
        }
    }
}

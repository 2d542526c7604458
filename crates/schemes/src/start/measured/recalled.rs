//! What an earlier connection found of the path: the first flight that it justifies, and what is remembered of this one.

use posthaste_policy::history::{Average, HistoryRules, Scope};
use posthaste_policy::sample::{AckSample, PathHistory, PathLoss};
use posthaste_units::{ByteCount, Duration, Rate, Time};

use super::opening::Showing;
use crate::start::observed::Observed;

/// The least RTT must be above this part of the saved one (RFC 9959 section 3.2, a MUST).
const LEAST_RTT: (u64, u64) = (1, 2);
/// The least RTT must not be above so many of the saved one (section 4.2.1, guidance).
const GREATEST_RTT: u64 = 10;
/// The part of what is saved that leaves at most (section 3.3, a MUST).
const SHARE: (u64, u64) = (1, 2);
/// How many times slower than the record the handshake must look to refute it: its two datagrams say little of paths with
/// jitter, which lets LTE paths look seven to ten times slower. A path that has become ten times slower behind others looks
/// twelve times slower and more.
const CONTRADICTION: u64 = 12;
/// How much longer than the saved least RTT the handshake's may be, at least and as a part of that, one in so many: behind
/// others' queue a flight of half of what the path carried alone is dropped.
const OTHERS_QUEUE: Duration = Duration::from_millis(10);
const OTHERS_PART: u64 = 4;
/// Round trips of data after which what was delivered is the measure of the path, whatever a train or an earlier
/// connection showed.
const LONG: usize = 8;

/// How histories are kept: for the very address that they were measured with, and no other.
pub(super) const fn rules(lifetime: Duration) -> HistoryRules {
    HistoryRules {
        scope: Scope::Address,
        has_fallback: false,
        average: Average::Latest,
        lifetime,
        is_exclusive: true,
    }
}

/// What is known of the path, and what is seen of it.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// With the end of its lifetime.
    known: Option<(PathHistory, Time)>,
    /// The handshake's round trip fits what is known.
    is_same_path: bool,
    /// The first flight is larger for what is known.
    is_used: bool,
    has_failed: bool,
    observed: Observed,
    /// What the trains promise of a round trip.
    promised: ByteCount,
}

impl Recalled {
    /// This is known at `now`, and may be used until it is `lifetime` old.
    pub(super) fn recall(&mut self, known: &PathHistory, now: Time, lifetime: Duration) {
        self.known = Some((*known, now + lifetime.saturating_sub(known.age)));
    }

    /// The first flight of a path that has been seen before: half of what it carried, at most `most`, for a handshake that
    /// took `rtt` and showed `showing`. Zero if nothing is known that still holds.
    pub(super) fn flight(
        &mut self,
        now: Time,
        rtt: Duration,
        showing: Showing,
        most: ByteCount,
    ) -> ByteCount {
        let Some((known, good_until)) = self.known else { return ByteCount::ZERO };
        let (numerator, denominator) = LEAST_RTT;
        let is_same_path =
            rtt > known.min_rtt.mul_ratio(numerator, denominator) && rtt <= known.min_rtt * GREATEST_RTT;
        self.is_same_path = is_same_path && now <= good_until;
        let is_refuted = match showing {
            Showing::Slow(rate) => {
                let carried = Rate::from_transfer(known.window, known.min_rtt);
                carried.as_bits_per_second() >= rate.as_bits_per_second().saturating_mul(CONTRADICTION)
            }
            _ => false,
        };
        let longest = known.min_rtt + OTHERS_QUEUE.max(known.min_rtt / OTHERS_PART);
        if !self.is_same_path || is_refuted || rtt > longest {
            return ByteCount::ZERO;
        }
        let (numerator, denominator) = SHARE;
        known.window.mul_ratio(numerator, denominator).min(most)
    }

    /// What is known of the loss of the path, unless it has proved to be another.
    pub(super) fn loss(&self) -> PathLoss {
        let known = self.known.filter(|_| self.is_same_path && !self.has_failed);
        known.map_or(PathLoss::UNKNOWN, |(known, _)| known.loss)
    }

    /// The same with what this connection has seen.
    pub(super) fn loss_with(&self, seen: PathLoss) -> PathLoss {
        seen.after(self.loss())
    }

    /// The first flight is larger, or not, for what is known.
    pub(super) fn set_used(&mut self, is_used: bool) {
        self.is_used = is_used;
    }

    /// True if the first flight is larger for what is known.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Data of this end's are acknowledged.
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>) {
        self.observed.on_ack(ack);
    }

    /// Trains have shown what a round trip carries.
    pub(super) fn on_promise(&mut self, promised: ByteCount) {
        self.promised = promised;
    }

    /// The first flight met congestion: what is known is wrong, if it was used.
    pub(super) fn on_congestion(&mut self) {
        self.has_failed |= self.is_used;
    }

    /// The path, or what it carries, is another: what has been seen is void.
    pub(super) fn forget(&mut self) {
        self.observed = Observed::default();
        self.promised = ByteCount::ZERO;
        self.known = None;
    }

    /// True once what was known has proved wrong.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Bytes that a round trip of the path carries. A connection of a few round trips has delivered what it had to send, or
    /// what its window let it: it takes nothing back of what trains have shown, or an earlier connection has.
    pub(super) fn worth(&self) -> ByteCount {
        let delivered = self.observed.greatest();
        if self.observed.proper_rounds() >= LONG {
            return delivered;
        }
        let known = self.known.filter(|_| self.is_used && !self.has_failed);
        let known = known.map_or(ByteCount::ZERO, |(known, _)| known.window);
        delivered.max(self.promised).max(known)
    }
}

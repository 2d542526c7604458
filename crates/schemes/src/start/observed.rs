//! What a path was seen to carry in a round trip.

use posthaste_policy::sample::AckSample;
use posthaste_units::ByteCount;

/// Round trips whose greatest delivery counts.
const ROUNDS: usize = 8;

/// What the path was seen to carry: delivery rate times least round trip, so that a queue does not count as capacity.
#[derive(Debug, Default)]
pub(super) struct Observed {
    rounds: [ByteCount; ROUNDS],
    current: usize,
    /// The present round has a sample of a sender that used its window.
    is_proper: bool,
    /// Rounds that have had one.
    proper_rounds: usize,
}

impl Observed {
    /// Packets are acknowledged.
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>) {
        // Rounds in which the sender had little to send say nothing of the path (RFC 9959 section 4.1): they do not
        // displace others, and only raise what is known.
        if ack.round_started && self.is_proper {
            self.current = (self.current + 1) % ROUNDS;
            self.is_proper = false;
            if let Some(round) = self.rounds.get_mut(self.current) {
                *round = ByteCount::ZERO;
            }
        }
        let Some(sample) = ack.delivery_rate else { return };
        if !sample.app_limited && !self.is_proper {
            self.is_proper = true;
            self.proper_rounds = self.proper_rounds.saturating_add(1);
        }
        if let Some(round) = self.rounds.get_mut(self.current) {
            *round = (*round).max(sample.rate.bytes_in(ack.rtt.min));
        }
    }

    /// Bytes of the best of the last round trips.
    pub(super) fn greatest(&self) -> ByteCount {
        self.rounds.iter().copied().max().unwrap_or(ByteCount::ZERO)
    }

    /// Round trips in which the sender used its window.
    pub(super) fn proper_rounds(&self) -> usize {
        self.proper_rounds
    }
}

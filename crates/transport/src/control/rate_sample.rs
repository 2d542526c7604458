//! Delivery-rate samples and packet-timed rounds (draft-ietf-ccwg-bbr section 4.1).

use posthaste_policy::sample::{PacketSample, RateSample};
use posthaste_units::{ByteCount, Duration, Rate, Time};

/// The path's counters as a packet found them when it was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) sent_at: Time,
    /// Bytes in flight, this packet included.
    pub(crate) in_flight: ByteCount,
    /// Bytes delivered before.
    pub(crate) delivered: ByteCount,
    /// When the last of them was.
    pub(crate) delivered_at: Time,
    /// When the first packet of the flight that measures this one was sent.
    pub(crate) first_sent_at: Time,
    /// Bytes declared lost before.
    pub(crate) lost: ByteCount,
    pub(crate) app_limited: bool,
}

impl Stamp {
    /// The packet as policies see it.
    pub(crate) fn sample(&self, number: u64, bytes: ByteCount) -> PacketSample {
        PacketSample {
            number,
            sent_at: self.sent_at,
            bytes,
            in_flight: self.in_flight,
            delivered: self.delivered,
            lost: self.lost,
            app_limited: self.app_limited,
        }
    }
}

/// The counters of one path.
#[derive(Debug, Default)]
pub(crate) struct RateSampler {
    delivered: ByteCount,
    delivered_at: Time,
    first_sent_at: Time,
    lost: ByteCount,
    /// While set, packets are stamped application-limited; cleared once more than this has been delivered.
    app_limited_until: Option<ByteCount>,
    round: u64,
    /// A round ends when a packet is acknowledged that was sent with at least this much delivered.
    round_ends_at: ByteCount,
}

impl RateSampler {
    /// Stamps a packet that leaves now; `prior_in_flight` does not include it.
    pub(crate) fn on_sent(&mut self, now: Time, prior_in_flight: ByteCount, bytes: ByteCount) -> Stamp {
        if prior_in_flight.is_zero() {
            // The pipe was empty: the idle time before this packet says nothing about the path.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Stamp {
            sent_at: now,
            in_flight: prior_in_flight + bytes,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// Counts `bytes` as delivered; `newest` is the stamp of the newest packet among them. Returns a sample if the
    /// ack gives a valid one, and whether a round has ended.
    pub(crate) fn on_acked(
        &mut self,
        now: Time,
        bytes: ByteCount,
        newest: &Stamp,
        min_rtt: Duration,
    ) -> (Option<RateSample>, bool) {
        self.delivered += bytes;
        self.delivered_at = now;
        let round_started = newest.delivered >= self.round_ends_at;
        if round_started {
            self.round_ends_at = self.delivered;
            self.round += 1;
        }
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        if newest.sent_at < self.first_sent_at {
            // An older packet than one that has been sampled already: its interval is covered.
            return (None, round_started);
        }
        self.first_sent_at = newest.sent_at;
        let send_elapsed = newest.sent_at.since(newest.first_sent_at);
        let interval = send_elapsed.max(now.since(newest.delivered_at));
        if interval < min_rtt || interval.is_zero() {
            // Shorter than any round trip: aggregation or a clock too coarse, no rate of the path.
            return (None, round_started);
        }
        let delivered = self.delivered - newest.delivered;
        let rate = Rate::from_transfer(delivered, interval);
        (Some(RateSample { rate, delivered, interval, app_limited: newest.app_limited }), round_started)
    }

    /// Packets declared lost have arrived after all.
    pub(crate) fn on_late_delivery(&mut self, now: Time, bytes: ByteCount) {
        self.delivered += bytes;
        self.delivered_at = now;
    }

    /// Counts `bytes` as lost.
    pub(crate) fn on_lost(&mut self, bytes: ByteCount) {
        self.lost += bytes;
    }

    /// The sender has run dry: what is sent until the present flight is delivered measures the sender.
    pub(crate) fn on_app_limited(&mut self, in_flight: ByteCount) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// True while packets are stamped application-limited.
    #[cfg(test)]
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Bytes delivered in all.
    pub(crate) fn delivered(&self) -> ByteCount {
        self.delivered
    }

    /// Bytes declared lost in all.
    pub(crate) fn lost(&self) -> ByteCount {
        self.lost
    }

    /// Rounds ended so far.
    pub(crate) fn round(&self) -> u64 {
        self.round
    }
}

#[cfg(test)]
mod tests;

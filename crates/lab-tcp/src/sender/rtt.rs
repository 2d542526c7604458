//! Round-trip times and the retransmission timeout (RFC 6298, as Linux refines it).

use posthaste_units::{Duration, Time};

/// Retransmission timeout before the first sample, and of SYN (RFC 6298 2.1).
pub(in super::super) const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Linux's least *variance term* of the timeout, so that the timeout is never below the smoothed RTT and this.
pub(super) const MIN_VARIATION: Duration = Duration::from_millis(200);

/// No timeout is longer, however often it was doubled.
pub(in super::super) const MAX_TIMEOUT: Duration = Duration::from_secs(120);

/// The estimator.
#[derive(Debug, Default)]
pub(super) struct Rtt {
    smoothed: Option<Duration>,
    least: Option<Duration>,
    /// Four times the mean deviation.
    deviation: i64,
    /// The largest `deviation` of this round trip.
    greatest_deviation: i64,
    /// What the timeout adds to the smoothed RTT.
    variation: i64,
    /// When all before this is acknowledged, a round trip is over.
    round_end: u64,
    /// How often the timeout was doubled.
    backoff: u32,
}

impl Rtt {
    /// The smoothed RTT, once there was a sample.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The least RTT of all. (Linux forgets after 300 s.)
    pub(super) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// Takes a sample into the least RTT alone.
    pub(super) fn note_least(&mut self, sample: Duration) {
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
    }

    /// Takes in a sample; `una` and `next` are the sender's at this time. Ends a backoff.
    ///
    /// Other than RFC 6298's, the deviation rises by a quarter and falls, while RTTs shrink, by a thirty-second
    /// only; and the timeout uses the largest deviation of a round trip and forgets a quarter of it a round trip.
    pub(super) fn on_sample(&mut self, sample: Duration, una: u64, next: u64) {
        self.backoff = 0;
        let floor = signed(MIN_VARIATION);
        let sample = signed(sample);
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(Duration::from_nanos(sample as u64));
            self.deviation = 2 * sample;
            self.greatest_deviation = self.deviation.max(floor);
            self.variation = self.greatest_deviation;
            self.round_end = next;
            return;
        };
        let smoothed = signed(smoothed);
        let error = sample - smoothed;
        self.smoothed = Some(Duration::from_nanos((smoothed + error / 8) as u64));
        let excess = error.abs() - self.deviation / 4;
        self.deviation += if error < 0 && excess > 0 { excess / 8 } else { excess };
        if self.deviation > self.greatest_deviation {
            self.greatest_deviation = self.deviation;
            self.variation = self.variation.max(self.greatest_deviation);
        }
        if una > self.round_end {
            if self.greatest_deviation < self.variation {
                self.variation -= (self.variation - self.greatest_deviation) / 4;
            }
            self.round_end = next;
            self.greatest_deviation = floor;
        }
    }

    /// The retransmission timeout.
    pub(super) fn timeout(&self) -> Duration {
        let base = self
            .smoothed
            .map_or(INITIAL_TIMEOUT, |smoothed| smoothed + Duration::from_nanos(self.variation as u64));
        (base * (1 << self.backoff.min(32))).min(MAX_TIMEOUT)
    }

    /// The timer has fired: the next timeout is twice as long.
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Timeouts are as long as measured again.
    pub(super) fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// When the segment sent at `sent_at` times out.
    pub(super) fn expiry(&self, sent_at: Time) -> Time {
        sent_at + self.timeout()
    }
}

/// Nanoseconds that can be subtracted; 292 years are enough.
fn signed(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

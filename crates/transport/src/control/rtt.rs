//! The round-trip time estimate (RFC 9002 section 5).

use posthaste_policy::sample::RttView;
use posthaste_units::{Duration, Time};

/// `kGranularity`: no timer of loss recovery is finer (RFC 9002 section 6.1.2).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// Floor of a sample: a clock that stood still must not make rates infinite.
const LEAST_SAMPLE: Duration = Duration::from_micros(1);

/// The estimator of one path.
#[derive(Debug, Clone)]
pub(crate) struct RttEstimator {
    /// `latest_rtt`: the latest sample as measured.
    latest: Duration,
    /// The latest sample less the peer's ack delay.
    adjusted: Duration,
    smoothed: Duration,
    variance: Duration,
    /// `None` until a sample, and again after persistent congestion (RFC 9002 section 5.2).
    min: Option<Duration>,
    first_sample_at: Option<Time>,
}

impl RttEstimator {
    /// An estimator that knows nothing but a guess (`kInitialRtt`, RFC 9002 section 6.2.2).
    pub(crate) fn new(initial: Duration) -> Self {
        Self {
            latest: initial,
            adjusted: initial,
            smoothed: initial,
            variance: initial / 2,
            min: None,
            first_sample_at: None,
        }
    }

    /// Takes a sample, of which the peer says that it spent `ack_delay` before it acknowledged; the caller has
    /// clamped that. Returns the adjusted sample.
    pub(crate) fn on_sample(&mut self, now: Time, sample: Duration, ack_delay: Duration) -> Duration {
        let sample = sample.max(LEAST_SAMPLE);
        self.latest = sample;
        // spec: rfc9002 5.2 first-is-minimum, 5.2 minimum-falls
        let min = self.min.map_or(sample, |min| min.min(sample));
        self.min = Some(min);
        if self.first_sample_at.is_none() {
            self.first_sample_at = Some(now);
            self.adjusted = sample;
            self.smoothed = sample;
            self.variance = sample / 2;
            return sample;
        }
        // spec: rfc9002 5.3 not-below-minimum
        // An ack delay that would push the sample below the minimum is not to be believed.
        self.adjusted = if sample >= min + ack_delay { sample.saturating_sub(ack_delay) } else { sample };
        // The deviation from the old mean, as Appendix A.7 and RFC 6298 have it.
        let deviation = self.smoothed.abs_diff(self.adjusted);
        self.variance = self.variance.mul_ratio(3, 4) + deviation / 4;
        self.smoothed = self.smoothed.mul_ratio(7, 8) + self.adjusted / 8;
        self.adjusted
    }

    /// A measured round trip that is no sample: a better guess than the one at the start (RFC 9002 section 6.2.2).
    pub(crate) fn seed(&mut self, rtt: Duration) {
        if self.first_sample_at.is_none() {
            *self = Self::new(rtt.max(LEAST_SAMPLE));
        }
    }

    /// Persistent congestion: the path may have changed, so the next sample is the new minimum (section 5.2).
    pub(crate) fn forget_minimum(&mut self) {
        self.min = None;
    }

    /// When the first sample was taken.
    pub(crate) fn first_sample_at(&self) -> Option<Time> {
        self.first_sample_at
    }

    /// The base of the loss delay: `max(latest_rtt, smoothed_rtt)` (section 6.1.2).
    pub(crate) fn loss_base(&self) -> Duration {
        self.latest.max(self.smoothed)
    }

    /// `smoothed_rtt + max(4 * rttvar, kGranularity)`: the probe timeout without the peer's ack delay (6.2.1).
    pub(crate) fn probe_base(&self) -> Duration {
        self.smoothed + (self.variance * 4).max(GRANULARITY)
    }

    /// The estimate as policies see it.
    pub(crate) fn view(&self) -> RttView {
        RttView {
            latest: self.adjusted,
            smoothed: self.smoothed,
            variance: self.variance,
            min: self.min.unwrap_or(self.latest),
            is_measured: self.first_sample_at.is_some(),
        }
    }
}

/// The path that a connection uses, as far as an ACK frame bears on recovery: which it is, and how long it takes.
#[derive(Debug)]
pub(crate) struct MeasuredPath<'a> {
    /// Packets of other paths bear on nothing.
    pub(crate) id: u32,
    pub(crate) rtt: &'a mut RttEstimator,
}

#[cfg(test)]
mod tests;

//! What both delay-increase exits share: the threshold and the least RTT of a round.

use posthaste_units::Duration;

/// Least increase that counts: below it is jitter (RFC 9406 section 4.3, `MIN_RTT_THRESH`).
pub(super) const LEAST_THRESHOLD: Duration = Duration::from_millis(4);
/// An increase that always counts (`MAX_RTT_THRESH`).
pub(super) const GREATEST_THRESHOLD: Duration = Duration::from_millis(16);
/// The increase as a part of the baseline (`MIN_RTT_DIVISOR`).
pub(super) const BASELINE_DIVISOR: u64 = 8;
/// Samples of a round before its minimum is believed (`N_RTT_SAMPLE`).
pub(super) const SAMPLES: u32 = 8;

/// The increase over `baseline` that says a queue is building.
pub(crate) fn threshold(baseline: Duration) -> Duration {
    (baseline / BASELINE_DIVISOR).clamp(LEAST_THRESHOLD, GREATEST_THRESHOLD)
}

/// The RTT samples of one round trip.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Round {
    /// Which round, by the transport's count.
    pub(super) number: u64,
    /// Least sample of the round.
    pub(super) least: Option<Duration>,
    /// Samples so far.
    pub(super) samples: u32,
}

impl Round {
    /// An empty round with this number.
    pub(super) fn begin(number: u64) -> Self {
        Self { number, least: None, samples: 0 }
    }

    /// Counts a sample.
    pub(super) fn add(&mut self, sample: Duration) {
        self.samples = self.samples.saturating_add(1);
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
    }

    /// The round's minimum, once enough samples stand behind it.
    pub(super) fn believed(&self) -> Option<Duration> {
        self.least.filter(|_| self.samples >= SAMPLES)
    }
}

//! Stalls of the receiver: silence, and then at one instant the acknowledgements of all that has come meanwhile.
//!
//! A phone's browser runs scripts where it takes packets in. What it has not looked at looks like a queue, but a queue
//! drains at the bottleneck's rate, and this does not.

use posthaste_units::{Duration, Time};

use crate::congestion::model::Sample;

/// Silence that can be a stall.
const LEAST_SILENCE: Duration = Duration::from_millis(8);
/// The time after it in which everything is acknowledged.
const LUMP_TIME: Duration = Duration::from_millis(1);
/// Datagrams that are acknowledged in it at least.
const LEAST_LUMP: f64 = 8.0;
/// How many times faster than the known rate they come.
const FASTER: f64 = 4.0;

/// Whether the receiver stalls.
#[derive(Debug, Clone, Default)]
pub(super) struct Stalls {
    last_ack: Time,
    /// When the last silence ended, and the bytes acknowledged since.
    ended: Time,
    lump: f64,
    seen_at: Option<Time>,
}

impl Stalls {
    /// An ack arrives on a path of this `bandwidth`, in bytes a second.
    pub(super) fn update(&mut self, sample: &Sample, bandwidth: f64, datagram: f64) {
        if sample.now.since(self.last_ack) >= LEAST_SILENCE {
            self.ended = sample.now;
            self.lump = 0.0;
        }
        self.last_ack = sample.now;
        let since = sample.now.since(self.ended);
        if since > LUMP_TIME {
            return;
        }
        self.lump += sample.newly_acked;
        let due = FASTER * bandwidth * LUMP_TIME.as_secs_f64();
        if self.lump >= due.max(LEAST_LUMP * datagram) {
            self.seen_at = Some(sample.now);
        }
    }

    /// True if it has stalled since then.
    pub(super) fn has_stalled_since(&self, then: Time) -> bool {
        self.seen_at.is_some_and(|seen| seen >= then)
    }
}

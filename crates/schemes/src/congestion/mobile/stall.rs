//! Receivers that do not look for a while: what they then acknowledge at once counts as one acknowledgement.
//!
//! A phone's browser takes packets in where it also runs scripts. What arrives meanwhile waits in its socket, and its round
//! trip is that of a queue; each second packet is acknowledged all the same, so that a dozen acknowledgements say so within
//! a millisecond. Of all that has waited for the receiver the last packet has waited least: what it has met is the queue,
//! or more than that.

use posthaste_policy::Constant;
use posthaste_units::{Duration, Time};

use super::super::model::Sample;

/// The least wait that may be a stall: in less than that radios gather what they send, and many that begin at once fill a
/// queue.
const LEAST_STALL: Duration = Duration::from_millis(24);
/// For this part of the wait, one in so many, all that comes counts as one.
const TOGETHER_PART: u64 = 2;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new(
        "stalls",
        format!(
            "in startup, what comes within half of a wait of {LEAST_STALL} or more behind it counts as one ack"
        ),
    )]
}

/// Acknowledgements that come behind a stall.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stalls {
    acked_at: Option<Time>,
    /// What comes until then counts as one.
    until: Time,
}

impl Stalls {
    /// An ack arrives, on a path with the least RTT `least`. True if it counts as one with the one before.
    pub(super) fn on_ack(&mut self, sample: &Sample, least: Duration) -> bool {
        let wait = self.acked_at.replace(sample.now).map_or(Duration::ZERO, |at| sample.now.since(at));
        // What left during the wait has waited for less.
        let waited = wait.min(sample.rtt.saturating_sub(least));
        if waited < LEAST_STALL {
            return sample.now <= self.until;
        }
        self.until = sample.now + waited / TOGETHER_PART;
        false
    }
}

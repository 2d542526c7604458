//! Slow start `hybrid`: doubling that ends when the first RTTs of a round have grown.
//!
//! - Claims: slow start ends before the buffer overflows, so that the first loss is small or none.
//! - Source: Ha and Rhee, "Taming the elephants: new TCP slow start" (2011), the delay-increase half with the
//!   constants of the most deployed QUIC stack: the first 8 samples of a round against the path's least RTT plus
//!   clamp(least / 8, 4 ms, 16 ms), not below 16 datagrams.
//! - Use when: paths have a steady delay (wired backhaul), and to compare with what servers run today.
//! - Breaks when: delay jitters by more than the threshold (Wi-Fi, LTE): one spike of 8 acks ends it for good;
//!   and when the peer sends fewer than 8 acks a round trip, which leaves only `classic`.

use posthaste_policy::sample::AckSample;
use posthaste_policy::{Constant, Description, PolicyText, SlowStart, SlowStartFactory, SlowStartStep};
use posthaste_units::{ByteCount, Duration};
use serde::Deserialize;

use super::delay::{self, Round};
use crate::Entry;

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "hybrid",
    claims: "doubles the window each round trip, and stops before the buffer overflows: when the RTT has grown",
    source: "Ha and Rhee 2011 (HyStart), the delay-increase exit with the constants most deployed",
    use_when: "the path's own delay is steady, as on wired backhauls",
    breaks_when: "delay jitters by more than 4 to 16 ms (Wi-Fi, LTE): one spike ends slow start for good; fewer \
                  than 8 acks a round trip",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::slow_start::<Parameters>(TEXT);

/// Parameters of [`Hybrid`]: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {}

impl SlowStartFactory for Parameters {
    fn build(&self, max_datagram_size: ByteCount) -> Box<dyn SlowStart> {
        Box::new(Hybrid::new(max_datagram_size))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(constants())
    }
}

/// Below this many datagrams an exit is put off: the estimate would rest on too little.
const LEAST_WINDOW_DATAGRAMS: u64 = 16;

/// The constants, for people.
pub fn constants() -> Vec<Constant> {
    vec![
        Constant::new("samples", delay::SAMPLES),
        Constant::new("threshold", "least RTT / 8, from 4 ms to 16 ms"),
        Constant::new("least window", format!("{LEAST_WINDOW_DATAGRAMS} datagrams")),
    ]
}

/// The delay-increase exit; see the module.
#[derive(Debug, Clone)]
pub struct Hybrid {
    least_window: ByteCount,
    round: Round,
    found: bool,
}

impl Hybrid {
    /// The policy for a path with datagrams of this size.
    pub fn new(max_datagram_size: ByteCount) -> Self {
        Self {
            least_window: max_datagram_size * LEAST_WINDOW_DATAGRAMS,
            round: Round::default(),
            found: false,
        }
    }

    /// Looks at the first samples of the round only: later ones see the queue of this very round's burst.
    fn examine(&mut self, sample: Duration, path_least: Duration) {
        if self.round.samples >= delay::SAMPLES {
            return;
        }
        self.round.add(sample);
        if self.round.believed().is_some_and(|least| least > path_least + delay::threshold(path_least)) {
            self.found = true;
        }
    }
}

impl SlowStart for Hybrid {
    fn on_ack(&mut self, ack: &AckSample<'_>, acked: ByteCount, window: ByteCount) -> SlowStartStep {
        if ack.round != self.round.number {
            self.round = Round::begin(ack.round);
        }
        if let Some(sample) = ack.rtt_sample {
            self.examine(sample, ack.rtt.min);
        }
        if self.found && window >= self.least_window {
            return SlowStartStep { growth: ByteCount::ZERO, exit: Some(window) };
        }
        SlowStartStep { growth: acked, exit: None }
    }

    fn restart(&mut self, _threshold: Option<ByteCount>) {
        self.round = Round::default();
        self.found = false;
    }
}

#[cfg(test)]
mod tests;

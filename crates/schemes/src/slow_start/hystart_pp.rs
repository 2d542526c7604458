//! Slow start `hystart_pp`: HyStart++, which checks a delay increase before it believes it.
//!
//! - Claims: slow start ends before the buffer overflows, and a passing spike of delay does not end it.
//! - Source: RFC 9406, whole: when the least RTT of a round has grown, conservative slow start (a quarter of the
//!   growth) for at most 5 rounds; if the RTT falls below what it was on entry, back to slow start.
//! - Use when: always, unless a comparison asks otherwise; it is the default.
//! - Breaks when: jitter lasts longer than 5 rounds (the window is then left too small), when the bottleneck's
//!   buffer holds less than 4 ms, or when the peer sends fewer than 8 acks a round trip (loss comes first, as in
//!   `classic`).

use posthaste_policy::sample::AckSample;
use posthaste_policy::{Constant, Description, PolicyText, SlowStart, SlowStartFactory, SlowStartStep};
use posthaste_units::{ByteCount, Duration};
use serde::Deserialize;

use super::delay::{self, Round};
use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "hystart_pp",
    claims: "stops doubling before the buffer overflows, and takes it up again if the delay was a passing spike",
    source: "RFC 9406 (HyStart++)",
    use_when: "always, unless a comparison asks otherwise",
    breaks_when: "jitter outlasts 5 round trips, the bottleneck's buffer holds less than 4 ms, or the peer sends \
                  fewer than 8 acks a round trip",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::slow_start::<Parameters>(TEXT);

/// Growth is divided by this in conservative slow start (`CSS_GROWTH_DIVISOR`).
const CONSERVATIVE_DIVISOR: u64 = 4;
/// Rounds of conservative slow start before it is believed (`CSS_ROUNDS`).
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Parameters of [`HystartPlusPlus`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Most datagrams that one ack may add to the window (RFC 9406's `L`), 1 to 1,000,000; none when paced (the
    /// default), 8 where nothing paces.
    #[serde(deserialize_with = "value::datagram_limit")]
    pub growth_limit: Option<u64>,
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let limit = self.growth_limit.map_or("none (paced)".to_owned(), |count| format!("{count} datagrams"));
        vec![
            Constant::new("samples", delay::SAMPLES),
            Constant::new("threshold", "last round's least RTT / 8, from 4 ms to 16 ms"),
            Constant::new("conservative growth", format!("1/{CONSERVATIVE_DIVISOR}")),
            Constant::new("conservative rounds", CONSERVATIVE_ROUNDS),
            Constant::new("growth_limit", limit),
        ]
    }
}

impl SlowStartFactory for Parameters {
    fn build(&self, max_datagram_size: ByteCount) -> Box<dyn SlowStart> {
        Box::new(HystartPlusPlus::new(*self, max_datagram_size))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// Where the algorithm stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Doubling, watching the delay.
    Doubling,
    /// Conservative slow start since the delay has grown to `baseline`.
    Conservative { baseline: Duration, rounds: u32 },
    /// Plain slow start towards a threshold that is known: RFC 9406 section 4.3 keeps to the initial slow start.
    Known,
}

/// HyStart++; see the module.
#[derive(Debug, Clone)]
pub struct HystartPlusPlus {
    growth_limit: ByteCount,
    stage: Stage,
    round: Round,
    last_least: Option<Duration>,
}

impl HystartPlusPlus {
    /// The policy for a path with datagrams of this size.
    pub fn new(parameters: Parameters, max_datagram_size: ByteCount) -> Self {
        Self {
            growth_limit: parameters.growth_limit.map_or(ByteCount::MAX, |count| max_datagram_size * count),
            stage: Stage::Doubling,
            round: Round::default(),
            last_least: None,
        }
    }

    /// Begins a round; true if it was the last that conservative slow start may take.
    fn begin_round(&mut self, number: u64) -> bool {
        // A round without a sample tells nothing: the minimum before it stays the one to compare with.
        self.last_least = self.round.least.or(self.last_least);
        self.round = Round::begin(number);
        if let Stage::Conservative { rounds, .. } = &mut self.stage {
            // The round in which it began counts as one, however late in it that was (RFC 9406 section 4.2).
            *rounds += 1;
            return *rounds >= CONSERVATIVE_ROUNDS;
        }
        false
    }

    /// Compares the round's least RTT with the last round's, or with the baseline.
    fn examine(&mut self) {
        let Some(least) = self.round.believed() else { return };
        match self.stage {
            Stage::Doubling => {
                if self.last_least.is_some_and(|last| least >= last + delay::threshold(last)) {
                    self.stage = Stage::Conservative { baseline: least, rounds: 0 };
                }
            }
            Stage::Conservative { baseline, .. } => {
                if least < baseline {
                    self.stage = Stage::Doubling;
                }
            }
            Stage::Known => {}
        }
    }
}

impl SlowStart for HystartPlusPlus {
    fn on_ack(&mut self, ack: &AckSample<'_>, acked: ByteCount, window: ByteCount) -> SlowStartStep {
        if ack.round != self.round.number && self.begin_round(ack.round) {
            return SlowStartStep { growth: ByteCount::ZERO, exit: Some(window) };
        }
        let divisor = if let Stage::Conservative { .. } = self.stage { CONSERVATIVE_DIVISOR } else { 1 };
        let growth = acked.min(self.growth_limit) / divisor;
        if let Some(sample) = ack.rtt_sample {
            self.round.add(sample);
            self.examine();
        }
        SlowStartStep { growth, exit: None }
    }

    fn restart(&mut self, threshold: Option<ByteCount>) {
        self.stage = if threshold.is_some() { Stage::Known } else { Stage::Doubling };
        self.round = Round::default();
        self.last_least = None;
    }
}

#[cfg(test)]
mod tests;

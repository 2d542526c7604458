//! Acks `frequency`: asks a peer that can be asked for few acks, and acknowledges as `standard` does itself.
//!
//! - Claims: after slow start an ack for every tenth packet or every quarter of a round trip, instead of every second
//!   packet: a fifth of the acks.
//! - Source: draft-ietf-quic-ack-frequency section 4; the counts are those of one widely used stack.
//! - Use when: the way back is thin or shared (Wi-Fi airtime, satellite, 50:1 access links).
//! - Breaks when: the sender neither paces nor counts acknowledged bytes: fewer acks then mean bursts.

use posthaste_policy::sample::{AckRequest, AckView, ReceivedSample};
use posthaste_policy::{AckFactory, AckPolicy, Constant, Description, Phase, PolicyText};
use posthaste_units::{Duration, Time};
use serde::Deserialize;

use super::standard::{self, Standard};
use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "frequency",
    claims: "a fifth of the acks: one for ten packets or a quarter of a round trip, once out of slow start",
    source: "draft-ietf-quic-ack-frequency section 4",
    use_when: "the way back is thin, or acks cost airtime",
    breaks_when: "the sender does not pace: fewer acks are larger bursts",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::ack::<Parameters>(TEXT);

/// The part of a round trip that an ack may wait: the sender's clock keeps four beats.
const DELAYS_PER_RTT: u64 = 4;

/// Packets missing that call for an ack at once: what a sender takes for lost (RFC 9002 section 6.1.1).
const REORDERING: u64 = 3;

/// Parameters of [`Frequency`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Ack-eliciting packets for one ack that the peer is asked for, 1 to 256; default 10.
    #[serde(deserialize_with = "value::ack_packets")]
    pub packets: u32,
    /// The promise in `max_ack_delay` for this end's acks, 0 to 1 s; RFC 9000 section 18.2 has 25 ms.
    #[serde(deserialize_with = "value::ack_delay")]
    pub max_ack_delay: Duration,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { packets: 10, max_ack_delay: Duration::from_millis(25) }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        vec![
            Constant::new("packets", self.packets),
            Constant::new("delays_per_rtt", DELAYS_PER_RTT),
            Constant::new("max_ack_delay", self.max_ack_delay),
        ]
    }
}

impl AckFactory for Parameters {
    fn build(&self, max_ack_delay: Duration) -> Box<dyn AckPolicy> {
        Box::new(Frequency::new(*self, max_ack_delay))
    }

    fn max_ack_delay(&self) -> Duration {
        self.max_ack_delay
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// Few acks by request; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Frequency {
    packets: u32,
    own: Standard,
}

impl Frequency {
    /// The policy, which keeps the promise `max_ack_delay` that was made to the peer.
    pub const fn new(parameters: Parameters, max_ack_delay: Duration) -> Self {
        let own = standard::Parameters { packets: 2, max_ack_delay: parameters.max_ack_delay };
        Self { packets: parameters.packets, own: Standard::new(own, max_ack_delay) }
    }
}

impl AckPolicy for Frequency {
    fn on_packet(&mut self, packet: &ReceivedSample) {
        self.own.on_packet(packet);
    }

    fn deadline(&self) -> Option<Time> {
        self.own.deadline()
    }

    fn on_ack_sent(&mut self) {
        self.own.on_ack_sent();
    }

    fn on_request(&mut self, request: &AckRequest) {
        self.own.on_request(request);
    }

    fn ask(&mut self, view: &AckView) -> Option<AckRequest> {
        // Slow start grows by acks and leaves by RTT samples: it wants them all.
        if view.phase == Phase::SlowStart || !view.rtt.is_measured {
            return None;
        }
        // A quarter of the window, so that a small one is not waited for whole.
        let quarter = view.window.get() / view.max_datagram_size.get().max(1) / DELAYS_PER_RTT;
        let packets = quarter.clamp(2, u64::from(self.packets).max(2));
        Some(AckRequest {
            ack_eliciting_threshold: packets - 1,
            max_ack_delay: (view.rtt.min / DELAYS_PER_RTT).max(view.least_delay),
            reordering_threshold: REORDERING,
        })
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::ByteCount;

    use super::*;
    use posthaste_policy::sample::RttView;

    fn view(phase: Phase, window: u64) -> AckView {
        let rtt = Duration::from_millis(40);
        AckView {
            phase,
            window: ByteCount::new(window),
            max_datagram_size: ByteCount::new(1200),
            rtt: RttView { latest: rtt, smoothed: rtt, variance: rtt, min: rtt, is_measured: true },
            least_delay: Duration::from_millis(1),
        }
    }

    #[test]
    fn a_tenth_and_a_quarter_after_slow_start() {
        let mut policy = Frequency::new(Parameters::default(), Duration::from_millis(25));
        assert_eq!(policy.ask(&view(Phase::SlowStart, 1_000_000)), None);
        let request = policy.ask(&view(Phase::CongestionAvoidance, 1_000_000)).expect("a request");
        assert_eq!(request.ack_eliciting_threshold, 9);
        assert_eq!(request.max_ack_delay, Duration::from_millis(10));
        // 24 packets of window: six for one ack.
        let request = policy.ask(&view(Phase::Recovery, 24 * 1200)).expect("a request");
        assert_eq!(request.ack_eliciting_threshold, 5);
        let request = policy.ask(&view(Phase::Recovery, 2400)).expect("a request");
        assert_eq!(request.ack_eliciting_threshold, 1, "as without a request");
    }
}

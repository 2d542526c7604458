//! Acks `standard`: every second packet, or after the delay that was promised.
//!
//! - Claims: the sender's clock never stops, and gaps and marks reach it at once.
//! - Source: RFC 9000 section 13.2.
//! - Use when: the peer has not asked for anything else.
//! - Breaks when: the way back is thin (40 acks a second for each 100 kbit/s), or acks cost airtime (Wi-Fi).

use posthaste_policy::sample::{AckRequest, ReceivedSample};
use posthaste_policy::{AckFactory, AckPolicy, Constant, Description, PolicyText};
use posthaste_units::{Duration, Time};
use serde::Deserialize;

use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "standard",
    claims: "an ack for every second packet or after the promised delay; at once for gaps and ECN marks",
    source: "RFC 9000 section 13.2",
    use_when: "the peer has not asked for anything else",
    breaks_when: "the way back is thin, or acks cost airtime",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::ack::<Parameters>(TEXT);

/// Parameters of [`Standard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Ack-eliciting packets that may wait for one ack, 1 to 256; RFC 9000 section 13.2.2 has 2.
    #[serde(deserialize_with = "value::ack_packets")]
    pub packets: u32,
    /// The promise in `max_ack_delay`, 0 to 1 s; RFC 9000 section 18.2 has 25 ms.
    #[serde(deserialize_with = "value::ack_delay")]
    pub max_ack_delay: Duration,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { packets: 2, max_ack_delay: Duration::from_millis(25) }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        vec![Constant::new("packets", self.packets), Constant::new("max_ack_delay", self.max_ack_delay)]
    }
}

impl AckFactory for Parameters {
    fn build(&self, max_ack_delay: Duration) -> Box<dyn AckPolicy> {
        Box::new(Standard::new(*self, max_ack_delay))
    }

    fn max_ack_delay(&self) -> Duration {
        self.max_ack_delay
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// Acks by count and delay; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Standard {
    packets: u32,
    max_ack_delay: Duration,
    unacknowledged: u32,
    deadline: Option<Time>,
}

impl Standard {
    /// The policy, which keeps the promise `max_ack_delay` that was made to the peer.
    pub const fn new(parameters: Parameters, max_ack_delay: Duration) -> Self {
        Self { packets: parameters.packets, max_ack_delay, unacknowledged: 0, deadline: None }
    }
}

impl AckPolicy for Standard {
    fn on_packet(&mut self, packet: &ReceivedSample) {
        // spec: rfc9000 13.2.1 no-ack-for-acks
        // Section 13.2.1: never an ack for a packet that asks for none, gap or not, or two peers would
        // acknowledge each other's acks for ever.
        if !packet.ack_eliciting {
            return;
        }
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        let is_urgent = packet.out_of_order || packet.marked || self.unacknowledged >= self.packets;
        // spec: rfc9000 13.2.1 acked-in-time
        let due = if is_urgent { packet.now } else { packet.now + self.max_ack_delay };
        self.deadline = Some(self.deadline.map_or(due, |deadline| deadline.min(due)));
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn on_ack_sent(&mut self) {
        self.unacknowledged = 0;
        self.deadline = None;
    }

    fn on_request(&mut self, request: &AckRequest) {
        // The threshold counts packets without an ack; the next one brings it.
        let packets = request.ack_eliciting_threshold.saturating_add(1);
        self.packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.max_ack_delay = request.max_ack_delay;
    }
}

#[cfg(test)]
mod tests;

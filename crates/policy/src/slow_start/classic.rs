//! Slow start `classic`: the window grows by what is acknowledged until a loss or a mark ends it.
//!
//! - Claims: the capacity is found in log2(BDP / initial window) round trips, whatever the delay does.
//! - Source: RFC 9002 section 7.3.1, RFC 5681 section 3.1.
//! - Use when: delay says nothing (a wildly jittering radio), or as the baseline.
//! - Breaks when: the buffer is deep: the window overshoots to twice the capacity and loses up to half a window.

use posthaste_units::ByteCount;

use crate::sample::AckSample;
use crate::{PolicyText, SlowStart, SlowStartStep};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "classic",
    claims: "doubles the window each round trip until a loss or an ECN mark, whatever the delay does",
    source: "RFC 9002 section 7.3.1",
    use_when: "delay says nothing (a wildly jittering radio), or as the baseline",
    breaks_when: "buffers are deep: it overshoots to twice the capacity and loses up to half a window",
};

/// Doubling without an exit of its own; see the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Classic;

impl SlowStart for Classic {
    fn on_ack(&mut self, _ack: &AckSample<'_>, acked: ByteCount, _window: ByteCount) -> SlowStartStep {
        SlowStartStep { growth: acked, exit: None }
    }

    fn restart(&mut self, _threshold: Option<ByteCount>) {}
}

//! Silence `collapse`: probe ever more rarely, and take a long silence for congestion.
//!
//! - Claims: a network that has broken down is not kept down by its senders.
//! - Source: RFC 9002 sections 6.2.1 (doubling probe timeouts) and 7.6 (persistent congestion).
//! - Use when: always on the open internet.
//! - Breaks when: the silence was a radio's (handover, tunnel): the window starts again from 2 datagrams.

use posthaste_policy::{Constant, Description, PolicyText, Silence, SilenceFactory};
use posthaste_units::Duration;
use serde::Deserialize;

use crate::Entry;

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "collapse",
    claims: "a network that has broken down is not kept down: probes back off, and the window collapses",
    source: "RFC 9002 sections 6.2.1 and 7.6",
    use_when: "always on the open internet",
    breaks_when: "the silence was a radio's (handover, tunnel): the window starts again from 2 datagrams",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::silence::<Parameters>(TEXT);

/// Parameters of [`Collapse`]: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {}

impl SilenceFactory for Parameters {
    fn build(&self) -> Box<dyn Silence> {
        Box::new(Collapse)
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(constants())
    }
}

/// The constants, for people.
pub fn constants() -> Vec<Constant> {
    vec![super::back_off_constant()]
}

/// Back-off and collapse; see the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Collapse;

impl Silence for Collapse {
    fn probe_timeout(&self, base: Duration, count: u32) -> Duration {
        super::back_off(base, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_timeouts_double_up_to_a_second_and_after_two_minutes_up_to_a_minute() {
        // spec: rfc9002 6.2.1 back-off-doubles
        let waits = |base: u64, counts: [u32; 8]| {
            counts.map(|count| Collapse.probe_timeout(Duration::from_millis(base), count).as_millis())
        };
        let counts = [0, 1, 2, 119, 120, 121, 126, u32::MAX];
        assert_eq!(waits(300, counts), [300, 600, 1000, 1000, 1000, 2000, 60_000, 60_000]);
        assert_eq!(waits(2000, counts), [2000, 4000, 4000, 4000, 4000, 8000, 60_000, 60_000]);
        let long = Duration::from_secs(90);
        assert_eq!(Collapse.probe_timeout(long, 0), long);
        assert_eq!(
            Collapse.probe_timeout(long, 300),
            long,
            "a path slower than the bound is not probed early"
        );
    }
}

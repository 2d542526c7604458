//! Start `initial`: a fixed initial window.
//!
//! - Claims: a cold path is not overrun, whatever it is; the tenth datagram is the last before the first ack.
//! - Source: RFC 9002 section 7.2 (10 datagrams); larger counts as large senders deploy them.
//! - Use when: nothing is known of the path, which is the normal case.
//! - With `max_stated_window`, a server begins with the window that its client asks for, up to that (the negotiation of the
//!   thesis on window updates in acks, section 3.3; docs/spec/initial-window.md). `stated_window` is what a client asks for.
//! - Breaks when: the path is long and wide (every round trip of slow start is then pure waiting), or, with 32
//!   datagrams, when it is slower than about 1 Mbit/s: the first flight alone then queues for most of a second.

use posthaste_policy::{Constant, Description, PolicyText, Start, StartFactory};
use posthaste_units::ByteCount;
use serde::Deserialize;

use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "initial",
    claims: "a cold path is not overrun: one fixed first flight, then slow start",
    source: "RFC 9002 section 7.2; larger counts as large senders deploy them",
    use_when: "nothing is known of the path",
    breaks_when: "the path is long and wide (slow start is waiting); with 32 datagrams, below about 1 Mbit/s",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::start::<Parameters>(TEXT);

/// RFC 9002 section 7.2: the byte count that bounds ten large datagrams.
const STANDARD_BYTES: ByteCount = ByteCount::new(14_720);
/// RFC 9002 section 7.2: the count of datagrams.
const STANDARD_DATAGRAMS: u64 = 10;
/// No controller works with less than the minimum window (RFC 9002 section 7.2).
const LEAST_DATAGRAMS: u64 = 2;

/// Parameters of [`Initial`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Datagrams of the path's size, 2 to 1,000; without it RFC 9002's formula (ten, at most 14,720 bytes).
    #[serde(deserialize_with = "value::initial_datagrams")]
    pub datagrams: Option<u64>,
    /// On a server: the most that is granted to a client that asks for a first window, 1 KiB to 4 GiB, and two datagrams in
    /// any case. `None`, the default, passes over what clients ask for.
    #[serde(deserialize_with = "value::some_window")]
    pub max_stated_window: Option<ByteCount>,
    /// On a client: the first window that servers are asked for, as `max_stated_window`. `None`, the default, asks for none.
    #[serde(deserialize_with = "value::some_window")]
    pub stated_window: Option<ByteCount>,
}

impl Parameters {
    /// A flight of so many datagrams; of RFC 9002's window without a number.
    pub(super) fn of_datagrams(datagrams: Option<u64>) -> Self {
        Self { datagrams, ..Self::default() }
    }

    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let datagrams = self.datagrams.map_or_else(
            || format!("{STANDARD_DATAGRAMS}, at most {} bytes", STANDARD_BYTES.get()),
            |count| count.to_string(),
        );
        let mut constants = vec![Constant::new("datagrams", datagrams)];
        let stated = [("max_stated_window", self.max_stated_window), ("stated_window", self.stated_window)];
        let shown = |(name, window): (_, Option<_>)| Some(Constant::new(name, value::show_bytes(window?)));
        constants.extend(stated.into_iter().filter_map(shown));
        constants
    }
}

impl StartFactory for Parameters {
    fn build(&self) -> Box<dyn Start> {
        Box::new(Initial::new(*self))
    }

    fn stated_window(&self) -> Option<ByteCount> {
        self.stated_window
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// A fixed initial window; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Initial {
    parameters: Parameters,
    /// What the client has asked for, bounded.
    granted: Option<ByteCount>,
}

impl Initial {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, granted: None }
    }
}

impl Start for Initial {
    fn initial_window(&self, max_datagram_size: ByteCount) -> ByteCount {
        let least = max_datagram_size * LEAST_DATAGRAMS;
        match (self.granted, self.parameters.datagrams) {
            (Some(window), _) => window.max(least),
            (None, Some(count)) => (max_datagram_size * count).max(least),
            (None, None) => (max_datagram_size * STANDARD_DATAGRAMS).min(STANDARD_BYTES.max(least)),
        }
    }

    fn on_stated_window(&mut self, window: ByteCount) {
        self.granted = self.parameters.max_stated_window.map(|most| window.min(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(datagrams: Option<u64>, size: u64) -> u64 {
        Initial::new(Parameters::of_datagrams(datagrams)).initial_window(ByteCount::new(size)).get()
    }

    #[test]
    fn the_standard_window_is_rfc_9002s() {
        assert_eq!(window(None, 1200), 12_000);
        assert_eq!(window(None, 1472), 14_720);
        assert_eq!(window(None, 1500), 14_720, "bounded in bytes");
        assert_eq!(window(None, 9000), 18_000, "two datagrams always fit");
    }

    #[test]
    fn a_client_is_granted_what_it_asks_for_within_the_bound() {
        let begin = |most: Option<u64>, stated| {
            let max_stated_window = most.map(ByteCount::new);
            let mut start = Initial::new(Parameters { max_stated_window, ..Parameters::default() });
            start.on_stated_window(ByteCount::new(stated));
            start.initial_window(ByteCount::new(1200)).get()
        };
        assert_eq!(begin(None, 100_000), 12_000, "nothing is granted by default");
        assert_eq!(begin(Some(131_072), 100_000), 100_000);
        assert_eq!(begin(Some(131_072), 5_000), 5_000, "a client may ask for less");
        assert_eq!(begin(Some(131_072), 1), 2_400, "two datagrams always fit");
        assert_eq!(begin(Some(131_072), (1 << 62) - 1), 131_072);
    }

    #[test]
    fn a_count_of_datagrams_scales_with_their_size() {
        assert_eq!(window(Some(32), 1200), 38_400);
        assert_eq!(window(Some(32), 1452), 46_464);
    }
}

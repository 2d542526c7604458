//! Credit `improved`: a window of one size, renewed one datagram before half of it is used.
//!
//! - Claims: a sender that `fixed` holds to half a window a round trip sends a whole one, for no more memory.
//! - Source: SCHEMES E, `static-improved`: the update leaves when A < W/2 + MSS.
//! - Use when: memory is counted and the window is small beside the path.
//! - Breaks when: the path holds more than the window: the sender then waits for credit all the same.
//! - Shown by: fa-small, fa-large, fa-size.

use posthaste_policy::sample::{CreditMoment, WindowView};
use posthaste_policy::{Constant, Credit, CreditFactory, Description, PolicyText};
use posthaste_units::ByteCount;
use serde::Deserialize;

use super::{ahead, half, replenish};
use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "improved",
    claims: "a window of one size, renewed twice a round trip, so that all of it is used in each",
    source: "the improved static baseline of receive-window autotuning: update at A < W/2 + MSS",
    use_when: "memory is short, or to measure what autotuning gains",
    breaks_when: "the path holds more than the window: the sender then waits for credit",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::credit::<Parameters>(TEXT);

/// Parameters of [`Improved`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The window: 1 KiB to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub window: ByteCount,
}

impl CreditFactory for Parameters {
    fn build(&self) -> Box<dyn Credit> {
        Box::new(Improved::new(*self))
    }

    fn bounds(&self) -> Option<(ByteCount, ByteCount)> {
        Some((self.window, self.window))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(constants(*self))
    }
}

/// The constants, for people.
pub fn constants(parameters: Parameters) -> Vec<Constant> {
    vec![
        Constant::new("window", value::show_bytes(parameters.window)),
        Constant::new("renewed", "when less than half and one datagram is left"),
    ]
}

/// A window of one size, renewed early; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Improved {
    window: ByteCount,
}

impl Improved {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { window: parameters.window }
    }
}

impl Credit for Improved {
    fn initial_window(&self) -> ByteCount {
        self.window
    }

    fn grant(&mut self, _moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
        // No window is so small that each byte read would be worth a frame: the datagram counts for half at most.
        let early = view.max_datagram_size.min(half(view, self.window) - ByteCount::new(1));
        if ahead(view) >= half(view, self.window) + early {
            return None;
        }
        replenish(view, self.window)
    }

    fn window(&self) -> ByteCount {
        self.window
    }
}

//! Credit `fixed`: a window of one size, renewed when half of it is used.
//!
//! - Claims: memory is bounded by a constant.
//! - Source: the `static` baseline of SCHEMES E, the form that RFC 9000 section 4.2 suggests.
//! - Use when: memory is short, or to measure what autotuning gains.
//! - Breaks when: BDP exceeds half the window: 1 MiB at 50 ms is 84 to 168 Mbit/s and no more.

use posthaste_policy::sample::{CreditMoment, WindowView};
use posthaste_policy::{Constant, Credit, CreditFactory, Description, PolicyText};
use posthaste_units::ByteCount;
use serde::Deserialize;

use super::{ahead, half, replenish};
use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "fixed",
    claims: "memory is bounded by a constant: one window, renewed when half of it is used",
    source: "the static baseline of receive-window autotuning; RFC 9000 section 4.2",
    use_when: "memory is short, or to measure what autotuning gains",
    breaks_when: "the path holds more than half the window: the sender then waits for credit",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::credit::<Parameters>(TEXT);

/// Parameters of [`Fixed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The window: 1 KiB to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub window: ByteCount,
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        vec![
            Constant::new("window", value::show_bytes(self.window)),
            Constant::new("renewed", "when less than half is left"),
        ]
    }
}

impl CreditFactory for Parameters {
    fn build(&self) -> Box<dyn Credit> {
        Box::new(Fixed::new(*self))
    }

    fn bounds(&self) -> Option<(ByteCount, ByteCount)> {
        Some((self.window, self.window))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// A window of one size; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    parameters: Parameters,
}

impl Fixed {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters }
    }
}

impl Credit for Fixed {
    fn initial_window(&self) -> ByteCount {
        self.parameters.window
    }

    fn grant(&mut self, _moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
        // The same rule at each moment: a peer that is blocked by data which nobody has read must wait.
        let is_due = ahead(view) < half(view, self.parameters.window);
        if is_due { replenish(view, self.parameters.window) } else { None }
    }

    fn window(&self) -> ByteCount {
        self.parameters.window
    }
}

//! Credit `autotune`: a window that doubles while it is used up faster than two round trips.
//!
//! - Claims: the window finds the path's BDP in a few round trips, and idle connections cost little.
//! - Source: SCHEMES E, `autotune`; the rule of the largest deployments.
//! - Use when: always, until `fast` is there; it is the default.
//! - Breaks when: transfers are short and the path is long (one doubling a round trip comes too late), and when
//!   many readers are slow at once: windows never shrink.

use posthaste_policy::sample::{CreditMoment, WindowView};
use posthaste_policy::{Constant, Credit, CreditFactory, Description, PolicyText};
use posthaste_units::{ByteCount, Time};
use serde::Deserialize;

use super::{ahead, half, replenish, second_update};
use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "autotune",
    claims: "the window doubles while it is used up within two round trips, up to a bound",
    source: "receive-window autotuning as the largest deployments have it",
    use_when: "always, unless memory is counted",
    breaks_when: "transfers are short and the path long (doubling comes too late); windows never shrink",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::credit::<Parameters>(TEXT);

/// The window grows if it is renewed again within this many round trips.
const ROUND_TRIPS: u64 = 2;
/// By this factor.
const FACTOR: u64 = 2;

/// Parameters of [`Autotune`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The window to begin with: 1 KiB to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub initial: ByteCount,
    /// The greatest window: `initial` to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub maximum: ByteCount,
    /// The update that may first enlarge the window, 1 to 8; the first does so whenever it comes. Default 2.
    #[serde(default = "second_update", deserialize_with = "value::first_growth")]
    pub grows_at: u32,
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        vec![
            Constant::new("initial", value::show_bytes(self.initial)),
            Constant::new("maximum", value::show_bytes(self.maximum)),
            Constant::new("renewed", "when less than half is left"),
            Constant::new("grows", format!("x{FACTOR} if renewed within {ROUND_TRIPS} round trips")),
            Constant::new("grows_at", format!("update {}", self.grows_at)),
        ]
    }
}

impl CreditFactory for Parameters {
    fn build(&self) -> Box<dyn Credit> {
        Box::new(Autotune::new(*self))
    }

    fn bounds(&self) -> Option<(ByteCount, ByteCount)> {
        Some((self.initial, self.maximum))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// A window that doubles; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Autotune {
    parameters: Parameters,
    window: ByteCount,
    last_update: Option<Time>,
    updates: u32,
}

impl Autotune {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, window: parameters.initial, last_update: None, updates: 0 }
    }

    /// True if the last update was used up so fast that the window must be what holds the sender back.
    fn is_scarce(&self, view: &WindowView) -> bool {
        if self.updates + 1 < self.parameters.grows_at {
            return false;
        }
        let Some(last) = self.last_update else { return true };
        view.rtt.is_some_and(|rtt| view.now.since(last) < rtt * ROUND_TRIPS)
    }
}

impl Credit for Autotune {
    fn initial_window(&self) -> ByteCount {
        self.parameters.initial
    }

    fn grant(&mut self, _moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
        if ahead(view) >= half(view, self.window) {
            return None;
        }
        if self.is_scarce(view) {
            self.window = (self.window * FACTOR).min(self.parameters.maximum);
        }
        let advance = replenish(view, self.window)?;
        self.last_update = Some(view.now);
        self.updates = self.updates.saturating_add(1);
        Some(advance)
    }

    fn window(&self) -> ByteCount {
        self.window
    }
}

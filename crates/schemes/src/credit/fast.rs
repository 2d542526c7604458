//! Credit `fast`: a window that grows by up to 16 times at once, the faster the emptier its bound is.
//!
//! - Claims: the window finds the path's BDP in two or three updates, where doubling takes ten.
//! - Source: SCHEMES E, fast autotuning: update at A < W/2; if the last update is less than 2 RTT old, first
//!   W = min(K W, bound), with K = 16, 8, 4 or 2 by the occupancy W / bound.
//! - Use when: transfers are short and the path is long, so that doublings come too late.
//! - Breaks when: (paper) many readers are slow at once: windows never shrink, and each grows to its bound because
//!   others do. The safe variant, the default, shrinks and is rationed.
//! - Shown by: fa-small, fa-large, fa-size.
//!
//! The safe variant differs in four points. A peer that says it is blocked, and has indeed used its limit up, is
//! evidence at once, without a first update to measure from. A window does not grow while its reader is behind, and
//! shrinks by half of what has lain unread since the last update. It shrinks to what the budget of all connections
//! allows. It never looks at goodput, which a window that is too small holds down itself.

use posthaste_policy::sample::{CreditMoment, WindowView};
use posthaste_policy::{Constant, Credit, CreditFactory, Description, PolicyText};
use posthaste_units::{ByteCount, Time};
use serde::Deserialize;

use super::{Variant, ahead, half, replenish, second_update};
use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "fast",
    claims: "the window grows 16, 8, 4 or 2 times at once while it is used up within two round trips",
    source: "fast autotuning of receive windows, with a safe variant that shrinks and is rationed",
    use_when: "transfers are short and the path long",
    breaks_when: "variant paper: many slow readers at once, for windows never shrink",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::credit::<Parameters>(TEXT);

/// The window grows if it is renewed again within this many round trips.
const ROUND_TRIPS: u64 = 2;
/// A reader is behind once a part of this size of the window has lain unread ever since the last update.
const BEHIND: u64 = 4;
/// A blocked peer has used its limit up if no more than this part of the window is left.
const USED_UP: u64 = 4;

/// Parameters of [`Fast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The window to begin with, and the least that a slow reader is left with: 1 KiB to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub initial: ByteCount,
    /// The greatest window: `initial` to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub maximum: ByteCount,
    /// The update that may first enlarge the window, 1 to 8; the first does so whenever it comes. Default 2, the rule
    /// of the paper's text; its worked example has 1, its trace 3.
    #[serde(default = "second_update", deserialize_with = "value::first_growth")]
    pub grows_at: u32,
    /// K below the first threshold, to the second, to the third, and above, 1 to 1,000 each. Default the paper's 16,
    /// 8, 4, 2.
    #[serde(default = "published_factors", deserialize_with = "value::factors")]
    pub factors: [u64; 4],
    /// The thresholds of the occupancy in per cent, ascending. Default the paper's 25, 50, 75.
    #[serde(default = "published_thresholds", deserialize_with = "value::thresholds")]
    pub thresholds: [u64; 3],
    /// Safe, the default: windows also shrink, and a blocked peer counts at once.
    #[serde(default)]
    pub variant: Variant,
}

const fn published_factors() -> [u64; 4] {
    [16, 8, 4, 2]
}

const fn published_thresholds() -> [u64; 3] {
    [25, 50, 75]
}

impl Parameters {
    /// The factor K by which a window of `window` bytes grows.
    pub const fn factor(&self, window: ByteCount) -> u64 {
        // In per cent of the bound, without rounding. The paper's examples have 8 at exactly a quarter and 4 at exactly
        // a half, its text 2 above three quarters.
        let (parts, bound) = (window.get() as u128 * 100, self.maximum.get() as u128);
        let [first, second, third] = self.thresholds;
        if parts < first as u128 * bound {
            self.factors[0]
        } else if parts < second as u128 * bound {
            self.factors[1]
        } else if parts <= third as u128 * bound {
            self.factors[2]
        } else {
            self.factors[3]
        }
    }

    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let mut constants = vec![
            Constant::new("initial", value::show_bytes(self.initial)),
            Constant::new("maximum", value::show_bytes(self.maximum)),
            Constant::new("renewed", "when less than half is left"),
            Constant::new("grows", {
                let ([a, b, c, d], [first, second, third]) = (self.factors, self.thresholds);
                format!(
                    "if renewed within {ROUND_TRIPS} round trips: x{a} below {first} % of the maximum, x{b} below \
                         {second} %, x{c} to {third} %, x{d} above"
                )
            }),
            Constant::new("grows_at", format!("update {}", self.grows_at)),
        ];
        match self.variant {
            Variant::Paper => constants.push(Constant::new("variant", "paper")),
            Variant::Safe => {
                constants.push(Constant::new("variant", "safe"));
                constants.push(Constant::new(
                    "shrinks",
                    "to its ration of the budget; by half of what has lain unread since the last update, if that is \
                     a quarter of the window",
                ));
            }
        }
        constants
    }
}

impl CreditFactory for Parameters {
    fn build(&self) -> Box<dyn Credit> {
        Box::new(Fast::new(*self))
    }

    fn bounds(&self) -> Option<(ByteCount, ByteCount)> {
        Some((self.initial, self.maximum))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// A window that grows fast; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Fast {
    parameters: Parameters,
    window: ByteCount,
    last_update: Option<Time>,
    updates: u32,
    /// Least number of bytes that have lain unread at any moment since the last update.
    unread: Option<ByteCount>,
}

impl Fast {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, window: parameters.initial, last_update: None, updates: 0, unread: None }
    }

    /// True if the last update was used up so fast that the window must be what holds the sender back.
    fn is_scarce(&self, view: &WindowView) -> bool {
        if self.updates + 1 < self.parameters.grows_at {
            return false;
        }
        let Some(last) = self.last_update else { return true };
        view.rtt.is_some_and(|rtt| view.now.since(last) < rtt * ROUND_TRIPS)
    }

    fn grow(&mut self) {
        let maximum = self.parameters.maximum;
        self.window = (self.window * self.parameters.factor(self.window)).min(maximum);
    }

    fn grant_as_published(&mut self, view: &WindowView) -> Option<ByteCount> {
        if ahead(view) >= half(view, self.window) {
            return None;
        }
        if self.is_scarce(view) {
            self.grow();
        }
        self.renew(view)
    }

    fn grant_safely(&mut self, moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
        let unread = view.readable;
        let least = self.unread.map_or(unread, |least| least.min(unread));
        self.unread = Some(least);
        // It keeps its first window in mind, of which less may be granted: one that is gone would ask for nothing.
        if let Some(allowance) = view.allowance {
            self.window = self.window.min(allowance.max(self.parameters.initial));
        }
        let is_behind = least >= self.window / BEHIND;
        let is_used_up = view.advertised - view.received <= self.window / USED_UP;
        // Somebody may have read once, and now nobody: what counts for a peer that is blocked now is what is unread now.
        let is_read = unread < self.window / BEHIND;
        let is_evidence = moment == CreditMoment::Blocked && is_used_up && is_read && !is_behind;
        if !is_evidence && ahead(view) >= half(view, self.window) {
            return None;
        }
        if is_behind {
            self.window = (self.window - least / 2).max(self.parameters.initial);
        } else if is_evidence || self.is_scarce(view) {
            self.grow();
            let bound =
                view.allowance.map_or(self.window, |allowance| allowance.max(self.parameters.initial));
            self.window = self.window.min(bound);
        }
        self.renew(view)
    }

    fn renew(&mut self, view: &WindowView) -> Option<ByteCount> {
        let advance = replenish(view, self.window)?;
        self.last_update = Some(view.now);
        self.updates = self.updates.saturating_add(1);
        self.unread = None;
        Some(advance)
    }
}

impl Credit for Fast {
    fn initial_window(&self) -> ByteCount {
        self.parameters.initial
    }

    fn grant(&mut self, moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
        match self.parameters.variant {
            Variant::Paper => self.grant_as_published(view),
            Variant::Safe => self.grant_safely(moment, view),
        }
    }

    fn window(&self) -> ByteCount {
        self.window
    }
}

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

use super::{Variant, ahead, half, replenish};
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
    /// Safe, the default: windows also shrink, and a blocked peer counts at once.
    #[serde(default)]
    pub variant: Variant,
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let mut constants = vec![
            Constant::new("initial", value::show_bytes(self.initial)),
            Constant::new("maximum", value::show_bytes(self.maximum)),
            Constant::new("renewed", "when less than half is left"),
            Constant::new(
                "grows",
                format!(
                    "if renewed within {ROUND_TRIPS} round trips: x16 below 25 % of the maximum, x8 below 50 %, \
                     x4 to 75 %, x2 above"
                ),
            ),
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

/// The factor K by which a window of `window` bytes grows that is bound by `maximum`.
pub const fn factor(window: ByteCount, maximum: ByteCount) -> u64 {
    // In quarters of the bound, without rounding. The paper's examples have 8 at exactly a quarter and 4 at exactly
    // a half, its text 2 above three quarters.
    let (quarters, bound) = (window.get() as u128 * 4, maximum.get() as u128);
    if quarters < bound {
        16
    } else if quarters < 2 * bound {
        8
    } else if quarters <= 3 * bound {
        4
    } else {
        2
    }
}

/// A window that grows fast; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Fast {
    parameters: Parameters,
    window: ByteCount,
    last_update: Option<Time>,
    /// Least number of bytes that have lain unread at any moment since the last update.
    unread: Option<ByteCount>,
}

impl Fast {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self { parameters, window: parameters.initial, last_update: None, unread: None }
    }

    /// True if the last update was used up so fast that the window must be what holds the sender back.
    fn is_scarce(&self, view: &WindowView) -> bool {
        let (Some(last), Some(rtt)) = (self.last_update, view.rtt) else { return false };
        view.now.since(last) < rtt * ROUND_TRIPS
    }

    fn grow(&mut self) {
        let maximum = self.parameters.maximum;
        self.window = (self.window * factor(self.window, maximum)).min(maximum);
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

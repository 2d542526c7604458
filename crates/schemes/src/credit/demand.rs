//! Credit `demand`: always four round trips' worth of what the reader is taking, counted from what has arrived.
//!
//! - Claims: no sender waits for credit after the first round trips, whatever is lost; a slow reader is granted four
//!   round trips of its own pace, and nothing shrinks a window that is in use.
//! - Source: ours, after Dynamic Right-Sizing (Fisk and Feng, 2001), which counts what the reader has copied in a round
//!   trip and grants twice that. Two points differ. What has arrived behind a hole counts as taken, for its reader will
//!   take it as soon as the hole is filled: rules that look at reads alone see, behind repeated holes, a reader that
//!   takes nothing, and then all at once. And four round trips instead of two: a sender in its startup triples its
//!   flight in a round trip, and the credit for that must be there a round trip before.
//! - Use when: rates and losses are not known beforehand, which is on every mobile path.
//! - Breaks when: the receiver's measured RTT is less than a quarter of the true one; memory for four round trips of
//!   the path, and for what waits behind holes, cannot be had (then the budget is what bounds the rate).
//! - Shown by: mo-receive.
//!
//! `taken` is what has arrived less what could be read and was not. The limit is `taken + window`, so what waits behind
//! holes is granted again, and what waits for the reader is not. The window is `room` times the demand: what was taken
//! in the last round trip, of which an eighth a round trip is forgotten while nothing waits behind a hole (a sender that
//! repairs sends little that is new, and then all at once). It is never less than `initial`; the limit is
//! never further ahead of the reader than `maximum`, holes or none, and never further than the budget allows.

use posthaste_policy::sample::{CreditMoment, WindowView};
use posthaste_policy::{Constant, Credit, CreditFactory, Description, PolicyText};
use posthaste_units::{ByteCount, Time};
use serde::Deserialize;

use super::{GREATEST_LIMIT, rationed};
use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "demand",
    claims: "the window is several round trips of what is taken; what waits behind holes is granted again",
    source: "ours, after dynamic right-sizing: arrivals behind holes count as taken",
    use_when: "rates and losses are not known beforehand",
    breaks_when: "memory for several round trips of the path cannot be had",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::credit::<Parameters>(TEXT);

/// The limit is renewed once it can advance by this part of the window: some two frames a round trip, so that the loss
/// of one leaves the sender three round trips of credit less an eighth.
const STEP: u64 = 8;
/// This part of the demand is forgotten in a round trip without holes: a pause of the path is outlived, a pause of the
/// sender is not.
const FORGOTTEN: u64 = 8;

/// Parameters of [`Demand`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The window to begin with, and the least one: 1 KiB to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub initial: ByteCount,
    /// The furthest that the limit may be ahead of the reader: `initial` to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub maximum: ByteCount,
    /// Round trips of demand in the window, 2 to 16. Default 4.
    #[serde(default = "four", deserialize_with = "value::room")]
    pub room: u64,
}

const fn four() -> u64 {
    4
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        vec![
            Constant::new("initial", value::show_bytes(self.initial)),
            Constant::new("maximum", value::show_bytes(self.maximum)),
            Constant::new("room", format!("{} round trips of what is taken", self.room)),
            Constant::new("renewed", format!("by 1/{STEP} of the window")),
            Constant::new("forgets", format!("1/{FORGOTTEN} of the demand a round trip without holes")),
        ]
    }
}

impl CreditFactory for Parameters {
    fn build(&self) -> Box<dyn Credit> {
        Box::new(Demand::new(*self))
    }

    fn bounds(&self) -> Option<(ByteCount, ByteCount)> {
        Some((self.initial, self.maximum))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// A window that follows what is taken; see the module.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    parameters: Parameters,
    /// When the present round began; none before there is an RTT.
    started: Option<Time>,
    /// What had been taken when it began.
    taken_before: ByteCount,
    /// What was taken in the round before.
    last_round: ByteCount,
    /// Bytes a round trip: the most of late, less what has been forgotten.
    demand: ByteCount,
}

impl Demand {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        let none = ByteCount::ZERO;
        Self { parameters, started: None, taken_before: none, last_round: none, demand: none }
    }

    /// Looks at what has been taken in the round trip that ends now.
    fn measure(&mut self, view: &WindowView, taken: ByteCount) {
        let Some(rtt) = view.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        let now = view.now;
        let started = *self.started.get_or_insert(now);
        let passed = now.since(started);
        let current = taken - self.taken_before;
        if passed < rtt {
            // Of the round trip that ends now a part lies in the round before.
            let before = self.last_round.mul_ratio(rtt.saturating_sub(passed).as_nanos(), rtt.as_nanos());
            self.demand = self.demand.max(before + current);
            return;
        }
        // Events are rare where little comes: then the round was longer than a round trip, and counts by its mean.
        self.last_round = current.mul_ratio(rtt.as_nanos(), passed.as_nanos());
        // Behind a hole a sender may come to the end of its own memory: that it sends nothing new shows no lower rate.
        let has_hole = taken > view.consumed;
        let forgotten = if has_hole { ByteCount::ZERO } else { self.demand / FORGOTTEN };
        self.demand = (self.demand - forgotten).max(self.last_round);
        self.started = Some(now);
        self.taken_before = taken;
    }
}

impl Credit for Demand {
    fn initial_window(&self) -> ByteCount {
        self.parameters.initial
    }

    fn grant(&mut self, _moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
        let taken = view.received - view.readable;
        self.measure(view, taken);
        let window = self.window();
        let bound = view.consumed + rationed(view, self.parameters.maximum);
        let limit = (taken + window).min(bound).min(GREATEST_LIMIT);
        let advance = limit - view.advertised;
        // Less than a datagram is not worth a frame, unless it is half of all that there is.
        let window = rationed(view, window);
        let step = (window / STEP).max(view.max_datagram_size.min(window / 2));
        (!advance.is_zero() && (advance >= step || limit == GREATEST_LIMIT)).then_some(advance)
    }

    fn window(&self) -> ByteCount {
        let Parameters { initial, maximum, room } = self.parameters;
        (self.demand * room).max(initial).min(maximum)
    }
}

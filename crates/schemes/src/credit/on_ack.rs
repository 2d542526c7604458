//! Credit `on_ack`: each acknowledgement brings the window up to date, and the window follows the bandwidth.
//!
//! - Claims: a sender never waits for a threshold, so small windows do; the window grows and shrinks in small steps
//!   with the rate at which data arrive.
//! - Source: SCHEMES C1 and C2 (`ModQUIC`), its Algorithm 2 with line 6 read as `==` and line 12 as `>`.
//! - Use when: windows are small beside the path, and the way back has room for an update in each ack (with a peer
//!   of ours it rides in the ACK frame, see docs/spec/ack-window.md).
//! - Breaks when: windows are large: updates then only cost bytes. One step a round trip finds a large BDP late.
//! - Shown by: wa-updates, wa-packets, wa-loss, wa-rate.
//!
//! What we settled where the paper is silent. The estimate is the rate at which packets arrive, over a round trip;
//! rates within 1 % are equal. ST is `step` datagrams. `follow = "ack"` compares the rates between acks instead, with
//! each ack (section 3.4.3.1). Losses in two rounds in a row stop growth until a round without;
//! a smaller window shows as slower growth of the limit, for credit is never taken back (RFC 9000 section 4.1). The
//! packet rate (lines 8 to 13) moves with the window by itself: one window leaves in each round trip while credit is
//! what bounds it. `packet_rate = "printed"` follows line 12 as it is printed: an unchanged window costs ST packets a
//! round trip, down to two.
//! (The paper's derivation by birth and death grows the window while arrivals outrun departures, that is while a queue
//! builds: we follow Algorithm 2.)
//!
//! The safe form differs in two points, both for windows that are large and yet less than the path holds. It renews a
//! 64th of the window at a time and a datagram at the least: a sender that waits for credit sends what it gets at once,
//! and cuts a packet to pieces for each bit. And a peer that says it is blocked while its reader is not behind doubles
//! the window, once a round trip: steps of datagrams, which end where one is less than 1 % of the rate, would find a
//! large BDP after minutes or never.

use posthaste_policy::sample::{CreditMoment, WindowView};
use posthaste_policy::{AckRide, Constant, Credit, CreditFactory, Description, PolicyText};
use posthaste_units::{ByteCount, Duration, Rate, Time};
use serde::Deserialize;

use super::{Variant, ahead, half, replenish};
use crate::{Entry, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "on_ack",
    claims: "each ack renews the window; the window moves a step a round trip with the arrival rate",
    source: "window on ack (ModQUIC): modified ACK frame, and Algorithm 2 with its two misprints corrected",
    use_when: "windows are small beside the path",
    breaks_when: "windows are large: each ack then carries bytes that a threshold would save",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::credit::<Parameters>(TEXT);

/// Rates that differ by less than one part in this many are equal.
const EQUAL: u64 = 100;
/// Packets a round trip at the least, with a packet rate as printed.
const LEAST_PACKETS: u64 = 2;
/// Rounds with gaps, in a row, that stop growth.
const REPEATED: u32 = 2;

/// The safe form renews this part of the window at a time, and a datagram at the least.
const LEAST_PART: u64 = 64;
/// A reader is behind once a part of this size of the window lies unread.
const BEHIND: u64 = 4;

/// Parameters of [`OnAck`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The window to begin with, and the least one: 1 KiB to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub initial: ByteCount,
    /// The greatest window: `initial` to 4 GiB.
    #[serde(deserialize_with = "value::window")]
    pub maximum: ByteCount,
    /// ST: datagrams by which the window moves in a round trip, 0 to 1000; 0 keeps it as it is. Default 1.
    #[serde(default = "one", deserialize_with = "value::step_datagrams")]
    pub step: u64,
    /// Whether a peer that knows them gets ACK frames that carry the window. Default true.
    #[serde(default = "yes")]
    pub combined: bool,
    /// Safe, the default: an ack renews the window once a 64th of it has been read, and a datagram at the least, so that
    /// a sender which waits for credit need not cut its packets to pieces; and a blocked peer doubles it. Paper: each
    /// ack, whatever has been read.
    #[serde(default)]
    pub variant: Variant,
    /// How often Algorithm 2 compares rates: once a `round` (the default) or with each `ack`.
    #[serde(default)]
    pub follow: Follow,
    /// The packet rate of Algorithm 2: that of the `window` (the default), or as `printed`.
    #[serde(default)]
    pub packet_rate: PacketRate,
    /// Bytes that the updates in one ack may take, 26 to 1000; as many as fit unless given.
    #[serde(default, deserialize_with = "value::update_field")]
    pub field: Option<u64>,
}

/// How often Algorithm 2 looks at the bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follow {
    /// Once a round trip, by the rate over it.
    #[default]
    Round,
    /// With each ack, by the rate since the one before.
    Ack,
}

/// How the packet rate of Algorithm 2 moves (lines 8 to 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketRate {
    /// With the window: line 12 is read as `>`, and a window a round trip is what leaves.
    #[default]
    Window,
    /// As printed: line 12 has `==`, so that a window which stays takes a step from the rate.
    Printed,
}

const fn one() -> u64 {
    1
}

const fn yes() -> bool {
    true
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        vec![
            Constant::new("initial", value::show_bytes(self.initial)),
            Constant::new("maximum", value::show_bytes(self.maximum)),
            Constant::new("renewed", "with each ack; between acks when less than half is left"),
            Constant::new(
                "step",
                match self.follow {
                    Follow::Round => format!("{} datagrams a round trip", self.step),
                    Follow::Ack => format!("{} datagrams an ack", self.step),
                },
            ),
            Constant::new(
                "packet rate",
                match self.packet_rate {
                    PacketRate::Window => "the window's",
                    PacketRate::Printed => "a step less for each window that stays",
                },
            ),
            Constant::new("equal", format!("rates within 1/{EQUAL}")),
            Constant::new("no growth", format!("after losses in {REPEATED} rounds in a row")),
            Constant::new("combined", self.combined),
            match self.variant {
                Variant::Safe => {
                    Constant::new("least", format!("1/{LEAST_PART} of the window, and a datagram"))
                }
                Variant::Paper => Constant::new("least", "a byte"),
            },
            Constant::new(
                "blocked peer",
                if self.variant == Variant::Safe {
                    "doubles it once a round trip"
                } else {
                    "changes nothing"
                },
            ),
            Constant::new("field", self.field.map_or("no bound".to_owned(), |bytes| format!("{bytes} B"))),
        ]
    }
}

impl CreditFactory for Parameters {
    fn build(&self) -> Box<dyn Credit> {
        Box::new(OnAck::new(*self))
    }

    fn bounds(&self) -> Option<(ByteCount, ByteCount)> {
        Some((self.initial, self.maximum))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// A window that rides on acks; see the module.
#[derive(Debug, Clone, Copy)]
pub struct OnAck {
    parameters: Parameters,
    window: ByteCount,
    /// The round last looked at, and its rate.
    last: Option<(u64, Rate)>,
    /// When an ack last left, and what had been received then.
    last_ack: Option<(Time, ByteCount)>,
    /// Steps that the packet rate is below the window's, as printed.
    steps_below: u64,
    /// When a blocked peer last made the window larger.
    doubled: Option<Time>,
    /// What had been received then.
    received_then: ByteCount,
}

impl OnAck {
    /// The policy with `parameters`.
    pub const fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            window: parameters.initial,
            last: None,
            last_ack: None,
            steps_below: 0,
            doubled: None,
            received_then: ByteCount::ZERO,
        }
    }

    fn is_safe(&self) -> bool {
        self.parameters.variant == Variant::Safe
    }

    /// A peer that is blocked by the window, and not by its reader, needs a larger one. Each ack has renewed its limit
    /// since it said so, so what is left of the newest one tells nothing.
    fn double(&mut self, view: &WindowView) {
        let is_read = view.readable < self.window / BEHIND;
        let rtt = view.rtt.unwrap_or(Duration::MAX);
        let is_new = self.doubled.is_none_or(|doubled| view.now.since(doubled) >= rtt);
        // What a peer says of itself moves nothing: it has to have used the window.
        let used = ByteCount::new(view.received.get().saturating_sub(self.received_then.get()));
        if is_read && is_new && used >= self.window / 2 {
            self.window = (self.window * 2).min(self.parameters.maximum);
            self.received_then = view.received;
            self.doubled = Some(view.now);
        }
    }

    /// The estimate of the bandwidth, with a number that is another once there is a new one.
    fn estimate(&mut self, moment: CreditMoment, view: &WindowView) -> Option<(u64, Rate)> {
        if self.parameters.follow == Follow::Round {
            return view.arrivals.rate.map(|rate| (view.arrivals.round, rate));
        }
        if moment != CreditMoment::AckLeaving {
            return None;
        }
        let (since, received) = self.last_ack.unwrap_or((view.now, view.received));
        let interval = view.now.since(since);
        if interval.is_zero() {
            self.last_ack = Some((since, received));
            return None;
        }
        self.last_ack = Some((view.now, view.received));
        Some((view.now.since(Time::ZERO).as_nanos(), Rate::from_transfer(view.received - received, interval)))
    }

    /// Algorithm 2, with each estimate.
    fn follow_the_rate(&mut self, moment: CreditMoment, view: &WindowView) {
        let Some((number, rate)) = self.estimate(moment, view) else { return };
        let Some((last, before)) = self.last.replace((number, rate)) else { return };
        if last == number {
            self.last = Some((last, before));
            return;
        }
        let step = view.max_datagram_size * self.parameters.step;
        let (new, old) = (rate.as_bytes_per_second(), before.as_bytes_per_second());
        if new.abs_diff(old) <= old / EQUAL {
            self.steps_below += u64::from(self.effective(view) > view.max_datagram_size * LEAST_PACKETS);
        } else if new < old {
            self.window = (self.window - step).max(self.parameters.initial);
        } else if view.arrivals.rounds_with_gaps < REPEATED {
            self.window = (self.window + step).min(self.parameters.maximum);
        }
    }

    /// The window, or what the packet rate leaves of it.
    fn effective(&self, view: &WindowView) -> ByteCount {
        let least = view.max_datagram_size * LEAST_PACKETS;
        match self.parameters.packet_rate {
            PacketRate::Window => self.window,
            PacketRate::Printed => {
                let below = view.max_datagram_size * (self.parameters.step * self.steps_below);
                (self.window - below).max(least.min(self.window))
            }
        }
    }
}

impl Credit for OnAck {
    fn initial_window(&self) -> ByteCount {
        self.parameters.initial
    }

    fn grant(&mut self, moment: CreditMoment, view: &WindowView) -> Option<ByteCount> {
        self.follow_the_rate(moment, view);
        if moment == CreditMoment::Blocked && self.is_safe() {
            self.double(view);
        }
        let window = self.effective(view);
        // What is read while an ack is due travels with that. But the last ack may have left before the reader came,
        // and then nothing else would ever tell a blocked peer.
        if moment == CreditMoment::Consumed && (view.is_ack_due || ahead(view) >= half(view, window)) {
            return None;
        }
        let advance = replenish(view, window)?;
        let least = view.max_datagram_size.max(window / LEAST_PART);
        let is_silly = advance < least && ahead(view) >= half(view, window);
        let is_held_back = is_silly && moment == CreditMoment::AckLeaving && self.is_safe();
        (!is_held_back).then_some(advance)
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn rides_on_acks(&self) -> Option<AckRide> {
        Some(AckRide { is_combined: self.parameters.combined, field: self.parameters.field })
    }
}

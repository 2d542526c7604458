//! Start `careful`: what the path carried last time, reached in one jump and proved before it counts.
//!
//! - Claims: a client that comes back gets half of its last speed a round trip or two after the handshake; if the path
//!   is no longer that good, nobody else suffers for longer than a round trip.
//! - Source: RFC 9959 (Careful Resume): Reconnaissance here, the other phases in [`super::jump`]; clause by clause in
//!   `docs/spec/careful-resume.md`.
//! - Use when: clients come back within hours over long or wide paths, and load is short.
//! - Breaks when: loss is random (a single loss takes the jump back), the path carries little (below four initial
//!   windows nobody jumps), or transfers are too short to be held back by the window.
//! - Experiments: `hs-calibrated`, `hs-stale`, `hs-poisoned`.

use posthaste_policy::history::{Average, HistoryRules, Scope};
use posthaste_policy::sample::{
    AckSample, LossSample, PathHistory, PathLoss, PathSummary, PathView, RttView, SentSample,
};
use posthaste_policy::{
    Adjustment, Constant, Description, Jumps, LossCause, Pacing, Phase, PolicyText, Seam, Start, StartFactory,
};
use posthaste_units::{ByteCount, Duration, Time};
use serde::Deserialize;

use super::initial::{self, Initial};
use super::jump::Jump;
use super::observed::Observed;
use crate::{Entry, Need, Property, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "careful",
    claims: "who comes back jumps to half of what the path carried last time, and gives it back at the first loss",
    source: "RFC 9959 (Careful Resume)",
    use_when: "clients come back within hours, over long or wide paths",
    breaks_when: "loss is random (one takes the jump back), or the path carries less than four initial windows",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::start::<Parameters>(TEXT).needing(&[Need {
    seam: Seam::Congestion,
    property: Property::TakesJump,
    reason: "it raises the window in one jump, which this controller does not hold: take [congestion.cubic] or \
             [congestion.newreno], or [start.initial] with this controller",
}]);

/// What a path must have carried a round trip to be worth a jump, in initial windows (RFC 9959 section 3.1).
const LEAST_USEFUL_INITIAL_WINDOWS: u64 = 4;
/// The least RTT must be above this share of the saved one (a MUST of section 3.2).
const LEAST_RTT: (u64, u64) = (1, 2);
/// The least RTT must not be above so many of the saved one (section 4.2.1, guidance).
const GREATEST_RTT: u64 = 10;
/// The share of the saved window that is jumped to at most (a MUST of section 3.3).
const JUMP: (u64, u64) = (1, 2);
/// Round trips after which the initial data are complete although the window was never full, because the pacer alone
/// bounds the sender.
const PACED_FLIGHT: u8 = 2;

/// Parameters of [`Careful`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Datagrams of the first flight; see [`initial::Parameters::datagrams`].
    #[serde(deserialize_with = "value::initial_datagrams")]
    pub datagrams: Option<u64>,
    /// The greatest window that is jumped to.
    #[serde(deserialize_with = "value::window")]
    pub max_jump: ByteCount,
    /// How long what was measured may be used.
    #[serde(deserialize_with = "value::lifetime")]
    pub lifetime: Duration,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            datagrams: None,
            max_jump: ByteCount::new(4 << 20),
            // Section 4.3.1: minutes where paths change or are shared by many, hours where they are stable.
            lifetime: Duration::from_secs(3600),
        }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let mut constants = initial::Parameters::of_datagrams(self.datagrams).constants();
        constants.extend([
            Constant::new("max_jump", value::show_bytes(self.max_jump)),
            Constant::new("lifetime", format!("{} min", self.lifetime.as_millis() / 60_000)),
            Constant::new("jump", "half of what is saved, paced over one round trip"),
            Constant::new("least RTT", "above 1/2 and at most 10 times the saved one"),
            Constant::new("saved", "bytes a round trip, the greatest of 8; of use from 4 initial windows on"),
            Constant::new("retreat", "window PipeSize x 1/2, then threshold PipeSize x 1/2"),
        ]);
        constants
    }

    /// How histories of this policy are kept: for the very address that they were measured with, and no other.
    pub fn rules(&self) -> HistoryRules {
        HistoryRules {
            scope: Scope::Address,
            has_fallback: false,
            // spec: rfc9959 3.1 one-set-each, 3.1 updated
            average: Average::Latest,
            lifetime: self.lifetime,
            // spec: rfc9959 3.2 one-connection-each
            is_exclusive: true,
        }
    }
}

impl StartFactory for Parameters {
    fn build(&self) -> Box<dyn Start> {
        Box::new(Careful::new(*self))
    }

    fn history_rules(&self) -> Option<HistoryRules> {
        Some(self.rules())
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

#[derive(Debug)]
enum State {
    /// Nothing is known of the path, or it is no longer of use.
    Normal,
    /// The first flight finds out whether the path is the one that is known.
    Reconnaissance(Known, FirstFlight),
    /// The window was raised; also after all that, for what may still be found lost.
    Jumped(Jump, Known),
}

/// What is known of the path.
#[derive(Debug, Clone, Copy)]
struct Known {
    path: PathHistory,
    /// The end of its lifetime: a sender with little to send may reconnoitre for hours.
    good_until: Time,
}

/// The initial data: what leaves before the window is full for the first time.
#[derive(Debug, Clone, Copy, Default)]
struct FirstFlight {
    /// When the latest in-flight packet left.
    last_sent: Option<Time>,
    /// The last of the initial data, once they are complete.
    ends_at: Option<Time>,
    /// What left after them and is in flight.
    later: ByteCount,
    /// They have arrived.
    is_acked: bool,
    /// Round trips in a row in which the sender always had data, and the window was not full.
    paced_rounds: u8,
}

impl FirstFlight {
    fn is_later(&self, sent_at: Time) -> bool {
        self.ends_at.is_some_and(|end| sent_at > end)
    }

    fn on_sent(&mut self, sent: &SentSample) {
        self.last_sent = Some(sent.now);
        if self.is_later(sent.now) {
            self.later += sent.bytes;
        }
    }

    /// All of the initial data must arrive (RFC 9959 section 3.2), not just the last: a gap before that may be a loss
    /// which is still to be declared.
    fn on_ack(&mut self, ack: &AckSample<'_>) {
        let later = ack.packets.iter().filter(|packet| self.is_later(packet.sent_at));
        self.later -= later.map(|packet| packet.bytes).sum();
        self.is_acked |= self.ends_at.is_some() && ack.in_flight <= self.later;
        if ack.app_limited {
            self.paced_rounds = 0;
        } else if ack.round_started {
            self.paced_rounds = self.paced_rounds.saturating_add(1);
        }
        if self.paced_rounds >= PACED_FLIGHT {
            self.ends_at = self.ends_at.or(self.last_sent);
        }
    }

    /// True if only the pacer holds data back, on a machine that wakes the sender too late for its rate: that does not make
    /// it application-limited (RFC 9002 section 7.8), so the jump does not wait for a full window.
    fn is_paced(&self) -> bool {
        self.is_acked && self.paced_rounds > PACED_FLIGHT
    }
}

/// Careful Resume; see the module.
#[derive(Debug)]
pub struct Careful {
    parameters: Parameters,
    initial: Initial,
    state: State,
    observed: Observed,
}

impl Careful {
    /// The policy with `parameters`, on a path that nothing is known of yet.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            initial: Initial::new(initial::Parameters::of_datagrams(parameters.datagrams)),
            state: State::Normal,
            observed: Observed::default(),
        }
    }

    fn least_useful(&self, max_datagram_size: ByteCount) -> ByteCount {
        self.initial.initial_window(max_datagram_size) * LEAST_USEFUL_INITIAL_WINDOWS
    }

    /// The window to jump to: the path is the known one, and the window would be larger for it. `Err` means never.
    fn target(&self, known: &Known, view: &PathView) -> Result<ByteCount, Unfit> {
        let path = &known.path;
        let is_known_path = is_long_enough(&view.rtt, path) && view.rtt.min <= path.min_rtt * GREATEST_RTT;
        // Slow start has found the capacity already: that is news, what is saved is not.
        let has_news = view.congestion.slow_start_threshold.is_some();
        let is_useful = path.window >= self.least_useful(view.max_datagram_size);
        // spec: rfc9959 3.2 short-rtt-ends-it, 3.2 lifetime-kept
        if !is_known_path || !is_useful || has_news || view.now > known.good_until {
            return Err(Unfit);
        }
        // spec: rfc9959 3.3 half-at-most
        let (numerator, denominator) = JUMP;
        let target = path.window.mul_ratio(numerator, denominator).min(self.parameters.max_jump);
        if target > view.congestion.window { Ok(target) } else { Err(Unfit) }
    }

    /// Jumps if the path is the known one. What is in flight then is what a retreat falls back on.
    fn end_reconnaissance(&mut self, view: &PathView) -> Option<Adjustment> {
        let State::Reconnaissance(known, _) = self.state else { return None };
        let Ok(target) = self.target(&known, view) else {
            self.state = State::Normal;
            return None;
        };
        let initial_window = self.initial_window(view.max_datagram_size);
        let (jump, adjustment) = Jump::begin(view, target, initial_window, view.in_flight);
        self.state = State::Jumped(jump, known);
        Some(adjustment)
    }

    fn on_congestion(
        &mut self,
        lost: &[posthaste_policy::sample::PacketSample],
        view: &PathView,
    ) -> Option<Adjustment> {
        match &mut self.state {
            State::Normal => None,
            // spec: rfc9959 3.2 congestion-ends-it
            State::Reconnaissance(..) => {
                self.state = State::Normal;
                None
            }
            State::Jumped(jump, _) => {
                let had_failed = jump.has_failed();
                let adjustment = jump.on_congestion(lost, view);
                // What is seen after a failure is the path as it is: later losses do not void it.
                if jump.has_failed() && !had_failed {
                    self.observed = Observed::default();
                }
                adjustment
            }
        }
    }
}

/// What is saved does not fit the path.
struct Unfit;

/// False if the round trip is so short that the saved window would be sent faster than it ever was.
fn is_long_enough(rtt: &RttView, known: &PathHistory) -> bool {
    let (numerator, denominator) = LEAST_RTT;
    rtt.min > known.min_rtt.mul_ratio(numerator, denominator)
}

impl Start for Careful {
    fn initial_window(&self, max_datagram_size: ByteCount) -> ByteCount {
        self.initial.initial_window(max_datagram_size)
    }

    fn recall(&mut self, known: &PathHistory, now: Time) {
        // Only a connection at its beginning can reconnoitre.
        if matches!(self.state, State::Normal) {
            let good_until = now + self.parameters.lifetime.saturating_sub(known.age);
            let known = Known { path: *known, good_until };
            self.state = State::Reconnaissance(known, FirstFlight::default());
        }
    }

    fn on_sent(&mut self, sent: &SentSample, view: &PathView) -> Option<Adjustment> {
        match &mut self.state {
            State::Normal => None,
            State::Reconnaissance(_, flight) => {
                flight.on_sent(sent);
                if flight.is_paced() { self.end_reconnaissance(view) } else { None }
            }
            State::Jumped(jump, _) => jump.on_sent(sent, view),
        }
    }

    fn on_blocked(&mut self, view: &PathView) -> Option<Adjustment> {
        let State::Reconnaissance(_, flight) = &mut self.state else { return None };
        if !flight.is_acked || !view.rtt.is_measured {
            flight.ends_at = flight.ends_at.or(flight.last_sent);
            return None;
        }
        // As in the RFC's examples: when the window is full.
        self.end_reconnaissance(view)
    }

    fn on_ack(&mut self, ack: &AckSample<'_>, view: &PathView) -> Option<Adjustment> {
        match &mut self.state {
            State::Normal => self.observed.on_ack(ack),
            State::Reconnaissance(_, flight) => {
                flight.on_ack(ack);
                self.observed.on_ack(ack);
            }
            State::Jumped(jump, _) if !jump.is_running() => self.observed.on_ack(ack),
            State::Jumped(jump, known) => {
                // A round trip as short as this is not that path's (section 3.3): that goes before whatever else the ack
                // would make of the phase.
                let is_other_path = jump.is_unvalidated_phase() && !is_long_enough(&ack.rtt, &known.path);
                // spec: rfc9959 3.3 path-change-retreats
                return if is_other_path { jump.on_path_change(view) } else { jump.on_ack(ack) };
            }
        }
        None
    }

    fn on_loss(&mut self, loss: &LossSample<'_>, _cause: LossCause, view: &PathView) -> Option<Adjustment> {
        self.on_congestion(loss.packets, view)
    }

    fn on_congestion_experienced(&mut self, view: &PathView) -> Option<Adjustment> {
        self.on_congestion(&[], view)
    }

    fn on_persistent_congestion(&mut self) {
        match &mut self.state {
            State::Jumped(jump, _) => jump.on_persistent_congestion(),
            state => *state = State::Normal,
        }
        self.observed = Observed::default();
    }

    fn on_path_change(&mut self, view: &PathView) -> Option<Adjustment> {
        match &mut self.state {
            // spec: rfc9959 3.2 other-path-ends-it, 3.3 path-change-retreats
            State::Jumped(jump, _) => jump.on_path_change(view),
            state => {
                *state = State::Normal;
                None
            }
        }
    }

    fn is_in_charge(&self) -> bool {
        matches!(&self.state, State::Jumped(jump, _) if jump.is_in_charge())
    }

    fn pacing(&self, rtt: &RttView, max_datagram_size: ByteCount) -> Option<Pacing> {
        let State::Jumped(jump, _) = &self.state else { return None };
        jump.pacing(rtt, max_datagram_size)
    }

    fn remember(&self, summary: &PathSummary) -> Option<PathHistory> {
        if !summary.rtt.is_measured {
            return None;
        }
        let window = summary.congestion.window;
        // In slow start the window is up to twice what has been carried.
        let proved = match summary.congestion.phase {
            Phase::SlowStart => window / 2,
            _ => window,
        };
        let window = self.observed.greatest().min(proved);
        let least = self.least_useful(summary.max_datagram_size);
        // A path that was tried and found small: nobody will jump for it, but what was saved before is true no more, and
        // a later observation replaces it (section 3.1).
        let is_small = summary.congestion.slow_start_threshold.is_some()
            && summary.delivered >= least
            && self.observed.proper_rounds() > 0;
        (window >= least || is_small).then_some(PathHistory {
            window,
            min_rtt: summary.rtt.min,
            age: Duration::ZERO,
            continues: false,
            loss: PathLoss::UNKNOWN,
        })
    }

    fn has_failed(&self) -> bool {
        matches!(&self.state, State::Jumped(jump, _) if jump.has_failed())
    }

    fn jumps(&self) -> Jumps {
        let State::Jumped(jump, _) = &self.state else { return Jumps::default() };
        Jumps { taken: 1, undone: u64::from(jump.has_failed()) }
    }

    fn phase(&self) -> Option<&'static str> {
        match &self.state {
            State::Normal => None,
            State::Reconnaissance(..) => Some("reconnaissance"),
            State::Jumped(jump, _) => jump.phase(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Start `measured`: the handshake tells how large the first flight may be, and its trains how far the window jumps.
//!
//! - Claims: half of what the path carries is in flight two round trips after the handshake, whatever the path; of a slow
//!   link's flight no more than RFC 9002's ten packets leave at once.
//! - Source: ours. Packet-train dispersion is that of paced chirping and SUSS (SIGCOMM 2024); the share that is jumped to
//!   is RFC 9959's.
//! - Use when: paths are of every kind and nothing is known of them.
//! - Breaks when: acknowledgements come in batches (no train is measured then, and the controller's own growth is what
//!   remains), or a link's rate is another ten milliseconds later.
//! - Shown by: the experiments `mo-cells` and `mo-first-flight`; `docs/results/mobile.md`.

mod backlog;
mod jump_counts;
mod opening;
mod recalled;
mod train;

use posthaste_policy::history::HistoryRules;
use posthaste_policy::sample::{
    AckSample, LossSample, PacketSpace, PathHistory, PathLoss, PathSummary, PathView, RttView, SentSample,
};
use posthaste_policy::{
    Adjustment, Constant, Description, Jumps, LossCause, Pacing, PolicyText, Start, StartFactory,
};
use posthaste_units::{ByteCount, Duration, Rate, Time};
use serde::Deserialize;

use super::initial::{self, Initial};
use crate::{Entry, value};
use backlog::Backlog;
use jump_counts::JumpCounts;
use opening::{Opening, Showing};
use recalled::Recalled;
use train::{Glimpses, Shown, Trains};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "measured",
    claims: "the handshake sizes the first flight, and the spacing of its acks tells how far the window may jump",
    source: "ours; train dispersion, with RFC 9959's share for the jump",
    use_when: "paths are of every kind and nothing is known of them",
    breaks_when: "acks come in batches (then no train is measured, and nothing jumps)",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::start::<Parameters>(TEXT);

/// The first flight of a path of which the handshake has shown nothing, in datagrams: the least and the most.
const UNKNOWN: (u64, u64) = (16, 64);
/// The same of a slow path: it is paced at what was shown, so that even its most builds no queue.
const SLOW: (u64, u64) = (10, 200);
/// Datagrams that leave at once where nothing promises more (RFC 9002 section 7.7).
const CAREFUL_BURST: u64 = 10;
/// The rate below which even those may be more than a queue holds, and what leaves at once then. It is too little to
/// measure a train by, which costs more than it saves from 1 Mbit/s on.
const VERY_SLOW: Rate = Rate::from_bits_per_second(500_000);
const LEAST_BURST: u64 = 4;
/// What is paced at in the first flight at least: of acknowledgements that come late for other reasons the handshake's two
/// datagrams could make any rate, and a sender that waits for its pacer alone would never know better.
const LEAST_RATE: Rate = Rate::from_bits_per_second(64_000);
/// A datagram with an Initial has this size at least (RFC 9000 section 14.1).
const HANDSHAKE_DATAGRAM: ByteCount = ByteCount::new(1_200);
/// The queue in front of the first flight that forbids the jump, at least, and as a part of the least RTT, one in so many.
const OTHERS_QUEUE: Duration = Duration::from_millis(10);
const OTHERS_PART: u64 = 4;
/// The part of a round trip in which a first flight of half of what the path carried leaves: it is paced at three quarters
/// of the rate that the path had.
const FLIGHT_TIME: (u64, u64) = (2, 3);
/// How many times the rate that the handshake has shown packets must arrive at to refute it.
const CONTRADICTION: u64 = 4;

/// Parameters of [`Measured`].
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// The rate of the first flight, after its burst, on a path whose handshake looked fast.
    #[serde(deserialize_with = "value::rate")]
    pub rate: Rate,
    /// The same on a path whose handshake showed nothing.
    #[serde(deserialize_with = "value::rate")]
    pub unknown_rate: Rate,
    /// Datagrams at the head of the first flight that leave at once on a fast path, 2 to 1,000.
    #[serde(deserialize_with = "value::datagrams")]
    pub burst: u64,
    /// Least datagrams of the first flight of a fast path.
    #[serde(deserialize_with = "value::datagrams")]
    pub least: u64,
    /// Most datagrams of it.
    #[serde(deserialize_with = "value::datagrams")]
    pub most: u64,
    /// The part of the measured bandwidth-delay product that is jumped to, above 0, at most 1.
    #[serde(deserialize_with = "value::part")]
    pub share: f64,
    /// The jump is at most this many first flights, 1 to 1,000.
    #[serde(deserialize_with = "value::factor")]
    pub factor: u64,
    /// What connections find of a client's path is kept, and half of it is the first flight of the client's next one.
    pub history: bool,
    /// How long what is kept may be used.
    #[serde(deserialize_with = "value::lifetime")]
    pub lifetime: Duration,
    /// The greatest first flight that what is kept justifies.
    #[serde(deserialize_with = "value::window")]
    pub max_jump: ByteCount,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            rate: Rate::from_bits_per_second(48_000_000),
            unknown_rate: Rate::from_bits_per_second(12_000_000),
            burst: 48,
            least: 84,
            most: 200,
            share: 0.5,
            factor: 6,
            history: false,
            max_jump: ByteCount::new(4 << 20),
            lifetime: Duration::from_secs(3600),
        }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let Self { rate, unknown_rate, burst, least, most, share, factor, .. } = self;
        let mut constants = vec![
            Constant::new(
                "first flight, fast path",
                format!("{rate} for a round trip, {least} to {most} datagrams, {burst} of them at once"),
            ),
            Constant::new(
                "first flight, very fast path",
                format!("the same, {least} of them at once from {} on", opening::VERY_FAST),
            ),
            Constant::new(
                "first flight, acknowledged at one instant",
                format!("{rate}, {least} datagrams, {CAREFUL_BURST} of them at once"),
            ),
            Constant::new(
                "first flight, nothing shown",
                format!("{unknown_rate} for a round trip, {} to {} datagrams", UNKNOWN.0, UNKNOWN.1),
            ),
            Constant::new(
                "first flight, slow path",
                format!(
                    "{}/{} of what was shown for a round trip, {} to {} datagrams",
                    opening::SLOW_PACE.0,
                    opening::SLOW_PACE.1,
                    SLOW.0,
                    SLOW.1
                ),
            ),
            Constant::new("fast", format!("the handshake's datagrams came at {} or more", opening::FAST)),
            Constant::new("jump", format!("{share} of what trains show, at most {factor} first flights")),
        ];
        if self.history {
            let most = value::show_bytes(self.max_jump);
            let minutes = self.lifetime.as_millis() / 60_000;
            let flight = format!("half of what it carried, paced at 3/4 of its rate, at most {most}");
            constants.push(Constant::new("first flight, known path", flight));
            constants.push(Constant::new("lifetime", format!("{minutes} min")));
        }
        constants
    }
}

impl StartFactory for Parameters {
    fn build(&self) -> Box<dyn Start> {
        Box::new(Measured::new(*self))
    }

    fn history_rules(&self) -> Option<HistoryRules> {
        self.history.then(|| recalled::rules(self.lifetime))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// The first flight, once a round trip is known.
#[derive(Debug, Clone, Copy)]
struct Flight {
    window: ByteCount,
    pacing: Pacing,
    /// The handshake alone says that the path is slow.
    is_slow: bool,
}

impl Flight {
    /// It takes the place of the flight `before`, and the window is as much larger.
    fn instead_of(self, before: Self, view: &PathView) -> Option<Adjustment> {
        let grown = self.window - before.window;
        let window = (!grown.is_zero()).then(|| view.congestion.window + grown);
        window.map(|_| Adjustment { window, ..Adjustment::default() })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The handshake, and what leaves before its round trip is known.
    Opening,
    /// The first flight is on its way.
    Flight,
    /// The controller goes on by itself.
    Over,
}

/// A start that measures; see the module.
#[derive(Debug)]
pub struct Measured {
    parameters: Parameters,
    initial: Initial,
    phase: Phase,
    opening: Opening,
    /// Least RTT of the handshake, and the size of a datagram.
    handshake: Option<(Duration, ByteCount)>,
    flight: Option<Flight>,
    trains: Trains,
    backlog: Backlog,
    /// 1-RTT bytes acknowledged before the measurement was over.
    acked: ByteCount,
    has_jumped: bool,
    recalled: Recalled,
    jump_counts: JumpCounts,
}

impl Measured {
    /// The policy with `parameters`, on a new path.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            initial: Initial::new(initial::Parameters::default()),
            phase: Phase::Opening,
            opening: Opening::default(),
            handshake: None,
            flight: None,
            trains: Trains::default(),
            backlog: Backlog::default(),
            acked: ByteCount::ZERO,
            has_jumped: false,
            recalled: Recalled::default(),
            jump_counts: JumpCounts::default(),
        }
    }

    /// The first flight of a path that has shown this.
    fn plan(&self, showing: Showing, rtt: Duration, datagram: ByteCount) -> Flight {
        let of = &self.parameters;
        // In a round trip the path has carried a datagram of the handshake whole, whatever the client computed meanwhile.
        let least_rate = Rate::from_transfer(HANDSHAKE_DATAGRAM, rtt).max(LEAST_RATE);
        let showing = match showing {
            Showing::Slow(rate) => Showing::Slow(rate.max(least_rate)),
            showing => showing,
        };
        let is_slow = matches!(showing, Showing::Slow(_));
        let (rate, (least, most), burst) = match showing {
            Showing::VeryFast => (of.rate, (of.least, of.most.max(of.least)), of.burst.max(of.least)),
            Showing::Fast => (of.rate, (of.least, of.most.max(of.least)), of.burst),
            Showing::Together => (of.rate, (of.least, of.least), CAREFUL_BURST),
            Showing::Nothing => (of.unknown_rate, UNKNOWN, CAREFUL_BURST),
            Showing::Slow(rate) if rate < VERY_SLOW => (rate, SLOW, LEAST_BURST),
            Showing::Slow(rate) => (self.opening.slow_pace(rate), SLOW, CAREFUL_BURST),
        };
        let window = rate.bytes_in(rtt).clamp(datagram * least, datagram * most);
        // The first packet leaves before there is a flight to pace.
        let burst = datagram * burst.saturating_sub(1);
        Flight { window, pacing: Pacing { rate, burst }, is_slow }
    }

    /// An ack of the handshake: the flight is planned anew with what it shows.
    fn on_handshake_ack(&mut self, ack: &AckSample<'_>, view: &PathView) -> Option<Adjustment> {
        self.opening.on_ack(ack);
        if self.phase != Phase::Opening || !ack.rtt.is_measured {
            return None;
        }
        self.handshake = Some((ack.rtt.min, view.max_datagram_size));
        if self.opening.is_open() {
            // A moment later more is known, and until then what left early is on its way.
            return None;
        }
        self.plan_flight(ack.now)
    }

    /// An ack of 1-RTT packets while the first flight leaves: where some of them left with the handshake's, the flight is
    /// planned anew with what they show.
    fn on_early_ack(&mut self, ack: &AckSample<'_>, view: &PathView) -> Option<Adjustment> {
        let is_early = self.opening.on_early_ack(ack);
        let is_planned = self.flight.is_some();
        if self.has_jumped || !ack.rtt.is_measured || is_planned && !is_early {
            return None;
        }
        self.handshake.get_or_insert((ack.rtt.min, view.max_datagram_size));
        if is_early && self.opening.is_open() {
            return None;
        }
        let before = self.flight.map(|flight| (flight.window, flight.pacing.rate));
        let answer = self.plan_flight(ack.now);
        answer.filter(|_| before != self.flight.map(|flight| (flight.window, flight.pacing.rate)))
    }

    /// An ack of packets that ended datagrams of the handshake: the flight is planned anew if they show more. What the
    /// window has grown by since it was planned stays.
    fn on_datagram_end_ack(&mut self, ack: &AckSample<'_>, view: &PathView) -> Option<Adjustment> {
        self.opening.on_datagram_end_ack(ack);
        let before = self.flight.filter(|_| !self.has_jumped)?;
        self.set_flight(ack.now);
        let flight = self.flight.filter(|flight| flight.pacing.rate > before.pacing.rate);
        let Some(flight) = flight else {
            self.flight = Some(before);
            return None;
        };
        flight.instead_of(before, view)
    }

    fn plan_flight(&mut self, now: Time) -> Option<Adjustment> {
        self.set_flight(now);
        self.flight.map(|flight| Adjustment { window: Some(flight.window), ..Adjustment::default() })
    }

    /// Plans the first flight by what the handshake has shown, and what is known of the path.
    fn set_flight(&mut self, now: Time) {
        let Some((rtt, datagram)) = self.handshake else { return };
        let showing = self.opening.showing();
        let mut flight = self.plan(showing, rtt, datagram);
        let known = self.recalled.flight(now, rtt, showing, self.parameters.max_jump);
        self.recalled.set_used(known > flight.window);
        if known > flight.window {
            let rate =
                Rate::from_transfer(known, rtt * FLIGHT_TIME.0 / FLIGHT_TIME.1).max(flight.pacing.rate);
            flight = Flight { window: known, pacing: Pacing { rate, ..flight.pacing }, is_slow: false };
        }
        self.flight = Some(flight);
    }

    /// An ack of the first flight: what its trains show by now.
    fn on_flight_ack(&mut self, ack: &AckSample<'_>, view: &PathView) -> Option<Adjustment> {
        let newest = ack.packets.last()?;
        self.acked += ack.packets.iter().map(|packet| packet.bytes).sum::<ByteCount>();
        let has_news = self.trains.on_ack(ack.now, ack.packets);
        let glimpses = self.trains.glimpses();
        let is_complete = self.trains.is_complete(newest.number);
        let shown = self.trains.shown().filter(|_| has_news);
        let may_jump = !self.has_jumped && !has_met_others(ack.now.since(newest.sent_at), ack.rtt.min);
        let answer = shown.map(|shown| Adjustment {
            window: may_jump.then(|| self.jump(shown, ack.rtt.min, view)).flatten(),
            // What came faster than can be measured is no bound.
            rate_ceiling: (!shown.is_least).then_some(shown.rate),
            ..Adjustment::default()
        });
        self.has_jumped |= answer.is_some();
        if answer.as_ref().is_some_and(|answer| answer.window.is_some()) {
            self.jump_counts.on_jump(ack.now, ack.rtt.smoothed);
        }
        if let Some(shown) = shown.filter(|shown| may_jump && !shown.is_least) {
            self.recalled.on_promise(shown.rate.bytes_in(ack.rtt.min));
        }
        let answer = answer.or_else(|| self.look_again(ack, view, glimpses));
        if is_complete {
            self.phase = Phase::Over;
        }
        answer
    }

    /// A handshake can make a path look slow that is not: a thin uplink, a lost packet, a radio's pause, a client that
    /// computes. The first packets that are acknowledged apart tell, and so does what comes without the queue that it
    /// would have met on a path so slow. What they tell is paced at if it is more. If they agree that the path is too slow
    /// for a train, it is a ceiling.
    fn look_again(
        &mut self,
        ack: &AckSample<'_>,
        view: &PathView,
        Glimpses { fastest, first }: Glimpses,
    ) -> Option<Adjustment> {
        let flight = self.flight.filter(|flight| flight.is_slow)?;
        let supposed = flight.pacing.rate;
        let bound = self.backlog.on_ack(ack, supposed);
        let fastest = fastest.max(bound).map_or(Rate::ZERO, |shown| shown.rate);
        if fastest.as_bits_per_second() >= supposed.as_bits_per_second().saturating_mul(CONTRADICTION) {
            return self.refute(flight, fastest, view);
        }
        let rate = supposed.max(first?.rate);
        self.flight = Some(Flight { pacing: Pacing { rate, ..flight.pacing }, is_slow: false, ..flight });
        let rate_ceiling = (supposed < VERY_SLOW).then_some(rate);
        rate_ceiling.map(|_| Adjustment { rate_ceiling, ..Adjustment::default() })
    }

    /// The path is faster than the handshake looked, `seen` at the least: the rest of the flight is that of a path of which
    /// nothing is known.
    fn refute(&mut self, flight: Flight, seen: Rate, view: &PathView) -> Option<Adjustment> {
        let (rtt, datagram) = self.handshake?;
        let unknown = self.plan(Showing::Nothing, rtt, datagram);
        let rate = unknown.pacing.rate.min(seen);
        let window = rate.bytes_in(rtt).clamp(datagram * UNKNOWN.0, datagram * UNKNOWN.1).max(flight.window);
        let refuted = Flight { window, pacing: Pacing { rate, ..flight.pacing }, is_slow: false };
        self.flight = Some(refuted);
        refuted.instead_of(flight, view)
    }

    /// The window that `shown` justifies, if that is more than there is.
    fn jump(&self, shown: Shown, rtt: Duration, view: &PathView) -> Option<ByteCount> {
        let initial = self.initial_window(view.max_datagram_size);
        let mut first = self.flight.map_or(initial, |flight| flight.window);
        if !shown.is_least && shown.rate >= self.parameters.rate {
            // A lost packet of the handshake hides a fast path; its first flight has shown it.
            first = first.max(self.plan(Showing::Fast, rtt, view.max_datagram_size).window);
        }
        let promised = ByteCount::from_f64(shown.rate.bytes_in(rtt).as_f64() * self.parameters.share);
        let target = promised.min(first * self.parameters.factor);
        (target > view.congestion.window).then_some(target)
    }
}

impl Measured {
    /// Congestion: what is measured from here on is the controller's. If it meets the first flight, what was recalled of the
    /// path was wrong.
    fn on_congestion(&mut self) {
        if self.phase == Phase::Flight {
            self.recalled.on_congestion();
        }
        self.phase = Phase::Over;
    }
}

/// True if packets of the first flight took so much longer than those of the handshake, `least`, that others must have
/// begun with them: what a train tells is the link's rate, and many would jump to half of it. A flight's own burst makes
/// such a queue only where there is nothing to jump to.
fn has_met_others(rtt: Duration, least: Duration) -> bool {
    rtt.saturating_sub(least) > (least / OTHERS_PART).max(OTHERS_QUEUE)
}

impl Start for Measured {
    fn initial_window(&self, max_datagram_size: ByteCount) -> ByteCount {
        match self.flight {
            // What is known of the path came behind the handshake's acknowledgements.
            Some(flight) if self.phase == Phase::Opening && self.recalled.is_used() => flight.window,
            _ => self.initial.initial_window(max_datagram_size),
        }
    }

    fn measures_handshake(&self) -> bool {
        true
    }

    fn on_datagram_end(&mut self, number: u64) {
        self.opening.on_datagram_end(number);
    }

    fn on_sent(&mut self, sent: &SentSample, view: &PathView) -> Option<Adjustment> {
        if sent.space != PacketSpace::Data {
            self.opening.on_sent(sent);
        } else if self.opening.ends_datagram(sent.number) {
            // Nothing of a flight.
        } else if self.phase != Phase::Over {
            if self.handshake.is_none() {
                self.opening.on_early_sent(sent);
            }
            self.trains.on_sent(sent);
            if let Some(flight) = self.flight.filter(|flight| flight.is_slow) {
                self.backlog.on_sent(sent, flight.pacing.rate);
            }
            if self.flight.is_some() {
                if self.phase == Phase::Opening && self.recalled.is_used() {
                    self.jump_counts.on_jump(sent.now, view.rtt.smoothed);
                }
                self.phase = Phase::Flight;
            }
        }
        None
    }

    fn recall(&mut self, known: &PathHistory, now: Time) {
        self.recalled.recall(known, now, self.parameters.lifetime);
        if self.phase == Phase::Opening {
            self.set_flight(now);
        }
    }

    fn on_ack(&mut self, ack: &AckSample<'_>, view: &PathView) -> Option<Adjustment> {
        if self.parameters.history && ack.space == PacketSpace::Data {
            self.recalled.on_ack(ack);
        }
        match ack.space {
            PacketSpace::Data if self.phase == Phase::Over => None,
            PacketSpace::Data
                if ack.packets.iter().all(|packet| self.opening.ends_datagram(packet.number)) =>
            {
                self.on_datagram_end_ack(ack, view)
            }
            PacketSpace::Data => {
                let planned = self.on_early_ack(ack, view);
                self.on_flight_ack(ack, view).or(planned)
            }
            _ => self.on_handshake_ack(ack, view),
        }
    }

    fn on_loss(&mut self, loss: &LossSample<'_>, cause: LossCause, _view: &PathView) -> Option<Adjustment> {
        if cause == LossCause::Congestion {
            self.jump_counts.on_congestion(loss.packets.iter().map(|packet| packet.sent_at));
            self.on_congestion();
        }
        None
    }

    fn on_congestion_experienced(&mut self, view: &PathView) -> Option<Adjustment> {
        self.opening.on_mark();
        // What was marked left a round trip ago.
        self.jump_counts.on_congestion([view.now - view.rtt.smoothed]);
        if self.phase == Phase::Flight {
            self.on_congestion();
        }
        None
    }

    fn on_persistent_congestion(&mut self) {
        self.on_congestion();
        self.recalled.forget();
    }

    fn on_path_change(&mut self, _view: &PathView) -> Option<Adjustment> {
        self.phase = Phase::Over;
        self.recalled.forget();
        self.jump_counts.on_path_change();
        None
    }

    fn remember(&self, summary: &PathSummary) -> Option<PathHistory> {
        let is_transfer = summary.delivered >= self.initial.initial_window(summary.max_datagram_size);
        let window = self.recalled.worth();
        let is_worth_it =
            self.parameters.history && is_transfer && summary.rtt.is_measured && !window.is_zero();
        is_worth_it.then_some(PathHistory {
            window,
            min_rtt: summary.rtt.min,
            age: Duration::ZERO,
            continues: false,
            loss: self.recalled.loss_with(summary.own_loss),
        })
    }

    fn known_loss(&self) -> PathLoss {
        self.recalled.loss()
    }

    fn has_failed(&self) -> bool {
        self.recalled.has_failed()
    }

    fn pacing(&self, _rtt: &RttView, max_datagram_size: ByteCount) -> Option<Pacing> {
        // Not before it begins, so that its burst finds the pacer's bucket full.
        let flight = self.flight.filter(|_| self.phase == Phase::Flight && !self.has_jumped)?;
        // What the handshake has shown, a client's own computing perhaps, holds for this flight: trains whose packets the
        // pacing keeps apart never tell better.
        let most = flight.window.max(max_datagram_size * train::LEAST_FLIGHT);
        (self.acked < most).then_some(flight.pacing)
    }

    fn jumps(&self) -> Jumps {
        self.jump_counts.jumps()
    }

    fn phase(&self) -> Option<&'static str> {
        (self.phase == Phase::Flight).then_some("first_flight")
    }
}

#[cfg(test)]
mod tests;

//! Flows that fill the queue, beside which a model of the path alone gets too little.
//!
//! Drain test: after an ease what is in flight is less than fills the path. A queue that still stands then is somebody
//! else's. After two such tests a shadow, a CUBIC of our own that is told of each ack and each congestive loss, says what
//! one flow of that kind would hold. The window follows it until the queue is seen empty.

use posthaste_policy::sample::{AckSample, LossSample, SpuriousSample};
use posthaste_policy::{Adjustment, Congestion, Constant, PathLimits};
use posthaste_units::{ByteCount, Duration, Time};

use super::{Mobile, State};
use crate::congestion::LossBased;
use crate::congestion::cubic::{self, CubicIncrease};
use crate::congestion::model::Sample;
use crate::slow_start::classic::Classic;

/// Drain tests in a row that must find a queue.
const TESTS: u32 = 2;
/// How long the shadow is followed before the next test.
const TEST_INTERVAL: Duration = Duration::from_secs(10);
/// Rounds in a row that must be without a queue for the shadow to be dropped.
const EMPTY_ROUNDS: u32 = 2;
/// The window beside others, at most, in what the present rate yields in a present round trip.
const MOST_WINDOW: f64 = 2.0;
/// Rounds in which the rate's filter moves on.
const RATE_ROUNDS: u64 = 10;
/// Own loss below which each loss in a queue counts, as it does for CUBIC.
const LITTLE_LOSS: f64 = 0.005;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new(
        "beside others",
        format!("a shadow CUBIC from {TESTS} drain tests that find a queue, until one does not"),
    )]
}

/// What is known of other flows.
#[derive(Debug, Default)]
pub(super) struct Neighbour {
    tests_failed: u32,
    empty_rounds: u32,
    since: Time,
    shadow: Option<LossBased<CubicIncrease>>,
    /// Packets settled and lost since the shadow last stepped back.
    settled: f64,
    lost: f64,
}

impl Neighbour {
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>, is_followed: bool) {
        if let Some(shadow) = self.shadow.as_mut().filter(|_| is_followed) {
            shadow.on_ack(ack);
        }
        self.settled += ack.packets.len() as f64;
    }

    pub(super) fn on_mark(&mut self, now: Time, sent_at: Time, in_flight: ByteCount) {
        if let Some(shadow) = &mut self.shadow {
            shadow.on_congestion_experienced(now, sent_at, in_flight);
        }
    }

    pub(super) fn on_persistent_congestion(&mut self, now: Time) {
        if let Some(shadow) = &mut self.shadow {
            shadow.on_persistent_congestion(now);
        }
    }

    pub(super) fn on_spurious(&mut self, spurious: &SpuriousSample) {
        if let Some(shadow) = &mut self.shadow {
            shadow.on_spurious_loss(spurious);
        }
    }

    /// What the shadow would hold.
    pub(super) fn window(&self) -> f64 {
        self.shadow.as_ref().map_or(0.0, |shadow| shadow.window().as_f64())
    }

    /// A shadow that stands at `window` and grows from there.
    fn begin_shadow(&mut self, limits: PathLimits, window: f64) {
        let increase = CubicIncrease::new(cubic::Parameters::default());
        let mut shadow = LossBased::new(increase, Box::new(Classic), limits);
        let window = Some(ByteCount::from_f64(window));
        shadow.adjust(&Adjustment { window, slow_start_threshold: window, ..Adjustment::default() });
        self.shadow = Some(shadow);
    }
}

impl Mobile {
    /// What stands in the queue at the end of an ease is judged after a round with little in flight.
    pub(super) fn step_test(&mut self, sample: &Sample) {
        if self.cycle.rounds < 1 || !self.rounds.started && self.cycle.rounds < 2 {
            return;
        }
        let is_empty = self.path.queue() <= self.path.eps().max(self.cycle.queue_before / 2);
        if is_empty {
            self.pass_test();
            self.start_hold();
        } else if self.cycle.rounds >= 2 {
            self.fail_test(sample);
        }
    }

    /// Nobody else holds the queue.
    pub(super) fn pass_test(&mut self) {
        self.neighbour.tests_failed = 0;
        self.neighbour.shadow = None;
        self.cycle.wants_test = false;
    }

    fn fail_test(&mut self, sample: &Sample) {
        self.cycle.was_free = false;
        self.neighbour.tests_failed = (self.neighbour.tests_failed + 1).min(TESTS);
        let is_certain = self.neighbour.tests_failed >= TESTS;
        self.cycle.wants_test = !is_certain;
        if is_certain && self.parameters.shadow { self.start_compete(sample) } else { self.start_hold() }
    }

    fn start_compete(&mut self, sample: &Sample) {
        if self.neighbour.shadow.is_none() {
            // What the rate yields in a present round trip: the flight just now was eased.
            let flight = self.path.bandwidth() * sample.smoothed_rtt.as_secs_f64();
            self.neighbour.begin_shadow(self.limits, flight.max(self.minimum_pipe()));
        }
        self.neighbour.since = sample.now;
        self.neighbour.empty_rounds = 0;
        self.losses.reset_short();
        self.cycle.rounds = 0;
        self.state = State::Compete;
    }

    pub(super) fn step_compete(&mut self, sample: &Sample) {
        if !self.rounds.started {
            return;
        }
        if self.cycle.rounds.is_multiple_of(RATE_ROUNDS) {
            self.path.end_cycle();
        }
        let is_empty = self.path.last_round_queue() <= self.path.eps();
        self.neighbour.empty_rounds = if is_empty { self.neighbour.empty_rounds + 1 } else { 0 };
        if self.neighbour.empty_rounds >= EMPTY_ROUNDS {
            self.pass_test();
            self.start_hold();
        } else if sample.now > self.neighbour.since + TEST_INTERVAL {
            self.start_ease(sample.now);
        }
    }

    /// The window beside others: the shadow's, but never more than a queue of the present length explains.
    pub(super) fn shadow_window(&self, sample: &Sample) -> f64 {
        let most = MOST_WINDOW * self.path.bandwidth() * sample.smoothed_rtt.as_secs_f64();
        self.neighbour.window().min(most)
    }

    /// The shadow hears of losses that are congestion's.
    pub(super) fn tell_neighbour(&mut self, loss: &LossSample<'_>) {
        let own = self.own.part(self.parameters.tolerated_loss);
        let neighbour = &mut self.neighbour;
        let Some(shadow) = &mut neighbour.shadow else { return };
        let packets = loss.packets.len() as f64;
        neighbour.settled += packets;
        neighbour.lost += packets;
        let expected = neighbour.settled * own;
        let is_congestive = own < LITTLE_LOSS || neighbour.lost > expected + 2.0 * libm::sqrt(expected) + 1.0;
        if is_congestive {
            shadow.on_loss(loss);
            neighbour.settled = 0.0;
            neighbour.lost = 0.0;
        }
    }
}

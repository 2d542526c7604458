//! The cycle once the rate is known: hold, look for more, ease; and rests, in which the least RTT is seen again.

use posthaste_policy::Constant;
use posthaste_units::{Duration, Time};

use super::{Mobile, Part, State, seconds};
use crate::congestion::model::Sample;

/// The least wait between two probes; up to a second more is drawn.
const LEAST_WAIT: Duration = Duration::from_secs(2);
/// The most rounds between two probes: Reno's time scale at 25 Mbit/s and 30 ms.
const MOST_ROUNDS: f64 = 63.0;
/// Rounds between two probes while probes meet neither queue nor congestive loss.
const FREE_ROUNDS: u64 = 10;
/// Rounds before the first probe if startup has ended below what trains have shown, or where they have shown nothing.
const DOUBTFUL_ROUNDS: u64 = 1;
/// What probes try, the next as soon as one has found what it tried.
const UP_GAINS: [f64; 3] = [1.25, 1.5, 2.0];
/// The queue that the first gain of a probe may build in a round trip, at most, if there is nothing to find: queues are so
/// many milliseconds long whatever the round trip is, and one is seen a round trip late.
const UP_QUEUE: Duration = Duration::from_micros(12_500);
/// The part of what a probe tries that it must find for the next.
const UP_FOUND: f64 = 0.8;
/// Rounds of each gain of a probe before it is judged: the first brings acks of before.
const UP_ROUNDS: u64 = 2;
/// Rounds after which the flight counts as eased whatever it is.
const EASE_ROUNDS: u64 = 4;
/// The same beside others, while no test is due.
const BESIDE_EASE_ROUNDS: u64 = 2;
/// Rounds of a probe that only the bound of the last congestive loss keeps from finding more: the bound's slope is then
/// 128 datagrams a round.
const BOUND_ROUNDS: u64 = 8;
/// What is in flight while a drain is tested, in bandwidth-delay products.
pub(super) const TEST_PART: f64 = 0.9;
/// The same in a rest.
pub(super) const REST_PART: f64 = 0.5;
/// The slope of the bound doubles each round of a probe, at most so often.
const MOST_DOUBLINGS: u32 = 30;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 3] {
    [
        Constant::new(
            "probe wait",
            format!("{FREE_ROUNDS} rounds on a free path, else 2 to 3 s, at most {MOST_ROUNDS} rounds"),
        ),
        Constant::new(
            "probes",
            format!(
                "{UP_GAINS:?} of the rate, the first at most {UP_QUEUE} of queue a round, the next if {UP_FOUND} of it was \
                 found"
            ),
        ),
        Constant::new("rest", "half a BDP for a round, if the least RTT was not seen for 10 s"),
    ]
}

/// Where the cycle stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cycle {
    started: Time,
    wait: Duration,
    /// Rounds of the present state.
    pub(super) rounds: u64,
    /// The last probe met neither queue nor congestive loss.
    pub(super) was_free: bool,
    pub(super) up_since: Time,
    /// Which of [`UP_GAINS`].
    gain: usize,
    /// The first of them on this path.
    first_gain: f64,
    /// The rate that the present gain started from.
    base: f64,
    acked_per_step: f64,
    up_acked: f64,
    doublings: u32,
    /// The flight has eased: a queue that still stands is somebody else's.
    pub(super) is_testing: bool,
    /// The queue before the ease, or before the probe.
    pub(super) queue_before: Duration,
    /// The present ease ends startup.
    is_first: bool,
    /// The rate before it seemed to fall: what a neighbour takes is no fall.
    pub(super) rate_before: f64,
    /// The flight when the last ease began.
    pub(super) flight_before: f64,
    /// The least RTTs of the two rounds before it.
    pub(super) rtts_before: [Option<Duration>; 2],
}

impl Cycle {
    /// The gain of the present probe.
    pub(super) fn up_gain(&self) -> f64 {
        let gain = UP_GAINS.get(self.gain).copied().unwrap_or(1.0);
        if self.gain == 0 { gain.min(self.first_gain) } else { gain }
    }
}

impl Mobile {
    fn enter(&mut self, state: State) {
        self.state = state;
        self.cycle.rounds = 0;
        self.rounds.restart();
    }

    /// Empties the queue.
    pub(super) fn start_ease(&mut self, now: Time) {
        if self.state == State::Up {
            self.path.end_cycle();
        }
        if self.state == State::Reach {
            self.path.forget_aggregation(now);
            self.cycle.is_first = true;
        }
        self.own.end_fast(now);
        self.losses.reset_signals();
        self.cycle.wait = LEAST_WAIT + Duration::from_nanos(self.rng.below(1_000_000_000));
        self.cycle.started = now;
        self.cycle.queue_before = self.path.queue();
        self.cycle.is_testing = false;
        self.cycle.flight_before = self.in_flight;
        self.cycle.rtts_before = self.path.ended_rtts();
        self.enter(State::Ease);
    }

    pub(super) fn step_ease(&mut self, sample: &Sample) {
        self.path.throttled.mark(sample);
        if self.cycle.is_first {
            // Startup's losses can come before its rate is known.
            self.losses.bound = self.losses.bound.max(self.path.bdp());
        }
        if self.cycle.is_testing {
            return self.step_test(sample);
        }
        let has_queue = self.has_queue_to_test();
        if self.neighbour.is_beside() && !self.is_test_due(sample.now) {
            // What is given up, others take: only as much as a probe has put into the queue.
            let is_low = sample.in_flight <= self.path.bdp().max(self.minimum_pipe());
            if is_low || self.cycle.rounds >= BESIDE_EASE_ROUNDS {
                self.start_hold();
            }
            return;
        }
        let target = self.path.bdp() * if has_queue { TEST_PART } else { 1.0 };
        if sample.in_flight > target.max(self.minimum_pipe()) && self.cycle.rounds <= EASE_ROUNDS {
            return;
        }
        if has_queue {
            self.cycle.is_testing = true;
            self.cycle.rounds = 0;
            self.rounds.restart();
        } else {
            self.pass_test(sample.now);
            self.start_hold();
        }
    }

    /// True if a queue stands that may be somebody else's. Before anything has been tested a medium whose delay steps is
    /// more likely.
    pub(super) fn has_queue_to_test(&self) -> bool {
        let is_new = !self.neighbour.was_looked_for && !self.neighbour.is_beside();
        self.path.queue() > if is_new { self.path.eps() } else { self.path.strict_eps() }
    }

    /// Sends at the rate.
    pub(super) fn start_hold(&mut self) {
        self.cycle.is_testing = false;
        self.cycle.is_first = false;
        self.neighbour.was_looked_for = true;
        self.enter(State::Hold);
    }

    pub(super) fn step_hold(&mut self, sample: &Sample) {
        if self.refutes_verdict(sample) {
            self.go_on_alone();
        } else if self.has(Part::Rest) && self.path.is_least_rtt_old(sample.now) {
            self.enter(State::Rest);
        } else if self.is_time_to_probe(sample.now) {
            if self.wants_test() { self.start_ease(sample.now) } else { self.start_up(sample) }
        }
    }

    pub(super) fn is_time_to_probe(&self, now: Time) -> bool {
        if self.wants_test() {
            return self.cycle.rounds >= 2;
        }
        if self.reach.is_doubtful {
            return self.cycle.rounds >= DOUBTFUL_ROUNDS;
        }
        let datagrams = self.path.bdp() / self.datagram();
        let most = if self.cycle.was_free { FREE_ROUNDS as f64 } else { MOST_ROUNDS };
        now > self.cycle.started + self.cycle.wait || self.cycle.rounds as f64 >= datagrams.min(most)
    }

    /// Looks for more.
    pub(super) fn start_up(&mut self, sample: &Sample) {
        if self.state == State::Reach {
            self.path.forget_aggregation(sample.now);
        }
        self.losses.reset_short();
        self.losses.reset_signals();
        self.own.begin_fast(sample.now);
        self.cycle.was_free = self.has(Part::Cascade);
        self.reach.is_doubtful = false;
        self.cycle.up_since = sample.now;
        self.cycle.gain = 0;
        self.cycle.first_gain = 1.0 + UP_QUEUE.as_secs_f64() / seconds(self.path.least_rtt());
        self.cycle.base = self.path.bandwidth();
        self.cycle.queue_before = self.path.queue();
        self.cycle.doublings = 0;
        self.cycle.up_acked = 0.0;
        self.enter(State::Up);
        self.raise_slope();
    }

    pub(super) fn step_up(&mut self, sample: &Sample) {
        self.raise_bound(sample);
        if sample.sent_at < self.cycle.up_since {
            return;
        }
        // A queue that stood before is somebody else's.
        if self.path.queue() > self.path.eps() + self.cycle.queue_before {
            self.cycle.was_free = false;
            self.start_ease(sample.now);
        } else if self.rounds.started && self.cycle.rounds >= UP_ROUNDS {
            let tried = self.cycle.up_gain() - 1.0;
            let has_found = self.path.bandwidth() >= self.cycle.base * (1.0 + UP_FOUND * tried);
            if !has_found {
                // A window at the bound tries less than its gain; the bound rises faster each round.
                let is_bounded = self.has(Part::LongProbe)
                    && self.losses.bound <= self.window
                    && self.cycle.rounds < BOUND_ROUNDS;
                if !is_bounded {
                    self.start_ease(sample.now);
                }
                return;
            }
            self.cycle.gain =
                if self.has(Part::Cascade) { (self.cycle.gain + 1).min(UP_GAINS.len() - 1) } else { 0 };
            self.cycle.base = self.path.bandwidth();
            self.cycle.rounds = 0;
        }
    }

    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.doublings);
        self.cycle.doublings = (self.cycle.doublings + 1).min(MOST_DOUBLINGS);
        self.cycle.acked_per_step = (self.window / growth).max(self.datagram());
    }

    /// The bound of the last congestive loss rises as a probe goes beyond it: by one datagram a round, then two, four ...
    fn raise_bound(&mut self, sample: &Sample) {
        let bound = self.losses.bound;
        if bound.is_infinite() || self.is_too_much(sample.lost, sample.tx_in_flight) {
            return;
        }
        self.losses.bound = bound.max(sample.tx_in_flight);
        if !self.window_use.was_full(sample) || self.window < bound {
            return;
        }
        self.cycle.up_acked += sample.newly_acked;
        let steps = libm::floor(self.cycle.up_acked / self.cycle.acked_per_step);
        self.cycle.up_acked -= steps * self.cycle.acked_per_step;
        self.losses.bound += steps * self.datagram();
        if self.rounds.started {
            self.raise_slope();
        }
    }

    pub(super) fn step_rest(&mut self, sample: &Sample) {
        self.path.throttled.mark(sample);
        let is_small = sample.in_flight <= (REST_PART * self.path.bdp()).max(self.minimum_pipe());
        if self.cycle.rounds == 0 && !is_small {
            self.rounds.restart();
        } else if self.cycle.rounds >= 2 {
            self.path.renew_least_rtt(sample.now);
            self.start_hold();
        }
    }

    /// True if a queue stands that the known rate does not explain: the rate is less now, or somebody else has come.
    pub(super) fn has_rate_fallen(&self) -> bool {
        let may_tell = self.state == State::Hold && !self.neighbour.is_beside() && self.cycle.rounds > 2;
        may_tell && self.has(Part::Fall) && self.path.has_standing_queue()
    }
}

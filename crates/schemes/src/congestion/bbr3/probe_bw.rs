//! The `ProbeBW` cycle (section 5.3.3): down, cruise, refill, up; how long each lasts, and how the long-term bound on
//! what is in flight rises.

use posthaste_policy::Constant;
use posthaste_units::{Duration, Time};

use super::{Bbr3, State};
use crate::congestion::model::Sample;

/// `Headroom`: the part of the long-term bound that is left to others while cruising.
const HEADROOM: f64 = 0.15;
/// The least wait between two probes; up to a second more is drawn.
const LEAST_WAIT: Duration = Duration::from_secs(2);
/// The most rounds between two probes: Reno's time scale at 25 Mbit/s and 30 ms.
const MOST_ROUNDS: f64 = 63.0;
/// The slope of the long-term bound doubles each round, at most so often.
const MOST_DOUBLINGS: u32 = 30;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 2] {
    [
        Constant::new("headroom", HEADROOM),
        Constant::new("probe wait", format!("2 to 3 s, at most {MOST_ROUNDS} rounds")),
    ]
}

/// `BBR.ack_phase`: what the acks of now tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AckPhase {
    /// Not of a probe.
    #[default]
    Init,
    /// Of the pipe being refilled.
    Refilling,
    /// A probe has begun.
    ProbeStarting,
    /// Of a probe.
    ProbeFeedback,
    /// Of a probe that has ended.
    ProbeStopping,
}

/// Where the cycle stands (section 2.14).
#[derive(Debug, Clone, Copy)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// `BBR.is_bw_probe_sample`.
    pub(super) is_probe_sample: bool,
    /// `BBR.prev_probe_too_high`.
    pub(super) was_too_high: bool,
    /// `BBR.prev_probe_precautionary`.
    pub(super) was_precautionary: bool,
    /// `BBR.bw_probe_up_acked`.
    up_acked: f64,
    /// `BBR.probe_up_acked_per_inc`.
    acked_per_step: f64,
    /// `BBR.bw_probe_up_rounds`.
    up_rounds: u32,
    /// `BBR.rounds_since_probe_up`.
    pub(super) rounds_since_up: u64,
    /// `BBR.bw_probe_wait`.
    wait: Duration,
    /// `BBR.cycle_stamp`.
    started: Time,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            ack_phase: AckPhase::default(),
            is_probe_sample: false,
            was_too_high: false,
            was_precautionary: false,
            up_acked: 0.0,
            acked_per_step: f64::INFINITY,
            up_rounds: 0,
            rounds_since_up: 0,
            wait: Duration::ZERO,
            started: Time::ZERO,
        }
    }
}

impl Bbr3 {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.cycle.acked_per_step = f64::INFINITY;
        // `PickProbeWait`.
        self.cycle.rounds_since_up = self.rng.below(2);
        self.cycle.wait = LEAST_WAIT + Duration::from_nanos(self.rng.below(1_000_000_000));
        self.cycle.started = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.rounds.restart();
        self.state = State::ProbeBwDown;
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) fn start_cruise(&mut self) {
        self.loss.own.begin_cruise();
        self.state = State::ProbeBwCruise;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self) {
        self.model.reset_shortterm();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0.0;
        self.cycle.was_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.restart();
        self.state = State::ProbeBwRefill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, sample: &Sample) {
        self.cycle.is_probe_sample = true;
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart();
        self.full_pipe.reset(sample.rate);
        self.state = State::ProbeBwUp;
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_probe_bw_cycle(&mut self, sample: &Sample) {
        if !self.full_pipe.reached || self.adapt_longterm_model(sample) {
            return;
        }
        let state = self.state;
        match state {
            State::ProbeBwDown => {
                if self.is_time_to_probe(sample.now) {
                    self.start_refill();
                } else if self.is_time_to_cruise(sample) {
                    self.start_cruise();
                }
            }
            State::ProbeBwCruise if self.is_time_to_probe(sample.now) => self.start_refill(),
            // After one round the pipe is full, and what is measured is what probing does.
            State::ProbeBwRefill if self.rounds.started => self.start_up(sample),
            State::ProbeBwUp if self.is_time_to_go_down(sample) => {
                self.cycle.was_too_high = false;
                self.start_down(sample.now);
            }
            _ => {}
        }
    }

    /// `IsTimeToProbeBW`.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let rounds = (self.target_inflight() / self.datagram()).min(MOST_ROUNDS);
        now > self.cycle.started + self.cycle.wait || self.cycle.rounds_since_up as f64 >= rounds
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        let bdp = self.quantized(self.bdp_of(self.model.max_bandwidth(), 1.0));
        sample.in_flight <= self.inflight_with_headroom() && sample.in_flight <= bdp
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        // The level at which the last probe lost is risky: touching it is enough (section 5.3.3.6).
        if self.cycle.was_too_high && sample.in_flight >= self.model.inflight_longterm {
            self.cycle.was_precautionary = true;
            return true;
        }
        if self.window_use.was_full(sample) && self.window >= self.model.inflight_longterm {
            // The bound, not the path, limits the rate: this is no plateau.
            self.full_pipe.reset(sample.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// `InflightWithHeadroom`.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let bound = self.model.inflight_longterm;
        if bound.is_infinite() {
            return bound;
        }
        let headroom = (HEADROOM * bound).max(self.datagram());
        (bound - headroom).max(self.minimum_pipe())
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.up_rounds);
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MOST_DOUBLINGS);
        self.cycle.acked_per_step = (self.window / growth).max(self.datagram());
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_longterm_upward(&mut self, sample: &Sample) {
        if !self.window_use.was_full(sample) || self.window < self.model.inflight_longterm {
            return;
        }
        self.cycle.up_acked += sample.newly_acked;
        let steps = libm::floor(self.cycle.up_acked / self.cycle.acked_per_step);
        if steps >= 1.0 {
            self.cycle.up_acked -= steps * self.cycle.acked_per_step;
            self.model.inflight_longterm += steps * self.datagram();
        }
        if self.rounds.started {
            self.raise_slope();
        }
    }

    /// `AdaptLongTermModel`: true if it has decided on the next state.
    fn adapt_longterm_model(&mut self, sample: &Sample) -> bool {
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.rounds.started {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.rounds.started {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !sample.app_limited {
                    self.model.advance_max_bandwidth();
                }
                if self.cycle.was_precautionary && !self.cycle.was_too_high {
                    // The risky level did no harm: probe on at once.
                    self.start_refill();
                    return true;
                }
            }
        }
        let bound = self.model.inflight_longterm;
        if bound.is_finite() && !self.is_inflight_too_high(sample.lost, sample.tx_in_flight) {
            self.model.inflight_longterm = bound.max(sample.tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_longterm_upward(sample);
            }
        }
        false
    }
}

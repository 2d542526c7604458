//! Startup and Drain (sections 5.3.1 and 5.3.2): when the pipe is full, and how its queue is emptied.

use posthaste_policy::Constant;

use super::{Bbr3, State};
use crate::congestion::model::Sample;

/// Growth of the delivery rate that a round must show to count as growth.
const FULL_BANDWIDTH_GROWTH: f64 = 1.25;
/// Rounds without such growth that make a full pipe.
const FULL_BANDWIDTH_ROUNDS: u32 = 3;
/// `BBRStartupFullLossCnt`: separate ranges of loss in one round that end Startup.
const FULL_LOSS_RANGES: u32 = 6;
/// Rounds after which Drain ends whatever is in flight.
const DRAIN_ROUNDS: u64 = 3;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 2] {
    [
        Constant::new(
            "startup ends",
            format!(
                "after {FULL_BANDWIDTH_ROUNDS} rounds below {FULL_BANDWIDTH_GROWTH} x, or {FULL_LOSS_RANGES} \
                 ranges lost in a round"
            ),
        ),
        Constant::new("drain ends", format!("at 1 BDP in flight, or after {DRAIN_ROUNDS} rounds")),
    ]
}

/// The full-pipe estimator (section 5.3.1.2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FullPipe {
    /// `BBR.full_bw_reached`: ever since the path began.
    pub(super) reached: bool,
    /// `BBR.full_bw_now`: since the estimator was last reset.
    pub(super) now: bool,
    /// `BBR.full_bw`.
    bandwidth: f64,
    /// `BBR.full_bw_count`.
    rounds: u32,
    /// `BBR.drain_start_round`.
    drain_started: u64,
}

impl FullPipe {
    /// `ResetFullBW`, with the rate to compare with.
    pub(super) fn reset(&mut self, bandwidth: f64) {
        self.bandwidth = bandwidth;
        self.rounds = 0;
        self.now = false;
    }
}

impl Bbr3 {
    /// `CheckFullBWReached`.
    pub(super) fn check_full_bandwidth(&mut self, sample: &Sample) {
        let pipe = &mut self.full_pipe;
        if pipe.now || !self.rounds.started || sample.app_limited {
            return;
        }
        if sample.rate >= pipe.bandwidth * FULL_BANDWIDTH_GROWTH {
            pipe.reset(sample.rate);
            return;
        }
        pipe.rounds += 1;
        pipe.now = pipe.rounds >= FULL_BANDWIDTH_ROUNDS;
        pipe.reached |= pipe.now;
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        if self.state != State::Startup {
            return;
        }
        // At the end of a round with losses: enough of them, in enough places, and more than the path's own.
        let has_ended = self.loss.round_ended && self.loss.ranges_last_round >= FULL_LOSS_RANGES;
        if has_ended && self.is_inflight_too_high(sample.lost, sample.tx_in_flight) {
            self.leave_startup_for_loss();
        }
        if self.full_pipe.reached {
            self.enter_drain();
        }
    }

    /// The capacity was found by losing (section 5.3.1.3).
    pub(super) fn leave_startup_for_loss(&mut self) {
        self.note_undo(State::Startup);
        self.full_pipe.reached = true;
        self.model.inflight_longterm = self.bdp().max(self.loss.inflight_latest).max(self.minimum_pipe());
    }

    /// `EnterDrain`.
    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.full_pipe.drain_started = self.rounds.count;
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        if self.state == State::Drain
            && (sample.in_flight <= self.inflight(1.0)
                || self.rounds.count > self.full_pipe.drain_started + DRAIN_ROUNDS)
        {
            self.start_down(sample.now);
        }
    }

    /// Back to Startup, as if the path were new: its capacity is unknown again.
    pub(super) fn restart_startup(&mut self) {
        self.model.forget_rate();
        self.full_pipe.reached = false;
        self.full_pipe.reset(0.0);
        self.pacing_rate = None;
        self.state = State::Startup;
    }
}

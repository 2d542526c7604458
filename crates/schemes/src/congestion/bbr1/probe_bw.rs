//! `ProbeBW` (section 4.3.4): a cycle of eight pacing gains, one of them up and the next down.

use posthaste_policy::Constant;
use posthaste_units::Time;

use super::{Bbr1, State};
use crate::congestion::model::Sample;

/// `BBRGainCycleLen` gains, as quarters: up, down, and six rounds as measured.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new("probe_bw gains", format!("{} {} and {} x 1", GAINS[0], GAINS[1], GAINS.len() - 2))]
}

/// Where the cycle stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cycle {
    /// `BBR.cycle_index`.
    index: usize,
    /// `BBR.cycle_stamp`.
    started: Time,
}

impl Cycle {
    /// `BBR.pacing_gain` in this state.
    pub(super) fn gain(&self) -> f64 {
        GAINS.get(self.index).copied().unwrap_or(1.0)
    }
}

impl Bbr1 {
    /// `BBREnterProbeBW`: anywhere in the cycle but where it slows down.
    pub(super) fn enter_probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        self.cycle.index = GAINS.len() - 1 - self.rng.below(GAINS.len() as u64 - 1) as usize;
        self.advance_cycle_phase(now);
    }

    /// `BBRAdvanceCyclePhase`.
    fn advance_cycle_phase(&mut self, now: Time) {
        self.cycle.started = now;
        self.cycle.index = (self.cycle.index + 1) % GAINS.len();
    }

    /// `BBRCheckCyclePhase`.
    pub(super) fn check_cycle_phase(&mut self, sample: &Sample) {
        if self.state == State::ProbeBw && self.is_next_cycle_phase(sample) {
            self.advance_cycle_phase(sample.now);
        }
    }

    /// `BBRIsNextCyclePhase`.
    fn is_next_cycle_phase(&self, sample: &Sample) -> bool {
        let is_full_length =
            self.min_rtt.is_none_or(|min_rtt| sample.now.since(self.cycle.started) > min_rtt);
        let gain = self.cycle.gain();
        if gain > 1.0 {
            // Up until the flight has grown as far as the gain can make it, or losses say that it cannot.
            let has_grown = self.recovery.newly_lost > 0.0 || sample.prior_in_flight >= self.inflight(gain);
            is_full_length && has_grown
        } else if gain < 1.0 {
            is_full_length || sample.prior_in_flight <= self.inflight(1.0)
        } else {
            is_full_length
        }
    }
}

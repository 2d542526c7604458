//! Startup and Drain (sections 4.3.2 and 4.3.3).

use posthaste_policy::Constant;

use super::{Bbr1, State};
use crate::congestion::model::Sample;

/// Growth of the bandwidth that a round must show to count as growth.
const FULL_PIPE_GROWTH: f64 = 1.25;
/// Rounds without such growth that make a full pipe.
const FULL_PIPE_ROUNDS: u32 = 3;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    let text = format!("after {FULL_PIPE_ROUNDS} rounds below {FULL_PIPE_GROWTH} x");
    [Constant::new("startup ends", text)]
}

/// Whether the pipe has been filled.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FullPipe {
    /// `BBR.filled_pipe`.
    pub(super) filled: bool,
    /// `BBR.full_bw`.
    bandwidth: f64,
    /// `BBR.full_bw_count`.
    rounds: u32,
}

impl Bbr1 {
    /// `BBRCheckFullPipe`.
    pub(super) fn check_full_pipe(&mut self, sample: &Sample) {
        if self.full_pipe.filled || !self.rounds.started || sample.app_limited {
            return;
        }
        let bandwidth = self.bandwidth();
        let pipe = &mut self.full_pipe;
        if bandwidth >= pipe.bandwidth * FULL_PIPE_GROWTH {
            *pipe = FullPipe { filled: false, bandwidth, rounds: 0 };
            return;
        }
        pipe.rounds += 1;
        pipe.filled = pipe.rounds >= FULL_PIPE_ROUNDS;
    }

    /// `BBRCheckDrain`.
    pub(super) fn check_drain(&mut self, sample: &Sample) {
        if self.state == State::Startup && self.full_pipe.filled {
            self.state = State::Drain;
        }
        if self.state == State::Drain && sample.in_flight <= self.inflight(1.0) {
            self.enter_probe_bw(sample.now);
        }
    }

    /// Back to Startup, as if the path were new.
    pub(super) fn restart_startup(&mut self) {
        self.bandwidths.clear();
        self.full_pipe = FullPipe::default();
        self.pacing_rate = None;
        self.state = State::Startup;
    }
}

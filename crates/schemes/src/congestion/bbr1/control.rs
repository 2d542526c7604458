//! Pacing rate, quantum and window (section 4.2).

use posthaste_policy::Constant;
use posthaste_policy::sample::RttView;

use super::{Bbr1, State};
use crate::congestion::model::{MINIMUM_PIPE_DATAGRAMS, Sample};

/// `BBRHighGain`: 2 / ln 2, the least that doubles the rate each round.
const HIGH_GAIN: f64 = 2.885;
/// The window in `ProbeBW`, in BDP.
const WINDOW_GAIN: f64 = 2.0;
/// Below this rate in bytes a second the quantum is one datagram.
const LOW_RATE: f64 = 1.2e6 / 8.0;
/// Below this, two.
const MEDIUM_RATE: f64 = 24e6 / 8.0;
/// Above, what the rate yields in a millisecond, at most 64 KiB.
const QUANTUM_SECONDS: f64 = 0.001;
const GREATEST_QUANTUM: f64 = 65_536.0;
/// Quanta that are in flight beyond the BDP: one at each end and one on the way.
const QUANTA: f64 = 3.0;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 3] {
    [
        Constant::new("pacing gain", format!("startup {HIGH_GAIN}, drain 1/{HIGH_GAIN}")),
        Constant::new("window gain", format!("startup and drain {HIGH_GAIN}, probe_bw {WINDOW_GAIN}")),
        Constant::new("minimum window", format!("{MINIMUM_PIPE_DATAGRAMS} datagrams")),
    ]
}

impl Bbr1 {
    /// `BBRMinPipeCwnd`.
    pub(super) fn minimum_pipe(&self) -> f64 {
        self.datagram() * MINIMUM_PIPE_DATAGRAMS as f64
    }

    /// `BBR.pacing_gain`.
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => 1.0 / HIGH_GAIN,
            State::ProbeBw => self.cycle.gain(),
            State::ProbeRtt => 1.0,
        }
    }

    /// `BBR.cwnd_gain`.
    fn window_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw => WINDOW_GAIN,
            State::ProbeRtt => 1.0,
        }
    }

    /// `BBRInitPacingRate`: the window as it stands, a round trip. None before the first RTT sample.
    pub(super) fn initial_pacing_rate(&self, rtt: &RttView) -> Option<f64> {
        rtt.is_measured.then(|| HIGH_GAIN * self.window / rtt.smoothed.as_secs_f64().max(1e-6))
    }

    /// `BBRSetPacingRateWithGain`.
    pub(super) fn pace_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bandwidth();
        if self.full_pipe.filled || self.pacing_rate.is_none_or(|known| rate > known) {
            self.pacing_rate = Some(rate);
        }
    }

    /// `BBRSetPacingRate`.
    pub(super) fn set_pacing_rate(&mut self, sample: &Sample) {
        if self.pacing_rate.is_none() {
            let seconds = sample.smoothed_rtt.as_secs_f64().max(1e-6);
            self.pacing_rate = Some(HIGH_GAIN * self.window / seconds);
        }
        // With no measure of the rate, a rate of nothing would be for ever.
        if self.bandwidth() > 0.0 {
            self.pace_with_gain(self.pacing_gain());
        }
    }

    /// `BBR.send_quantum` (section 4.2.2).
    fn quantum(&self) -> f64 {
        match self.pacing_rate.unwrap_or(0.0) {
            rate if rate < LOW_RATE => self.datagram(),
            rate if rate < MEDIUM_RATE => 2.0 * self.datagram(),
            rate => (rate * QUANTUM_SECONDS).min(GREATEST_QUANTUM),
        }
    }

    /// `BtlBw * RTprop`, times `gain`.
    pub(super) fn bdp_multiple(&self, gain: f64) -> f64 {
        let Some(min_rtt) = self.min_rtt else { return self.limits.initial_window.as_f64() };
        gain * self.bandwidth() * min_rtt.as_secs_f64()
    }

    /// `BBRInflight`.
    pub(super) fn inflight(&self, gain: f64) -> f64 {
        self.bdp_multiple(gain) + QUANTA * self.quantum()
    }

    /// `BBRSetCwnd`.
    pub(super) fn grow_window(&mut self, sample: &Sample) {
        let target = self.inflight(self.window_gain());
        if !self.modulate_for_recovery(sample) {
            let mut window = self.window;
            if self.full_pipe.filled {
                window = (window + sample.newly_acked).min(target);
            } else if window < target || self.is_young() {
                window += sample.newly_acked;
            }
            self.set_window(window.max(self.minimum_pipe()));
        }
        if self.state == State::ProbeRtt {
            self.set_window(self.window.min(self.minimum_pipe()));
        }
    }
}

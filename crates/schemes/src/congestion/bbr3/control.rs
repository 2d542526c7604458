//! The control parameters (section 5.6): pacing rate, quantum and window.

use posthaste_policy::Constant;
use posthaste_policy::sample::RttView;

use super::{Bbr3, State};
use crate::congestion::model::{MINIMUM_PIPE_DATAGRAMS, Sample};

/// `StartupPacingGain`: 4 ln 2.
const STARTUP_PACING_GAIN: f64 = 2.77;
/// `DrainPacingGain`.
const DRAIN_PACING_GAIN: f64 = 0.5;
/// `ProbeBW`'s pacing gain while probing.
const UP_PACING_GAIN: f64 = 1.25;
/// `ProbeBW`'s pacing gain after a probe.
const DOWN_PACING_GAIN: f64 = 0.9;
/// `DefaultCwndGain`.
const WINDOW_GAIN: f64 = 2.0;
/// `ProbeBW`'s window gain while probing.
const UP_WINDOW_GAIN: f64 = 2.25;
/// `ProbeRTTCwndGain`.
const PROBE_RTT_WINDOW_GAIN: f64 = 0.5;
/// `PacingMarginPercent`, as what is left.
const PACING_MARGIN: f64 = 0.99;
/// `C.send_quantum`: what the rate yields in this many seconds, within two datagrams and 64 KiB.
const QUANTUM_SECONDS: f64 = 0.001;
const GREATEST_QUANTUM: f64 = 65_536.0;
const LEAST_QUANTUM_DATAGRAMS: f64 = 2.0;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 4] {
    [
        Constant::new(
            "pacing gain",
            format!(
                "startup {STARTUP_PACING_GAIN}, drain {DRAIN_PACING_GAIN}, down {DOWN_PACING_GAIN}, cruise and \
                 refill 1, up {UP_PACING_GAIN}"
            ),
        ),
        Constant::new("pacing margin", "1 %"),
        Constant::new(
            "window gain",
            format!("{WINDOW_GAIN}, up {UP_WINDOW_GAIN}, probe_rtt {PROBE_RTT_WINDOW_GAIN}"),
        ),
        Constant::new("minimum window", format!("{MINIMUM_PIPE_DATAGRAMS} datagrams")),
    ]
}

impl State {
    /// `BBR.pacing_gain` (section 5.6.1).
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => DRAIN_PACING_GAIN,
            Self::ProbeBwDown => DOWN_PACING_GAIN,
            Self::ProbeBwUp => UP_PACING_GAIN,
            Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeRtt => 1.0,
        }
    }

    /// `BBR.cwnd_gain`.
    pub(super) fn window_gain(self) -> f64 {
        match self {
            Self::ProbeBwUp => UP_WINDOW_GAIN,
            Self::ProbeRtt => PROBE_RTT_WINDOW_GAIN,
            _ => WINDOW_GAIN,
        }
    }
}

impl Bbr3 {
    /// `MinPipeCwnd`.
    pub(super) fn minimum_pipe(&self) -> f64 {
        self.datagram() * MINIMUM_PIPE_DATAGRAMS as f64
    }

    /// `InitPacingRate`: the window as it stands, a round trip. None before the first RTT sample.
    pub(super) fn initial_pacing_rate(&self, rtt: &RttView) -> Option<f64> {
        let seconds = rtt.smoothed.as_secs_f64().max(1e-6);
        rtt.is_measured.then(|| STARTUP_PACING_GAIN * self.window / seconds)
    }

    /// `SetPacingRateWithGain`.
    pub(super) fn pace_with_gain(&mut self, gain: f64) {
        let rate = gain * self.model.bandwidth * PACING_MARGIN;
        if self.full_pipe.reached || self.pacing_rate.is_none_or(|known| rate > known) {
            self.pacing_rate = Some(rate);
        }
    }

    /// `SetPacingRate`.
    pub(super) fn set_pacing_rate(&mut self, sample: &Sample) {
        if self.pacing_rate.is_none() {
            let seconds = sample.smoothed_rtt.as_secs_f64().max(1e-6);
            self.pacing_rate = Some(STARTUP_PACING_GAIN * self.window / seconds);
        }
        // With no measure of the rate, a rate of nothing would be for ever.
        if self.model.bandwidth > 0.0 {
            self.pace_with_gain(self.state.pacing_gain());
        }
    }

    /// `C.send_quantum`, which is the offload budget of QUIC (section 5.5.8.2).
    fn quantum(&self) -> f64 {
        let quantum = self.pacing_rate.unwrap_or(0.0) * QUANTUM_SECONDS;
        quantum.min(GREATEST_QUANTUM).max(LEAST_QUANTUM_DATAGRAMS * self.datagram())
    }

    /// `QuantizationBudget`.
    pub(super) fn quantized(&self, inflight: f64) -> f64 {
        let budget = inflight.max(self.quantum()).max(self.minimum_pipe());
        if self.state == State::ProbeBwUp { budget + 2.0 * self.datagram() } else { budget }
    }

    /// `Inflight`.
    pub(super) fn inflight(&self, gain: f64) -> f64 {
        self.quantized(self.bdp_of(self.model.bandwidth, gain))
    }

    /// `BBR.max_inflight`.
    fn max_inflight(&self) -> f64 {
        let bdp = self.bdp_of(self.model.bandwidth, self.state.window_gain());
        self.quantized(bdp + self.model.extra_acked())
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_window(&self) -> f64 {
        self.bdp_of(self.model.bandwidth, PROBE_RTT_WINDOW_GAIN).max(self.minimum_pipe())
    }

    /// `SetCwnd`.
    pub(super) fn grow_window(&mut self, sample: &Sample) {
        let max_inflight = self.max_inflight();
        let mut window = self.window;
        if self.full_pipe.reached {
            window = (window + sample.newly_acked).min(max_inflight);
        } else if window < max_inflight || sample.total_delivered < self.limits.initial_window {
            window += sample.newly_acked;
        }
        window = window.max(self.minimum_pipe());
        if self.state == State::ProbeRtt {
            window = window.min(self.probe_rtt_window());
        }
        self.set_window(self.bounded(window));
    }

    /// `BoundCwndForModel`.
    fn bounded(&self, window: f64) -> f64 {
        let cap = match self.state {
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            state if state.is_probe_bw() => self.model.inflight_longterm,
            _ => f64::INFINITY,
        };
        window.min(cap.min(self.model.inflight_shortterm).max(self.minimum_pipe()))
    }

    /// `SaveCwnd`: the window before recovery or `ProbeRTT` touched it.
    pub(super) fn save_window(&mut self) {
        let is_touched = self.recovery.is_active() || self.state == State::ProbeRtt;
        self.prior_window = if is_touched { self.prior_window.max(self.window) } else { self.window };
    }

    /// `RestoreCwnd`.
    pub(super) fn restore_window(&mut self) {
        self.set_window(self.window.max(self.prior_window));
    }
}

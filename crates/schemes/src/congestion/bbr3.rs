//! Congestion control `bbr3`: a model of the path (its bandwidth, its least RTT, what it holds) instead of a window
//! that losses cut.
//!
//! - Claims: full use of a path with shallow buffers or a little random loss, and short queues where buffers are deep.
//! - Source: draft-ietf-ccwg-bbr-06, whole; its names are in the comments. The draft leaves the answer to ECN open
//!   but for "MUST treat as congestion": a mark here is a loss beyond the threshold. What is ours is
//!   `tolerated_loss` (see [`Parameters`]); at 0 this is the draft to the letter.
//! - Use when: paths lose a little at random, or their buffers are deep.
//! - Breaks when: loss is above 2 % and `tolerated_loss` is 0 (each probe ends at once, and the window decays to
//!   nothing); against many loss-based flows at a shallow buffer; flows shorter than a few round trips gain little.
//!   With tolerance, several of them at a buffer of a few milliseconds take each other's losses for the path's own.
//! - Shown by: the experiments `bbr-loss` and `bbr-share`; `docs/results/congestion.md`.

mod control;
mod loss;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;

use posthaste_policy::sample::{AckSample, LossSample, RttView, SentSample, SpuriousSample};
use posthaste_policy::{
    Adjustment, Congestion, CongestionFactory, CongestionState, Constant, Description, LossCause, Pacing,
    PathLimits, Phase, PolicyText, SlowStart,
};
use posthaste_units::{ByteCount, Rate, Rng, Time};
use serde::Deserialize;

use super::model::{COLLAPSED_DATAGRAMS, MAXIMUM_WINDOW, PacingView, Rounds, Sample, WindowUse, pace};
use super::recovery::Recovery;
use crate::{Entry, Property, value};
use loss::LossState;
use model::Model;
use probe_bw::Cycle;
use probe_rtt::ProbeRtt;
use startup::FullPipe;

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "bbr3",
    claims: "sends at the rate that the path delivers, whatever it loses at random, with a short queue",
    source: "draft-ietf-ccwg-bbr-06; tolerated_loss is ours",
    use_when: "paths lose a little at random, or their buffers are deep",
    breaks_when: "several share a buffer of a few milliseconds (with tolerated_loss), or loss is above 2 % (without)",
};

/// The policy in the registry.
pub const ENTRY: Entry =
    Entry::congestion::<Parameters>(TEXT).with(&[Property::TakesFirstWindow, Property::ServesGroup]);

/// Parameters of [`Bbr3`].
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Loss that is taken for the path's own if it comes without a queue, as a part of what is sent, 0 to 0.2. In
    /// startup up to this much, later as much of it as was seen while not probing, is no ground to slow down. The
    /// draft has none, and decays to nothing at a few per cent of random loss.
    #[serde(deserialize_with = "value::tolerated_loss")]
    pub tolerated_loss: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { tolerated_loss: 0.1 }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let mut constants = vec![Constant::new("tolerated_loss", self.tolerated_loss)];
        constants.extend(startup::constants());
        constants.extend(loss::constants());
        constants.extend(probe_bw::constants());
        constants.extend(probe_rtt::constants());
        constants.extend(control::constants());
        constants
    }
}

impl CongestionFactory for Parameters {
    fn build(&self, limits: PathLimits, _slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        Box::new(Bbr3::new(*self, limits))
    }

    fn has_own_startup(&self) -> bool {
        true
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// `BBR.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

impl State {
    /// `IsInAProbeBWState`.
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp)
    }

    /// `IsProbingBW`.
    fn is_accelerating(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }

    fn phase(self) -> Phase {
        match self {
            Self::Startup => Phase::SlowStart,
            Self::Drain => Phase::Named("drain"),
            Self::ProbeBwDown => Phase::Named("probe_bw_down"),
            Self::ProbeBwCruise => Phase::Named("probe_bw_cruise"),
            Self::ProbeBwRefill => Phase::Named("probe_bw_refill"),
            Self::ProbeBwUp => Phase::Named("probe_bw_up"),
            Self::ProbeRtt => Phase::Named("probe_rtt"),
        }
    }
}

/// The controller; see the module.
#[derive(Debug)]
pub struct Bbr3 {
    parameters: Parameters,
    limits: PathLimits,
    rng: Rng,
    state: State,
    rounds: Rounds,
    model: Model,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    loss: LossState,
    recovery: Recovery,
    window_use: WindowUse,
    /// `C.cwnd`.
    window: f64,
    /// `BBR.prior_cwnd`.
    prior_window: f64,
    /// `C.pacing_rate`, bytes a second.
    pacing_rate: Option<f64>,
    /// `BBR.idle_restart`.
    idle_restart: bool,
}

impl Bbr3 {
    /// A controller for a new path.
    pub fn new(parameters: Parameters, limits: PathLimits) -> Self {
        let mut controller = Self {
            parameters,
            limits,
            rng: Rng::from_test_seed(limits.seed),
            state: State::Startup,
            rounds: Rounds::default(),
            model: Model::default(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            loss: LossState::default(),
            recovery: Recovery::default(),
            window_use: WindowUse::default(),
            window: 0.0,
            prior_window: 0.0,
            pacing_rate: None,
            idle_restart: false,
        };
        controller.set_window(limits.initial_window.as_f64());
        controller
    }

    /// `C.SMSS`.
    fn datagram(&self) -> f64 {
        self.limits.max_datagram_size.as_f64().max(1.0)
    }

    fn collapsed_window(&self) -> f64 {
        self.datagram() * COLLAPSED_DATAGRAMS as f64
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.clamp(self.collapsed_window().min(MAXIMUM_WINDOW), MAXIMUM_WINDOW);
    }

    /// `UpdateModelAndState` and `UpdateControlParameters` (section 5.2.3).
    fn update(&mut self, sample: &Sample) {
        self.update_latest_delivery_signals(sample);
        self.update_congestion_signals(sample);
        self.model.update_aggregation(sample, &self.rounds, self.full_pipe.reached, self.window);
        self.check_full_bandwidth(sample);
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_probe_bw_cycle(sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        self.advance_latest_delivery_signals(sample);
        self.model.bound_bandwidth();
        self.set_pacing_rate(sample);
        self.grow_window(sample);
    }
}

impl Congestion for Bbr3 {
    fn on_sent(&mut self, sent: &SentSample) {
        if sent.prior_in_flight.is_zero() && sent.app_limited {
            self.restart_from_idle(sent.now);
        }
        self.window_use.on_sent(sent, self.window(), self.limits.max_datagram_size);
    }

    fn on_ack(&mut self, ack: &AckSample<'_>) {
        let Some(mut sample) = Sample::of(ack) else { return };
        sample.app_limited |= self.probe_rtt.throttled.covers(&sample);
        if self.recovery.is_active() && !self.recovery.covers(sample.sent_at) {
            self.recovery.end();
            self.restore_window();
        }
        self.update(&sample);
    }

    fn on_loss(&mut self, loss: &LossSample<'_>) -> LossCause {
        self.handle_loss(loss);
        LossCause::Congestion
    }

    fn on_congestion_experienced(&mut self, now: Time, sent_at: Time, _in_flight: ByteCount) {
        self.handle_mark(now, sent_at);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousSample) {
        self.handle_spurious_loss(spurious);
    }

    fn on_persistent_congestion(&mut self, _now: Time) {
        // RFC 9002 section 7.6.2 where the draft has an RTO: the window collapses and grows by what is acknowledged.
        // The model stays; it is bounded by what the window lets through.
        self.recovery = Recovery::default();
        self.loss.episode = None;
        self.set_window(0.0);
        self.prior_window = self.window;
    }

    fn on_max_datagram_size(&mut self, size: ByteCount) {
        self.limits.max_datagram_size = size;
        self.set_window(self.window);
    }

    fn adjust(&mut self, adjustment: &Adjustment) {
        self.loss.episode = None;
        if let Some(window) = adjustment.window {
            self.set_window(window.as_f64());
            self.prior_window = self.window;
            // The rate that goes with it is made anew from the window where there is no other measure.
            if self.state == State::Startup {
                self.pacing_rate = None;
            }
        }
        match adjustment.slow_start_threshold {
            Some(ByteCount::MAX) => self.restart_startup(),
            Some(threshold) => {
                self.model.inflight_longterm = threshold.as_f64().max(self.minimum_pipe());
                if self.state == State::Startup && self.window >= threshold.as_f64() {
                    self.full_pipe.reached = true;
                    self.enter_drain();
                }
            }
            None => {}
        }
        if let Some(rate) = adjustment.rate {
            self.model.set_bandwidth(rate.as_bytes_per_second() as f64);
            self.pace_with_gain(self.state.pacing_gain());
        }
    }

    fn model_rate(&self) -> Option<Rate> {
        let bandwidth = self.model.max_bandwidth();
        (bandwidth > 0.0).then(|| Rate::from_bytes_per_second(bandwidth as u64))
    }

    fn window(&self) -> ByteCount {
        ByteCount::new(self.window as u64)
    }

    fn pacing(&self, rtt: &RttView) -> Option<Pacing> {
        let in_first_flight = self.state == State::Startup && self.window() <= self.limits.initial_window;
        pace(&PacingView {
            rate: self.pacing_rate.or_else(|| self.initial_pacing_rate(rtt)),
            datagram: self.limits.max_datagram_size,
            first_burst: in_first_flight.then_some(self.limits.initial_window),
        })
    }

    fn state(&self) -> CongestionState {
        let threshold = self.full_pipe.reached.then(|| ByteCount::from_f64(self.bdp()));
        CongestionState { window: self.window(), slow_start_threshold: threshold, phase: self.state.phase() }
    }
}

#[cfg(test)]
mod tests;

//! Congestion control `bbr1`: the first BBR, a rate from the greatest delivery rate of ten rounds, and losses ignored.
//!
//! - Claims: full use of a path whatever it loses at random, up to a fifth.
//! - Source: draft-cardwell-iccrg-bbr-congestion-control-00, whole (without Linux's later policer detection). It
//!   ignores ECN; a QUIC sender that marks may not (RFC 9002 section 7.1), so a mark here begins a round of packet
//!   conservation as a loss does.
//! - Use when: as the baseline of `bbr3`, and for the published experiments that name it.
//! - Breaks when: the buffer holds less than a BDP and rivals back off for losses: they starve, and its share does not
//!   shrink as their number grows.
//! - Shown by: the experiments `bbr-loss` and `bbr-share`; `docs/results/congestion.md`.

mod control;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod startup;

use posthaste_policy::sample::{AckSample, LossSample, RttView, SentSample, SpuriousSample};
use posthaste_policy::{
    Adjustment, Congestion, CongestionFactory, CongestionState, Constant, Description, LossCause, Pacing,
    PathLimits, Phase, PolicyText, SlowStart,
};
use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};
use serde::Deserialize;

use super::model::{
    COLLAPSED_DATAGRAMS, MAXIMUM_WINDOW, PacingView, Rounds, Sample, Throttled, WindowedMax, pace,
};
use crate::{Entry, Property};
use probe_bw::Cycle;
use probe_rtt::ProbeRtt;
use recovery::LossRecovery;
use startup::FullPipe;

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "bbr1",
    claims: "sends at the rate that the path delivers, whatever it loses at random, up to a fifth",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00",
    use_when: "as the baseline of bbr3",
    breaks_when: "the buffer holds less than a BDP: it keeps losing, and rivals that back off for losses starve",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::congestion::<Parameters>(TEXT).with(&[Property::TakesFirstWindow]);

/// Parameters of [`Bbr1`]: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {}

impl CongestionFactory for Parameters {
    fn build(&self, limits: PathLimits, _slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        Box::new(Bbr1::new(limits))
    }

    fn has_own_startup(&self) -> bool {
        true
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(constants())
    }
}

/// `BtlBwFilterLen`, in rounds.
const BANDWIDTH_ROUNDS: u64 = 10;

/// The constants, for people.
pub fn constants() -> Vec<Constant> {
    let mut constants = vec![Constant::new("bandwidth window", format!("{BANDWIDTH_ROUNDS} rounds"))];
    constants.extend(startup::constants());
    constants.extend(probe_bw::constants());
    constants.extend(probe_rtt::constants());
    constants.extend(control::constants());
    constants
}

/// `BBR.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The controller; see the module.
#[derive(Debug)]
pub struct Bbr1 {
    limits: PathLimits,
    rng: Rng,
    state: State,
    rounds: Rounds,
    bandwidths: WindowedMax,
    /// `BBR.RTprop`.
    min_rtt: Option<Duration>,
    /// `BBR.rtprop_stamp`.
    min_rtt_at: Time,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    /// What was sent slowly on purpose says nothing of the path's rate.
    throttled: Throttled,
    recovery: LossRecovery,
    /// `cwnd`.
    window: f64,
    /// `BBR.prior_cwnd`.
    prior_window: f64,
    /// `BBR.pacing_rate`, bytes a second.
    pacing_rate: Option<f64>,
    /// `BBR.idle_restart`.
    idle_restart: bool,
    /// `C.delivered`.
    delivered: ByteCount,
}

impl Bbr1 {
    /// A controller for a new path.
    pub fn new(limits: PathLimits) -> Self {
        let mut controller = Self {
            limits,
            rng: Rng::from_test_seed(limits.seed),
            state: State::Startup,
            rounds: Rounds::default(),
            bandwidths: WindowedMax::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            full_pipe: FullPipe::default(),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            throttled: Throttled::default(),
            recovery: LossRecovery::default(),
            window: 0.0,
            prior_window: 0.0,
            pacing_rate: None,
            idle_restart: false,
            delivered: ByteCount::ZERO,
        };
        controller.set_window(limits.initial_window.as_f64());
        controller
    }

    fn datagram(&self) -> f64 {
        self.limits.max_datagram_size.as_f64().max(1.0)
    }

    fn set_window(&mut self, window: f64) {
        let least = (self.datagram() * COLLAPSED_DATAGRAMS as f64).min(MAXIMUM_WINDOW);
        self.window = window.clamp(least, MAXIMUM_WINDOW);
    }

    /// `BBR.BtlBw`.
    fn bandwidth(&self) -> f64 {
        self.bandwidths.get()
    }

    /// `BBRUpdateBtlBw`.
    fn update_bandwidth(&mut self, sample: &Sample) {
        self.rounds.update(sample);
        if sample.rate > 0.0 && (sample.rate >= self.bandwidth() || !sample.app_limited) {
            self.bandwidths.update(self.rounds.count, BANDWIDTH_ROUNDS, sample.rate);
        }
    }

    /// `BBRUpdateModelAndState` and `BBRUpdateControlParameters` (section 4.2.3).
    fn update(&mut self, sample: &Sample) {
        self.update_bandwidth(sample);
        self.check_cycle_phase(sample);
        self.check_full_pipe(sample);
        self.check_drain(sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        self.set_pacing_rate(sample);
        self.grow_window(sample);
    }
}

impl Congestion for Bbr1 {
    fn on_sent(&mut self, sent: &SentSample) {
        if sent.prior_in_flight.is_zero() && sent.app_limited {
            // `BBRHandleRestartFromIdle`.
            self.idle_restart = true;
            if self.state == State::ProbeBw {
                self.pace_with_gain(1.0);
            }
        }
    }

    fn on_ack(&mut self, ack: &AckSample<'_>) {
        let Some(mut sample) = Sample::of(ack) else { return };
        sample.app_limited |= self.throttled.covers(&sample);
        self.delivered = sample.total_delivered;
        self.advance_recovery(&sample);
        self.update(&sample);
        self.recovery.newly_lost = 0.0;
    }

    fn on_loss(&mut self, loss: &LossSample<'_>) -> LossCause {
        self.handle_loss(loss);
        LossCause::Congestion
    }

    fn on_congestion_experienced(&mut self, now: Time, sent_at: Time, in_flight: ByteCount) {
        self.handle_mark(now, sent_at, in_flight.as_f64());
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousSample) {
        self.handle_spurious_loss(spurious);
    }

    fn on_persistent_congestion(&mut self, _now: Time) {
        // The draft's RTO, with RFC 9002's least window. What was before is not restored: it was too much.
        self.recovery = LossRecovery::default();
        self.set_window(0.0);
        self.prior_window = self.window;
    }

    fn on_max_datagram_size(&mut self, size: ByteCount) {
        self.limits.max_datagram_size = size;
        self.set_window(self.window);
    }

    fn adjust(&mut self, adjustment: &Adjustment) {
        self.recovery = LossRecovery::default();
        if let Some(window) = adjustment.window {
            self.set_window(window.as_f64());
            self.prior_window = self.window;
            if self.state == State::Startup {
                self.pacing_rate = None;
            }
        }
        match adjustment.slow_start_threshold {
            Some(ByteCount::MAX) => self.restart_startup(),
            Some(threshold) if self.window >= threshold.as_f64() && self.state == State::Startup => {
                self.full_pipe.filled = true;
                self.state = State::Drain;
            }
            _ => {}
        }
        if let Some(rate) = adjustment.rate {
            self.bandwidths.clear();
            let bandwidth = rate.as_bytes_per_second() as f64;
            self.bandwidths.update(self.rounds.count, BANDWIDTH_ROUNDS, bandwidth);
            self.pace_with_gain(self.pacing_gain());
        }
    }

    fn model_rate(&self) -> Option<Rate> {
        let bandwidth = self.bandwidth();
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
        let phase = match self.state {
            State::Startup => Phase::SlowStart,
            State::Drain => Phase::Named("drain"),
            State::ProbeBw => Phase::Named("probe_bw"),
            State::ProbeRtt => Phase::Named("probe_rtt"),
        };
        let threshold = self.full_pipe.filled.then(|| ByteCount::from_f64(self.bdp_multiple(1.0)));
        CongestionState { window: self.window(), slow_start_threshold: threshold, phase }
    }
}

#[cfg(test)]
mod tests;

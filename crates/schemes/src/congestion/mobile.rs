//! Congestion control `mobile`: a model of the path that is found fast, keeps no queue of its own, and tells the path's
//! losses from those it causes.
//!
//! - Claims: the rate of the path whatever it loses at random, a queue of a quarter of the round trip at most, and beside
//!   flows that fill the queue no more than a CUBIC would take.
//! - Source: ours, of the shape of draft-ietf-ccwg-bbr-06: a rate model, probes upwards, drains, a bound on what is in
//!   flight. Startup is Rapid Start's (draft-kazuho-ccwg-rapid-start-02) below what a start policy has measured. Drain
//!   test and shadow are in `neighbour.rs`, the test of a crowded link in `response.rs`, what refutes both in
//!   `verdict.rs`, the judgement of losses in `loss.rs`, `own_loss.rs` and `outage.rs`.
//! - Use when: clients are on radio links, or nothing is known of their paths.
//! - Breaks when: loss is beyond 10 % (then every loss counts), or several share a buffer of a few milliseconds.
//! - Shown by: the experiments `mo-cells`, `mo-pairs` and `mo-first-flight`; `docs/results/mobile.md`.

mod control;
mod cycle;
mod loss;
mod neighbour;
mod outage;
mod own_loss;
mod path;
mod reach;
mod response;
mod stall;
mod steps;
mod verdict;
mod without;

use posthaste_policy::sample::{AckSample, LossSample, PathLoss, RttView, SentSample, SpuriousSample};
use posthaste_policy::{
    Adjustment, Congestion, CongestionFactory, CongestionState, Constant, Description, LossCause, Pacing,
    PathLimits, Phase, PolicyText, SlowStart,
};
use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};
use serde::Deserialize;

use super::model::{
    COLLAPSED_DATAGRAMS, MAXIMUM_WINDOW, MINIMUM_PIPE_DATAGRAMS, PacingView, Rounds, Sample, WindowUse, pace,
};
use super::recovery::Recovery;
use crate::{Entry, value};
use cycle::Cycle;
use loss::Losses;
use neighbour::Neighbour;
use own_loss::OwnLoss;
use path::Path;
use reach::Reach;
use response::{KnownLink, Response};
use stall::Stalls;
use without::{Part, Without};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "mobile",
    claims: "the path's rate whatever it loses at random, no queue of its own, beside flows that have one what CUBIC takes",
    source: "ours, of BBRv3's shape (draft-ietf-ccwg-bbr-06), with Rapid Start's growth and a shadow CUBIC",
    use_when: "clients are on radio links, or nothing is known of their paths",
    breaks_when: "several share a buffer of a few milliseconds, or loss is beyond 10 %",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::congestion::<Parameters>(TEXT);

/// Parameters of [`Mobile`].
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// The most that is ever taken for the path's own loss, as a part of what is sent, 0 to 0.2.
    #[serde(deserialize_with = "value::tolerated_loss")]
    pub tolerated_loss: f64,
    /// True to send so much more than the path delivers as it loses whatever the rate.
    pub compensate: bool,
    /// True to hold as much as a CUBIC would while somebody else is seen to hold the queue.
    pub shadow: bool,
    /// Parts that are off, for experiments; default none.
    pub without: Without,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { tolerated_loss: 0.1, compensate: true, shadow: true, without: Without::default() }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let mut constants = vec![
            Constant::new("tolerated_loss", self.tolerated_loss),
            Constant::new("compensate", self.compensate),
            Constant::new("shadow", self.shadow),
        ];
        if !self.without.is_empty() {
            constants.push(Constant::new("without", self.without));
        }
        constants.extend(reach::constants());
        constants.extend(response::constants());
        constants.extend(verdict::constants());
        constants.extend(stall::constants());
        constants.extend(path::constants());
        constants.extend(loss::constants());
        constants.extend(outage::constants());
        constants.extend(cycle::constants());
        constants.extend(neighbour::constants());
        constants.extend(control::constants());
        constants
    }
}

impl CongestionFactory for Parameters {
    fn build(&self, limits: PathLimits, _slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        Box::new(Mobile::new(*self, limits))
    }

    fn has_own_startup(&self) -> bool {
        true
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// What the controller is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Looking for the rate.
    Reach,
    /// Emptying the queue.
    Ease,
    /// Sending at the rate.
    Hold,
    /// Looking for more.
    Up,
    /// Keeping little in flight for a round, so that the least RTT can be seen.
    Rest,
}

impl State {
    fn phase(self) -> Phase {
        match self {
            Self::Reach => Phase::SlowStart,
            Self::Ease => Phase::Named("ease"),
            Self::Hold => Phase::Named("hold"),
            Self::Up => Phase::Named("up"),
            Self::Rest => Phase::Named("rest"),
        }
    }
}

/// The controller; see the module.
#[derive(Debug)]
pub struct Mobile {
    parameters: Parameters,
    limits: PathLimits,
    rng: Rng,
    state: State,
    rounds: Rounds,
    path: Path,
    reach: Reach,
    response: Response,
    stalls: Stalls,
    cycle: Cycle,
    losses: Losses,
    own: OwnLoss,
    neighbour: Neighbour,
    recovery: Recovery,
    window_use: WindowUse,
    /// Most bytes in flight.
    window: f64,
    /// Bytes in flight before the last ack.
    in_flight: f64,
}

impl Mobile {
    /// A controller for a new path.
    pub fn new(parameters: Parameters, limits: PathLimits) -> Self {
        let mut controller = Self {
            parameters,
            limits,
            rng: Rng::from_test_seed(limits.seed),
            state: State::Reach,
            rounds: Rounds::default(),
            path: Path::default(),
            reach: Reach::default(),
            response: Response::default(),
            stalls: Stalls::default(),
            cycle: Cycle::default(),
            losses: Losses::default(),
            own: OwnLoss::default(),
            neighbour: Neighbour::default(),
            recovery: Recovery::default(),
            window_use: WindowUse::default(),
            window: 0.0,
            in_flight: 0.0,
        };
        controller.own.begin_fast(Time::ZERO);
        controller.set_window(limits.initial_window.as_f64());
        controller
    }

    fn has(&self, part: Part) -> bool {
        !self.parameters.without.has(part)
    }

    fn datagram(&self) -> f64 {
        self.limits.max_datagram_size.as_f64().max(1.0)
    }

    fn minimum_pipe(&self) -> f64 {
        self.datagram() * MINIMUM_PIPE_DATAGRAMS as f64
    }

    fn set_window(&mut self, window: f64) {
        let least = self.datagram() * COLLAPSED_DATAGRAMS as f64;
        self.window = window.clamp(least.min(MAXIMUM_WINDOW), MAXIMUM_WINDOW);
    }

    /// A round trip has ended.
    fn on_round(&mut self, sample: &Sample) {
        self.cycle.rounds += 1;
        self.path.end_round();
        if self.has_rate_fallen() {
            self.cycle.rate_before = self.path.bandwidth();
            self.path.fall_back();
            self.cycle.was_free = false;
            self.start_ease(sample.now);
        }
    }

    /// What to do next, now that the model knows of the ack.
    fn step(&mut self, sample: &Sample) {
        match self.state {
            State::Reach => self.step_reach(sample),
            State::Ease => self.step_ease(sample),
            State::Hold => self.step_hold(sample),
            State::Up => self.step_up(sample),
            State::Rest => self.step_rest(sample),
        }
    }
}

impl Congestion for Mobile {
    fn on_sent(&mut self, sent: &SentSample) {
        if sent.prior_in_flight.is_zero() && sent.app_limited {
            self.path.restart_aggregation(sent.now);
        }
        self.window_use.on_sent(sent, self.window(), self.limits.max_datagram_size);
    }

    fn on_ack(&mut self, ack: &AckSample<'_>) {
        let Some(mut sample) = Sample::of(ack) else { return };
        sample.app_limited |= self.path.throttled.covers(&sample);
        if self.recovery.is_active() && !self.recovery.covers(sample.sent_at) {
            self.recovery.end();
        }
        self.in_flight = sample.prior_in_flight;
        self.rounds.update(&sample);
        self.reach.note_ack(ack, self.datagram());
        // Behind startup a stall costs a probe at most, and what is not believed may be somebody's queue.
        let may_stall = self.state == State::Reach && self.has(Part::Stalls);
        if may_stall && self.stalls.on_ack(&sample, self.path.least_rtt()) {
            self.path.replace_last_ack();
            self.reach.replace_last_ack();
        }
        self.path.update(&sample, &self.rounds, ack.lost, self.datagram());
        if let Some(ceiling) = self.reach.ceiling.filter(|_| self.state == State::Reach) {
            let (least_rtt, datagram) = (self.path.least_rtt(), self.datagram());
            let link = KnownLink { rate: ceiling, least_rtt, datagram, may_be_away: self.has(Part::Outage) };
            self.response.on_ack(ack, &link);
        }
        if self.neighbour.is_beside() {
            // What others send comes in steps, too.
            self.path.forget_steps();
        } else if let Some(rtt) = ack.rtt_sample.filter(|_| self.has(Part::Steps)) {
            self.path.note_step(&sample, rtt, &self.rounds, self.reach.ceiling.unwrap_or(0.0));
        }
        if self.path.had_hidden_queue {
            self.own.forget();
        }
        let has_queue = self.path.delay_of(sample.rtt) > self.path.eps();
        for packet in ack.packets {
            self.own.on_acked(packet.sent_at, has_queue);
        }
        if self.rounds.started {
            self.on_round(&sample);
        }
        self.update_losses(&sample);
        self.step(&sample);
        self.losses.advance(&sample);
        self.neighbour.on_ack(ack);
        self.grow_window(&sample);
    }

    fn on_loss(&mut self, loss: &LossSample<'_>) -> LossCause {
        self.handle_loss(loss)
    }

    fn on_congestion_experienced(&mut self, now: Time, sent_at: Time, in_flight: ByteCount) {
        self.handle_mark(now, sent_at);
        self.neighbour.on_mark(now, sent_at, in_flight);
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousSample) {
        self.handle_spurious_loss(spurious);
    }

    fn on_persistent_congestion(&mut self, now: Time) {
        // RFC 9002 section 7.6.2: the window collapses and grows by what is acknowledged, up to what the model says.
        self.recovery = Recovery::default();
        self.losses.episode = None;
        self.neighbour.on_persistent_congestion(now);
        self.set_window(0.0);
    }

    fn on_max_datagram_size(&mut self, size: ByteCount) {
        self.limits.max_datagram_size = size;
        self.set_window(self.window);
    }

    fn adjust(&mut self, adjustment: &Adjustment) {
        self.losses.episode = None;
        if let Some(window) = adjustment.window {
            self.set_window(window.as_f64());
        }
        match adjustment.slow_start_threshold {
            Some(ByteCount::MAX) => {
                self.neighbour = Neighbour::default();
                self.restart_reach();
            }
            Some(threshold) => {
                self.losses.bound = threshold.as_f64().max(self.minimum_pipe());
                if self.state == State::Reach && self.window >= threshold.as_f64() {
                    self.state = State::Hold;
                }
            }
            None => {}
        }
        if let Some(rate) = adjustment.rate {
            self.path.set_bandwidth(rate.as_bytes_per_second() as f64);
        }
        if let Some(rate) = adjustment.rate_ceiling.filter(|_| self.has(Part::Ceiling)) {
            self.reach.ceiling = Some(rate.as_bytes_per_second() as f64);
        }
    }

    fn model_rate(&self) -> Option<Rate> {
        let bandwidth = self.path.bandwidth();
        (bandwidth > 0.0).then(|| Rate::from_bytes_per_second(bandwidth as u64))
    }

    fn own_loss(&self) -> PathLoss {
        // Of a flight that was more than the path holds nobody can tell what the path had lost anyway.
        if self.reach.is_overrun() { PathLoss::UNKNOWN } else { self.own.quiet() }
    }

    fn window(&self) -> ByteCount {
        ByteCount::new(self.window as u64)
    }

    fn pacing(&self, rtt: &RttView) -> Option<Pacing> {
        // The first flight is the start policy's to pace (RFC 9002 section 7.7 permits it to leave at once).
        if !rtt.is_measured || !self.reach.has_begun() {
            return None;
        }
        pace(&PacingView {
            rate: Some(self.pacing_rate(rtt.smoothed)),
            datagram: self.limits.max_datagram_size,
            first_burst: None,
        })
    }

    fn state(&self) -> CongestionState {
        let is_known = self.state != State::Reach;
        let threshold = is_known.then(|| ByteCount::from_f64(self.path.bdp()));
        CongestionState { window: self.window(), slow_start_threshold: threshold, phase: self.state.phase() }
    }
}

/// Seconds of `duration`, never zero.
fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests;

//! BBR version 1 as Linux has it (`tcp_bbr.c`; Cardwell et al., CACM 2017): a model of the path's rate and least round
//! trip sets pacing rate and window; loss says little. Constants are the kernel's.

mod aggregation;
mod long_term;

use std::collections::VecDeque;

use posthaste_units::{Duration, Rate, Rng, Time};

use super::super::delivery::Sample;
use super::super::pacer::Pacer;
use super::super::recovery::State;
use super::INITIAL_WINDOW;
use aggregation::Aggregation;
use long_term::LongTerm;

/// Pacing and window gain of startup, 2 / ln 2.
const HIGH_GAIN: f64 = 2885.0 / 1000.0;

/// Pacing gain that drains what startup has queued.
const DRAIN_GAIN: f64 = 1000.0 / 2885.0;

/// Window gain while probing for bandwidth.
const WINDOW_GAIN: f64 = 2.0;

/// Pacing gains of the cycle.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// A cycle begins at one of the phases but the draining one: so many of them.
const RANDOM_PHASES: u64 = 7;

/// Rounds for which a rate sample counts.
const RATE_ROUNDS: u64 = 10;

/// What pacing stays below the estimate, so that no queue grows of it.
const MARGIN: f64 = 0.99;

/// The least round trip is measured anew after this.
const MIN_RTT_TIME: Duration = Duration::from_secs(10);

/// How long the flight is kept small for that, at least.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);

/// Segments in flight meanwhile, and the least window.
const LEAST_WINDOW: u32 = 4;

/// Startup ends when the rate has not grown by this in so many rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// What happens on an ack.
#[derive(Debug)]
pub(in super::super) struct Ack {
    pub(in super::super) now: Time,
    pub(in super::super) sample: Sample,
    /// Segments delivered so far, and found lost.
    pub(in super::super) delivered: u64,
    pub(in super::super) total_lost: u64,
    pub(in super::super) state: State,
    pub(in super::super) mss: u64,
}

/// The controller's state, named as in the kernel where that has a name.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, as the kernel keeps them")]
pub(in super::super) struct Bbr {
    mode: Mode,
    /// Greatest samples, in segments a second, with their rounds; falling.
    rates: VecDeque<(u64, f64)>,
    round: u64,
    /// The round ends with the ack of a segment sent after so much was delivered.
    round_end: u64,
    is_round_start: bool,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    probe_rtt_until: Option<Time>,
    has_probed_a_round: bool,
    /// The window before recovery or before probing for the round trip.
    prior_window: u32,
    prior_state: State,
    conserves_packets: bool,
    full_rate: f64,
    full_rounds: u8,
    is_full: bool,
    phase: usize,
    phase_at: Time,
    was_idle: bool,
    long_term: LongTerm,
    aggregation: Aggregation,
    pacing_gain: f64,
    window_gain: f64,
    rng: Rng,
}

impl Bbr {
    /// A controller whose cycle begins where `rng` says.
    pub(in super::super) fn new(rng: Rng) -> Self {
        Self {
            mode: Mode::Startup,
            rates: VecDeque::new(),
            round: 0,
            round_end: 0,
            is_round_start: false,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            probe_rtt_until: None,
            has_probed_a_round: false,
            prior_window: 0,
            prior_state: State::Open,
            conserves_packets: false,
            full_rate: 0.0,
            full_rounds: 0,
            is_full: false,
            phase: 0,
            phase_at: Time::ZERO,
            was_idle: false,
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            rng,
        }
    }

    /// The connection is there: pacing begins at what the initial window promises over `rtt` (1 ms without one).
    pub(in super::super) fn begin(&mut self, now: Time, rtt: Option<Duration>, mss: u64, pacer: &mut Pacer) {
        (self.min_rtt, self.min_rtt_at) = (rtt, now);
        let seconds = rtt.unwrap_or(Duration::from_millis(1)).as_secs_f64().max(1e-6);
        pacer.set_rate(paced(f64::from(INITIAL_WINDOW) / seconds, HIGH_GAIN, mss));
    }

    /// The estimate, in segments a second.
    fn max_rate(&self) -> f64 {
        self.rates.front().map_or(0.0, |(_, rate)| *rate)
    }

    fn rate(&self) -> f64 {
        self.long_term.rate().unwrap_or_else(|| self.max_rate())
    }

    /// An ack has brought something: the window and the pacing rate after it.
    pub(in super::super) fn on_ack(&mut self, ack: &Ack, window: u32, pacer: &mut Pacer) -> u32 {
        let mut window = window;
        self.update_rate(ack);
        if let Some((delivered, _)) = ack.sample.rate {
            let rate = self.rate();
            self.aggregation.on_ack(ack, delivered, rate, self.is_round_start, window);
        }
        self.update_phase(ack, pacer);
        self.check_full(ack);
        self.check_drain(ack, pacer);
        self.update_min_rtt(ack, &mut window);
        self.update_gains();
        self.set_pacing(ack.mss, self.pacing_gain, pacer);
        self.window_after(ack, window, pacer)
    }

    fn update_rate(&mut self, ack: &Ack) {
        self.is_round_start = false;
        let sample = &ack.sample;
        let Some((delivered, interval)) = sample.rate else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = ack.delivered;
            self.round += 1;
            self.is_round_start = true;
            self.conserves_packets = false;
        }
        if self.long_term.on_ack(ack, self.is_round_start) {
            self.begin_probing_bandwidth(ack.now);
        }
        let rate = delivered as f64 / interval.as_secs_f64();
        if !sample.is_app_limited || rate >= self.max_rate() {
            while self.rates.back().is_some_and(|(_, least)| *least <= rate) {
                self.rates.pop_back();
            }
            self.rates.push_back((self.round, rate));
            // Old samples go only when a newer one counts: what the application limits says nothing.
            while self.rates.front().is_some_and(|(round, _)| self.round - round > RATE_ROUNDS) {
                self.rates.pop_front();
            }
        }
    }

    fn update_phase(&mut self, ack: &Ack, pacer: &Pacer) {
        if self.mode == Mode::ProbeBandwidth && self.is_phase_over(ack, pacer) {
            self.next_phase(ack.now);
        }
    }

    fn is_phase_over(&self, ack: &Ack, pacer: &Pacer) -> bool {
        let is_long = ack.now.since(self.phase_at) > self.min_rtt.unwrap_or_default();
        let in_flight = self.in_flight_at_edge(ack, ack.sample.prior_in_flight, pacer);
        let rate = self.max_rate();
        if self.pacing_gain > 1.0 {
            is_long
                && (ack.sample.lost > 0
                    || in_flight >= self.flight_for(rate, self.pacing_gain, pacer, ack.mss))
        } else if self.pacing_gain < 1.0 {
            is_long || in_flight <= self.flight_for(rate, 1.0, pacer, ack.mss)
        } else {
            is_long
        }
    }

    fn next_phase(&mut self, now: Time) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_at = now;
    }

    fn begin_probing_bandwidth(&mut self, now: Time) {
        self.mode = Mode::ProbeBandwidth;
        self.phase = CYCLE.len() - 1 - (self.rng.unit_f64() * RANDOM_PHASES as f64) as usize;
        self.next_phase(now);
    }

    fn check_full(&mut self, ack: &Ack) {
        if self.is_full || !self.is_round_start || ack.sample.is_app_limited {
            return;
        }
        if self.max_rate() >= self.full_rate * FULL_GROWTH {
            self.full_rate = self.max_rate();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, ack: &Ack, pacer: &Pacer) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain {
            let in_flight = self.in_flight_at_edge(ack, ack.sample.in_flight, pacer);
            if in_flight <= self.flight_for(self.max_rate(), 1.0, pacer, ack.mss) {
                self.begin_probing_bandwidth(ack.now);
            }
        }
    }

    fn update_min_rtt(&mut self, ack: &Ack, window: &mut u32) {
        let now = ack.now;
        let is_old = now > self.min_rtt_at + MIN_RTT_TIME;
        if let Some(rtt) = ack.sample.rtt
            && (self.min_rtt.is_none_or(|least| rtt < least) || is_old)
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if is_old && !self.was_idle && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(*window);
            self.probe_rtt_until = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt_until {
                None if ack.sample.in_flight <= LEAST_WINDOW => {
                    self.probe_rtt_until = Some(now + PROBE_RTT_TIME);
                    self.has_probed_a_round = false;
                    self.round_end = ack.delivered;
                }
                None => {}
                Some(until) => {
                    self.has_probed_a_round |= self.is_round_start;
                    if self.has_probed_a_round && now > until {
                        self.end_probe_rtt(now, window);
                    }
                }
            }
        }
        if ack.sample.rate.is_some_and(|(delivered, _)| delivered > 0) {
            self.was_idle = false;
        }
    }

    fn end_probe_rtt(&mut self, now: Time, window: &mut u32) {
        self.min_rtt_at = now;
        *window = (*window).max(self.prior_window);
        if self.is_full { self.begin_probing_bandwidth(now) } else { self.mode = Mode::Startup }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.long_term.rate().is_some() => (1.0, WINDOW_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.phase], WINDOW_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    /// Until the pipe is known to be full the rate only rises.
    fn set_pacing(&self, mss: u64, gain: f64, pacer: &mut Pacer) {
        let rate = paced(self.rate(), gain, mss);
        if self.is_full || pacer.rate().is_none_or(|present| rate > present) {
            pacer.set_rate(rate);
        }
    }

    fn window_after(&mut self, ack: &Ack, window: u32, pacer: &Pacer) -> u32 {
        let acked = ack.sample.acked;
        let mut window = window;
        if acked > 0 {
            let (recovering, conserved) = self.recover(ack, window);
            window = recovering;
            if !conserved {
                let budget = self.flight_without_budget(self.rate(), self.window_gain);
                let target = self.with_budget(budget + self.extra(), pacer, ack.mss);
                if self.is_full {
                    window = target.min(window + acked);
                } else if window < target || ack.delivered < u64::from(INITIAL_WINDOW) {
                    window += acked;
                }
                window = window.max(LEAST_WINDOW);
            }
        }
        if self.mode == Mode::ProbeRtt { window.min(LEAST_WINDOW) } else { window }
    }

    /// The window while losses are repaired, and whether that is all there is to say: in the first round of recovery as
    /// many segments leave as arrive.
    fn recover(&mut self, ack: &Ack, window: u32) -> (u32, bool) {
        let mut window = window;
        if ack.sample.lost > 0 {
            window = window.saturating_sub(ack.sample.lost).max(1);
        }
        let is_repairing = |state| matches!(state, State::Recovery | State::Loss);
        let flight = ack.sample.in_flight + ack.sample.acked;
        if ack.state == State::Recovery && self.prior_state != State::Recovery {
            self.conserves_packets = true;
            self.round_end = ack.delivered;
            window = flight;
        } else if is_repairing(self.prior_state) && !is_repairing(ack.state) {
            window = window.max(self.prior_window);
            self.conserves_packets = false;
        }
        self.prior_state = ack.state;
        if self.conserves_packets { (window.max(flight), true) } else { (window, false) }
    }

    fn extra(&self) -> u32 {
        if self.is_full { self.aggregation.extra(self.rate()) } else { 0 }
    }

    fn flight_without_budget(&self, rate: f64, gain: f64) -> u32 {
        let Some(min_rtt) = self.min_rtt else { return INITIAL_WINDOW };
        (rate * min_rtt.as_secs_f64() * gain).ceil() as u32
    }

    /// Room for bursts at the sender, in the network and at the receiver; even, for the receiver acknowledges every
    /// second segment; two more while probing upwards, for the gain to be felt at small windows.
    fn with_budget(&self, flight: u32, pacer: &Pacer, mss: u64) -> u32 {
        let flight = flight + 3 * pacer.burst(mss);
        let even = flight + flight % 2;
        if self.mode == Mode::ProbeBandwidth && self.phase == 0 { even + 2 } else { even }
    }

    fn flight_for(&self, rate: f64, gain: f64, pacer: &Pacer, mss: u64) -> u32 {
        self.with_budget(self.flight_without_budget(rate, gain), pacer, mss)
    }

    /// What will be in flight when the next segment may leave.
    fn in_flight_at_edge(&self, ack: &Ack, in_flight: u32, pacer: &Pacer) -> u32 {
        let delivered = (self.rate() * pacer.edge().since(ack.now).as_secs_f64()) as u32;
        let more = if self.pacing_gain > 1.0 { pacer.burst(ack.mss) } else { 0 };
        (in_flight + more).saturating_sub(delivered)
    }

    /// True while the flight is kept small to see the round trip: samples of the rate are then no measure of the path.
    pub(in super::super) fn is_probing_rtt(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// A recovery or a probe for the round trip begins: what to come back to.
    pub(in super::super) fn save_window(&mut self, window: u32) {
        let is_repairing = matches!(self.prior_state, State::Recovery | State::Loss);
        self.prior_window =
            if !is_repairing && self.mode != Mode::ProbeRtt { window } else { self.prior_window.max(window) };
    }

    /// A retransmission timeout: the pipe may have changed.
    pub(in super::super) fn on_timeout(&mut self) {
        self.prior_state = State::Loss;
        self.full_rate = 0.0;
        self.is_round_start = true;
        self.long_term.on_timeout();
    }

    /// A reduction was none.
    pub(in super::super) fn on_undo(&mut self) {
        self.full_rate = 0.0;
        self.full_rounds = 0;
        self.long_term.reset();
    }

    /// Sending begins again with nothing in flight, after the application had nothing to send.
    pub(in super::super) fn on_resumed(&mut self, now: Time, window: &mut u32, mss: u64, pacer: &mut Pacer) {
        self.was_idle = true;
        self.aggregation.begin(now);
        match self.mode {
            Mode::ProbeBandwidth => self.set_pacing(mss, 1.0, pacer),
            Mode::ProbeRtt if self.probe_rtt_until.is_some_and(|until| now > until) => {
                self.end_probe_rtt(now, window);
            }
            _ => {}
        }
    }
}

/// The pacing rate for an estimate in segments a second.
fn paced(rate: f64, gain: f64, mss: u64) -> Rate {
    Rate::from_bytes_per_second((rate * gain * MARGIN * mss as f64) as u64)
}

//! A congestion controller of one's own: the window follows the queue that it makes.
//!
//! It aims at a queue of a quarter of the least RTT: below, the window doubles each round trip until the aim is reached
//! for the first time, later it grows by an eighth; above, it shrinks in proportion. A loss takes an eighth.

use posthaste_endpoint::policy::sample::{AckSample, LossSample, RttView};
use posthaste_endpoint::policy::{
    Adjustment, Congestion, CongestionState, LossCause, Pacing, PathLimits, Phase, SlowStart,
};
use posthaste_endpoint::units::{ByteCount, Rate, Time};

/// The queue that is aimed at, as a part of the least RTT.
const AIM: f64 = 0.25;
/// What a round trip below the aim adds, and what a loss takes.
const STEP: f64 = 0.125;

/// The controller of one path.
#[derive(Debug)]
pub struct Steady {
    window: ByteCount,
    datagram: ByteCount,
    /// The aim has not been reached yet.
    is_starting: bool,
    /// Losses of packets sent before this belong to a step that has been made.
    recovered_at: Time,
}

impl Steady {
    /// The controller of a new path, which has no use for a slow start of another's.
    pub fn new(limits: PathLimits, _slow_start: Box<dyn SlowStart>) -> Self {
        Self {
            window: limits.initial_window,
            datagram: limits.max_datagram_size,
            is_starting: true,
            recovered_at: Time::ZERO,
        }
    }

    fn set(&mut self, window: f64) {
        self.window = ByteCount::from_f64(window).max(self.datagram * 4);
    }

    fn step_back(&mut self, now: Time) {
        self.is_starting = false;
        self.recovered_at = now;
        self.set(self.window.as_f64() * (1.0 - STEP));
    }
}

impl Congestion for Steady {
    fn on_ack(&mut self, ack: &AckSample<'_>) {
        let least = ack.rtt.min.as_secs_f64();
        let queue = (ack.rtt.latest.as_secs_f64() - least) / least.max(1e-6);
        let window = self.window.as_f64();
        // The part of a round trip that this ack stands for.
        let part = ack.acked.as_f64() / window;
        if queue > AIM {
            self.is_starting = false;
            let excess = (queue - AIM) / (1.0 + queue);
            self.set(window * (1.0 - part.min(1.0) * excess));
        } else if !ack.app_limited {
            let growth = if self.is_starting { 1.0 } else { STEP };
            self.set(window * (1.0 + part * growth));
        }
    }

    fn on_loss(&mut self, loss: &LossSample<'_>) -> LossCause {
        if loss.packets.iter().any(|packet| packet.sent_at > self.recovered_at) {
            self.step_back(loss.now);
        }
        LossCause::Congestion
    }

    fn on_congestion_experienced(&mut self, now: Time, sent_at: Time, _in_flight: ByteCount) {
        if sent_at > self.recovered_at {
            self.step_back(now);
        }
    }

    fn on_persistent_congestion(&mut self, _now: Time) {
        self.window = self.datagram * 2;
        self.is_starting = true;
    }

    fn on_max_datagram_size(&mut self, size: ByteCount) {
        self.datagram = size;
    }

    fn adjust(&mut self, adjustment: &Adjustment) {
        self.window = adjustment.window.unwrap_or(self.window);
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn pacing(&self, rtt: &RttView) -> Option<Pacing> {
        let gain = if self.is_starting { 2 } else { 1 };
        let rate = Rate::from_transfer(self.window * gain, rtt.smoothed).mul_ratio(5, 4);
        rtt.is_measured.then_some(Pacing { rate, burst: self.datagram * 4 })
    }

    fn state(&self) -> CongestionState {
        let phase = if self.is_starting { Phase::SlowStart } else { Phase::Named("steady") };
        CongestionState { window: self.window, slow_start_threshold: None, phase }
    }
}

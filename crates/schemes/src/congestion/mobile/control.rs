//! What the model makes of pacing and window.

use posthaste_policy::Constant;
use posthaste_units::Duration;

use super::cycle::{REST_PART, TEST_PART};
use super::reach::PACING_GAIN;
use super::{Mobile, Part, State, seconds};
use crate::congestion::model::Sample;

/// The pacing gain while the queue is emptied.
const EASE_GAIN: f64 = 0.75;
/// The same beside others, who would take what is given up (`ProbeBW_DOWN` of the BBR draft).
const BESIDE_EASE_GAIN: f64 = 0.9;
/// The pacing gain while a queue stands that is not meant to.
const QUEUE_GAIN: f64 = 0.98;
/// What of the rate is paced at: clocks and batches overshoot.
const MARGIN: f64 = 0.99;
/// The part of the bound that is left to others while holding.
const HEADROOM: f64 = 0.15;
/// The queue that the window has room for beyond the jitter, as a part of the least RTT, and its limits.
const SLACK_PART: u64 = 4;
const LEAST_SLACK: Duration = Duration::from_millis(5);
const MOST_SLACK: Duration = Duration::from_millis(25);
/// Bursts that the window has room for: what the rate yields in a millisecond, at least two datagrams.
const BURSTS: f64 = 3.0;
const BURST_SECONDS: f64 = 0.001;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 2] {
    [
        Constant::new(
            "pacing gain",
            format!(
                "ease {EASE_GAIN}, beside others {BESIDE_EASE_GAIN}; with a queue {QUEUE_GAIN}, else 1; margin 1 %"
            ),
        ),
        Constant::new(
            "window",
            format!(
                "rate x (least RTT + jitter + a {SLACK_PART}th of it, {LEAST_SLACK} to {MOST_SLACK}), headroom {HEADROOM}"
            ),
        ),
    ]
}

impl Mobile {
    /// How much more must leave for the known rate to arrive: where the path loses the same whatever the rate.
    fn compensation(&self) -> f64 {
        let may = self.parameters.compensate && self.own.is_flat() && self.path.queue() <= self.path.eps();
        if may { 1.0 / (1.0 - self.own_part()) } else { 1.0 }
    }

    /// Bytes a second.
    pub(super) fn pacing_rate(&self, smoothed_rtt: Duration) -> f64 {
        let by_window = self.window / seconds(smoothed_rtt);
        let bandwidth = self.path.bandwidth();
        if self.state == State::Reach || bandwidth <= 0.0 {
            // What is known to arrive need not be spread, and more than that would only queue.
            return self.reach.ceiling.unwrap_or(PACING_GAIN * by_window);
        }
        let short = bandwidth.min(self.losses.short_rate);
        let has_queue = self.path.queue() > self.path.eps();
        let rate = match self.state {
            State::Ease if self.cycle.is_testing => TEST_PART * bandwidth,
            State::Ease if self.neighbour.is_beside() => BESIDE_EASE_GAIN * short,
            State::Ease => EASE_GAIN * short,
            State::Hold if has_queue && !self.neighbour.is_beside() => QUEUE_GAIN * short,
            State::Hold => self.compensation() * short,
            State::Up => self.cycle.up_gain() * self.compensation() * bandwidth,
            State::Reach | State::Rest => bandwidth,
        };
        // A window that the shadow has set is paced as a CUBIC's: a rate of before would keep it from being used.
        let least = if self.neighbour.lift >= MARGIN * self.window { by_window } else { 0.0 };
        (MARGIN * rate).max(least)
    }

    /// The window after an ack.
    pub(super) fn grow_window(&mut self, sample: &Sample) {
        let window = if self.state == State::Reach {
            self.reach_window(sample)
        } else {
            self.update_lift(sample);
            let target = self.bounded(self.target()).max(self.neighbour.lift);
            (self.window + sample.newly_acked).min(target)
        };
        self.set_window(window.max(self.minimum_pipe()));
    }

    /// What the model wants in flight at most.
    pub(super) fn target(&self) -> f64 {
        let bandwidth = self.path.bandwidth() * self.compensation();
        let least = self.path.least_rtt();
        let slack = (least / SLACK_PART).clamp(LEAST_SLACK, MOST_SLACK);
        let steady = bandwidth * (least + self.path.jitter() + slack).as_secs_f64();
        let extra = if self.has(Part::Lumps) { self.path.extra() } else { 0.0 };
        let lumps = extra + BURSTS * (bandwidth * BURST_SECONDS).max(2.0 * self.datagram());
        match self.state {
            State::Up if !self.neighbour.is_beside() => self.cycle.up_gain() * steady + lumps,
            State::Rest => REST_PART * self.path.bdp(),
            State::Ease if self.cycle.is_testing => TEST_PART * self.path.bdp(),
            _ if self.neighbour.is_beside() => self.beside_window(),
            _ => steady + lumps,
        }
    }

    /// Within what losses have shown.
    pub(super) fn bounded(&self, window: f64) -> f64 {
        let bound = match self.state {
            State::Hold | State::Rest => self.losses.bound * (1.0 - HEADROOM),
            _ => self.losses.bound,
        };
        window.min(bound).min(self.losses.short_inflight)
    }
}

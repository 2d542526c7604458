//! The congestion window, in segments, and what makes it grow and shrink.
//!
//! The transport's own controllers (`posthaste_policy`) are not used here: Linux counts whole segments, grows by
//! integer steps, looks at HyStart's ack train on every ack and takes CUBIC's time from a clock of its own. Those
//! roundings are what a comparison with the kernel sees.

pub(super) mod bbr;
mod cubic;
mod hystart;

use posthaste_units::{Duration, Rng, Time};

use crate::TcpController;
use bbr::Bbr;
use cubic::Cubic;

/// Segments that may be sent at first (RFC 6928).
pub(in super::super) const INITIAL_WINDOW: u32 = 10;

/// Slow start has no threshold yet.
const UNLIMITED: u32 = u32::MAX;

/// What a controller may need to know of its connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Time,
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) mss: u64,
    pub(super) smoothed: Option<Duration>,
}

#[derive(Debug)]
enum Controller {
    NewReno,
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

/// The window with its controller.
#[derive(Debug)]
pub(super) struct Congestion {
    pub(super) window: u32,
    pub(super) threshold: u32,
    /// Segments acknowledged towards the next segment of growth.
    credit: u32,
    controller: Controller,
    /// The window was what limited sending in the last round trip.
    is_limited: bool,
    /// Most segments outstanding in the last round trip, and its end.
    most_outstanding: u32,
    round_end: u64,
    /// Most segments outstanding since the window was last fully used, and when that was.
    used: u32,
    used_at: Time,
}

impl Congestion {
    /// What is random comes from `rng`.
    pub(super) fn new(controller: TcpController, rng: Rng) -> Self {
        let controller = match controller {
            TcpController::NewReno => Controller::NewReno,
            TcpController::Cubic => Controller::Cubic(Cubic::default()),
            TcpController::Bbr => Controller::Bbr(Box::new(Bbr::new(rng))),
        };
        Self {
            window: INITIAL_WINDOW,
            threshold: UNLIMITED,
            credit: 0,
            controller,
            is_limited: false,
            most_outstanding: 0,
            round_end: 0,
            used: 0,
            used_at: Time::ZERO,
        }
    }

    /// The controller that sets window and pacing itself, if that is the one.
    pub(super) fn bbr(&mut self) -> Option<&mut Bbr> {
        if let Controller::Bbr(bbr) = &mut self.controller { Some(bbr) } else { None }
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// The threshold that a restart from a smaller window aims at.
    pub(super) fn current_threshold(&self) -> u32 {
        self.threshold.max(self.window / 2 + self.window / 4)
    }

    /// The threshold that a loss leads to.
    pub(super) fn threshold_after_loss(&mut self) -> u32 {
        match &mut self.controller {
            Controller::NewReno => (self.window / 2).max(2),
            Controller::Cubic(cubic) => cubic.threshold_after_loss(self.window),
            Controller::Bbr(bbr) => {
                bbr.save_window(self.window);
                self.threshold
            }
        }
    }

    /// A reduction begins: growth counted so far is void.
    pub(super) fn forget_credit(&mut self) {
        self.credit = 0;
    }

    /// A retransmission timeout.
    pub(super) fn on_timeout(&mut self, moment: &Moment) {
        match &mut self.controller {
            Controller::NewReno => {}
            Controller::Cubic(cubic) => cubic.on_timeout(moment),
            Controller::Bbr(bbr) => bbr.on_timeout(),
        }
    }

    /// An RTT sample of the most recently sent segment that an ack covers.
    pub(super) fn on_rtt(&mut self, sample: Duration, moment: &Moment) {
        let is_in_slow_start = self.is_in_slow_start();
        if let Controller::Cubic(cubic) = &mut self.controller
            && cubic.on_rtt(sample, is_in_slow_start, self.window, moment)
        {
            self.threshold = self.window;
        }
    }

    /// `delivered` segments have arrived outside of a reduction.
    pub(super) fn on_delivered(&mut self, delivered: u32, moment: &Moment) {
        if !self.limits() {
            return;
        }
        let mut delivered = delivered;
        if self.is_in_slow_start() {
            let grown = self.window.saturating_add(delivered).min(self.threshold);
            delivered -= grown - self.window;
            self.window = grown;
            if delivered == 0 {
                return;
            }
        }
        let per_segment = match &mut self.controller {
            Controller::NewReno => self.window,
            Controller::Cubic(cubic) => cubic.acks_per_segment(self.window, delivered, moment),
            // Its window is set elsewhere.
            Controller::Bbr(_) => return,
        };
        self.grow(per_segment, delivered);
    }

    /// One segment of growth for every `per_segment` delivered.
    fn grow(&mut self, per_segment: u32, delivered: u32) {
        // The rate of growth may have risen since the credit was earned: it buys one segment at most.
        if self.credit >= per_segment {
            self.credit = 0;
            self.window += 1;
        }
        self.credit += delivered;
        self.window += self.credit / per_segment;
        self.credit %= per_segment;
    }

    /// True if a larger window would have been used: growth on acks of an idle sender would be unproved
    /// (RFC 7661). In slow start half of the window is use enough.
    fn limits(&self) -> bool {
        self.is_limited || self.is_in_slow_start() && self.window < 2 * self.most_outstanding
    }

    /// A batch has been sent, or nothing could be: `is_full` if the window is used up.
    pub(super) fn on_batch(
        &mut self,
        is_full: bool,
        outstanding: u32,
        can_shrink: bool,
        timeout: Duration,
        moment: &Moment,
    ) {
        let Moment { now, una, next, .. } = *moment;
        if una >= self.round_end || is_full || !self.is_limited && outstanding > self.most_outstanding {
            self.is_limited = is_full;
            self.most_outstanding = outstanding;
            self.round_end = next;
        }
        if self.limits() {
            self.used = 0;
            self.used_at = now;
            return;
        }
        self.used = self.used.max(outstanding);
        if now.since(self.used_at) >= timeout {
            if can_shrink {
                self.shrink_to_use();
            }
            self.used = 0;
            self.used_at = now;
        }
    }

    /// The window has not been used for a timeout: half of what was not used is lost (RFC 2861).
    fn shrink_to_use(&mut self) {
        let used = self.used.max(INITIAL_WINDOW);
        if used < self.window && self.bbr().is_none() {
            self.threshold = self.current_threshold();
            self.window = self.window.midpoint(used);
        }
    }

    /// Nothing has been sent for `idle`, longer than the timeout: the window halves for each timeout, down to the
    /// initial one (RFC 2861).
    pub(super) fn restart_after_idle(&mut self, now: Time, idle: Duration, timeout: Duration) {
        if self.bbr().is_some() {
            return;
        }
        let least = INITIAL_WINDOW.min(self.window);
        self.threshold = self.current_threshold();
        let mut remaining = idle;
        while remaining > timeout && self.window > least {
            remaining = remaining.saturating_sub(timeout);
            self.window /= 2;
        }
        self.window = self.window.max(least);
        self.used = 0;
        self.used_at = now;
    }

    /// Sending begins again after `last_sent`, with nothing in flight.
    pub(super) fn on_sending_resumed(&mut self, now: Time, last_sent: Time) {
        if let Controller::Cubic(cubic) = &mut self.controller {
            cubic.shift_epoch(now, now.since(last_sent));
        }
    }
}

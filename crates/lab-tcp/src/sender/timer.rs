//! One timer a sender, as in Linux: reordering, tail loss probe (RFC 8985 7), retransmission, or a probe of a
//! closed window.

use posthaste_units::{Duration, Time};

use super::recovery::State;
use super::rtt::{INITIAL_TIMEOUT, MIN_VARIATION};
use super::{News, Sender};
use crate::spans::Span;

/// Linux's shortest timer: two ticks of a kernel with 1,000 a second.
const LEAST: Duration = Duration::from_millis(2);

/// Timeouts in a row after which the connection is dead (Linux's `tcp_retries2`).
const MAX_RETRIES: u32 = 15;

/// What the timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Late segments become lost ones.
    Reordering,
    /// A tail loss probe.
    Probe,
    /// A retransmission timeout.
    Retransmission,
    /// The receiver's window is closed, and its opening may have been lost.
    Persist,
}

/// The timer while it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timer {
    kind: Kind,
    pub(super) at: Time,
}

/// What leaves next whatever the window says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Forced {
    /// A segment of new data, as a probe.
    New,
    /// The last segment again, as a probe.
    Probe(u64),
    /// The head again, after its timeout.
    Again(u64),
    /// An empty segment of an old number, which asks for an ack.
    Empty,
}

impl Sender {
    pub(super) fn on_timer(&mut self, now: Time) {
        let Some(timer) = self.timer else { return };
        match timer.kind {
            Kind::Reordering => self.on_reordering_timer(now),
            Kind::Probe => self.prepare_probe(now),
            Kind::Retransmission => self.on_retransmission_timer(now),
            Kind::Persist => {
                self.forced = Some(Forced::Empty);
                self.rtt.back_off();
                self.set_timer(Kind::Persist, now + self.rtt.timeout());
            }
        }
    }

    fn set_timer(&mut self, kind: Kind, at: Time) {
        self.timer = Some(Timer { kind, at });
    }

    pub(super) fn set_reordering_timer(&mut self, now: Time, wait: Duration) {
        self.set_timer(Kind::Reordering, now + (wait + LEAST).min(self.rtt.timeout()));
    }

    fn is_pending(&self, kind: Kind) -> bool {
        self.timer.is_some_and(|timer| timer.kind == kind)
    }

    fn on_reordering_timer(&mut self, now: Time) {
        let lost_before = self.board.total_lost;
        let in_flight = self.board.in_flight();
        let is_recovering = matches!(self.recovery.state, State::Recovery | State::Loss);
        self.rack.detect(now, &mut self.board, &self.rtt, is_recovering);
        if self.board.in_flight() != in_flight {
            if self.recovery.state != State::Recovery {
                self.enter_recovery();
            }
            self.reduce(1, self.board.total_lost > lost_before, false);
        }
        self.rearm_retransmission(now);
    }

    fn on_retransmission_timer(&mut self, now: Time) {
        self.timer = None;
        let Some(start) = self.board.head().map(|head| head.span.start) else { return };
        self.counts.timeouts += 1;
        self.enter_loss(now);
        self.recovery.consecutive_timeouts += 1;
        if self.recovery.consecutive_timeouts > MAX_RETRIES {
            self.has_given_up = true;
            return;
        }
        self.forced = Some(Forced::Again(start));
        self.rtt.back_off();
        self.set_timer(Kind::Retransmission, now + self.rtt.timeout());
    }

    /// RFC 8985 7.3: new data if there is any, or else the last segment again.
    fn prepare_probe(&mut self, now: Time) {
        if self.recovery.probe.is_some() {
            self.rearm_retransmission(now);
            return;
        }
        let length = self.unsent().min(self.mss);
        if length > 0 && length <= self.credit() {
            self.forced = Some(Forced::New);
            self.recovery.probe = Some((self.board.next() + length, false));
        } else if let Some(tail) = self.board.tail() {
            self.forced = Some(Forced::Probe(tail.span.start));
            self.recovery.probe = Some((self.board.next(), true));
        } else {
            self.timer = None;
        }
    }

    /// What must leave whatever the window says.
    pub(super) fn poll_forced(&mut self, now: Time) -> Option<Span> {
        match self.forced.take()? {
            // The retransmission timer runs from the head's sending, which a probe may just have renewed.
            Forced::New => {
                let timer = self.timer;
                let span = self.send_new(now);
                self.timer = timer;
                self.rearm_retransmission(now);
                span
            }
            Forced::Probe(start) => {
                let span = self.send_again(now, start);
                self.rearm_retransmission(now);
                span
            }
            Forced::Again(start) => self.send_again(now, start),
            Forced::Empty => {
                let at = self.board.una().saturating_sub(1);
                Some(Span { start: at, end: at })
            }
        }
    }

    /// An ack while a probe is out (RFC 8985 7.4).
    pub(super) fn process_probe_ack(&mut self, acknowledged: u64, news: &News) {
        let Some((high, is_again)) = self.recovery.probe.filter(|(high, _)| acknowledged >= *high) else {
            return;
        };
        if !is_again || news.has_dsack {
            // New data, or the original had arrived as well: nothing was lost.
            self.recovery.probe = None;
        } else if acknowledged > high {
            // The probe has repaired a loss that nobody else saw.
            self.begin_reduction();
            if self.congestion.bbr().is_none() {
                self.congestion.window = self.congestion.threshold;
            }
            self.keep_open();
        } else if news.is_duplicate {
            self.recovery.probe = None;
        }
    }

    /// New data has left.
    pub(super) fn on_new_data_sent(&mut self, now: Time, was_idle: bool) {
        if was_idle || self.is_pending(Kind::Probe) {
            self.rearm_retransmission(now);
        }
        self.schedule_probe(now, false);
    }

    /// An ack has made progress.
    pub(super) fn restart_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm_retransmission(now);
        }
    }

    /// The head has been sent again.
    pub(super) fn restart_timer_for_head(&mut self, now: Time) {
        if !self.is_pending(Kind::Reordering) {
            self.set_timer(Kind::Retransmission, now + self.rtt.timeout());
        }
    }

    fn rearm_retransmission(&mut self, now: Time) {
        let Some(head) = self.board.head() else {
            self.timer = None;
            return;
        };
        let begins_with_head = self.is_pending(Kind::Reordering) || self.is_pending(Kind::Probe);
        let base = if begins_with_head { head.sent_at } else { now };
        self.set_timer(Kind::Retransmission, self.rtt.expiry(base).max(now));
    }

    /// Sets the probe timer if a probe may be sent in this state.
    fn schedule_probe(&mut self, now: Time, is_progress: bool) -> bool {
        let Some(head) = self.board.head() else { return false };
        if self.recovery.state != State::Open {
            return false;
        }
        let wait = self.rtt.smoothed().map_or(INITIAL_TIMEOUT, |smoothed| {
            // A lone segment's ack may be delayed.
            smoothed * 2 + if self.board.outstanding() == 1 { MIN_VARIATION } else { LEAST }
        });
        let timeout = if is_progress { now + self.rtt.timeout() } else { self.rtt.expiry(head.sent_at) };
        self.set_timer(Kind::Probe, (now + wait).min(timeout).max(now));
        true
    }

    /// The window probe runs exactly while data waits for a closed window and nothing is outstanding.
    pub(super) fn after_window_change(&mut self, now: Time) {
        let is_closed =
            self.board.outstanding() == 0 && self.unsent() > 0 && self.unsent().min(self.mss) > self.credit();
        if !is_closed {
            if self.is_pending(Kind::Persist) {
                self.timer = None;
                self.rtt.end_backoff();
            }
        } else if !self.is_pending(Kind::Persist) {
            self.set_timer(Kind::Persist, now + self.rtt.timeout());
        }
    }
}

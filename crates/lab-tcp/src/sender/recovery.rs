//! From loss to repair: the states of Linux's sender, PRR (RFC 9937), undo of reductions that were none (RFC 4015
//! by timestamps, RFC 3708 by D-SACK) and F-RTO (RFC 5682).

use posthaste_units::{Duration, Time};

use super::{News, Sender};
use crate::spans::Span;

/// Where the sender stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// All is well.
    #[default]
    Open,
    /// Something is missing that may merely be late.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The state of one episode.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    pub(super) state: State,
    /// The episode ends once all before this is acknowledged.
    pub(super) high: u64,
    /// SND.UNA when the window was reduced, if that may still turn out wrong.
    undo_from: Option<u64>,
    /// Retransmissions that no D-SACK has shown to be unnecessary; `None` before the first.
    undo_count: Option<u32>,
    /// When the episode's first retransmission left.
    retransmitted_at: Option<Time>,
    /// Window and threshold before the reduction.
    prior_window: u32,
    prior_threshold: u32,
    /// PRR: segments delivered and sent since the reduction began.
    prr_delivered: u32,
    prr_out: u32,
    /// F-RTO is under way.
    is_frto: bool,
    /// F-RTO: new data goes first, to see whether the timeout was spurious.
    pub(super) prefers_new_data: bool,
    /// Timeouts in a row.
    pub(super) consecutive_timeouts: u32,
    /// The probe that awaits its ack: SND.NXT when it left, and whether it was a retransmission.
    pub(super) probe: Option<(u64, bool)>,
}

impl Recovery {
    pub(super) fn on_sent_again(&mut self, now: Time) {
        self.retransmitted_at.get_or_insert(now);
        self.undo_count = Some(self.undo_count.unwrap_or(0) + 1);
        self.on_sent_new();
    }

    /// PRR counts what leaves.
    pub(super) fn on_sent_new(&mut self) {
        if self.state == State::Recovery {
            self.prr_out += 1;
        }
    }

    pub(super) fn on_dsack(&mut self, block: Span) {
        if self.undo_from.is_some_and(|from| block.start >= from)
            && let Some(count) = &mut self.undo_count
        {
            *count = count.saturating_sub(1);
        }
    }

    fn begin_undo(&mut self, una: u64, again: u32) {
        self.undo_from = Some(una);
        self.undo_count = (again > 0).then_some(again);
        if matches!(self.probe, Some((_, true))) {
            self.undo_count = Some(again.max(1));
        }
    }

    /// True if the ack that echoes `echo` was caused by an original, not by its retransmission.
    fn was_original_late(&self, echo: Time) -> bool {
        self.retransmitted_at.is_some_and(|at| echo < at)
    }

    fn may_undo(&self, echo: Time) -> bool {
        self.undo_from.is_some() && (self.undo_count == Some(0) || self.was_original_late(echo))
    }

    /// F-RTO wanted to send new data first. True if none could be sent, so that retransmission goes on.
    pub(super) fn gives_up_on_new_data(&mut self, next: u64) -> bool {
        if self.prefers_new_data && next <= self.high {
            self.prefers_new_data = false;
            self.is_frto = false;
            return true;
        }
        false
    }
}

impl Sender {
    /// An ack that is not plain progress, or came in an episode.
    pub(super) fn recover(&mut self, now: Time, news: &mut News) {
        self.recovery.prefers_new_data = false;
        let una = self.board.una();
        if self.recovery.state == State::Open {
            self.recovery.retransmitted_at = None;
        } else if self.recovery.state == State::Recovery && una >= self.recovery.high {
            self.end_recovery(news.echo);
        }
        match self.recovery.state {
            State::Recovery => {
                if news.has_advanced && self.try_undo_partly(news.echo) {
                    return;
                }
                if self.try_undo_by_dsack() {
                    self.keep_open();
                }
                self.find_losses(now, news);
                // An undone recovery may be followed by a true one.
                if self.recovery.state != State::Recovery && self.board.lost() > 0 {
                    self.enter_recovery();
                }
                return;
            }
            State::Loss => {
                self.process_loss(news);
                self.find_losses(now, news);
                if self.recovery.state != State::Open && !news.has_lost_again {
                    return;
                }
            }
            State::Open | State::Disorder => {
                self.try_undo_by_dsack();
                self.find_losses(now, news);
            }
        }
        if self.board.lost() == 0 {
            self.try_to_open();
        } else {
            self.enter_recovery();
        }
    }

    fn find_losses(&mut self, now: Time, news: &mut News) {
        if self.board.outstanding() == 0 {
            return;
        }
        let again = self.board.again();
        let is_recovering = matches!(self.recovery.state, State::Recovery | State::Loss);
        let wait = self.rack.detect_after_ack(now, &mut self.board, &self.rtt, is_recovering);
        if let Some(wait) = wait {
            self.set_reordering_timer(now, wait);
            news.sets_timer = false;
        }
        news.has_lost_again = self.board.again() < again;
    }

    /// RFC 5682 with SACK, and the way back from a timeout.
    fn process_loss(&mut self, news: &News) {
        let has_recovered = self.board.una() >= self.recovery.high;
        if news.has_advanced && self.try_undo_timeout(news.echo, false) {
            return;
        }
        if self.recovery.is_frto {
            // Never-retransmitted data has arrived: not all was lost.
            if news.has_original && self.try_undo_timeout(news.echo, true) {
                return;
            }
            if self.board.next() > self.recovery.high {
                if news.has_sacked || news.is_duplicate {
                    self.recovery.is_frto = false;
                }
            } else if news.has_advanced && !has_recovered {
                self.recovery.high = self.board.next();
                if self.unsent() > 0 && self.credit() > 0 {
                    self.recovery.prefers_new_data = true;
                    return;
                }
                self.recovery.is_frto = false;
            }
        }
        if has_recovered {
            self.undo_or_open(news.echo);
        }
    }

    fn end_recovery(&mut self, echo: Time) {
        self.undo_or_open(echo);
        self.rack.on_recovered();
        // Unless it was undone, the window ends where PRR aimed.
        if self.recovery.undo_from.is_some() && self.congestion.bbr().is_none() {
            self.congestion.window = self.congestion.threshold;
        }
    }

    fn undo_or_open(&mut self, echo: Time) {
        if self.recovery.may_undo(echo) {
            self.undo(false);
        }
        self.recovery.state = State::Open;
    }

    /// Back to the window before the reduction.
    fn undo(&mut self, unmarks_losses: bool) {
        if unmarks_losses {
            self.counts.unmarked += self.board.unmark_losses();
        }
        if let Some(bbr) = self.congestion.bbr() {
            bbr.on_undo();
        } else if self.recovery.prior_threshold > 0 {
            self.congestion.window = self.congestion.window.max(self.recovery.prior_window);
            self.congestion.threshold = self.congestion.threshold.max(self.recovery.prior_threshold);
        }
        self.recovery.undo_from = None;
        self.rack.reexamine();
    }

    fn try_undo_by_dsack(&mut self) -> bool {
        let is_undone = self.recovery.undo_from.is_some() && self.recovery.undo_count == Some(0);
        if is_undone {
            self.rack.on_undone_by_dsack();
            self.undo(false);
        }
        is_undone
    }

    fn try_undo_timeout(&mut self, echo: Time, by_frto: bool) -> bool {
        let is_undone = by_frto || self.recovery.may_undo(echo);
        if is_undone {
            self.undo(true);
            self.recovery.consecutive_timeouts = 0;
            self.recovery.state = State::Open;
        }
        is_undone
    }

    /// A partial ack that an original caused: the losses so far were none.
    fn try_undo_partly(&mut self, echo: Time) -> bool {
        if self.recovery.undo_from.is_none() || !self.recovery.was_original_late(echo) {
            return false;
        }
        // With retransmissions under way it is too early to tell.
        if self.board.again() > 0 {
            return true;
        }
        if !self.is_any_retransmitted() {
            self.recovery.retransmitted_at = None;
        }
        self.undo(true);
        self.keep_open();
        true
    }

    fn is_any_retransmitted(&self) -> bool {
        self.board.again() > 0 || self.board.head().is_some_and(|head| head.was_retransmitted)
    }

    fn try_to_open(&mut self) {
        if !self.is_any_retransmitted() {
            self.recovery.retransmitted_at = None;
        }
        self.keep_open();
    }

    /// Open, or Disorder while something is missing.
    pub(super) fn keep_open(&mut self) {
        let state =
            if self.board.has_left() || self.is_any_retransmitted() { State::Disorder } else { State::Open };
        if self.recovery.state != state {
            self.recovery.state = state;
            self.recovery.high = self.board.next();
        }
    }

    /// Fast recovery begins.
    pub(super) fn enter_recovery(&mut self) {
        self.recovery.prior_threshold = 0;
        self.recovery.begin_undo(self.board.una(), self.board.again());
        self.recovery.prior_threshold = self.congestion.current_threshold();
        self.begin_reduction();
        self.recovery.state = State::Recovery;
    }

    /// PRR begins: from the present window towards the controller's threshold.
    pub(super) fn begin_reduction(&mut self) {
        self.recovery.high = self.board.next();
        self.recovery.probe = None;
        self.congestion.forget_credit();
        self.recovery.prior_window = self.congestion.window;
        self.recovery.prr_delivered = 0;
        self.recovery.prr_out = 0;
        self.congestion.threshold = self.congestion.threshold_after_loss();
        self.counts.reductions += 1;
    }

    /// RFC 9937: how much of what was delivered may leave again.
    pub(super) fn reduce(&mut self, delivered: u32, has_newly_lost: bool, has_advanced: bool) {
        if delivered == 0 || self.congestion.bbr().is_some() {
            return;
        }
        let recovery = &mut self.recovery;
        recovery.prr_delivered += delivered;
        let in_flight = self.board.in_flight();
        let threshold = self.congestion.threshold;
        let sent = recovery.prr_out;
        let may_send = if in_flight > threshold {
            let share = u64::from(threshold) * u64::from(recovery.prr_delivered);
            (share.div_ceil(u64::from(recovery.prior_window.max(1))) as u32).saturating_sub(sent)
        } else {
            // Slow start as long as acks are good: progress and no further loss.
            let bound = recovery.prr_delivered.saturating_sub(sent).max(delivered);
            (bound + u32::from(has_advanced && !has_newly_lost)).min(threshold - in_flight)
        };
        // The first retransmission leaves at once.
        self.congestion.window = in_flight + may_send.max(u32::from(sent == 0));
    }

    /// The retransmission timer has fired: everything old is lost, and one segment probes.
    pub(super) fn enter_loss(&mut self, now: Time) {
        let rack = &self.rack;
        self.board.mark_timed_out(|sent| rack.remaining(now, sent, Duration::ZERO).is_zero());
        let recovery = &mut self.recovery;
        let is_new = matches!(recovery.state, State::Open | State::Disorder);
        if is_new
            || recovery.high <= self.board.una()
            || recovery.state == State::Loss && recovery.consecutive_timeouts == 0
        {
            recovery.prior_threshold = self.congestion.current_threshold();
            recovery.prior_window = self.congestion.window;
            recovery.begin_undo(self.board.una(), self.board.again());
            self.congestion.threshold = self.congestion.threshold_after_loss();
            self.counts.reductions += 1;
        }
        let moment = self.moment(now);
        self.congestion.on_timeout(&moment);
        self.congestion.window = self.board.in_flight() + 1;
        self.congestion.forget_credit();
        self.recovery.state = State::Loss;
        self.recovery.high = self.board.next();
        self.recovery.probe = None;
        self.recovery.prefers_new_data = false;
        self.recovery.is_frto = is_new || self.recovery.consecutive_timeouts > 0;
    }
}

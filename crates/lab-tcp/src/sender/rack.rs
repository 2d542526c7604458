//! RACK: a segment is lost if one sent sufficiently later has arrived (RFC 8985).

use posthaste_units::{Duration, Time};

use super::rtt::Rtt;
use super::scoreboard::{Scoreboard, Sent};

/// Segments out of order that count as reordering at first (RFC 5681's three duplicate acks), and at most.
const DUPLICATE_THRESHOLD: u32 = 3;
const MAX_REORDERING: u64 = 300;

/// Recoveries for which a widened window stays.
const PERSIST: u8 = 16;

/// The state of RFC 8985 5.2 and 5.3.
#[derive(Debug)]
pub(super) struct Rack {
    /// When the most recently sent of the arrived segments was sent, and its end.
    newest: (Time, u64),
    /// Its round-trip time.
    rtt: Duration,
    /// Something has arrived since losses were last looked for.
    has_advanced: bool,
    /// Segments were seen to arrive out of order.
    was_reordered: bool,
    /// By how many segments, at most.
    reordering: u32,
    /// The window in quarters of the least RTT.
    steps: u32,
    /// Recoveries until `steps` falls back to one.
    persist: u8,
    dsack_seen: bool,
    /// D-SACKs count again once all before this is acknowledged.
    dsack_round: u64,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: (Time::ZERO, 0),
            rtt: Duration::ZERO,
            has_advanced: false,
            was_reordered: false,
            reordering: DUPLICATE_THRESHOLD,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            dsack_round: 0,
        }
    }
}

impl Rack {
    /// A segment has arrived (step 1 and 2).
    pub(super) fn on_delivered(&mut self, now: Time, sent: &Sent, least: Option<Duration>) {
        let rtt = now.since(sent.sent_at);
        // The ack of the original came after the retransmission left.
        if sent.was_retransmitted && least.is_some_and(|least| rtt < least) {
            return;
        }
        self.has_advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max((sent.sent_at, sent.span.end));
    }

    /// An original segment at `start` arrived while one at `highest` already had (step 3).
    pub(super) fn on_reordered(&mut self, start: u64, highest: u64, mss: u64) {
        if start >= highest {
            return;
        }
        self.was_reordered = true;
        let distance = (highest - start).div_ceil(mss).min(MAX_REORDERING) as u32;
        self.reordering = self.reordering.max(distance);
    }

    /// True if segments arrive so far out of order that acks of later ones are progress as well.
    pub(super) fn is_reordering_wide(&self) -> bool {
        self.reordering > DUPLICATE_THRESHOLD
    }

    /// A retransmission was unnecessary.
    pub(super) fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// Widens the window at most once a round trip for D-SACKs (step 4).
    pub(super) fn update_window(&mut self, una: u64, next: u64) {
        if self.dsack_seen && una < self.dsack_round {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.dsack_seen = false;
            self.dsack_round = next;
            self.steps = (self.steps + 1).min(255);
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery has ended.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was undone by D-SACKs.
    pub(super) fn on_undone_by_dsack(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// Losses must be looked for again.
    pub(super) fn reexamine(&mut self) {
        self.has_advanced = true;
    }

    fn window(&self, rtt: &Rtt, is_recovering: bool, sacked: u32) -> Duration {
        if !self.was_reordered && (is_recovering || sacked >= self.reordering) {
            return Duration::ZERO;
        }
        let (Some(least), Some(smoothed)) = (rtt.least(), rtt.smoothed()) else { return Duration::ZERO };
        (least / 4 * u64::from(self.steps)).min(smoothed)
    }

    /// What remains until a segment counts as lost (step 5); zero if it does.
    pub(super) fn remaining(&self, now: Time, sent: &Sent, window: Duration) -> Duration {
        (sent.sent_at + self.rtt + window).since(now)
    }

    /// Marks what is lost, if anything has arrived since the last time. How long to wait for segments that may
    /// merely be late.
    pub(super) fn detect_after_ack(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        rtt: &Rtt,
        is_recovering: bool,
    ) -> Option<Duration> {
        if !std::mem::take(&mut self.has_advanced) {
            return None;
        }
        self.detect(now, board, rtt, is_recovering)
    }

    /// The same whether something has arrived or not.
    pub(super) fn detect(
        &self,
        now: Time,
        board: &mut Scoreboard,
        rtt: &Rtt,
        is_recovering: bool,
    ) -> Option<Duration> {
        let window = self.window(rtt, is_recovering, board.sacked());
        let mut longest = None;
        board.detect(|sent| {
            if (sent.sent_at, sent.span.end) >= self.newest {
                return None;
            }
            let remaining = self.remaining(now, sent, window);
            if remaining.is_zero() {
                return Some(true);
            }
            longest = longest.max(Some(remaining));
            Some(false)
        });
        longest
    }
}

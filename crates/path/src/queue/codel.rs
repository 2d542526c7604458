//! Controlled delay, RFC 8289: packets are dropped (or marked) at departure, once the wait of those that depart has
//! stayed above a target for an interval, and then ever more often until it has not.

use posthaste_units::{ByteCount, Duration, Time};

use crate::config::ConfigError;
use crate::queue::MAX_INTERVAL;

/// Parameters of the discipline; the default is the RFC's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable standing wait; default 5 ms (RFC 8289 4.3).
    pub target: Duration,
    /// How long the wait must exceed it, in the order of the longest usual RTT; default 100 ms (RFC 8289 4.2).
    pub interval: Duration,
    /// True if ECN-capable packets are marked instead of dropped; default false.
    pub ecn: bool,
}

impl Default for CoDel {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

impl CoDel {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.target.is_zero() || self.target > self.interval || self.interval > MAX_INTERVAL {
            return Err(ConfigError::new("CoDel: 0 < target <= interval <= 1 h is needed"));
        }
        Ok(())
    }
}

/// The control law and its state (RFC 8289 5).
#[derive(Debug)]
pub(crate) struct Control {
    config: CoDel,
    /// When the wait will have been above the target for an interval, if it stays there.
    first_above: Option<Time>,
    /// The time of the next drop, while dropping.
    drop_next: Time,
    /// Drops since dropping began.
    count: u64,
    /// `count` as it was when dropping last began.
    last_count: u64,
    is_dropping: bool,
    /// A drop has been made whose successor is not yet timed.
    advance_due: bool,
    /// The largest packet seen, in place of the link's MTU.
    largest: ByteCount,
}

impl Control {
    pub(crate) fn new(config: CoDel) -> Self {
        Self {
            config,
            first_above: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            is_dropping: false,
            advance_due: false,
            largest: ByteCount::ZERO,
        }
    }

    pub(crate) fn marks(&self) -> bool {
        self.config.ecn
    }

    /// Nothing is left to depart.
    pub(crate) fn on_empty(&mut self) {
        self.first_above = None;
        self.is_dropping = false;
        self.advance_due = false;
    }

    /// True if the packet that departs at `now` must tell its sender of congestion, by its loss or its mark. It has
    /// waited for `wait`, and `left` bytes still wait.
    pub(crate) fn signals(&mut self, now: Time, wait: Duration, length: ByteCount, left: ByteCount) -> bool {
        self.largest = self.largest.max(length);
        let may_drop = self.is_above_for_an_interval(now, wait, left);
        if !self.is_dropping {
            if may_drop {
                self.begin(now);
            }
            return may_drop;
        }
        if !may_drop {
            self.is_dropping = false;
            self.advance_due = false;
            return false;
        }
        if std::mem::take(&mut self.advance_due) {
            self.drop_next = self.after(self.drop_next);
        }
        if now < self.drop_next {
            return false;
        }
        self.count += 1;
        self.advance_due = true;
        true
    }

    /// `dodequeue` of the RFC.
    fn is_above_for_an_interval(&mut self, now: Time, wait: Duration, left: ByteCount) -> bool {
        // Less than a full packet behind this one: dropping would idle the link.
        if wait < self.config.target || left <= self.largest {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + self.config.interval)
    }

    /// Begins to drop. Where it has been done lately, the rate that worked then is a better start than 1.
    fn begin(&mut self, now: Time) {
        let drops = self.count - self.last_count;
        let is_recent = now.since(self.drop_next) < self.config.interval * 16;
        self.count = if drops > 1 && is_recent { drops } else { 1 };
        self.last_count = self.count;
        self.is_dropping = true;
        self.drop_next = self.after(now);
    }

    /// The control law: `interval / sqrt(count)` later, in whole nanoseconds.
    fn after(&self, time: Time) -> Time {
        let interval = u128::from(self.config.interval.as_nanos());
        time + Duration::from_nanos((interval * interval / u128::from(self.count.max(1))).isqrt() as u64)
    }
}

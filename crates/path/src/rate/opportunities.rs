//! Service by recorded opportunities, as the Mahimahi link emulator defines it: at each stamp 1500 bytes can
//! leave; a packet may need several stamps, small packets share one, and what nobody uses is lost.

use std::sync::Arc;

use posthaste_units::{ByteCount, Duration, Time};

use crate::trace::{OPPORTUNITY, OpportunityTrace};

/// The clockwork. A packet that comes exactly at a stamp is too late for it, as with Mahimahi.
#[derive(Debug)]
pub(crate) struct Opportunities {
    trace: Arc<OpportunityTrace>,
    /// Where in the recording the clock begins.
    start: Duration,
    /// When the present cycle began, counted from the recording's beginning.
    cycle_start: Time,
    /// The present or next stamp within the cycle.
    index: usize,
    /// Bytes that the stamp still has.
    left: ByteCount,
}

impl Opportunities {
    pub(crate) fn new(trace: Arc<OpportunityTrace>, start: Duration) -> Self {
        Self { trace, start, cycle_start: Time::ZERO, index: 0, left: OPPORTUNITY }
    }

    /// The first stamp after `now`.
    pub(crate) fn start_after_idle(&mut self, now: Time) -> Time {
        // Where the present stamp is still to come, it and its bytes are as they were: time does not run back.
        if self.start() > now {
            return self.start();
        }
        let cycle = self.trace.duration();
        let clock = now + self.start;
        let phase = Duration::from_nanos(clock.as_nanos() % cycle.as_nanos());
        self.cycle_start = clock - phase;
        self.index = self.trace.first_after(phase);
        self.left = OPPORTUNITY;
        self.wrap();
        self.start()
    }

    /// The time of the present stamp.
    pub(crate) fn start(&self) -> Time {
        self.cycle_start + self.trace.stamp(self.index) - self.start
    }

    /// The time of the stamp at which a packet's last byte leaves.
    pub(crate) fn serve(&mut self, length: ByteCount) -> Time {
        let mut rest = length;
        while rest > self.left {
            rest -= self.left;
            self.next();
        }
        let departure = self.start();
        self.left -= rest;
        if self.left.is_zero() {
            self.next();
        }
        departure
    }

    fn next(&mut self) {
        self.index += 1;
        self.left = OPPORTUNITY;
        self.wrap();
    }

    fn wrap(&mut self) {
        if self.index == self.trace.count() {
            self.index = 0;
            self.cycle_start += self.trace.duration();
        }
    }
}

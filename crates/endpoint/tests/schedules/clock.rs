//! Time that stands still, but for what the timer skips.

use std::cell::Cell;
use std::time::Duration as StdDuration;

use posthaste_units::{Duration, Time};

thread_local! {
    /// Since the schedule's start. All tasks of a schedule run on one thread.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

pub(crate) fn now() -> Time {
    Time::ZERO + NOW.get()
}

pub(crate) fn offset() -> StdDuration {
    StdDuration::from_secs(1_800_000_000)
}

pub(crate) fn reset() {
    NOW.set(Duration::ZERO);
}

pub(crate) fn skip_to(time: Time) {
    NOW.set(NOW.get().max(time.since(Time::ZERO)));
}

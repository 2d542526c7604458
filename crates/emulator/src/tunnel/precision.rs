//! What the system is asked for so that packets leave when they should, and what it tells about how late it was.

use std::fs::File;
use std::os::unix::fs::FileExt;

use posthaste_units::Duration;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::system::prefer_precision;

/// Above all ordinary threads, below those that the kernel gives this kind of priority (its interrupt threads: 50).
const PRIORITY: u8 = 10;

/// Asks that the calling thread runs whenever it can; says whether the system agreed.
pub(super) fn prefer_real_time() -> bool {
    prefer_precision();
    let Ok(priority) = ThreadPriorityValue::try_from(PRIORITY) else { return false };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Crossplatform(priority), policy)
        .inspect_err(|error| tracing::debug!(%error, "no real-time scheduling"))
        .is_ok()
}

/// How long the calling thread was ready to run and did not, as the kernel counts it.
#[derive(Debug)]
pub(super) struct RunDelay {
    statistics: Option<File>,
    last: u64,
}

impl RunDelay {
    /// For the calling thread only.
    pub(super) fn of_this_thread() -> Self {
        let mut this = Self { statistics: File::open("/proc/thread-self/schedstat").ok(), last: 0 };
        this.since_last();
        this
    }

    /// What has come since it was last asked; zero where the kernel does not count it.
    pub(super) fn since_last(&mut self) -> Duration {
        let Some(total) = self.statistics.as_ref().and_then(total) else { return Duration::ZERO };
        let news = total.saturating_sub(self.last);
        self.last = total;
        Duration::from_nanos(news)
    }
}

/// The second of three figures: nanoseconds on the CPU, waiting for it, times that it got it.
fn total(statistics: &File) -> Option<u64> {
    let mut text = [0; 96];
    let length = statistics.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

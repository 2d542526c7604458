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

/// What happened to a thread between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    /// False if it never left the processor.
    pub(super) has_slept: bool,
    /// How long it was ready to run and did not.
    pub(super) kept_waiting: Duration,
}

/// How the kernel has treated the calling thread, as it counts that itself.
#[derive(Debug)]
pub(super) struct RunDelay {
    statistics: Option<File>,
    last: Figures,
}

/// What the kernel counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Figures {
    /// Nanoseconds in which it was ready to run and did not.
    delay: u64,
    /// Times that it was given a processor.
    turns: u64,
}

impl RunDelay {
    /// For the calling thread only.
    pub(super) fn of_this_thread() -> Self {
        let statistics = File::open("/proc/thread-self/schedstat").ok();
        let mut this = Self { statistics, last: Figures::default() };
        this.since_last();
        this
    }

    /// What has happened since it was last asked; a sleep without delay where the kernel does not count it.
    pub(super) fn since_last(&mut self) -> Pause {
        let Some(now) = self.statistics.as_ref().and_then(read) else {
            return Pause { has_slept: true, kept_waiting: Duration::ZERO };
        };
        let delay = now.delay.saturating_sub(self.last.delay);
        let pause =
            Pause { has_slept: now.turns != self.last.turns, kept_waiting: Duration::from_nanos(delay) };
        self.last = now;
        pause
    }
}

fn read(statistics: &File) -> Option<Figures> {
    let mut text = [0; 96];
    let length = statistics.read_at(&mut text, 0).ok()?;
    figures(std::str::from_utf8(&text[..length]).ok()?)
}

/// Three figures: nanoseconds on the processor, waiting for it, times that it was given one.
fn figures(text: &str) -> Option<Figures> {
    let mut figures = text.split_whitespace().skip(1).map(|figure| figure.parse().ok());
    Some(Figures { delay: figures.next()??, turns: figures.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read() {
        assert_eq!(figures("123 456 7\n"), Some(Figures { delay: 456, turns: 7 }));
        assert_eq!((figures("123 456"), figures("123 x 7"), figures("")), (None, None, None));
    }

    #[test]
    fn who_waits_has_slept() {
        let mut this = RunDelay::of_this_thread();
        let (_wake, woken) = std::sync::mpsc::channel::<()>();
        assert!(woken.recv_timeout(std::time::Duration::from_millis(5)).is_err());
        assert!(this.since_last().has_slept);
    }
}

//! The driver's timer. Pacing and loss detection are as exact as it is: tokio's counts in whole milliseconds and fires
//! one late on average, which at 100 Mbit/s are eight datagrams. Linux has a better one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use posthaste_units::{Duration, Time};
use tokio::time::{Sleep, sleep_until};

use crate::clock;

/// Fires at or after the time that it was last set to.
#[derive(Debug)]
pub(crate) struct Timer {
    #[cfg(target_os = "linux")]
    kernel: Option<kernel::KernelTimer>,
    /// The runtime's, where there is no better one.
    sleep: Pin<Box<Sleep>>,
}

impl Timer {
    /// A timer that must be set before it is polled. Must be called inside a tokio runtime.
    pub(crate) fn new() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            kernel: kernel::KernelTimer::new()
                .inspect_err(
                    |error| tracing::debug!(%error, "no kernel timer: timers are exact to milliseconds"),
                )
                .ok(),
            sleep: Box::pin(sleep_until(clock::deadline(Duration::ZERO))),
        }
    }

    /// Sets it to `deadline`, instead of whatever it was set to.
    pub(crate) fn set(&mut self, deadline: Time) {
        let span = deadline.since(clock::now());
        #[cfg(target_os = "linux")]
        if let Some(kernel) = &self.kernel {
            match kernel.set(span) {
                Ok(()) => return,
                Err(error) => {
                    tracing::debug!(%error, "the kernel timer fails: timers are exact to milliseconds");
                    self.kernel = None;
                }
            }
        }
        self.sleep.as_mut().reset(clock::deadline(span));
    }

    /// Ready once it has fired; until then the task will be woken when it does.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        #[cfg(target_os = "linux")]
        if let Some(kernel) = &self.kernel {
            return kernel.poll(cx);
        }
        self.sleep.as_mut().poll(cx)
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, RawFd};
    use std::task::{Context, Poll, ready};

    use nix::sys::time::TimeSpec;
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
    use posthaste_units::Duration;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use crate::clock;

    /// A timer of the kernel's, as a file that becomes readable.
    #[derive(Debug)]
    pub(super) struct KernelTimer(AsyncFd<Descriptor>);

    #[derive(Debug)]
    struct Descriptor(TimerFd);

    impl AsRawFd for Descriptor {
        fn as_raw_fd(&self) -> RawFd {
            self.0.as_fd().as_raw_fd()
        }
    }

    impl KernelTimer {
        #[expect(
            deprecated,
            reason = "the successor is unsafe: it asks for a descriptor that stays open and the same, as this one does"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
            AsyncFd::with_interest(Descriptor(timer), Interest::READABLE).map(Self)
        }

        pub(super) fn set(&self, span: Duration) -> io::Result<()> {
            // Zero would switch it off.
            let span = span.clamp(Duration::from_nanos(1), clock::LONGEST_SLEEP);
            let expiration = Expiration::OneShot(TimeSpec::from_duration(span.into()));
            Ok(self.0.get_ref().0.set(expiration, TimerSetTimeFlags::empty())?)
        }

        pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
            loop {
                let Ok(mut ready) = ready!(self.0.poll_read_ready(cx)) else {
                    // The runtime stops, and with it the task.
                    return Poll::Pending;
                };
                // Whoever sets the timer anew takes back that it has fired: then there is nothing to read. It fires once, so
                // there is nothing more to read either way.
                let fired = self.0.get_ref().0.wait();
                ready.clear_ready();
                if fired.is_ok() {
                    return Poll::Ready(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn in_millis(millis: u64) -> Time {
        clock::now() + Duration::from_millis(millis)
    }

    #[tokio::test]
    async fn it_fires_at_its_time_and_not_before() {
        let mut timer = Timer::new();
        for millis in [0, 1, 7] {
            let deadline = in_millis(millis);
            timer.set(deadline);
            poll_fn(|cx| timer.poll(cx)).await;
            assert!(clock::now() >= deadline);
        }
    }

    #[tokio::test]
    async fn the_last_setting_counts() {
        let mut timer = Timer::new();
        // Fired, but set anew before anyone looked.
        timer.set(in_millis(0));
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let later = in_millis(20);
        timer.set(later);
        poll_fn(|cx| timer.poll(cx)).await;
        assert!(clock::now() >= later);
        // And from far to near.
        timer.set(in_millis(1_000_000));
        assert!(poll_fn(|cx| Poll::Ready(timer.poll(cx).is_pending())).await);
        timer.set(in_millis(1));
        poll_fn(|cx| timer.poll(cx)).await;
    }
}

//! The times at which a connection must act though nothing arrives.

use posthaste_units::Time;

/// What is to be done when a timer expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Declare packets lost, or probe (RFC 9002 section 6).
    Recovery,
    /// Acknowledge what has arrived (RFC 9000 section 13.2.1).
    Ack,
    /// Send what the pacer held back.
    Pacing,
    /// Drop the connection: nothing was heard (RFC 9000 section 10.1).
    Idle,
    /// Send a PING so that the peer does not drop it.
    KeepAlive,
    /// Forget a closed connection (RFC 9000 section 10.2).
    Close,
    /// Drop the keys of the phase before (RFC 9001 section 6.5).
    OldKeys,
    /// Challenge a path again, or give one up (RFC 9000 section 8.2).
    Path,
    /// Ask the repair policy again.
    Repair,
    /// Give back memory that nothing needs while the connection is idle.
    Rest,
}

const COUNT: usize = 10;

/// At most one time for each [`Timer`].
#[derive(Debug)]
pub(crate) struct Timers {
    /// [`Time::FAR_FUTURE`] for those that are stopped.
    at: [Time; COUNT],
    is_stale: bool,
}

impl Default for Timers {
    fn default() -> Self {
        Self { at: [Time::FAR_FUTURE; COUNT], is_stale: false }
    }
}

impl Timers {
    const ALL: [Timer; COUNT] = [
        Timer::Recovery,
        Timer::Ack,
        Timer::Pacing,
        Timer::Idle,
        Timer::KeepAlive,
        Timer::Close,
        Timer::OldKeys,
        Timer::Path,
        Timer::Repair,
        Timer::Rest,
    ];

    /// Sets a timer, or stops it with `None`.
    pub(crate) fn set(&mut self, timer: Timer, at: Option<Time>) {
        if let Some(slot) = self.at.get_mut(timer as usize) {
            *slot = at.unwrap_or(Time::FAR_FUTURE);
        }
    }

    /// When a timer expires.
    pub(crate) fn get(&self, timer: Timer) -> Option<Time> {
        self.at.get(timer as usize).copied().filter(|at| *at < Time::FAR_FUTURE)
    }

    /// A datagram has come: what the timers follow from has changed. `poll_transmit`, which comes after a batch of
    /// datagrams, sets them once for all.
    pub(crate) fn set_stale(&mut self) {
        self.is_stale = true;
    }

    /// True if the timers have not been set since [`Self::set_stale`]; they count as set now.
    pub(crate) fn take_stale(&mut self) -> bool {
        std::mem::take(&mut self.is_stale)
    }

    /// Stops every timer.
    pub(crate) fn clear(&mut self) {
        self.at = [Time::FAR_FUTURE; COUNT];
    }

    /// The earliest time.
    pub(crate) fn next(&self) -> Option<Time> {
        self.at.iter().min().copied().filter(|at| *at < Time::FAR_FUTURE)
    }

    /// Stops and returns a timer that has expired, in a fixed order; call until `None`.
    pub(crate) fn expire(&mut self, now: Time) -> Option<Timer> {
        let expired = Self::ALL.into_iter().find(|timer| self.get(*timer).is_some_and(|at| at <= now))?;
        self.set(expired, None);
        Some(expired)
    }
}

//! The one clock: nothing else in the crate reads the time.

use std::time::{Instant, SystemTime};

use posthaste_units::{Duration, Time};

/// Time since a relay began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that begins at zero.
    #[expect(clippy::disallowed_methods, reason = "the relay is where real time comes from")]
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now() }
    }

    /// Now.
    #[expect(clippy::disallowed_methods, reason = "the relay is where real time comes from")]
    pub(crate) fn now(&self) -> Time {
        Time::ZERO + Instant::now().saturating_duration_since(self.epoch).into()
    }
}

/// How long ago the system's calendar showed `stamp`; `None` if it was set back since.
#[expect(clippy::disallowed_methods, reason = "the relay is where real time comes from")]
pub(crate) fn age(stamp: SystemTime) -> Option<Duration> {
    SystemTime::now().duration_since(stamp).ok().map(Into::into)
}

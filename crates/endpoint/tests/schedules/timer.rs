//! A timer that fires only for pacing.

use std::task::{Context, Poll};

use posthaste_units::{Duration, Time};

use crate::clock;

/// Pacing waits less than this, and acknowledgements, probes and timeouts wait longer.
const LONGEST_PACING: Duration = Duration::from_millis(2);

pub(crate) struct Timer(Option<Time>);

impl Timer {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    pub(crate) fn set(&mut self, deadline: Time) {
        self.0 = Some(deadline);
    }

    /// Ready if the deadline is near: then it is now. Otherwise the task is never woken.
    pub(crate) fn poll(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        match self.0 {
            Some(deadline) if deadline.since(clock::now()) <= LONGEST_PACING => {
                clock::skip_to(deadline);
                self.0 = None;
                Poll::Ready(())
            }
            _ => Poll::Pending,
        }
    }
}

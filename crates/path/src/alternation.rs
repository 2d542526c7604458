//! What alternates between two states, both for exponentially distributed times.

use posthaste_units::{Duration, Rng, Time};

/// Two states, off and on. It begins in one that is drawn as the long run has it.
#[derive(Debug)]
pub(crate) struct Alternation {
    /// The part of time that is on, in `0..1`, and how long it is on in the mean.
    share: f64,
    mean: Duration,
    is_on: bool,
    /// When the state changes.
    until: Time,
    rng: Rng,
}

impl Alternation {
    pub(crate) fn new(share: f64, mean: Duration, mut rng: Rng) -> Self {
        let is_on = rng.chance(share);
        let mut new = Self { share, mean, is_on, until: Time::ZERO, rng };
        // Exponential times have no memory: what is left of the first period is a whole one.
        new.until = Time::ZERO + new.length();
        new
    }

    fn length(&mut self) -> Duration {
        let on = self.mean.as_secs_f64();
        let mean = if self.is_on { on } else { on * (1.0 - self.share) / self.share };
        let seconds = -libm::log(1.0 - self.rng.unit_f64()) * mean;
        // What is never on is off without an end; the clock's end is far enough.
        if seconds.is_finite() {
            Duration::from_secs_f64(seconds.min(1e9))
        } else {
            Duration::from_secs(1 << 30)
        }
    }

    /// Until when it is on; `None` if it is off at `now`. Times never run back from call to call.
    pub(crate) fn on_until(&mut self, now: Time) -> Option<Time> {
        while self.until <= now {
            self.is_on = !self.is_on;
            let length = self.length().max(Duration::from_nanos(1));
            self.until += length;
        }
        self.is_on.then_some(self.until)
    }
}

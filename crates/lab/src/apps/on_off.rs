//! Load in the background: objects with pauses in between, for ever.

use posthaste_units::{ByteCount, Duration, Rng, Time};

use super::Exchange;
use super::sequence::{Next, Plan, Sequence};

/// Connects at a given time, then downloads objects with pauses in between until the run ends. Sizes and pauses are
/// exponentially distributed, each with its mean.
pub type OnOff = Sequence<OnOffPlan>;

/// The plan of [`OnOff`].
#[derive(Debug)]
pub struct OnOffPlan {
    object: ByteCount,
    pause: Duration,
    rng: Rng,
}

impl OnOff {
    /// Load by the client at `host` from `start_at` on: objects of `object` in the mean, a byte at least, and pauses
    /// of `pause` in the mean. The first object comes at once.
    pub fn new(host: usize, object: ByteCount, pause: Duration, start_at: Time, rng: Rng) -> Self {
        Self::with_plan(host, OnOffPlan { object, pause, rng }, start_at)
    }
}

impl OnOffPlan {
    /// A draw from the exponential distribution of mean 1, at most 36.7 (53 bits of randomness).
    fn draw(&mut self) -> f64 {
        -libm::log(1.0 - self.rng.unit_f64())
    }
}

impl Plan for OnOffPlan {
    fn next(&mut self, now: Time, last: Option<&Exchange>) -> Option<Next> {
        let pause = match last {
            Some(_) => Duration::from_secs_f64(self.pause.as_secs_f64() * self.draw()),
            None => Duration::ZERO,
        };
        let bytes = ByteCount::from_f64(self.object.as_f64() * self.draw()).get().max(1);
        Some(Next { at: now + pause, bytes })
    }
}

//! Bursts of loss that last a time, however many packets meet them.
//!
//! A fading radio link, a handover or a collision is over after some milliseconds, not after some packets: a sender
//! that is silent meanwhile loses nothing, and one that repeats at once loses the repetition too.

use posthaste_units::{Duration, Rng, Time};

use crate::config::ConfigError;

/// A medium that alternates between passing everything and losing everything, both for exponentially distributed times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossPeriods {
    /// The share of time in which everything is lost, in `0..1`; packets that are evenly spaced lose the same share.
    pub share: f64,
    /// Mean length of such a period, above zero.
    pub mean: Duration,
}

impl LossPeriods {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if !(0.0..1.0).contains(&self.share) {
            return Err(ConfigError::new("burst loss: a mean loss from 0 to below 1 is needed"));
        }
        if self.mean.is_zero() {
            return Err(ConfigError::new("burst-time: a time above zero is needed"));
        }
        Ok(())
    }
}

/// A medium of this kind. It begins in a state that is drawn as the long run has it.
#[derive(Debug)]
pub(crate) struct PeriodicLoss {
    model: LossPeriods,
    is_bad: bool,
    /// When the state changes.
    until: Time,
    rng: Rng,
}

impl PeriodicLoss {
    pub(crate) fn new(model: LossPeriods, mut rng: Rng) -> Self {
        let is_bad = rng.chance(model.share);
        let mut medium = Self { model, is_bad, until: Time::ZERO, rng };
        // Exponential times have no memory: what is left of the first period is a whole one.
        medium.until = Time::ZERO + medium.length();
        medium
    }

    fn length(&mut self) -> Duration {
        let LossPeriods { share, mean } = self.model;
        let bad = mean.as_secs_f64();
        let mean = if self.is_bad { bad } else { bad * (1.0 - share) / share };
        let seconds = -libm::log(1.0 - self.rng.unit_f64()) * mean;
        // Without losses the good period is infinite; the clock's end is far enough.
        if seconds.is_finite() {
            Duration::from_secs_f64(seconds.min(1e9))
        } else {
            Duration::from_secs(1 << 30)
        }
    }

    /// True if a packet is lost that leaves the bottleneck at `now`. Times never run back from call to call.
    pub(crate) fn is_lost(&mut self, now: Time) -> bool {
        while self.until <= now {
            self.is_bad = !self.is_bad;
            let length = self.length().max(Duration::from_nanos(1));
            self.until += length;
        }
        self.is_bad
    }
}

#[cfg(test)]
mod tests;

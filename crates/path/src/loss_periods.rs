//! Bursts of loss that last a time, however many packets meet them.
//!
//! A fading radio link, a handover or a collision is over after some milliseconds, not after some packets: a sender
//! that is silent meanwhile loses nothing, and one that repeats at once loses the repetition too.

use posthaste_units::{Duration, Rng, Time};

use crate::alternation::Alternation;
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

/// A medium of this kind.
#[derive(Debug)]
pub(crate) struct PeriodicLoss(Alternation);

impl PeriodicLoss {
    pub(crate) fn new(model: LossPeriods, rng: Rng) -> Self {
        Self(Alternation::new(model.share, model.mean, rng))
    }

    /// True if a packet is lost that leaves the bottleneck at `now`. Times never run back from call to call.
    pub(crate) fn is_lost(&mut self, now: Time) -> bool {
        self.0.on_until(now).is_some()
    }
}

#[cfg(test)]
mod tests;

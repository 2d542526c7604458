//! A path that moves to another route at fixed times, as a satellite terminal does: another delay, and a short gap.

use posthaste_units::{Duration, Rng, Time};

use crate::config::ConfigError;

/// When the route changes, and what that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// Time from one handover to the next, above zero; the clock's epoch is one, unless the path begins elsewhere
    /// ([`crate::PathConfig::start`]).
    pub interval: Duration,
    /// What the route adds to the delay one way: uniform from zero to this, drawn anew at each handover.
    pub delay: Duration,
    /// After a handover everything is lost for so long.
    pub gap: Duration,
}

impl Handover {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.interval.is_zero() || self.gap >= self.interval {
            return Err(ConfigError::new("handover: an interval above zero and above its gap is needed"));
        }
        Ok(())
    }
}

/// The route of each moment.
#[derive(Debug)]
pub(crate) struct Routes {
    config: Handover,
    /// Where in the rhythm the path's clock begins.
    start: Duration,
    seed: [u8; 32],
    /// The number of the present route and what it adds.
    current: Option<(u64, Duration)>,
}

impl Routes {
    pub(crate) fn new(config: Handover, start: Duration, mut rng: Rng) -> Self {
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        Self { config, start, seed, current: None }
    }

    /// What the route at `now` adds to the delay; `None` if nothing gets through. It depends on the seed and the
    /// handover's number alone.
    pub(crate) fn added(&mut self, now: Time) -> Option<Duration> {
        let (clock, interval) = ((now + self.start).as_nanos(), self.config.interval.as_nanos());
        let (number, phase) = (clock / interval, clock % interval);
        if phase < self.config.gap.as_nanos() {
            return None;
        }
        if let Some((current, added)) = self.current
            && current == number
        {
            return Some(added);
        }
        let mut seed = self.seed;
        for (byte, bits) in seed.iter_mut().zip(number.to_le_bytes()) {
            *byte ^= bits;
        }
        let share = Rng::from_seed(seed).unit_f64();
        let added = Duration::from_nanos((self.config.delay.as_nanos() as f64 * share) as u64);
        self.current = Some((number, added));
        Some(added)
    }
}

#[cfg(test)]
mod tests;

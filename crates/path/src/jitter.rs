//! A delay that varies.

use posthaste_units::{Duration, Rng, Time};
use serde::{Deserialize, Serialize};

use crate::distribution::{normal, pareto, wifi};

/// How long a draw holds in described paths unless told otherwise.
pub const DEFAULT_JITTER_INTERVAL: Duration = Duration::from_millis(100);

/// How the propagation delay varies around its mean, [`crate::PathConfig::delay`].
///
/// Jitter is centred: it takes away as much as it adds. Two things lift the mean nevertheless. A delay cannot be
/// negative, so draws below `-delay` count as that. And packets that may not overtake each other wait for those
/// before them: with a draw for each packet and gaps shorter than the deviation, the delay follows the largest
/// recent draw. Where that is not meant, let draws hold for an `interval` much longer than the deviation: the mean
/// is then lifted by `deviation² / (2 x interval)` (normal) only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter {
    /// Shape of the distribution.
    pub distribution: Distribution,
    /// Standard deviation.
    pub deviation: Duration,
    /// How long a draw holds, counted from the clock's epoch; zero draws for each packet.
    pub interval: Duration,
    /// True if packets may overtake each other; else none arrives before those that were sent before it.
    pub may_reorder: bool,
}

/// Shape of a distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Normal.
    #[default]
    Normal,
    /// Pareto of shape 3: never less than 0.577 deviations below the mean, now and then far above it.
    Pareto,
    /// Delays of contended Wi-Fi, as private-octopus/c4 models what it has seen there: retries of a millisecond each, as
    /// many as a Poisson draw of mean 1 says; and, one draw in 14, a suspension of 12 steps of 7.5 ms on average
    /// (Poisson again). So the mean is 6.8 ms and the deviation 23.3 ms, if it is not scaled to another one; a draw is
    /// at least 0.29 deviations below the mean, and mostly there.
    Wifi,
}

/// Draws delays.
#[derive(Debug)]
pub(crate) struct Delays {
    mean: Duration,
    jitter: Option<(Jitter, Rng)>,
    /// The number of the interval that the present draw is for, and the delay.
    current: Option<(u64, Duration)>,
    /// The latest arrival so far, unless packets may overtake each other.
    floor: Time,
}

impl Delays {
    pub(crate) fn new(mean: Duration, jitter: Option<Jitter>, rng: Rng) -> Self {
        let jitter = jitter.filter(|jitter| !jitter.deviation.is_zero()).map(|jitter| (jitter, rng));
        Self { mean, jitter, current: None, floor: Time::ZERO }
    }

    /// No packet arrives sooner than this after it has entered the medium.
    pub(crate) fn least(&self) -> Duration {
        if self.jitter.is_some() { Duration::ZERO } else { self.mean }
    }

    /// When a packet that enters the medium at `now` arrives. Times never run back from call to call.
    /// `added` is what the present route takes longer; packets behind such a route do not overtake each other.
    pub(crate) fn arrival(&mut self, now: Time, added: Duration) -> Time {
        let Some((jitter, rng)) = &mut self.jitter else {
            self.floor = self.floor.max(now + self.mean + added);
            return self.floor;
        };
        let number = now.as_nanos().checked_div(jitter.interval.as_nanos());
        let delay = match self.current {
            Some((current, delay)) if number == Some(current) => delay,
            _ => draw(self.mean, jitter, rng),
        };
        self.current = number.map(|number| (number, delay));
        let arrival = now + delay + added;
        if jitter.may_reorder {
            return arrival;
        }
        self.floor = self.floor.max(arrival);
        self.floor
    }
}

fn draw(mean: Duration, jitter: &Jitter, rng: &mut Rng) -> Duration {
    let standard = match jitter.distribution {
        Distribution::Normal => normal(rng),
        Distribution::Pareto => pareto(rng),
        Distribution::Wifi => wifi(rng),
    };
    let nanos = standard * jitter.deviation.as_nanos() as f64;
    // `as` saturates.
    let span = Duration::from_nanos((nanos.abs() + 0.5) as u64);
    if nanos < 0.0 { mean.saturating_sub(span) } else { mean + span }
}

#[cfg(test)]
mod tests;

//! A link that sends in transport blocks, as LTE does: all that leaves in one transmission time interval (TTI) arrives
//! at its end, and a block that was not understood comes again some milliseconds later, with everything behind it.

use posthaste_units::{Duration, Rng, Time};

use crate::config::{ConfigError, check_probability};
use crate::ticks::next_tick;

/// How a radio link frames what it sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadioFrames {
    /// The transmission time interval, above zero; 1 ms in LTE (3GPP TS 36.211).
    pub interval: Duration,
    /// Probability in `0..=1` that a block has to be sent again: the error rate that link adaptation aims at, usually
    /// 10 % (TS 36.213). Each repetition may fail in turn; the fifth counts as received.
    pub failure: f64,
    /// How much later a repetition ends; 8 ms in LTE with frequency division (HARQ round trip, TS 36.321). Blocks behind
    /// it wait, for the layer above hands on in order.
    pub repeat: Duration,
}

/// Transmissions of a block at most.
const MOST_TRANSMISSIONS: u32 = 5;

impl RadioFrames {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_probability(self.failure, "harq: a probability from 0 to 1 is needed")?;
        if self.interval.is_zero() {
            return Err(ConfigError::new("tti: a time above zero is needed"));
        }
        Ok(())
    }
}

/// The clockwork.
#[derive(Debug)]
pub(crate) struct Framer {
    config: RadioFrames,
    rng: Rng,
    /// The end of the present block, and when it is handed on.
    current: Option<(Time, Time)>,
}

impl Framer {
    pub(crate) fn new(config: RadioFrames, rng: Rng) -> Self {
        Self { config, rng, current: None }
    }

    /// When a packet that has left the bottleneck at `departure` is handed on. Times never run back from call to call.
    pub(crate) fn hand_on(&mut self, departure: Time) -> Time {
        let end = next_tick(departure, self.config.interval);
        if let Some((current, handed_on)) = self.current
            && current == end
        {
            return handed_on;
        }
        let mut handed_on = end;
        for _ in 1..MOST_TRANSMISSIONS {
            if !self.rng.chance(self.config.failure) {
                break;
            }
            handed_on += self.config.repeat;
        }
        let floor = self.current.map_or(Time::ZERO, |(_, before)| before);
        self.current = Some((end, handed_on.max(floor)));
        handed_on.max(floor)
    }
}

#[cfg(test)]
mod tests;

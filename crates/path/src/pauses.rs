//! A receiver that does other things in between.
//!
//! A phone's browser runs the page's scripts on the processor that takes packets in. What arrives meanwhile waits in the
//! socket's buffer, and is acknowledged all at once: for the sender the round trip is longer, and no queue is.

use posthaste_units::{Duration, Rng, Time};
use serde::{Deserialize, Serialize};

use crate::alternation::Alternation;
use crate::config::ConfigError;

/// Pauses of the receiver. They and the times between them are distributed exponentially.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// From the beginning of one pause to that of the next, in the mean; above `mean`.
    pub every: Duration,
    /// How long a pause lasts in the mean, above zero.
    pub mean: Duration,
    /// The time that it takes to take a packet in, one after the other: the acknowledgements of what has come in a pause
    /// come one by one, and not as one. Zero: all at once.
    #[serde(default)]
    pub packet: Duration,
}

impl Pauses {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.mean.is_zero() || self.mean >= self.every {
            return Err(ConfigError::new("pauses: a mean above zero and below every is needed"));
        }
        Ok(())
    }
}

/// A receiver with pauses.
#[derive(Debug)]
pub(crate) struct Receiver {
    pauses: Alternation,
    packet: Duration,
    /// From when on the oldest packet that has arrived can be taken in.
    ready: Time,
}

impl Receiver {
    pub(crate) fn new(pauses: Pauses, rng: Rng) -> Self {
        let share = pauses.mean.as_secs_f64() / pauses.every.as_secs_f64();
        let alternation = Alternation::new(share, pauses.mean, rng);
        Self { pauses: alternation, packet: pauses.packet, ready: Time::ZERO }
    }

    /// True if the oldest packet, which has arrived at `arrival`, is taken in by `now`; the next call is of the next packet
    /// then. Arrivals never run back from call to call.
    pub(crate) fn takes_in(&mut self, arrival: Time, now: Time) -> bool {
        let begins = arrival.max(self.ready);
        self.ready = self.pauses.on_until(begins).unwrap_or(begins);
        let is_taken = self.ready <= now;
        if is_taken {
            self.ready += self.packet;
        }
        is_taken
    }

    /// When to ask again, `arrival` being that of the oldest packet.
    pub(crate) fn next(&self, arrival: Time) -> Time {
        arrival.max(self.ready)
    }
}

#[cfg(test)]
mod tests;

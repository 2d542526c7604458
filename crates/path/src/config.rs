//! What a direction is like.

use posthaste_units::{ByteCount, Duration, Rate};

/// The bytes that one direction may hold, waiting and under way, unless told otherwise: 1 Gbit/s for 500 ms.
pub const DEFAULT_CAPACITY: ByteCount = ByteCount::new(64 << 20);

/// One direction of a link. The default is a perfect wire: no delay, no loss, infinitely fast.
#[derive(Debug, Clone, PartialEq)]
pub struct PathConfig {
    /// Propagation delay of every packet; default zero.
    pub delay: Duration,
    /// Probability in `0..=1` that a packet is lost, independently of all others; default 0.
    pub loss: f64,
    /// Which packets are delivered late, so that later ones overtake them; default none.
    pub reordering: Reordering,
    /// Probability in `0..=1` that a packet arrives twice; default 0. The copy is intact and on time even where
    /// the original is corrupted or delayed.
    pub duplication: f64,
    /// Probability in `0..=1` that one uniformly drawn bit of a packet is flipped; default 0.
    pub corruption: f64,
    /// The slowest element and its queue; default none (infinitely fast).
    pub bottleneck: Option<Bottleneck>,
    /// Bytes that the direction may hold at once, waiting and under way; more are dropped and counted. It bounds
    /// the memory that a sender can fill where no bottleneck does. Default [`DEFAULT_CAPACITY`].
    pub capacity: ByteCount,
}

/// Independent reordering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reordering {
    /// Probability in `0..=1` that a packet is held back.
    pub probability: f64,
    /// How much longer than the others it takes. Packets sent within this span overtake it; on a path with
    /// larger gaps nothing is reordered.
    pub extra_delay: Duration,
}

/// A constant rate behind a drop-tail queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bottleneck {
    /// Serialisation rate, above zero.
    pub rate: Rate,
    /// Bytes that may wait, not counting the packet in transmission.
    pub queue: ByteCount,
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            loss: 0.0,
            reordering: Reordering { probability: 0.0, extra_delay: Duration::ZERO },
            duplication: 0.0,
            corruption: 0.0,
            bottleneck: None,
            capacity: DEFAULT_CAPACITY,
        }
    }
}

/// A value that no path can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(&'static str);

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ConfigError {}

impl PathConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// Names the first value out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let probability = |value: f64, message| {
            // NaN is in no range, so it is refused too.
            if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(ConfigError(message)) }
        };
        probability(self.loss, "loss: a probability from 0 to 1 is needed")?;
        probability(self.reordering.probability, "reordering: a probability from 0 to 1 is needed")?;
        probability(self.duplication, "duplication: a probability from 0 to 1 is needed")?;
        probability(self.corruption, "corruption: a probability from 0 to 1 is needed")?;
        if self.reordering.probability > 0.0 && self.reordering.extra_delay.is_zero() {
            return Err(ConfigError("reordering: an extra delay above zero is needed"));
        }
        if self.bottleneck.is_some_and(|bottleneck| bottleneck.rate.as_bytes_per_second() == 0) {
            return Err(ConfigError("bottleneck: a rate above zero is needed"));
        }
        Ok(())
    }
}

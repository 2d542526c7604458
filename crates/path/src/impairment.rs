//! What the medium does to a packet, independently of all other packets.

use posthaste_units::{Duration, Rng};

use crate::config::PathConfig;

/// The fate of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    pub(crate) corrupted: bool,
    /// Zero unless the packet is to be overtaken.
    pub(crate) extra_delay: Duration,
    /// Picks the flipped bit; drawn for every packet.
    pub(crate) bit_draw: u64,
}

impl Fate {
    /// Draws a fate. Every packet takes the same number of draws, so that switching one impairment on leaves the
    /// others' packets as they were.
    pub(crate) fn draw(config: &PathConfig, rng: &mut Rng) -> Self {
        let lost = rng.chance(config.loss);
        let duplicated = rng.chance(config.duplication);
        let corrupted = rng.chance(config.corruption);
        let reordered = rng.chance(config.reordering.probability);
        let extra_delay = if reordered { config.reordering.extra_delay } else { Duration::ZERO };
        Self { lost, duplicated, corrupted, extra_delay, bit_draw: rng.next_u64() }
    }
}

//! What the medium does to a packet.

use posthaste_units::{Duration, Rng};

use crate::config::PathConfig;
use crate::correlation::CorrelatedChance;
use crate::loss::BurstLoss;

/// The outcome of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    /// What picks the bit to flip, if one is.
    pub(crate) corruption: Option<u64>,
    /// Zero unless the packet is to be overtaken.
    pub(crate) extra_delay: Duration,
}

/// All impairments but the delay's. Each has a generator of its own and draws for every packet that comes, lost or
/// not, so that switching one impairment on leaves the others' packets as they were.
#[derive(Debug)]
pub(crate) struct Medium {
    loss: Chance,
    burst_loss: Option<BurstLoss>,
    duplication: Chance,
    corruption: Chance,
    reordering: CorrelatedChance,
    extra_delay: Duration,
}

impl Medium {
    pub(crate) fn new(config: &PathConfig, rng: &mut Rng) -> Self {
        let (loss, duplication, corruption) = (rng.fork(), rng.fork(), rng.fork());
        let (reordering, burst_loss) = (rng.fork(), rng.fork());
        Self {
            loss: Chance { probability: config.loss, rng: loss },
            burst_loss: config.burst_loss.map(|model| BurstLoss::new(model, burst_loss)),
            duplication: Chance { probability: config.duplication, rng: duplication },
            corruption: Chance { probability: config.corruption, rng: corruption },
            reordering: CorrelatedChance::new(
                config.reordering.probability,
                config.reordering.correlation,
                reordering,
            ),
            extra_delay: config.reordering.extra_delay,
        }
    }

    /// Draws the outcome of the next packet.
    pub(crate) fn draw(&mut self) -> Outcome {
        let is_lost_alone = self.loss.draw();
        let is_lost_in_burst = self.burst_loss.as_mut().is_some_and(BurstLoss::draw);
        Outcome {
            lost: is_lost_alone || is_lost_in_burst,
            duplicated: self.duplication.draw(),
            corruption: self.corruption.draw().then(|| self.corruption.rng.next_u64()),
            extra_delay: if self.reordering.draw() { self.extra_delay } else { Duration::ZERO },
        }
    }
}

/// An independent chance.
#[derive(Debug)]
struct Chance {
    probability: f64,
    rng: Rng,
}

impl Chance {
    /// What cannot happen costs no draw.
    fn draw(&mut self) -> bool {
        self.probability > 0.0 && self.rng.chance(self.probability)
    }
}

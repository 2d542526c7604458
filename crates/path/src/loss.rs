//! Losses in bursts.

use posthaste_units::Rng;

use crate::config::{ConfigError, check_probability};

/// The model of Gilbert and Elliott: a medium that is good or bad, and may change before each packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GilbertElliott {
    /// Probability in `0..=1` of turning bad before a packet, while good.
    pub to_bad: f64,
    /// Probability in `0..=1` of turning good before a packet, while bad.
    pub to_good: f64,
    /// Probability in `0..=1` that a packet is lost while the medium is good.
    pub loss_good: f64,
    /// Probability in `0..=1` that a packet is lost while the medium is bad.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// Loses the share `loss` of all packets in bursts of `burst` packets on average: everything while bad, nothing
    /// while good. A burst of `1 / (1 - loss)` packets is what independent losses have.
    ///
    /// # Errors
    /// If `loss` is not in `0..1`, `burst` is below 1, or the bursts are too short for so much loss
    /// (`burst < loss / (1 - loss)`).
    pub fn from_mean(loss: f64, burst: f64) -> Result<Self, ConfigError> {
        if !(0.0..1.0).contains(&loss) {
            return Err(ConfigError::new("burst loss: a mean loss from 0 to below 1 is needed"));
        }
        if !(burst.is_finite() && burst >= 1.0) {
            return Err(ConfigError::new("burst loss: a mean burst of 1 packet or more is needed"));
        }
        // In the long run as many turn bad as turn good: (1 - loss) x to_bad = loss x to_good.
        let to_good = 1.0 / burst;
        let to_bad = to_good * loss / (1.0 - loss);
        if to_bad > 1.0 {
            return Err(ConfigError::new("burst loss: so much loss needs longer bursts"));
        }
        Ok(Self { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 })
    }

    /// The share of packets that meets the bad medium in the long run.
    pub fn bad_share(&self) -> f64 {
        let changes = self.to_bad + self.to_good;
        // A medium that never changes stays as it begins: good.
        if changes > 0.0 { self.to_bad / changes } else { 0.0 }
    }

    /// The share of packets that is lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.bad_share();
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        for probability in [self.to_bad, self.to_good, self.loss_good, self.loss_bad] {
            check_probability(probability, "burst loss: probabilities from 0 to 1 are needed")?;
        }
        Ok(())
    }
}

/// A medium of this kind. It begins in a state that is drawn as the long run has it.
#[derive(Debug)]
pub(crate) struct BurstLoss {
    model: GilbertElliott,
    is_bad: bool,
    rng: Rng,
}

impl BurstLoss {
    pub(crate) fn new(model: GilbertElliott, mut rng: Rng) -> Self {
        let is_bad = rng.chance(model.bad_share());
        Self { model, is_bad, rng }
    }

    /// True if the next packet is lost.
    pub(crate) fn draw(&mut self) -> bool {
        let change = if self.is_bad { self.model.to_good } else { self.model.to_bad };
        self.is_bad ^= self.rng.chance(change);
        self.rng.chance(if self.is_bad { self.model.loss_bad } else { self.model.loss_good })
    }
}

#[cfg(test)]
mod tests;

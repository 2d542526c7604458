//! Congestion control `newreno`: one datagram more a round trip, half on loss.
//!
//! - Claims: the behaviour that RFC 9002 describes, against which everything else is measured.
//! - Source: RFC 9002 section 7 and appendix B. With `flows` above 1: Chromium's emulation of several connections
//!   (`TcpCubicSenderBase::RenoBeta` and `TcpCubicSenderBytes::MaybeIncreaseCwnd`, versions 61 to 63), in which one of N
//!   backs off at a time and all of them grow.
//! - Use when: as the baseline, or where a path must be shared with Reno to the letter.
//! - Breaks when: BDP is large (regaining half of 1,000 datagrams takes 500 round trips) or loss is random (the
//!   window settles near 1.22 / sqrt(loss) datagrams, whatever the capacity).

use posthaste_policy::{
    Congestion, CongestionFactory, Constant, Description, PathLimits, PolicyText, SlowStart,
};
use serde::Deserialize;

use super::loss_based::{Avoidance, Growth, LossBased, Shrinking, shared_constants};
use crate::{Entry, Property, value};

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "newreno",
    claims: "one datagram more a round trip, half on loss: the behaviour that RFC 9002 describes",
    source: "RFC 9002 section 7 and appendix B",
    use_when: "as the baseline",
    breaks_when: "the path holds hundreds of datagrams, or loses at random (window near 1.22 / sqrt(loss))",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::congestion::<Parameters>(TEXT).with(&[
    Property::TakesFirstWindow,
    Property::TakesJump,
    Property::CutByLoss,
]);

/// RFC 9002 appendix B.1: the window's factor on loss.
const LOSS_REDUCTION_FACTOR: f64 = 0.5;

/// Parameters of [`NewReno`].
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// The window's factor on a congestion event of one flow, above 0 and below 1; RFC 9002 has 0.5 (the default),
    /// Chromium 0.7.
    #[serde(deserialize_with = "value::fraction")]
    pub beta: f64,
    /// How many flows the connection stands for, 1 (the default) to 64: the window keeps (N - 1 + beta) / N on loss and
    /// grows by N datagrams a round trip.
    #[serde(deserialize_with = "value::flows")]
    pub flows: u32,
    /// How the flight shrinks in recovery: `at_once` (the default, RFC 9002's letter) or `prr`.
    pub recovery: Shrinking,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { beta: LOSS_REDUCTION_FACTOR, flows: 1, recovery: Shrinking::default() }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let increase = AdditiveIncrease::new(self.beta, self.flows);
        let mut constants = vec![
            Constant::new("loss reduction factor", increase.factor),
            Constant::new("datagrams a round trip", increase.flows),
            Constant::new("recovery", self.recovery.name()),
        ];
        constants.extend(shared_constants());
        constants
    }
}

impl CongestionFactory for Parameters {
    fn build(&self, limits: PathLimits, slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        Box::new(
            NewReno::new(AdditiveIncrease::new(self.beta, self.flows), slow_start, limits)
                .with_shrinking(self.recovery),
        )
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// The controller.
pub type NewReno = LossBased<AdditiveIncrease>;

/// Additive increase, multiplicative decrease; see the module.
#[derive(Debug, Clone, Copy)]
pub struct AdditiveIncrease {
    /// The window's factor on loss.
    factor: f64,
    /// Datagrams that a round trip adds.
    flows: f64,
}

impl AdditiveIncrease {
    /// What `flows` flows do together that each keep `beta` of their window on a loss of their own.
    pub fn new(beta: f64, flows: u32) -> Self {
        let flows = f64::from(flows);
        Self { factor: (flows - 1.0 + beta) / flows, flows }
    }
}

impl Default for AdditiveIncrease {
    fn default() -> Self {
        Self::new(LOSS_REDUCTION_FACTOR, 1)
    }
}

impl Avoidance for AdditiveIncrease {
    fn on_ack(&mut self, growth: &Growth) -> f64 {
        // spec: rfc9002 7.3.3 one-datagram-a-window
        // Section 7.3.3: a datagram for each window acknowledged, for each flow.
        growth.window + self.flows * growth.share * growth.datagram * growth.acked / growth.window
    }

    fn reduce(&mut self, window: f64) -> f64 {
        // spec: rfc9002 7.3.2 threshold-halved
        window * self.factor
    }
}

#[cfg(test)]
mod tests;

//! Congestion control `newreno`: one datagram more a round trip, half on loss.
//!
//! - Claims: the behaviour that RFC 9002 describes, against which everything else is measured.
//! - Source: RFC 9002 section 7 and appendix B.
//! - Use when: as the baseline, or where a path must be shared with Reno to the letter.
//! - Breaks when: BDP is large (regaining half of 1,000 datagrams takes 500 round trips) or loss is random (the
//!   window settles near 1.22 / sqrt(loss) datagrams, whatever the capacity).

use posthaste_policy::{
    Congestion, CongestionFactory, Constant, Description, PathLimits, PolicyText, SlowStart,
};
use serde::Deserialize;

use super::loss_based::{Avoidance, Growth, LossBased, Shrinking, shared_constants};
use crate::{Entry, Property};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// How the flight shrinks in recovery: `at_once` (the default, RFC 9002's letter) or `prr`.
    pub recovery: Shrinking,
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let mut constants = vec![
            Constant::new("loss reduction factor", LOSS_REDUCTION_FACTOR),
            Constant::new("recovery", self.recovery.name()),
        ];
        constants.extend(shared_constants());
        constants
    }
}

impl CongestionFactory for Parameters {
    fn build(&self, limits: PathLimits, slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        Box::new(NewReno::new(AdditiveIncrease, slow_start, limits).with_shrinking(self.recovery))
    }

    fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants())
    }
}

/// The controller.
pub type NewReno = LossBased<AdditiveIncrease>;

/// Additive increase, multiplicative decrease; see the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdditiveIncrease;

impl Avoidance for AdditiveIncrease {
    fn on_ack(&mut self, growth: &Growth) -> f64 {
        // spec: rfc9002 7.3.3 one-datagram-a-window
        // Section 7.3.3: a datagram for each window acknowledged.
        growth.window + growth.share * growth.datagram * growth.acked / growth.window
    }

    fn reduce(&mut self, window: f64) -> f64 {
        // spec: rfc9002 7.3.2 threshold-halved
        window * LOSS_REDUCTION_FACTOR
    }
}

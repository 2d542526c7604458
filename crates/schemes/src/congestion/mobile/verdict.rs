//! A crowded link that proves to be none.
//!
//! Startup finds others by a delay that grows (`response.rs`), and so does a medium whose delay steps, as between
//! satellites or on a radio link. What tells them apart is how the delay goes again. A queue empties at the link's rate,
//! whoever has filled it, so that what arrives behind it is as far apart as it takes on the link. A delay that the medium
//! takes back lets everything of a moment arrive at once.

use posthaste_policy::Constant;
use posthaste_units::{Duration, Time};

use super::{Mobile, Neighbour, Part};
use crate::congestion::model::Sample;

/// Round trips in which a verdict can be refuted.
const ROUNDS: u64 = 3;
/// How many times as fast as the link what arrives has not waited in its queue: trains may have shown too little.
const FASTEST: f64 = 2.0;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new(
        "no crowded link",
        format!(
            "a queue that goes within {ROUNDS} round trips, half of it at once ({FASTEST} times as fast as the link): \
             startup goes on"
        ),
    )]
}

/// What startup has found, while it may be wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    until: Time,
    /// The queue that it was by.
    queue: Duration,
    /// What counted as none.
    eps: Duration,
    /// When the first of what has come at once was sent and acknowledged, and the bytes that came behind it.
    began: (Time, Time),
    bytes: f64,
    /// The most that the delay has fallen by at once.
    fallen: Duration,
}

impl Verdict {
    /// An ack arrives from a link of `rate` bytes a second.
    fn on_ack(&mut self, sample: &Sample, rate: f64) {
        let (sent_at, acked_at) = self.began;
        let passed = sample.now.since(acked_at);
        self.bytes += sample.newly_acked;
        if self.bytes > FASTEST * rate * passed.as_secs_f64() {
            self.fallen = self.fallen.max(sample.sent_at.since(sent_at).saturating_sub(passed));
        } else {
            (self.began, self.bytes) = ((sample.sent_at, sample.now), 0.0);
        }
    }
}

impl Mobile {
    /// Startup has found a crowded link: what may still refute that.
    pub(super) fn note_verdict(&self, sample: &Sample) -> Option<Verdict> {
        let (queue, eps) = (self.path.delay_of(sample.rtt), self.path.strict_eps());
        // Who has lost much of a flight has met a full queue.
        let may_be_wrong = queue > eps && !self.reach.is_overrun() && self.has(Part::Revision);
        let until = sample.now + sample.smoothed_rtt * ROUNDS;
        let began = (sample.sent_at, sample.now);
        may_be_wrong.then_some(Verdict { until, queue, eps, began, bytes: 0.0, fallen: Duration::ZERO })
    }

    /// An ack arrives in a hold: true, once, if nobody is there after all.
    pub(super) fn is_refuted(&mut self, sample: &Sample) -> bool {
        let rate = self.reach.ceiling.unwrap_or(0.0);
        let Some(verdict) = self.neighbour.verdict.as_mut().filter(|verdict| sample.now <= verdict.until)
        else {
            return false;
        };
        verdict.on_ack(sample, rate);
        let has_fallen = verdict.fallen >= verdict.queue / 4;
        let is_gone = self.path.queue() <= verdict.eps.min(verdict.queue / 2);
        let is_refuted = has_fallen && is_gone && self.cycle.rounds >= 1 && !self.reach.is_overrun();
        if is_refuted {
            self.neighbour = Neighbour::default();
        }
        is_refuted
    }
}

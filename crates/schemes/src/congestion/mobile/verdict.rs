//! Others that prove to be none.
//!
//! Startup finds others by a delay that grows (`response.rs`), and a drain test by one that stays (`neighbour.rs`). A medium
//! whose delay steps shows both, as between satellites or on a radio link. What tells it apart is how the delay goes again.
//! A queue empties at the rate of the link, be it of others, so that what arrives behind it is as far apart as it takes
//! on the link. A delay that the medium takes back lets everything of a moment arrive at once.

use posthaste_policy::Constant;
use posthaste_units::{Duration, Time};

use super::neighbour::TEST_INTERVAL;
use super::{Mobile, Neighbour, Part};
use crate::congestion::model::Sample;

/// Round trips in which startup's verdict can be refuted.
const ROUNDS: u64 = 3;
/// The part of the queue that must have gone at once, one in so many: a delay can step back in several steps.
const FALLEN_PART: u64 = 4;
/// How many times as fast as the link what arrives has not waited in its queue: trains may have shown too little.
const FASTEST: f64 = 2.0;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new(
        "no others",
        format!(
            "a queue that goes within {ROUNDS} round trips, or {TEST_INTERVAL} after a drain test, 1/{FALLEN_PART} of it at once \
             ({FASTEST} times as fast as the link): startup goes on, or a probe follows"
        ),
    )]
}

/// A queue that has been taken for that of others, while it may be none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    until: Time,
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
    /// Startup has found others by the delay of this ack.
    pub(super) fn startup_verdict(&self, sample: &Sample) -> Option<Verdict> {
        self.verdict(sample, sample.smoothed_rtt * ROUNDS)
    }

    /// Drain tests have; they can be refuted until the next.
    pub(super) fn test_verdict(&self, sample: &Sample) -> Option<Verdict> {
        self.verdict(sample, TEST_INTERVAL)
    }

    /// None if nothing can refute it: who has lost much of a flight in startup has met a full queue.
    fn verdict(&self, sample: &Sample, time: Duration) -> Option<Verdict> {
        let (queue, eps) = (self.path.delay_of(sample.rtt), self.path.strict_eps());
        let may_be_wrong = queue > eps && !self.reach.is_overrun() && self.has(Part::Revision);
        let (until, began) = (sample.now + time, (sample.sent_at, sample.now));
        may_be_wrong.then_some(Verdict { until, queue, eps, began, bytes: 0.0, fallen: Duration::ZERO })
    }

    /// An ack arrives in a hold: true if it shows that nobody is there after all.
    pub(super) fn refutes_verdict(&mut self, sample: &Sample) -> bool {
        let Some(rate) = self.reach.ceiling else { return false };
        let Some(verdict) = self.neighbour.verdict.as_mut().filter(|verdict| sample.now <= verdict.until)
        else {
            return false;
        };
        verdict.on_ack(sample, rate);
        let has_fallen = verdict.fallen >= verdict.queue / FALLEN_PART;
        let is_gone = self.path.queue() <= verdict.eps.min(verdict.queue / 2);
        has_fallen && is_gone && self.cycle.rounds >= 1
    }

    /// Nobody is there: startup goes on, or where half of what trains have shown is known, the next probe comes.
    pub(super) fn go_on_alone(&mut self) {
        self.neighbour = Neighbour::default();
        self.neighbour.was_looked_for = true;
        if self.is_alone() || self.reach.is_resumed {
            self.reach.is_doubtful = true;
        } else {
            self.resume_reach();
        }
    }
}

//! Steps of the round trip: delay that comes at once and stays is the medium's, as a queue grows by what is sent.

use posthaste_units::{Duration, Time};

use crate::congestion::model::WindowedMax;

/// Rounds of which the greatest step is kept.
pub(super) const ROUNDS: u64 = 20;

/// An ack, as far as steps need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) sent_at: Time,
    /// The round trip without the receiver's own delay.
    pub(super) rtt: Duration,
    /// The time that what it acknowledges takes on the fastest bottleneck that is still possible.
    pub(super) service: Duration,
}

/// Steps upwards of the last rounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps {
    /// The last two acks, the later one last.
    last: [Option<Arrival>; 2],
    greatest: WindowedMax,
}

impl Steps {
    /// An ack arrives in this round.
    ///
    /// The step is that of the ack before it, so that a single late one is not taken for a step. What was sent in between
    /// explains as much as it takes on the bottleneck, and a neighbour that doubles its rate as much as passed in between.
    pub(super) fn update(&mut self, round: u64, now: Arrival) {
        if let [Some(before), Some(last)] = self.last {
            let drained = now.sent_at.since(last.sent_at);
            let level = last.rtt.min(now.rtt + drained);
            let explained = last.service.max(last.sent_at.since(before.sent_at));
            let step = level.saturating_sub(before.rtt).saturating_sub(explained);
            self.greatest.update(round, ROUNDS, step.as_secs_f64());
        }
        self.last = [self.last[1], Some(now)];
    }

    /// The greatest of the last rounds.
    pub(super) fn greatest(&self) -> Duration {
        Duration::from_secs_f64(self.greatest.get())
    }
}

//! How fast an application reads: a token bucket in virtual time.

use posthaste_units::{ByteCount, Duration, Rate, Time};

use super::download::{Download, Step};
use crate::peer::Peer;

/// Time between two reads of an application that has more to read than its rate permits. The bucket holds as much as
/// its rate gives in this time: what an idle reader saves up.
pub const READ_STEP: Duration = Duration::from_millis(10);

/// Reads downloads at a rate, or as fast as they come.
#[derive(Debug)]
pub(super) struct ReadBudget {
    limit: Option<Limit>,
}

#[derive(Debug)]
struct Limit {
    rate: Rate,
    /// [`READ_STEP`], or the time of one byte where that is longer.
    step: Duration,
    /// By then, all that has been read is paid for at the rate.
    paid_at: Time,
    /// Set while more may wait than the rate permits: when to read on.
    resume_at: Option<Time>,
}

impl ReadBudget {
    /// A reader at `rate`, which is not zero.
    pub(super) fn new(rate: Option<Rate>) -> Self {
        let limit = rate.map(|rate| Limit {
            rate,
            step: READ_STEP.max(rate.time_for(ByteCount::new(1))),
            paid_at: Time::ZERO,
            resume_at: None,
        });
        Self { limit }
    }

    /// Reads what may be read now. Before [`Self::next_timeout`] that is nothing, whatever has arrived.
    pub(super) fn pump(&mut self, now: Time, download: &mut Download, peer: &mut dyn Peer) -> Step {
        let Some(limit) = &mut self.limit else { return download.pump(now, peer, u64::MAX) };
        if limit.resume_at.is_some_and(|resume_at| resume_at > now) {
            return Step::Open;
        }
        let paid_at = limit.paid_at.max(now - limit.step);
        let granted = limit.rate.bytes_in(now.since(paid_at)).get();
        let before = download.read();
        let step = download.pump(now, peer, granted);
        let taken = download.read() - before;
        limit.paid_at = paid_at + limit.rate.time_for(ByteCount::new(taken));
        // If less was read than granted, nothing waits: the stack will tell when there is more.
        limit.resume_at = (taken == granted && step == Step::Open).then(|| limit.paid_at + limit.step);
        step
    }

    /// When to read on, if more may wait than could be read.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.limit.as_ref()?.resume_at
    }
}

//! The token bucket that spreads packets over time.
//!
//! The rate and the depth come from the congestion policy; the bucket only keeps count. It fills with time
//! passed, so a timer that fires late loses nothing until the bucket is full: the policy's burst is at once
//! the bound on what a late wake-up may release and the tolerance for it.

use posthaste_policy::Pacing;
use posthaste_units::{ByteCount, Duration, Time};

/// Credit is counted in bytes times nanoseconds a second, so that no refill is ever rounded away.
const SCALE: i128 = 1_000_000_000;

/// What accumulates before a blocked sender is woken: the work of a wake-up is then shared by several datagrams.
const WAKE_INTERVAL: Duration = Duration::from_millis(1);

/// No wake-up waits for more than one full batch of segments (`UDP_SEGMENT` takes 64 KiB).
const WAKE_BYTES: ByteCount = ByteCount::new(64 * 1024);

/// The bucket of one path.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// Scaled bytes that may leave; negative after packets that did not ask (probes).
    credit: i128,
    /// The scaled depth at the last refill.
    depth: i128,
    /// When the bucket was last filled; `None` while unpaced.
    filled_at: Option<Time>,
    /// The largest burst that a start policy has permitted.
    granted: ByteCount,
}

impl Pacer {
    /// Fills the bucket up to `now` and returns the bytes that may leave at once; `None` is unpaced.
    pub(crate) fn available(
        &mut self,
        now: Time,
        pacing: Option<&Pacing>,
        max_datagram_size: ByteCount,
    ) -> Option<ByteCount> {
        let Some(pacing) = pacing else {
            *self = Self::default();
            return None;
        };
        // spec: rfc9002 7.7 paced-or-bounded
        self.depth = scaled(pacing.burst.max(max_datagram_size));
        self.credit = match self.filled_at {
            None => self.depth,
            Some(filled_at) => {
                let elapsed = now.since(filled_at).as_nanos();
                let gain = u128::from(pacing.rate.as_bytes_per_second()) * u128::from(elapsed);
                let gain = i128::try_from(gain).unwrap_or(i128::MAX);
                self.credit.saturating_add(gain).min(self.depth)
            }
        };
        self.filled_at = Some(self.filled_at.map_or(now, |filled_at| filled_at.max(now)));
        Some(ByteCount::new(u64::try_from(self.credit / SCALE).unwrap_or(0)))
    }

    /// The start policy permits `burst`, and means it now: what that is more than it has permitted before may leave at
    /// once, however empty the controller's own pacing has left the bucket.
    pub(crate) fn grant(&mut self, burst: ByteCount) {
        if burst > self.granted {
            self.credit = self.credit.saturating_add(scaled(burst - self.granted));
            self.granted = burst;
        }
    }

    /// Takes `bytes` out. Packets that may not wait go into debt, at most one burst of it.
    pub(crate) fn on_sent(&mut self, bytes: ByteCount) {
        if self.filled_at.is_some() {
            self.credit = (self.credit - scaled(bytes)).max(-self.depth);
        }
    }

    /// When to look again once `spent` bytes more have left: a wake-up's worth is available then.
    pub(crate) fn ready_at(&self, pacing: &Pacing, max_datagram_size: ByteCount, spent: ByteCount) -> Time {
        let Some(filled_at) = self.filled_at else { return Time::ZERO };
        let depth = pacing.burst.max(max_datagram_size);
        let wake = pacing.rate.bytes_in(WAKE_INTERVAL).min(WAKE_BYTES).max(max_datagram_size).min(depth);
        let missing = scaled(wake) + scaled(spent) - self.credit;
        let rate = i128::from(pacing.rate.as_bytes_per_second());
        if missing <= 0 {
            return filled_at;
        }
        if rate == 0 {
            return Time::FAR_FUTURE;
        }
        let wait = (missing - 1) / rate + 1;
        filled_at + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

fn scaled(bytes: ByteCount) -> i128 {
    i128::from(bytes.get()) * SCALE
}

#[cfg(test)]
mod tests;

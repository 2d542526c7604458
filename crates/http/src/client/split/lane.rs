//! A connection that brings parts, and how it is doing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::connect::Live;

/// A lane on which nothing moves for so long, and for [`STALL_ROUNDS`] round trips, while others move, is given up.
pub(super) const STALL: Duration = Duration::from_secs(2);

/// Round trips of silence that go with [`STALL`]: a loss of the last packets takes about three to be repaired.
const STALL_ROUNDS: u32 = 6;

/// One of the connections.
pub(super) struct Lane {
    pub(super) state: State,
    /// The connection's place among the client's, once it was there.
    pub(super) index: Option<usize>,
    /// Bytes of the object that it has brought.
    pub(super) bytes: u64,
    meter: Meter,
    /// The connection's count of what has moved on it, and when that was last another.
    seen: (u64, Instant),
}

pub(super) enum State {
    Connecting,
    Ready(Arc<Live>),
    /// It is no more, or not to be relied upon.
    Retired,
}

/// Bytes since a moment.
struct Meter {
    since: Instant,
    bytes: u64,
}

impl Lane {
    pub(super) fn new(now: Instant) -> Self {
        let meter = Meter { since: now, bytes: 0 };
        Self { state: State::Connecting, index: None, bytes: 0, meter, seen: (0, now) }
    }

    /// The connection is there.
    pub(super) fn begin(&mut self, live: Arc<Live>) {
        self.index = Some(live.index);
        self.state = State::Ready(live);
    }

    pub(super) fn live(&self) -> Option<&Arc<Live>> {
        match &self.state {
            State::Ready(live) => Some(live),
            State::Connecting | State::Retired => None,
        }
    }

    /// Something is asked of it: its silence counts from now.
    pub(super) fn on_asked(&mut self, now: Instant) {
        self.seen.1 = now;
    }

    /// Takes note of bytes; gives what arrives in a round trip whenever one is over.
    pub(super) fn on_arrived(&mut self, now: Instant, bytes: u64) -> Option<u64> {
        self.meter.bytes += bytes;
        let elapsed = now - self.meter.since;
        let round_trip: Duration = self.live()?.quic().stats().rtt.smoothed.into();
        if elapsed < round_trip || elapsed.is_zero() {
            return None;
        }
        let share = round_trip.as_secs_f64() / elapsed.as_secs_f64();
        let arrives = (self.meter.bytes as f64 * share) as u64;
        self.meter = Meter { since: now, bytes: 0 };
        Some(arrives)
    }

    /// How long nothing has moved on the connection.
    pub(super) fn silence(&mut self, now: Instant) -> Duration {
        let count = self.live().map_or(0, |live| live.progress.count());
        if count != self.seen.0 {
            self.seen = (count, now);
        }
        now - self.seen.1
    }

    /// The silence that is too long for it.
    pub(super) fn patience(&self) -> Duration {
        let round_trip = self.live().map_or(Duration::ZERO, |live| live.quic().stats().rtt.smoothed.into());
        STALL.max(round_trip * STALL_ROUNDS)
    }
}

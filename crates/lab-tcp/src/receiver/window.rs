//! How many bytes may come: Linux's receive buffer auto-tuning. Buffers are counted in payload; what the kernel
//! spends on its own structures is not.

use posthaste_units::{Duration, Time};

/// The first window: what fits the field without scaling.
const INITIAL: u64 = 65_535;

/// Segments that auto-tuning grants beyond twice of what was read in a round trip.
const MARGIN: u64 = 16;

/// Segments that are expected in the first round trip.
const FIRST_ROUND: u64 = 10;

/// The receive window.
#[derive(Debug)]
pub(super) struct Window {
    mss: u64,
    /// Bytes that may lie unread, now and ever.
    space: u64,
    max: u64,
    /// Least power of two that the scaled field can express `max` with.
    granule: u64,
    /// The first byte that may not be sent.
    edge: u64,
    /// All before this was read.
    consumed: u64,
    rtt: Option<Duration>,
    last_echo: Time,
    /// When the present round began, what was read then, and most read in one round.
    round_start: Time,
    round_consumed: u64,
    most_read: u64,
}

impl Window {
    pub(super) fn new(mss: u64, max: u64) -> Self {
        let scale = (0..14).find(|scale| max >> scale <= 65_535).unwrap_or(14);
        Self {
            mss,
            space: INITIAL.min(max),
            max,
            granule: 1 << scale,
            edge: INITIAL.min(max),
            consumed: 0,
            rtt: None,
            last_echo: Time::ZERO,
            round_start: Time::ZERO,
            round_consumed: 0,
            most_read: FIRST_ROUND * mss,
        }
    }

    pub(super) fn begin(&mut self, now: Time) {
        self.round_start = now;
    }

    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// The receiver's estimate of the round trip.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Data that echoes a timestamp: how long the round trip was. Only full segments, which wait for nothing, and
    /// only the first that echoes it.
    pub(super) fn on_echo(&mut self, now: Time, echo: Time, length: u64) {
        if length < self.mss || echo <= self.last_echo {
            return;
        }
        self.last_echo = echo;
        let sample = now.since(echo);
        self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.saturating_sub(rtt / 8) + sample / 8));
    }

    /// All before `consumed` has been read.
    pub(super) fn on_consumed(&mut self, now: Time, consumed: u64) {
        self.consumed = self.consumed.max(consumed);
        let Some(rtt) = self.rtt else { return };
        if now.since(self.round_start) < rtt {
            return;
        }
        let read = self.consumed - self.round_consumed;
        if read > self.most_read {
            // Twice as much, and as much more as the last round had grown: slow start doubles again meanwhile.
            let wanted = 2 * read + MARGIN * self.mss;
            let growth = wanted * (read - self.most_read) / self.most_read.max(1);
            self.space = self.space.max(wanted + 2 * growth).min(self.max);
            self.most_read = read;
        }
        self.round_start = now;
        self.round_consumed = self.consumed;
    }

    /// Bytes that there is room for beyond `next`.
    fn room(&self, next: u64) -> u64 {
        self.space.saturating_sub(next - self.consumed)
    }

    /// True if the other end should hear of the room at once: it knows of less than half.
    pub(super) fn is_worth_telling(&self, next: u64) -> bool {
        let known = self.edge.saturating_sub(next);
        let room = self.room(next);
        room >= self.mss && known < self.space / 2 && room >= 2 * known
    }

    /// The window to announce. Its edge never goes back, and it never opens by less than a segment
    /// (RFC 9293 3.8.6.2.2).
    pub(super) fn advertise(&mut self, next: u64) -> u64 {
        let room = self.room(next) / self.granule * self.granule;
        if next + room >= self.edge + self.mss {
            self.edge = next + room;
        }
        self.edge.saturating_sub(next)
    }
}

//! Pacing as Linux's TCP does it without a queueing discipline that would: bursts of about a millisecond, each of which
//! leaves once the one before has taken its time.

use posthaste_units::{ByteCount, Duration, Rate, Time};

/// A burst lasts so long at the pacing rate (Linux's `sk_pacing_shift` of 10: a 1024th of a second).
const BURST_TIME: Duration = Duration::from_nanos(1_000_000_000 / 1024);

/// Bytes of a burst at most (`GSO_LEGACY_MAX_SIZE`, less headers).
const MAX_BURST: u64 = 65_535 - 320;

/// Below this rate bursts are of one segment, above of two at least (`bbr_min_tso_segs`).
const SLOW: Rate = Rate::from_bits_per_second(1_200_000);

/// When the next burst may leave.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    rate: Option<Rate>,
    next: Time,
    /// Segments that the present burst still has.
    burst_left: u32,
}

impl Pacer {
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = Some(rate);
    }

    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Segments of a burst.
    pub(super) fn burst(&self, mss: u64) -> u32 {
        let Some(rate) = self.rate else { return 2 };
        let bytes = rate.bytes_in(BURST_TIME).get().min(MAX_BURST);
        let least = if rate < SLOW { 1 } else { 2 };
        ((bytes / mss) as u32).clamp(least, 0x7f)
    }

    /// When the next segment may leave; now if that time has come.
    pub(super) fn next(&self, now: Time) -> Time {
        if self.burst_left > 0 { now } else { self.next.max(now) }
    }

    /// When what has left will have taken its time: the earliest departure that the kernel knows.
    pub(super) fn edge(&self) -> Time {
        self.next
    }

    /// A segment with `length` bytes leaves.
    pub(super) fn on_sent(&mut self, now: Time, length: u64, mss: u64) {
        let Some(rate) = self.rate else { return };
        if self.burst_left == 0 {
            self.burst_left = self.burst(mss);
            self.next = self.next.max(now);
        }
        self.burst_left -= 1;
        self.next += rate.time_for(ByteCount::new(length));
    }

    /// Nothing more leaves now: the next segment begins a burst of its own.
    pub(super) fn end_burst(&mut self) {
        self.burst_left = 0;
    }
}

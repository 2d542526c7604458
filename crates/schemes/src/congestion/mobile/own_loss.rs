//! The loss that is the path's own: what is lost where no queue stands, and even in the quietest quarter of that.
//!
//! A packet that a full queue drops has neighbours that were delayed: such packets say nothing of the path's own loss, and
//! are not counted. Where the queue is too short to be seen, random loss is there all the time and the queue's comes and
//! goes: the lower quartile over chunks of packets tells the first and passes over the second, whoever caused it.

use posthaste_policy::sample::PathLoss;
use posthaste_units::Time;

/// Packets of a chunk.
const CHUNK: u32 = 128;
/// Chunks that are remembered.
const CHUNKS: usize = 16;
/// Chunks before anything is said.
const LEAST_CHUNKS: usize = 2;
/// How many standard deviations a share may be above the path's own before it is another.
const DEVIATIONS: f64 = 3.0;
/// Packets that must be counted in both rates before they are compared.
const LEAST_COMPARED: f64 = 50.0;
/// A difference between the two rates that is never of account.
const LEAST_DIFFERENCE: f64 = 0.01;

/// Packets settled, and how many of them were lost.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    settled: f64,
    lost: f64,
}

impl Count {
    fn part(self) -> f64 {
        if self.settled > 0.0 { self.lost / self.settled } else { 0.0 }
    }

    fn halve(&mut self) {
        self.settled /= 2.0;
        self.lost /= 2.0;
    }
}

/// The path's own loss.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OwnLoss {
    settled: u32,
    lost: u32,
    /// All that met no queue.
    quiet: (u32, u32),
    /// Lost of each of the last chunks, a ring.
    chunks: [u32; CHUNKS],
    filled: usize,
    next: usize,
    /// What left while more than the known rate was tried, and what left otherwise.
    fast: Count,
    slow: Count,
    /// When the last stretch of trying more began and ended.
    fast_from: Option<Time>,
    fast_until: Option<Time>,
}

impl OwnLoss {
    /// A packet has been acknowledged that was sent then; `has_queue` if it was delayed.
    pub(super) fn on_acked(&mut self, sent_at: Time, has_queue: bool) {
        self.settle(sent_at, 0, has_queue);
    }

    /// A packet has been declared lost that was sent then; `has_queue` if a neighbour of it was delayed.
    pub(super) fn on_lost(&mut self, sent_at: Time, has_queue: bool) {
        self.settle(sent_at, 1, has_queue);
    }

    fn settle(&mut self, sent_at: Time, lost: u32, has_queue: bool) {
        let count = if self.was_fast(sent_at) { &mut self.fast } else { &mut self.slow };
        count.settled += 1.0;
        count.lost += f64::from(lost);
        if has_queue {
            return;
        }
        self.quiet = (self.quiet.0.saturating_add(1), self.quiet.1.saturating_add(lost));
        self.settled += 1;
        self.lost += lost;
        if self.settled < CHUNK {
            return;
        }
        if let Some(chunk) = self.chunks.get_mut(self.next) {
            *chunk = self.lost;
        }
        self.next = (self.next + 1) % CHUNKS;
        self.filled = (self.filled + 1).min(CHUNKS);
        (self.settled, self.lost) = (0, 0);
    }

    fn was_fast(&self, sent_at: Time) -> bool {
        let since = self.fast_from.is_some_and(|from| sent_at >= from);
        since && self.fast_until.is_none_or(|until| sent_at <= until)
    }

    /// What was taken for a path without a queue had one: nothing is known of its own loss.
    pub(super) fn forget(&mut self) {
        (self.settled, self.lost, self.filled, self.next) = (0, 0, 0, 0);
        self.quiet = (0, 0);
    }

    /// All that was lost where no queue stood.
    pub(super) fn quiet(&self) -> PathLoss {
        PathLoss::new(self.quiet.0, self.quiet.1)
    }

    /// More than the known rate is tried from `now` on.
    pub(super) fn begin_fast(&mut self, now: Time) {
        self.fast.halve();
        self.slow.halve();
        self.fast_from = Some(now);
        self.fast_until = None;
    }

    /// No more than the known rate is tried from `now` on.
    pub(super) fn end_fast(&mut self, now: Time) {
        self.fast_from.get_or_insert(Time::ZERO);
        self.fast_until.get_or_insert(now);
    }

    /// True once there is enough to tell by.
    pub(super) fn is_known(&self) -> bool {
        self.filled >= LEAST_CHUNKS
    }

    /// The part of what is sent that the path itself loses, at most `most`; 0 before there is enough to tell by.
    pub(super) fn part(&self, most: f64) -> f64 {
        if !self.is_known() {
            return 0.0;
        }
        let mut chunks = self.chunks;
        let known = chunks.get_mut(..self.filled).unwrap_or_default();
        known.sort_unstable();
        let quartile = known.get((self.filled - 1) / 4).copied().unwrap_or(0);
        (f64::from(quartile) / f64::from(CHUNK)).min(most)
    }

    /// The greatest part that any of the last chunks has lost, at most `most`.
    pub(super) fn greatest(&self, most: f64) -> f64 {
        let chunks = self.chunks.get(..self.filled).unwrap_or_default();
        let greatest = chunks.iter().max().copied().unwrap_or(0);
        (f64::from(greatest) / f64::from(CHUNK)).min(most)
    }

    /// What `packets` may lose beyond `part` because losses scatter, and because `part` was counted on few.
    pub(super) fn scatter(part: f64, packets: f64) -> f64 {
        let counted = 1.0 / packets.max(1.0) + 1.0 / f64::from(CHUNK);
        DEVIATIONS * libm::sqrt(part * (1.0 - part) * counted)
    }

    /// True if the path loses the same whatever the rate.
    pub(super) fn is_flat(&self) -> bool {
        let (fast, slow) = (self.fast, self.slow);
        if fast.settled < LEAST_COMPARED || slow.settled < LEAST_COMPARED {
            return false;
        }
        let part = (fast.lost + slow.lost) / (fast.settled + slow.settled);
        let deviation = libm::sqrt(part * (1.0 - part) * (1.0 / fast.settled + 1.0 / slow.settled));
        fast.part() - slow.part() <= LEAST_DIFFERENCE.max(2.0 * deviation)
    }
}

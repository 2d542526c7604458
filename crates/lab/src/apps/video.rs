//! Chunked video of one bit rate.

use posthaste_units::{Duration, Rate, Time};

use super::sequence::{Next, Plan, Sequence};
use super::{AppReport, Exchange};

/// A video and its player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VideoSpec {
    /// Media bits a second.
    pub rate: Rate,
    /// Play time of a chunk, above zero.
    pub chunk: Duration,
    /// Chunks.
    pub chunks: u32,
    /// Play time that the player keeps in its buffer at most, a chunk at least.
    pub buffer: Duration,
}

/// Asks for chunk after chunk while its buffer has room for one more; plays from the end of the first chunk on; stands
/// still whenever the next chunk is not complete in time. It has finished when the last chunk has been read.
pub type Video = Sequence<VideoPlan>;

/// The plan of [`Video`].
#[derive(Debug)]
pub struct VideoPlan {
    spec: VideoSpec,
    /// Chunks that are not complete.
    missing: u32,
    /// When the first chunk was complete.
    plays_since: Option<Time>,
    /// When all complete chunks will have been played.
    dry_at: Time,
    /// Time that playback stood still.
    stalled: Duration,
    stalls: u32,
}

impl Video {
    /// A player at `host` that connects at `start_at`.
    pub fn new(host: usize, spec: VideoSpec, start_at: Time) -> Self {
        Self::with_plan(host, VideoPlan::new(spec), start_at)
    }
}

impl VideoPlan {
    /// Nothing asked for, nothing played.
    pub fn new(spec: VideoSpec) -> Self {
        Self {
            spec,
            missing: spec.chunks,
            plays_since: None,
            dry_at: Time::ZERO,
            stalled: Duration::ZERO,
            stalls: 0,
        }
    }

    fn on_chunk(&mut self, now: Time) {
        self.missing -= 1;
        if self.plays_since.is_none() {
            self.plays_since = Some(now);
        } else if now > self.dry_at {
            self.stalls += 1;
            self.stalled += now.since(self.dry_at);
        }
        self.dry_at = self.dry_at.max(now) + self.spec.chunk;
    }
}

impl Plan for VideoPlan {
    fn next(&mut self, now: Time, last: Option<&Exchange>) -> Option<Next> {
        if last.is_some() {
            self.on_chunk(now);
        }
        if self.missing == 0 {
            return None;
        }
        let bytes = self.spec.rate.bytes_in(self.spec.chunk).get();
        // There is room once what is left to play and one more chunk fit the buffer.
        let has_room_at = self.dry_at + self.spec.chunk - self.spec.buffer;
        Some(Next { at: has_room_at.max(now), bytes })
    }

    fn add_to(&self, report: &mut AppReport) {
        report.stalled_seconds = Some(self.stalled.as_secs_f64());
        report.stalls = Some(self.stalls);
        report.runs_dry = self.plays_since.filter(|_| self.missing > 0).map(|_| self.dry_at);
        report.startup_seconds = match (self.plays_since, report.started) {
            (Some(plays), Some(started)) => Some(plays.since(started).as_secs_f64()),
            _ => None,
        };
    }
}

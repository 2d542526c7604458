//! How many more segments than the estimated rate says are acknowledged at once: room for them in the window
//! (`bbr_update_ack_aggregation`).

use posthaste_units::{Duration, Time};

use super::Ack;

/// Rounds that one half of the filter covers.
const ROUNDS: u32 = 5;

/// The excess counts up to what the rate delivers in this.
const MOST: Duration = Duration::from_millis(100);

/// Segments after which a period ends in any case.
const LONGEST: u64 = 1 << 20;

/// The greatest excess of the last five to ten rounds.
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    excess: [u32; 2],
    half: usize,
    rounds: u32,
    begun_at: Time,
    acked: u64,
}

impl Aggregation {
    /// A period begins.
    pub(super) fn begin(&mut self, now: Time) {
        (self.begun_at, self.acked) = (now, 0);
    }

    /// Takes in an ack whose sample is of `delivered` segments; `rate` in segments a second.
    pub(super) fn on_ack(&mut self, ack: &Ack, delivered: u64, rate: f64, is_round_start: bool, window: u32) {
        if ack.sample.acked == 0 || delivered == 0 {
            return;
        }
        if is_round_start {
            self.rounds = (self.rounds + 1).min(31);
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.half = 1 - self.half;
                self.excess[self.half] = 0;
            }
        }
        let mut expected = (rate * ack.now.since(self.begun_at).as_secs_f64()) as u64;
        if self.acked <= expected || self.acked + u64::from(ack.sample.acked) >= LONGEST {
            self.begin(ack.now);
            expected = 0;
        }
        self.acked = (self.acked + u64::from(ack.sample.acked)).min(0xf_ffff);
        let excess = (self.acked.saturating_sub(expected) as u32).min(window);
        self.excess[self.half] = self.excess[self.half].max(excess);
    }

    /// What the window has room for, at `rate` segments a second.
    pub(super) fn extra(&self, rate: f64) -> u32 {
        let most = (rate * MOST.as_secs_f64()) as u32;
        self.excess[0].max(self.excess[1]).min(most)
    }
}

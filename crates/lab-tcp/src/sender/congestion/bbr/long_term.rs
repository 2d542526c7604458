//! The rate of a policer, which lets a burst through and then drops what exceeds it: two intervals of heavy loss with the
//! same rate (`bbr_lt_bw_sampling`).

use posthaste_units::{Duration, Time};

use super::Ack;

/// Rounds of an interval, at least.
const LEAST_ROUNDS: u32 = 4;

/// Share of losses, of 256, that makes an interval one of a policer.
const LOSS: u64 = 50;

/// How far two intervals' rates may be apart: this share, or so many bytes a second.
const RATIO: f64 = 1.0 / 8.0;
const DIFFERENCE: f64 = 4000.0 / 8.0;

/// The policer is forgotten after so many rounds.
const LONGEST: u32 = 48;

/// An interval that is being measured.
#[derive(Debug, Clone, Copy)]
struct Interval {
    begun_at: Time,
    delivered: u64,
    lost: u64,
    rounds: u32,
}

#[derive(Debug, Default)]
pub(super) struct LongTerm {
    interval: Option<Interval>,
    /// The last interval's rate, in segments a second.
    last: f64,
    used: Option<f64>,
    /// Rounds for which it has been used.
    rounds: u32,
    is_lossy: bool,
}

impl LongTerm {
    /// The policer's rate, while it counts.
    pub(super) fn rate(&self) -> Option<f64> {
        self.used
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// A timeout is a loss.
    pub(super) fn on_timeout(&mut self) {
        self.is_lossy = true;
    }

    /// Takes in an ack. True if the policer has just been forgotten.
    pub(super) fn on_ack(&mut self, ack: &Ack, is_round_start: bool) -> bool {
        let is_lossy = std::mem::take(&mut self.is_lossy) || ack.sample.lost > 0;
        if self.used.is_some() {
            self.rounds += u32::from(is_round_start);
            let is_over = self.rounds >= LONGEST;
            if is_over {
                self.reset();
            }
            return is_over;
        }
        let Some(interval) = &mut self.interval else {
            // An interval begins with a loss.
            self.interval = is_lossy.then_some(Interval {
                begun_at: ack.now,
                delivered: ack.delivered,
                lost: ack.total_lost,
                rounds: 0,
            });
            return false;
        };
        interval.rounds += u32::from(is_round_start);
        let interval = *interval;
        if ack.sample.is_app_limited || interval.rounds > 4 * LEAST_ROUNDS {
            self.reset();
        } else if interval.rounds >= LEAST_ROUNDS && is_lossy {
            // And ends with one.
            self.end(ack, interval);
        }
        false
    }

    fn end(&mut self, ack: &Ack, interval: Interval) {
        let delivered = ack.delivered - interval.delivered;
        let lost = ack.total_lost - interval.lost;
        let time = ack.now.since(interval.begun_at);
        if delivered == 0 || lost * 256 < LOSS * delivered || time < Duration::from_millis(1) {
            return;
        }
        let rate = delivered as f64 / time.as_secs_f64();
        let difference = (rate - self.last).abs();
        if self.last > 0.0 && (difference <= RATIO * self.last || difference * ack.mss as f64 <= DIFFERENCE) {
            let mean = f64::midpoint(rate, self.last);
            *self = Self { used: Some(mean), ..Self::default() };
            return;
        }
        self.last = rate;
        self.interval =
            Some(Interval { begun_at: ack.now, delivered: ack.delivered, lost: ack.total_lost, rounds: 0 });
    }
}

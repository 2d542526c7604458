//! HyStart as Linux's CUBIC has it: slow start ends when the acks of one round form a train of half an RTT, or
//! when RTTs have risen by an eighth.

use posthaste_units::{ByteCount, Duration, Rate, Time};

use super::Moment;

/// Below this window the detectors are off, in segments.
const LEAST_WINDOW: u32 = 16;

/// Acks closer than this are of one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);

/// RTT samples of a round that must be in before delay is judged.
const LEAST_SAMPLES: u32 = 8;

/// Bounds of the tolerated rise of delay.
const LEAST_RISE: Duration = Duration::from_millis(4);
const GREATEST_RISE: Duration = Duration::from_millis(16);

/// What a train may be longer for bursts of offloaded segments: the time of four of the largest at the pacing
/// rate that the kernel computes even where it does not pace, at most 1 ms.
const BURSTS: ByteCount = ByteCount::new(4 * 65_536);
const GREATEST_BURST_TIME: Duration = Duration::from_millis(1);

/// One round of slow start.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    round_start: Time,
    round_end: u64,
    last_ack: Time,
    least_of_round: Option<Duration>,
    samples: u32,
    is_done: bool,
}

impl HyStart {
    pub(super) fn begin_round(moment: &Moment) -> Self {
        Self { round_start: moment.now, last_ack: moment.now, round_end: moment.next, ..Self::default() }
    }

    /// An RTT sample in slow start; `least` is the least of all so far. True if slow start must end.
    pub(super) fn on_rtt(&mut self, sample: Duration, least: Duration, window: u32, moment: &Moment) -> bool {
        if self.is_done || window < LEAST_WINDOW {
            return false;
        }
        if moment.una > self.round_end {
            *self = Self::begin_round(moment);
        }
        self.is_done = self.is_train_long(least, window, moment) || self.has_delay_risen(sample, least);
        self.is_done
    }

    fn is_train_long(&mut self, least: Duration, window: u32, moment: &Moment) -> bool {
        if moment.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = moment.now;
        let burst_time = moment.smoothed.map_or(Duration::ZERO, |smoothed| {
            let rate = Rate::from_transfer(ByteCount::new(2 * u64::from(window) * moment.mss), smoothed);
            rate.time_for(BURSTS).min(GREATEST_BURST_TIME)
        });
        moment.now.since(self.round_start) > (least + burst_time) / 2
    }

    fn has_delay_risen(&mut self, sample: Duration, least: Duration) -> bool {
        let least_of_round = self.least_of_round.map_or(sample, |other| other.min(sample));
        self.least_of_round = Some(least_of_round);
        if self.samples < LEAST_SAMPLES {
            self.samples += 1;
            return false;
        }
        least_of_round > least + (least / 8).clamp(LEAST_RISE, GREATEST_RISE)
    }
}

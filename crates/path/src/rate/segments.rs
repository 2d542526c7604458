//! Service at a rate that is constant for a time, then another.
//!
//! Work is counted in billionths of a byte, so that a rate in bytes a second does a whole number of units each
//! nanosecond. A departure is the first nanosecond by which the work is done; what the link could do beyond it in
//! that nanosecond goes to the next packet of the same busy period. No rounding ever adds up.

use std::sync::Arc;

use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

use crate::distribution::normal;
use crate::rate::NormalRate;
use crate::trace::RateTrace;

/// Units of work in a byte.
pub(crate) const UNITS: u64 = 1_000_000_000;

/// A rate over time, piecewise constant.
pub(crate) trait Segments {
    /// The rate at `time` and the end of the segment, later than `time`.
    fn at(&mut self, time: Time) -> (Rate, Time);

    /// How many units of work each whole cycle does, and how long a cycle takes, if the rate repeats.
    fn cycle(&self) -> Option<(u128, Duration)> {
        None
    }
}

/// The clockwork over any segments.
#[derive(Debug)]
pub(crate) struct Segmented<S> {
    segments: S,
    /// Units done beyond the last departure within its nanosecond.
    credit: u64,
}

impl<S: Segments> Segmented<S> {
    pub(crate) fn new(segments: S) -> Self {
        Self { segments, credit: 0 }
    }

    pub(crate) fn forget_credit(&mut self) {
        self.credit = 0;
    }

    pub(crate) fn serve(&mut self, start: Time, length: ByteCount) -> Time {
        let mut need = (u128::from(length.get()) * u128::from(UNITS)).saturating_sub(u128::from(self.credit));
        let mut time = start;
        if let Some((work, span)) = self.segments.cycle() {
            // Whole cycles at once: a trace that is nearly always silent must not cost a step for each of them.
            let cycles = u64::try_from(need.saturating_sub(1) / work).unwrap_or(u64::MAX);
            need -= u128::from(cycles) * work;
            time += span * cycles;
        }
        loop {
            let (rate, end) = self.segments.at(time);
            let rate = rate.as_bytes_per_second();
            let possible = u128::from(rate) * u128::from(end.since(time).as_nanos());
            if possible >= need || end == Time::FAR_FUTURE {
                let (nanos, credit) = divide_up(need, rate);
                self.credit = credit;
                return time + Duration::from_nanos(nanos);
            }
            need -= possible;
            time = end;
        }
    }
}

/// `need / rate` rounded up, and by how much the product with `rate` exceeds `need`.
fn divide_up(need: u128, rate: u64) -> (u64, u64) {
    if let Ok(need) = u64::try_from(need) {
        // Nearly always: one division in hardware instead of a call.
        let nanos = need.checked_div(rate).unwrap_or(u64::MAX);
        let rest = need.checked_rem(rate).unwrap_or_default();
        return if rest == 0 { (nanos, 0) } else { (nanos.saturating_add(1), rate - rest) };
    }
    let rate = u128::from(rate.max(1));
    let nanos = need.div_ceil(rate);
    u64::try_from(nanos).map_or((u64::MAX, 0), |whole| (whole, (nanos * rate - need) as u64))
}

/// One rate for ever.
#[derive(Debug)]
pub(crate) struct Constant(pub(crate) Rate);

impl Segments for Constant {
    fn at(&mut self, _: Time) -> (Rate, Time) {
        (self.0, Time::FAR_FUTURE)
    }
}

/// A draw every interval.
#[derive(Debug)]
pub(crate) struct Redrawn {
    config: NormalRate,
    seed: [u8; 32],
    /// The last interval that was asked for, and its rate.
    current: Option<(u64, Rate)>,
}

impl Redrawn {
    pub(crate) fn new(config: NormalRate, rng: &mut Rng) -> Self {
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        Self { config, seed, current: None }
    }

    /// The rate of the interval with this number: a function of seed and number, however many were asked before.
    fn draw(&self, number: u64) -> Rate {
        let mut seed = self.seed;
        for (byte, bits) in seed.iter_mut().zip(number.to_le_bytes()) {
            *byte ^= bits;
        }
        let mut rng = Rng::from_seed(seed);
        let mean = self.config.mean.as_bytes_per_second() as f64;
        let deviation = self.config.deviation.as_bytes_per_second() as f64;
        loop {
            let rate = mean + deviation * normal(&mut rng);
            // At most half a mean of deviation: at least 95 % of draws are within two of them.
            if rate > 0.0 && rate < 2.0 * mean {
                return Rate::from_bytes_per_second(((rate + 0.5) as u64).max(1));
            }
        }
    }
}

impl Segments for Redrawn {
    fn at(&mut self, time: Time) -> (Rate, Time) {
        let interval = self.config.interval.as_nanos();
        let number = time.as_nanos() / interval;
        let rate = match self.current {
            Some((current, rate)) if current == number => rate,
            _ => self.draw(number),
        };
        self.current = Some((number, rate));
        (rate, Time::from_nanos(number.saturating_add(1).saturating_mul(interval)))
    }
}

/// A recorded rate, over and over.
#[derive(Debug)]
pub(crate) struct Cyclic {
    trace: Arc<RateTrace>,
    /// Where in the recording the clock begins.
    start: Duration,
    /// The step that was last asked for: mostly the next one is wanted.
    step: usize,
}

impl Cyclic {
    pub(crate) fn new(trace: Arc<RateTrace>, start: Duration) -> Self {
        Self { trace, start, step: 0 }
    }
}

impl Segments for Cyclic {
    fn at(&mut self, time: Time) -> (Rate, Time) {
        let cycle = self.trace.duration().as_nanos();
        let clock = time + self.start;
        let phase = Duration::from_nanos(clock.as_nanos() % cycle);
        self.step = self.trace.step_at(phase, self.step);
        let (rate, end) = self.trace.step(self.step);
        (rate, clock - phase + end - self.start)
    }

    fn cycle(&self) -> Option<(u128, Duration)> {
        Some((self.trace.work(), self.trace.duration()))
    }
}

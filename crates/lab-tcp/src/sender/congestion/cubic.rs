//! CUBIC (RFC 9438) with Linux's roundings: a window of whole segments, and growth of one segment for every so
//! many delivered, computed anew at most every 31 ms while the window stays.

use posthaste_units::{Duration, Time};

use super::Moment;
use super::hystart::HyStart;

/// Linux's beta, 717/1024, which the RFC rounds to 0.7.
const BETA: f64 = 717.0 / 1024.0;

/// C of the RFC in segments a second cubed: Linux has 410/1024.
const C: f64 = 410.0 / 1024.0;

/// Segments delivered for each of a Reno flow's that is as aggressive (RFC 9438 4.3): Linux's 15/8 for 1/alpha.
const RENO_SCALE: (u32, u32) = (15, 8);

/// While the window stays, growth is not computed more often.
const INTERVAL: Duration = Duration::from_micros(31_250);

/// After a reduction RTTs say little for this long.
const SETTLING: Duration = Duration::from_secs(1);

/// What delays growth beyond the plateau at first: one segment for every 20 delivered, at least, before a loss.
const SLOWEST_BEFORE_LOSS: u32 = 20;

/// CUBIC's state, named as the RFC names it where it has a name.
#[derive(Debug, Default)]
pub(super) struct Cubic {
    /// `W_max`: the window at the last reduction; zero before the first.
    window_max: u32,
    epoch: Option<Epoch>,
    /// The window and the time for which growth was last computed.
    computed: Option<(u32, Time)>,
    /// Segments that must be delivered for one segment of growth.
    per_segment: u32,
    /// The least RTT.
    least_rtt: Option<Duration>,
    hystart: HyStart,
}

/// The time since growth began.
#[derive(Debug)]
struct Epoch {
    start: Time,
    /// K in seconds.
    k: f64,
    /// The plateau.
    origin: u32,
    /// `W_est`, and segments delivered towards its next.
    reno_window: u32,
    reno_credit: u32,
}

impl Cubic {
    pub(super) fn threshold_after_loss(&mut self, window: u32) -> u32 {
        self.epoch = None;
        self.window_max = if window < self.window_max {
            // Fast convergence: a shrinking share makes room for others (RFC 9438 4.7).
            (f64::from(window) * (1.0 + BETA) / 2.0) as u32
        } else {
            window
        };
        ((f64::from(window) * BETA) as u32).max(2)
    }

    /// Everything known is void, but for the threshold.
    pub(super) fn on_timeout(&mut self, moment: &Moment) {
        *self = Self { hystart: HyStart::begin_round(moment), ..Self::default() };
    }

    /// True if slow start must end.
    pub(super) fn on_rtt(
        &mut self,
        sample: Duration,
        is_in_slow_start: bool,
        window: u32,
        moment: &Moment,
    ) -> bool {
        if self.epoch.as_ref().is_some_and(|epoch| moment.now.since(epoch.start) < SETTLING) {
            return false;
        }
        let least = self.least_rtt.map_or(sample, |least| least.min(sample));
        self.least_rtt = Some(least);
        is_in_slow_start && self.hystart.on_rtt(sample, least, window, moment)
    }

    /// Time in which nothing was in flight does not count.
    pub(super) fn shift_epoch(&mut self, now: Time, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + idle).min(now);
        }
    }

    /// How many segments must be delivered for the window to grow by one.
    pub(super) fn acks_per_segment(&mut self, window: u32, delivered: u32, moment: &Moment) -> u32 {
        let now = moment.now;
        if let Some(epoch) = &mut self.epoch {
            epoch.reno_credit += delivered;
        }
        if self.computed.is_some_and(|(for_window, at)| for_window == window && now.since(at) <= INTERVAL) {
            return self.per_segment.max(1);
        }
        let is_new_time = self.computed.is_none_or(|(_, at)| at != now);
        let window_max = self.window_max;
        let is_new_epoch = self.epoch.is_none();
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(now, window, window_max, delivered));
        if is_new_time || is_new_epoch {
            self.computed = Some((window, now));
            let time = (now.since(epoch.start) + self.least_rtt.unwrap_or_default()).as_secs_f64();
            self.per_segment = epoch.acks_per_segment(window, time);
            if window_max == 0 {
                self.per_segment = self.per_segment.min(SLOWEST_BEFORE_LOSS);
            }
        }
        let slowest = epoch.reno_acks_per_segment(window).unwrap_or(u32::MAX);
        // Never faster than half a segment for each delivered.
        self.per_segment = self.per_segment.min(slowest).max(2);
        self.per_segment
    }
}

impl Epoch {
    fn begin(now: Time, window: u32, window_max: u32, delivered: u32) -> Self {
        let below = f64::from(window_max.saturating_sub(window));
        Self {
            start: now,
            k: libm::cbrt(below / C),
            origin: window_max.max(window),
            reno_window: window,
            reno_credit: delivered,
        }
    }

    /// From the distance to the target, `W(t) = C (t - K)^3 + W_max`.
    fn acks_per_segment(&self, window: u32, time: f64) -> u32 {
        let offset = time - self.k;
        // Towards zero in size, as the kernel's integers are.
        let change = (C * offset.abs() * offset * offset) as u32;
        let target = if offset < 0.0 {
            self.origin.saturating_sub(change)
        } else {
            self.origin.saturating_add(change)
        };
        if target > window { window / (target - window) } else { window.saturating_mul(100) }
    }

    /// The same for a Reno flow of CUBIC's average window (RFC 9438 4.3), if that one has a larger window.
    fn reno_acks_per_segment(&mut self, window: u32) -> Option<u32> {
        let step = (window * RENO_SCALE.0 / RENO_SCALE.1).max(1);
        while self.reno_credit > step {
            self.reno_credit -= step;
            self.reno_window += 1;
        }
        (self.reno_window > window).then(|| window / (self.reno_window - window))
    }
}

//! The maximum of what was seen within a window of virtual time (rounds or cycles).

use std::collections::VecDeque;

/// Samples that may yet be the maximum, newest last: times rise, values fall. At most one for each unit of the
/// window's time.
#[derive(Debug, Clone, Default)]
pub(in crate::congestion) struct WindowedMax {
    samples: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// Adds `value` at `time`, which never falls, and forgets what is `length` or more units old.
    pub(in crate::congestion) fn update(&mut self, time: u64, length: u64, value: f64) {
        while self.samples.back().is_some_and(|(_, known)| *known <= value) {
            self.samples.pop_back();
        }
        // A lower value of the same time can never be the maximum.
        if self.samples.back().is_none_or(|(at, _)| *at != time) {
            self.samples.push_back((time, value));
        }
        while self.samples.front().is_some_and(|(at, _)| time.saturating_sub(*at) >= length) {
            self.samples.pop_front();
        }
    }

    /// The maximum; zero if nothing has been seen.
    pub(in crate::congestion) fn get(&self) -> f64 {
        self.samples.front().map_or(0.0, |(_, value)| *value)
    }

    /// Forgets everything.
    pub(in crate::congestion) fn clear(&mut self) {
        self.samples.clear();
    }
}

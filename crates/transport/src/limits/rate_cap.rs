//! A cap on how often a peer may make this end do something.

use posthaste_units::{Duration, Time};

/// A bucket of permits that fills with time.
#[derive(Debug)]
pub(crate) struct RateCap {
    permits: u32,
    burst: u32,
    per_second: u32,
    /// The time up to which the bucket has been filled.
    filled_at: Time,
}

impl RateCap {
    /// A full bucket of `burst` permits that gains `per_second`; neither may be zero.
    pub(crate) const fn new(burst: u32, per_second: u32) -> Self {
        Self { permits: burst, burst, per_second, filled_at: Time::ZERO }
    }

    /// Takes a permit; false if there is none.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        let interval = Duration::from_secs(1) / u64::from(self.per_second.max(1));
        let gained = now.since(self.filled_at).as_nanos() / interval.as_nanos().max(1);
        self.filled_at += interval * gained;
        let gained = u32::try_from(gained).unwrap_or(u32::MAX);
        self.permits = self.permits.saturating_add(gained).min(self.burst);
        let is_permitted = self.permits > 0;
        self.permits = self.permits.saturating_sub(1);
        is_permitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut cap = RateCap::new(4, 10);
        let start = Time::ZERO + Duration::from_secs(100);
        assert_eq!((0..100).filter(|_| cap.take(start)).count(), 4);
        let in_a_second = (0..1000).filter(|ms| cap.take(start + Duration::from_millis(*ms))).count();
        assert!((9..=10).contains(&in_a_second), "{in_a_second}");
        let later = start + Duration::from_secs(1000);
        assert_eq!((0..100).filter(|_| cap.take(later)).count(), 4, "no more than a burst is saved up");
    }
}

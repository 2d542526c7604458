//! Devices that act at ticks of a clock.

use posthaste_units::{Duration, Time};

/// The first tick at or after `time`; `time` itself where there are no ticks (`interval` zero).
pub(crate) fn next_tick(time: Time, interval: Duration) -> Time {
    let Some(rest) = time.as_nanos().checked_rem(interval.as_nanos()) else { return time };
    if rest == 0 { time } else { time + interval - Duration::from_nanos(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_between_two_ticks_waits_for_the_second() {
        let interval = Duration::from_millis(4);
        for (time, tick) in [(0, 0), (1, 4_000_000), (3_999_999, 4_000_000), (4_000_000, 4_000_000)] {
            assert_eq!(next_tick(Time::from_nanos(time), interval), Time::from_nanos(tick));
        }
        assert_eq!(next_tick(Time::from_nanos(17), Duration::ZERO), Time::from_nanos(17));
    }
}

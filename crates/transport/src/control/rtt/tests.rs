//! The arithmetic of RFC 9002 section 5, by hand.

use super::*;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn before_the_first_sample_the_initial_rtt_stands() {
    let rtt = RttEstimator::new(millis(333));
    let view = rtt.view();
    assert!(!view.is_measured);
    assert_eq!((view.smoothed, view.latest, view.min), (millis(333), millis(333), millis(333)));
    assert_eq!(view.variance, Duration::from_micros(166_500));
    // 333 + 4 x 166.5
    assert_eq!(rtt.probe_base(), millis(999));
}

#[test]
fn the_first_sample_replaces_the_guess_and_ignores_the_ack_delay() {
    // spec: rfc9002 5.2 first-is-minimum
    let mut rtt = RttEstimator::new(millis(333));
    assert_eq!(rtt.on_sample(Time::ZERO, millis(100), millis(20)), millis(100));
    let view = rtt.view();
    assert_eq!((view.smoothed, view.variance, view.min), (millis(100), millis(50), millis(100)));
    assert!(view.is_measured);
}

#[test]
fn samples_follow_the_table() {
    // spec: rfc9002 5.2 minimum-falls, 5.3 not-below-minimum
    // (sample, ack delay) -> (adjusted, smoothed, variance, min) in microseconds.
    let table = [
        // 7/8 x 100 + 1/8 x 120; deviation 20: 3/4 x 50 + 1/4 x 20
        ((140, 20), (120_000, 102_500, 42_500, 100_000)),
        // 105 - 20 would be below the minimum of 100: not adjusted. Deviation 2.5.
        ((105, 20), (105_000, 102_812, 32_500, 100_000)),
        // A new minimum, itself never adjusted. Deviation 12.8125.
        ((90, 20), (90_000, 101_210, 27_578, 90_000)),
        // Exactly the minimum plus the delay: adjusted. Deviation 11.21...
        ((110, 20), (90_000, 99_809, 23_486, 90_000)),
    ];
    let mut rtt = RttEstimator::new(millis(333));
    rtt.on_sample(Time::ZERO, millis(100), Duration::ZERO);
    for ((sample, delay), expected) in table {
        let adjusted = rtt.on_sample(Time::ZERO, millis(sample), millis(delay));
        let view = rtt.view();
        let got = (
            adjusted.as_micros(),
            view.smoothed.as_micros(),
            view.variance.as_micros(),
            view.min.as_micros(),
        );
        assert_eq!(got, expected, "after a sample of {sample} ms");
    }
}

#[test]
fn loss_is_judged_by_the_sample_as_measured() {
    let mut rtt = RttEstimator::new(millis(333));
    rtt.on_sample(Time::ZERO, millis(100), Duration::ZERO);
    rtt.on_sample(Time::ZERO, millis(180), millis(60));
    assert_eq!(rtt.view().latest, millis(120));
    assert_eq!(rtt.loss_base(), millis(180));
}

#[test]
fn the_probe_base_never_falls_below_the_granularity() {
    // spec: rfc9002 6.2.1 probe-floor
    let mut rtt = RttEstimator::new(millis(333));
    for _ in 0..100 {
        rtt.on_sample(Time::ZERO, millis(10), Duration::ZERO);
    }
    let base = rtt.probe_base();
    assert!(base >= rtt.view().smoothed + GRANULARITY, "{base:?}");
    assert!(base <= millis(12), "{base:?}");
}

#[test]
fn the_minimum_starts_anew_after_persistent_congestion() {
    let mut rtt = RttEstimator::new(millis(333));
    rtt.on_sample(Time::ZERO, millis(50), Duration::ZERO);
    rtt.forget_minimum();
    rtt.on_sample(Time::ZERO, millis(200), Duration::ZERO);
    assert_eq!(rtt.view().min, millis(200));
}

#[test]
fn a_clock_that_stands_still_gives_no_zero() {
    let mut rtt = RttEstimator::new(millis(333));
    rtt.on_sample(Time::ZERO, Duration::ZERO, Duration::MAX);
    assert!(!rtt.view().smoothed.is_zero());
    rtt.on_sample(Time::ZERO, Duration::MAX, Duration::MAX);
    assert!(rtt.probe_base() > Duration::ZERO);
}

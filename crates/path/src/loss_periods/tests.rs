use super::*;

/// The share lost of packets `gap` apart, and the mean length of a burst in milliseconds, over a million milliseconds.
fn measure(share: f64, gap: Duration) -> (f64, f64) {
    let model = LossPeriods { share, mean: Duration::from_millis(20) };
    let mut medium = PeriodicLoss::new(model, Rng::from_test_seed(11));
    let count = 1_000_000_000_000 / gap.as_nanos();
    let (mut lost, mut bursts, mut was_lost) = (0u64, 0u64, false);
    for number in 0..count {
        let is_lost = medium.is_lost(Time::ZERO + gap * number);
        lost += u64::from(is_lost);
        bursts += u64::from(is_lost && !was_lost);
        was_lost = is_lost;
    }
    (lost as f64 / count as f64, lost as f64 * gap.as_millis_f64() / bursts.max(1) as f64)
}

#[test]
fn bursts_last_a_time_whatever_the_rate_of_packets() {
    // Some 2,500 bursts of 20 ms: the mean of an exponential draw is known to 1 / sqrt(2500) = 2 %, four times that.
    for gap in [Duration::from_micros(200), Duration::from_millis(2)] {
        let (share, length) = measure(0.05, gap);
        assert!((share - 0.05).abs() < 0.006, "{share}");
        // A burst is seen from its first packet to its last, which is half a gap less at either end.
        assert!((length - 20.0).abs() < 2.0, "{length}");
    }
}

#[test]
fn nothing_is_lost_where_no_share_is() {
    assert_eq!(measure(0.0, Duration::from_millis(100)), (0.0, 0.0));
    let none = LossPeriods { share: 1.0, mean: Duration::from_millis(1) };
    assert!(none.validate().is_err());
    assert!(LossPeriods { share: 0.1, mean: Duration::ZERO }.validate().is_err());
}

//! The bucket's bound, and that it wastes nothing.

use posthaste_units::Rate;
use proptest::prelude::*;

use super::*;
use crate::recovery::testing::{MAX_DATAGRAM, at_millis};

fn pacing(rate: u64, burst: u64) -> Pacing {
    Pacing { rate: Rate::from_bytes_per_second(rate), burst: ByteCount::new(burst) }
}

#[test]
fn a_full_bucket_holds_one_burst_and_then_the_rate_decides() {
    let mut pacer = Pacer::default();
    let pacing = pacing(1_200_000, 12_000);
    assert_eq!(pacer.available(at_millis(0), Some(&pacing), MAX_DATAGRAM), Some(ByteCount::new(12_000)));
    pacer.on_sent(ByteCount::new(12_000));
    assert_eq!(pacer.available(at_millis(0), Some(&pacing), MAX_DATAGRAM), Some(ByteCount::ZERO));
    // 1200 bytes a millisecond.
    assert_eq!(pacer.ready_at(&pacing, MAX_DATAGRAM, ByteCount::ZERO), at_millis(1));
    assert_eq!(pacer.available(at_millis(3), Some(&pacing), MAX_DATAGRAM), Some(ByteCount::new(3600)));
    // A long pause earns no more than a burst.
    assert_eq!(pacer.available(at_millis(9000), Some(&pacing), MAX_DATAGRAM), Some(ByteCount::new(12_000)));
}

#[test]
fn without_a_rate_nothing_is_held_back() {
    let mut pacer = Pacer::default();
    assert_eq!(pacer.available(at_millis(0), None, MAX_DATAGRAM), None);
    pacer.on_sent(ByteCount::new(1 << 40));
    assert_eq!(pacer.available(at_millis(0), None, MAX_DATAGRAM), None);
}

#[test]
fn a_wake_up_is_worth_about_a_millisecond() {
    // (rate, burst) -> nanoseconds until the next wake-up of an empty bucket
    let table = [
        // Slow: one datagram, 1200 B at 120 kB/s.
        ((120_000, 12_000), 10_000_000),
        // 12.5 MB/s (100 Mbit/s): 12,500 bytes.
        ((12_500_000, 120_000), 1_000_000),
        // The bucket holds no more than a burst: 2400 B at 12.5 MB/s.
        ((12_500_000, 2400), 192_000),
        // 1.25 GB/s: a batch of segments, 65,536 B.
        ((1_250_000_000, 10_000_000), 52_429),
        // A burst below one datagram still lets one through.
        ((120_000, 1), 10_000_000),
    ];
    for ((rate, burst), expected) in table {
        let mut pacer = Pacer::default();
        let pacing = pacing(rate, burst);
        let all = pacer.available(at_millis(0), Some(&pacing), MAX_DATAGRAM).expect("paced");
        assert_eq!(all.get(), burst.max(1200));
        pacer.on_sent(all);
        let ready = pacer.ready_at(&pacing, MAX_DATAGRAM, ByteCount::ZERO);
        assert_eq!(ready.as_nanos(), expected, "{rate} B/s, burst {burst} B");
    }
}

#[test]
fn absurd_rates_neither_overflow_nor_spin() {
    for (rate, burst) in [(0, 0), (0, u64::MAX), (u64::MAX, 0), (u64::MAX, u64::MAX), (1, 1)] {
        let mut pacer = Pacer::default();
        let pacing = pacing(rate, burst);
        for now in [Time::ZERO, at_millis(5), Time::FAR_FUTURE, Time::ZERO] {
            let available = pacer.available(now, Some(&pacing), MAX_DATAGRAM).expect("paced");
            pacer.on_sent(available);
            pacer.on_sent(ByteCount::MAX);
            let ready = pacer.ready_at(&pacing, MAX_DATAGRAM, ByteCount::MAX);
            assert!(rate != 0 || ready == Time::FAR_FUTURE);
        }
    }
}

#[test]
fn debt_is_paid_back_but_bounded_by_a_burst() {
    let mut pacer = Pacer::default();
    let pacing = pacing(1_200_000, 2400);
    pacer.available(at_millis(0), Some(&pacing), MAX_DATAGRAM);
    pacer.on_sent(ByteCount::new(1_000_000));
    // 2400 of debt and 1200 for the next datagram, at 1200 a millisecond.
    assert_eq!(pacer.ready_at(&pacing, MAX_DATAGRAM, ByteCount::ZERO), at_millis(3));
}

proptest! {
    #[test]
    fn never_more_than_a_burst_and_the_rate_in_any_interval(
        rate in 1_000u64..200_000_000,
        burst in 1_200u64..500_000,
        steps in prop::collection::vec((0u64..5_000_000, 0u64..100), 1..60),
    ) {
        let mut pacer = Pacer::default();
        let pacing = pacing(rate, burst);
        let mut now = Time::ZERO;
        // Bytes released, with the time of each release.
        let mut released: Vec<(Time, u64)> = Vec::new();
        for (wait, percent) in steps {
            now += Duration::from_nanos(wait);
            let available = pacer.available(now, Some(&pacing), MAX_DATAGRAM).expect("paced");
            let sent = available.get() * percent / 100;
            pacer.on_sent(ByteCount::new(sent));
            released.push((now, sent));
            for start in 0..released.len() {
                let total: u64 = released[start..].iter().map(|(_, bytes)| bytes).sum();
                let elapsed = now.since(released[start].0);
                let bound = burst + pacing.rate.bytes_in(elapsed).get() + 1;
                prop_assert!(total <= bound, "{} B in {:?}, bound {} B", total, elapsed, bound);
            }
        }
    }

    #[test]
    fn late_wake_ups_cost_no_rate_while_the_burst_covers_them(
        rate in 100_000u64..50_000_000,
        delays in prop::collection::vec(0u64..1_000_000, 50..100),
    ) {
        let mut pacer = Pacer::default();
        // Two milliseconds' worth and two datagrams.
        let pacing = pacing(rate, rate / 500 + 2400);
        let all = pacer.available(Time::ZERO, Some(&pacing), MAX_DATAGRAM).expect("paced");
        pacer.on_sent(all);
        let mut sent = 0;
        let mut now = Time::ZERO;
        for late in delays {
            now = pacer.ready_at(&pacing, MAX_DATAGRAM, ByteCount::ZERO) + Duration::from_nanos(late);
            let available = pacer.available(now, Some(&pacing), MAX_DATAGRAM).expect("paced").get();
            prop_assert!(available >= 1200, "woken for nothing");
            let whole = available - available % 1200;
            pacer.on_sent(ByteCount::new(whole));
            sent += whole;
        }
        let ideal = pacing.rate.bytes_in(now.since(Time::ZERO)).get();
        prop_assert!(sent + 1200 >= ideal && sent <= ideal, "{} of {} B", sent, ideal);
    }
}

#[test]
fn what_a_start_permits_more_leaves_at_once_and_only_once() {
    let mut pacer = Pacer::default();
    let (own, start) = (pacing(120_000, 12_000), pacing(1_200_000, 48_000));
    pacer.available(at_millis(0), Some(&own), MAX_DATAGRAM);
    pacer.on_sent(ByteCount::new(12_000));
    pacer.grant(start.burst);
    assert_eq!(pacer.available(at_millis(0), Some(&start), MAX_DATAGRAM), Some(ByteCount::new(48_000)));
    pacer.on_sent(ByteCount::new(48_000));
    pacer.grant(start.burst);
    assert_eq!(pacer.available(at_millis(0), Some(&start), MAX_DATAGRAM), Some(ByteCount::ZERO));
    // A larger one adds what it is larger by.
    let larger = pacing(1_200_000, 60_000);
    pacer.grant(larger.burst);
    assert_eq!(pacer.available(at_millis(0), Some(&larger), MAX_DATAGRAM), Some(ByteCount::new(12_000)));
}

//! Delivery rates and rounds, worked by hand after draft-ietf-ccwg-bbr section 4.1.

use super::*;
use crate::recovery::testing::at_millis;

const MIN_RTT: Duration = Duration::from_millis(50);

fn bytes(count: u64) -> ByteCount {
    ByteCount::new(count)
}

#[test]
fn a_steady_flow_measures_its_rate() {
    // A packet of 1000 bytes every 10 ms, acknowledged 50 ms later: 100 kB/s.
    let mut sampler = RateSampler::default();
    let mut stamps = Vec::new();
    let mut in_flight = 0;
    let mut rates = Vec::new();
    for tick in 0..30u64 {
        let now = at_millis(tick * 10);
        if tick >= 5 {
            let stamp: &Stamp = &stamps[tick as usize - 5];
            rates.push(sampler.on_acked(now, bytes(1000), stamp, MIN_RTT).0.expect("valid").rate);
            in_flight -= 1000;
        }
        stamps.push(sampler.on_sent(now, bytes(in_flight), bytes(1000)));
        in_flight += 1000;
    }
    // The first flight's samples count the idle start; from the second round on the rate is exact.
    assert!(rates.iter().skip(6).all(|rate| rate.as_bytes_per_second() == 100_000), "{rates:?}");
}

#[test]
fn the_longer_of_send_and_ack_interval_counts() {
    // Ten packets sent over 90 ms whose acks arrive together: dividing by the ack interval alone would give a
    // rate that the sender never had.
    let mut sampler = RateSampler::default();
    let stamps: Vec<Stamp> =
        (0..10).map(|n| sampler.on_sent(at_millis(n * 10), bytes(n * 1000), bytes(1000))).collect();
    let (sample, _) = sampler.on_acked(at_millis(140), bytes(10_000), &stamps[9], MIN_RTT);
    let sample = sample.expect("valid");
    assert_eq!(sample.interval, Duration::from_millis(140));
    assert_eq!(sample.delivered, bytes(10_000));
    assert_eq!(sample.rate.as_bytes_per_second(), 71_428);
}

#[test]
fn an_interval_below_the_minimum_rtt_is_no_sample() {
    let mut sampler = RateSampler::default();
    let stamp = sampler.on_sent(at_millis(0), bytes(0), bytes(1000));
    let (sample, _) = sampler.on_acked(at_millis(49), bytes(1000), &stamp, MIN_RTT);
    assert_eq!(sample, None);
    let stamp = sampler.on_sent(at_millis(100), bytes(0), bytes(1000));
    let (sample, _) = sampler.on_acked(at_millis(150), bytes(1000), &stamp, MIN_RTT);
    assert_eq!(sample.map(|sample| sample.rate.as_bytes_per_second()), Some(20_000));
    let stamp = sampler.on_sent(at_millis(150), bytes(0), bytes(1000));
    let (sample, _) = sampler.on_acked(at_millis(150), bytes(1000), &stamp, Duration::ZERO);
    assert_eq!(sample, None, "no time has passed: no rate, rather than an infinite one");
}

#[test]
fn idle_time_does_not_lower_the_rate() {
    let mut sampler = RateSampler::default();
    let first = sampler.on_sent(at_millis(0), bytes(0), bytes(1000));
    sampler.on_acked(at_millis(50), bytes(1000), &first, MIN_RTT);
    let second = sampler.on_sent(at_millis(10_000), bytes(0), bytes(1000));
    let (sample, _) = sampler.on_acked(at_millis(10_050), bytes(1000), &second, MIN_RTT);
    assert_eq!(sample.map(|sample| sample.rate.as_bytes_per_second()), Some(20_000));
}

#[test]
fn packets_are_application_limited_until_the_dry_flight_is_delivered() {
    let mut sampler = RateSampler::default();
    let a = sampler.on_sent(at_millis(0), bytes(0), bytes(1000));
    sampler.on_app_limited(bytes(1000));
    let b = sampler.on_sent(at_millis(10), bytes(1000), bytes(1000));
    let c = sampler.on_sent(at_millis(20), bytes(2000), bytes(1000));
    assert_eq!([a.app_limited, b.app_limited, c.app_limited], [false, true, true]);
    sampler.on_acked(at_millis(50), bytes(1000), &a, MIN_RTT);
    assert!(sampler.is_app_limited(), "as much as was in flight, not more");
    let (sample, _) = sampler.on_acked(at_millis(60), bytes(1000), &b, MIN_RTT);
    assert!(sample.expect("valid").app_limited);
    assert!(!sampler.is_app_limited());
    assert!(!sampler.on_sent(at_millis(70), bytes(1000), bytes(1000)).app_limited);
}

#[test]
fn an_ack_that_comes_out_of_order_gives_no_second_sample() {
    let mut sampler = RateSampler::default();
    let a = sampler.on_sent(at_millis(0), bytes(0), bytes(1000));
    let b = sampler.on_sent(at_millis(10), bytes(1000), bytes(1000));
    assert!(sampler.on_acked(at_millis(60), bytes(1000), &b, MIN_RTT).0.is_some());
    assert!(sampler.on_acked(at_millis(70), bytes(1000), &a, MIN_RTT).0.is_none());
    assert_eq!(sampler.delivered(), bytes(2000));
}

#[test]
fn a_round_ends_with_the_first_packet_sent_after_it_began() {
    let mut sampler = RateSampler::default();
    let flight: Vec<Stamp> =
        (0..3).map(|n| sampler.on_sent(at_millis(0), bytes(n * 1000), bytes(1000))).collect();
    let mut started = Vec::new();
    for stamp in &flight {
        started.push(sampler.on_acked(at_millis(50), bytes(1000), stamp, MIN_RTT).1);
    }
    assert_eq!(started, [true, false, false], "one flight is one round");
    let next = sampler.on_sent(at_millis(50), bytes(0), bytes(1000));
    assert!(sampler.on_acked(at_millis(100), bytes(1000), &next, MIN_RTT).1);
    assert_eq!(sampler.round(), 2);
}

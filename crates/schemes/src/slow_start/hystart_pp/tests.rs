use posthaste_units::Time;

use super::*;
use crate::testing::{DATAGRAM, ack, milliseconds, packet, steady_rtt};

const WINDOW: ByteCount = ByteCount::new(1200 * 100);

fn policy() -> HystartPlusPlus {
    HystartPlusPlus::new(Parameters::default(), DATAGRAM)
}

/// One round of acks of a datagram each, with these RTT samples in microseconds.
fn round(policy: &mut HystartPlusPlus, number: u64, samples: &[u64]) -> Vec<SlowStartStep> {
    let packets = [packet(0, Time::ZERO)];
    let step = |sample: &u64| {
        let rtt = steady_rtt(Duration::from_micros(*sample));
        policy.on_ack(&ack(Time::ZERO, &packets, rtt, number), DATAGRAM, WINDOW)
    };
    samples.iter().map(step).collect()
}

/// The growths of a round in bytes; panics on an exit.
fn growths(policy: &mut HystartPlusPlus, number: u64, samples: &[u64]) -> Vec<u64> {
    let steps = round(policy, number, samples);
    steps
        .iter()
        .map(|step| (step.exit.is_none(), step.growth.get()))
        .map(|(stays, growth)| {
            assert!(stays, "round {number} ends slow start");
            growth
        })
        .collect()
}

#[test]
fn steady_delay_and_jitter_below_the_threshold_never_end_it() {
    let mut policy = policy();
    // The threshold at 20 ms is the least, 4 ms; minima alternate by 3.9.
    for number in 1..200 {
        let least = if number % 2 == 0 { 23_900 } else { 20_000 };
        let samples: Vec<u64> = (0..20).map(|index| least + 5_000 * (index % 3)).collect();
        assert_eq!(growths(&mut policy, number, &samples), [1200; 20]);
    }
}

#[test]
fn a_grown_delay_slows_growth_from_the_eighth_sample_and_ends_it_after_five_rounds() {
    let mut policy = policy();
    assert_eq!(growths(&mut policy, 1, &[20_000; 10]), [1200; 10]);
    // Seven samples prove nothing; the eighth does, and the ack after it earns a quarter.
    assert_eq!(
        growths(&mut policy, 2, &[24_000; 10]),
        [1200, 1200, 1200, 1200, 1200, 1200, 1200, 1200, 300, 300]
    );
    // The round in which it began is the first of five.
    for number in 3..=6 {
        assert_eq!(growths(&mut policy, number, &[25_000; 10]), [300; 10], "round {number}");
    }
    let steps = round(&mut policy, 7, &[25_000]);
    assert_eq!(steps, [SlowStartStep { growth: ByteCount::ZERO, exit: Some(WINDOW) }]);
}

#[test]
fn a_spike_that_passes_lets_doubling_resume() {
    let mut policy = policy();
    growths(&mut policy, 1, &[20_000; 10]);
    growths(&mut policy, 2, &[40_000; 10]);
    assert_eq!(growths(&mut policy, 3, &[40_000; 8]), [300; 8]);
    // Below the 40 ms of entry, on eight samples' word: full growth, and no exit later.
    assert_eq!(growths(&mut policy, 4, &[39_999; 10]), [300, 300, 300, 300, 300, 300, 300, 300, 1200, 1200]);
    for number in 5..20 {
        assert_eq!(growths(&mut policy, number, &[40_000; 10]), [1200; 10], "round {number}");
    }
}

#[test]
fn a_delay_equal_to_the_baseline_does_not_let_it_resume() {
    let mut policy = policy();
    growths(&mut policy, 1, &[20_000; 10]);
    growths(&mut policy, 2, &[40_000; 10]);
    assert_eq!(growths(&mut policy, 3, &[40_000; 20]), [300; 20]);
}

#[test]
fn the_threshold_is_an_eighth_between_4_and_16_milliseconds() {
    for (baseline, threshold) in
        [(1_000, 4_000), (32_000, 4_000), (80_000, 10_000), (128_000, 16_000), (600_000, 16_000)]
    {
        let (mut below, mut at) = (policy(), policy());
        growths(&mut below, 1, &[baseline; 8]);
        growths(&mut at, 1, &[baseline; 8]);
        assert_eq!(growths(&mut below, 2, &[baseline + threshold - 1; 9])[8], 1200, "{baseline}");
        assert_eq!(growths(&mut at, 2, &[baseline + threshold; 9])[8], 300, "{baseline}");
    }
}

#[test]
fn rounds_of_fewer_than_eight_samples_never_end_it() {
    let mut policy = policy();
    for number in 1..50 {
        assert_eq!(growths(&mut policy, number, &[20_000 * number; 7]), [1200; 7]);
    }
}

#[test]
fn a_round_without_samples_keeps_the_last_minimum() {
    let mut policy = policy();
    growths(&mut policy, 1, &[20_000; 8]);
    let packets = [packet(0, Time::ZERO)];
    let mut silent = ack(Time::ZERO, &packets, steady_rtt(milliseconds(20)), 2);
    silent.rtt_sample = None;
    policy.on_ack(&silent, DATAGRAM, WINDOW);
    assert_eq!(growths(&mut policy, 3, &[24_000; 9])[8], 300);
}

#[test]
fn growth_is_limited_where_nothing_paces() {
    let mut unpaced = HystartPlusPlus::new(Parameters { growth_limit: Some(8) }, DATAGRAM);
    let packets = [packet(0, Time::ZERO)];
    let sample = ack(Time::ZERO, &packets, steady_rtt(milliseconds(20)), 1);
    assert_eq!(unpaced.on_ack(&sample, DATAGRAM * 20, WINDOW).growth, DATAGRAM * 8);
    assert_eq!(policy().on_ack(&sample, DATAGRAM * 20, WINDOW).growth, DATAGRAM * 20);
}

#[test]
fn only_the_first_slow_start_is_watched() {
    let mut policy = policy();
    growths(&mut policy, 1, &[20_000; 8]);
    policy.restart(Some(WINDOW));
    for number in 2..20 {
        assert_eq!(growths(&mut policy, number, &[20_000 * number; 10]), [1200; 10]);
    }
    policy.restart(None);
    growths(&mut policy, 30, &[20_000; 8]);
    assert_eq!(growths(&mut policy, 31, &[40_000; 9])[8], 300, "watched again where nothing is known");
}

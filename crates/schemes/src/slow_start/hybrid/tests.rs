use posthaste_policy::sample::RttView;
use posthaste_units::Time;

use super::*;
use crate::testing::{DATAGRAM, ack, packet, steady_rtt};

/// One round of acks of a datagram each on a path whose least RTT is 40 ms (threshold 5 ms); the exits.
fn exits(policy: &mut Hybrid, number: u64, window: u64, samples: &[u64]) -> Vec<Option<ByteCount>> {
    let packets = [packet(0, Time::ZERO)];
    let step = |sample: &u64| {
        let rtt =
            RttView { min: Duration::from_micros(40_000), ..steady_rtt(Duration::from_micros(*sample)) };
        let step = policy.on_ack(&ack(Time::ZERO, &packets, rtt, number), DATAGRAM, DATAGRAM * window);
        assert_eq!(step.growth.is_zero(), step.exit.is_some());
        step.exit
    };
    samples.iter().map(step).collect()
}

const STAY: Option<ByteCount> = None;

#[test]
fn it_ends_with_the_eighth_of_a_rounds_first_samples() {
    let mut policy = Hybrid::new(DATAGRAM);
    assert_eq!(exits(&mut policy, 1, 32, &[40_000; 20]), [STAY; 20]);
    let second = exits(&mut policy, 2, 64, &[45_001; 8]);
    assert_eq!(second[..7], [STAY; 7]);
    assert_eq!(second[7], Some(DATAGRAM * 64));
}

#[test]
fn jitter_within_the_threshold_and_late_samples_do_not_end_it() {
    let mut policy = Hybrid::new(DATAGRAM);
    for number in 1..100 {
        assert_eq!(exits(&mut policy, number, 64, &[45_000; 8]), [STAY; 8], "at the threshold, not above");
        assert_eq!(exits(&mut policy, number, 64, &[90_000; 30]), [STAY; 30], "after the first eight");
    }
    // One low sample of the first eight is enough to stay.
    let samples = [90_000, 90_000, 90_000, 40_000, 90_000, 90_000, 90_000, 90_000];
    assert_eq!(exits(&mut policy, 100, 64, &samples), [STAY; 8]);
}

#[test]
fn below_sixteen_datagrams_the_exit_waits() {
    let mut policy = Hybrid::new(DATAGRAM);
    assert_eq!(exits(&mut policy, 1, 15, &[90_000; 10]), [STAY; 10]);
    assert_eq!(exits(&mut policy, 2, 16, &[40_000]), [Some(DATAGRAM * 16)]);
}

#[test]
fn a_restart_forgets() {
    let mut policy = Hybrid::new(DATAGRAM);
    exits(&mut policy, 1, 15, &[90_000; 8]);
    policy.restart(None);
    assert_eq!(exits(&mut policy, 2, 64, &[40_000; 8]), [STAY; 8]);
}

//! The search against paths of every size, and black holes.

use super::*;

/// Searches a path that carries `path` bytes; the sizes probed.
fn search(mtu: &mut Mtu, now: Time, path: usize) -> Vec<usize> {
    let mut probes = Vec::new();
    loop {
        mtu.on_full_datagram();
        let Some(size) = mtu.next_probe(now) else { return probes };
        mtu.on_probe_sent();
        mtu.on_full_datagram();
        assert_eq!(mtu.next_probe(now), None, "one at a time");
        probes.push(size);
        if size <= path {
            assert!(mtu.on_probe_acked(now, size));
        } else {
            mtu.on_probe_lost(now, size);
        }
        assert!(probes.len() < 100);
    }
}

#[test]
fn the_search_finds_what_any_path_carries_within_a_few_bytes() {
    for path in BASE..=1452 {
        let mut mtu = Mtu::new(1452, true);
        let probes = search(&mut mtu, Time::ZERO, path);
        assert!(mtu.current() <= path);
        assert!(path - mtu.current() < WORTH_WHILE, "{} of {path}", mtu.current());
        assert!(probes.len() <= 16, "{probes:?}");
    }
    let mut mtu = Mtu::new(1452, true);
    assert_eq!(search(&mut mtu, Time::ZERO, 1500), [1452], "the common case takes one probe");
}

#[test]
fn without_use_or_discovery_there_is_no_probe() {
    let mut mtu = Mtu::new(1452, true);
    assert_eq!(mtu.next_probe(Time::ZERO), None, "no full datagram has left");
    let mut fixed = Mtu::new(1400, false);
    assert_eq!(fixed.current(), 1400);
    fixed.on_full_datagram();
    assert_eq!(fixed.next_probe(Time::ZERO), None);
    assert!(!fixed.on_probe_timeouts(Time::ZERO, 10));
    let mut small = Mtu::new(1200, true);
    assert_eq!(search(&mut small, Time::ZERO, 1500), [0; 0]);
}

#[test]
fn the_peers_bound_holds() {
    let mut mtu = Mtu::new(1452, true);
    mtu.limit(1300);
    assert_eq!(search(&mut mtu, Time::ZERO, 1500), [1300]);
    assert!(!mtu.on_probe_acked(Time::ZERO, 1452), "a probe from before");
    mtu.limit(1200);
    assert_eq!(mtu.current(), 1200);
}

#[test]
fn a_search_that_ended_below_the_bound_is_taken_up_again() {
    let mut mtu = Mtu::new(1452, true);
    search(&mut mtu, Time::ZERO, 1300);
    let before = mtu.current();
    let later = Time::ZERO + RAISE_AFTER;
    assert_eq!(search(&mut mtu, later - Duration::from_nanos(1), 1500), [0; 0]);
    assert_eq!(search(&mut mtu, later, 1500), [1452]);
    assert!(mtu.current() > before);
}

#[test]
fn a_late_acknowledgement_of_a_probe_counts() {
    let mut mtu = Mtu::new(1452, true);
    mtu.on_full_datagram();
    assert_eq!(mtu.next_probe(Time::ZERO), Some(1452));
    mtu.on_probe_sent();
    mtu.on_probe_lost(Time::ZERO, 1452);
    assert!(mtu.on_probe_acked(Time::ZERO, 1452));
    assert_eq!(mtu.current(), 1452);
    mtu.on_full_datagram();
    assert_eq!(mtu.next_probe(Time::ZERO), None);
}

#[test]
fn a_run_of_lost_large_packets_is_a_black_hole_and_losses_among_others_are_not() {
    let mut mtu = Mtu::new(1452, true);
    search(&mut mtu, Time::ZERO, 1500);
    let lost = |number| LargeFates { acked: None, lost: Some(number) };
    for number in 0..100 {
        assert!(!mtu.on_fates(Time::ZERO, lost(3 * number)));
        let congested = LargeFates { acked: Some(3 * number + 2), lost: Some(3 * number + 1) };
        assert!(!mtu.on_fates(Time::ZERO, congested), "a later one arrived");
    }
    assert!(!mtu.on_fates(Time::ZERO, lost(1000)));
    assert!(
        !mtu.on_fates(Time::ZERO, LargeFates { acked: Some(999), lost: Some(1001) }),
        "an older one arrived"
    );
    assert!(mtu.on_fates(Time::ZERO, lost(1002)));
    assert_eq!(mtu.current(), 1200);
    assert!(!mtu.on_fates(Time::ZERO, lost(1003)), "there is no further to fall");
    let soon = Time::ZERO + Duration::from_secs(59);
    assert_eq!(search(&mut mtu, soon, 1500), [0; 0]);
    assert_eq!(search(&mut mtu, soon + Duration::from_secs(1), 1500), [1452]);
}

#[test]
fn silence_after_large_packets_is_met_with_small_ones() {
    let mut mtu = Mtu::new(1452, true);
    search(&mut mtu, Time::ZERO, 1500);
    assert!(!mtu.on_probe_timeouts(Time::ZERO, MAX_PROBE_TIMEOUTS - 1));
    assert!(mtu.on_probe_timeouts(Time::ZERO, MAX_PROBE_TIMEOUTS));
    assert_eq!(mtu.current(), 1200);
}

use posthaste_units::{Duration, Rate};

use super::*;
use crate::test_support::{probe, probe_path, run};
use crate::{Bottleneck, PathConfig};

/// A link of 1000 bytes a millisecond, with a delay of 10 ms behind it.
fn config(aggregation: Aggregation) -> PathConfig {
    PathConfig {
        delay: Duration::from_millis(10),
        bottleneck: Some(Bottleneck::new(Rate::from_bytes_per_second(1_000_000), ByteCount::new(1 << 20))),
        aggregation: Some(aggregation),
        ..PathConfig::default()
    }
}

/// When each of `count` packets arrives, in milliseconds; one is sent every `gap`.
fn arrivals(aggregation: Aggregation, count: u64, gap: Duration) -> Vec<u64> {
    let arrived = run(&mut probe_path(config(aggregation)), count, 1000, gap);
    assert_eq!(arrived.len() as u64, count);
    arrived.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect()
}

#[test]
fn what_waits_together_arrives_together() {
    let eight = Aggregation { packets: 8, time: Duration::from_millis(100) };
    // Ten at once: eight end at 8 ms, the two others at 10 ms, when nothing more waits.
    assert_eq!(arrivals(eight, 10, Duration::ZERO), [18, 18, 18, 18, 18, 18, 18, 18, 20, 20]);
    let brief = Aggregation { packets: 64, time: Duration::from_millis(4) };
    // They end at 1, 2, ... 10 ms: the first five within 4 ms of the first, at 5 ms.
    assert_eq!(arrivals(brief, 10, Duration::ZERO), [15, 15, 15, 15, 15, 20, 20, 20, 20, 20]);
}

#[test]
fn what_comes_one_by_one_leaves_one_by_one() {
    let found = arrivals(Aggregation::default(), 5, Duration::from_millis(3));
    assert_eq!(found, [11, 14, 17, 20, 23]);
}

#[test]
fn what_is_held_counts_and_an_aggregate_needs_a_packet() {
    let mut path = probe_path(config(Aggregation::default()));
    for number in 0..3 {
        path.on_packet(Time::ZERO, probe(number, Time::ZERO, 1000));
    }
    path.advance(Time::from_nanos(2_500_000));
    assert_eq!((path.held_packets(), path.held_bytes()), (3, ByteCount::new(3000)));
    assert_eq!(path.held().count(), 3);
    let none = Aggregation { packets: 0, ..Aggregation::default() };
    assert!(config(none).validate().is_err());
}

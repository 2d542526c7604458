use posthaste_units::{Duration, Rate};

use super::*;
use crate::config::{Bottleneck, Reordering};

fn path(config: PathConfig) -> Path {
    Path::new(config, Rng::from_test_seed(42)).expect("a valid configuration")
}

fn packet(number: u32, length: usize) -> Bytes {
    let mut bytes = vec![0; length.max(4)];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}

fn number(packet: &Bytes) -> u32 {
    u32::from_be_bytes(packet[..4].try_into().expect("four bytes"))
}

/// Takes out what arrives before `end`, stepping exactly from one timeout to the next.
fn drain_until(path: &mut Path, end: Time) -> Vec<(Time, Bytes)> {
    let mut arrived = Vec::new();
    while let Some(due) = path.next_timeout().filter(|&due| due < end) {
        arrived.extend(std::iter::from_fn(|| path.poll(due)).map(|packet| (due, packet)));
    }
    arrived
}

fn drain(path: &mut Path) -> Vec<(Time, Bytes)> {
    drain_until(path, Time::FAR_FUTURE)
}

/// Sends `count` packets of `length` bytes, one every `gap`, and drains.
fn run(path: &mut Path, count: u32, length: usize, gap: Duration) -> Vec<(Time, Bytes)> {
    let mut arrived = Vec::new();
    for index in 0..count {
        let now = Time::ZERO + gap * u64::from(index);
        arrived.extend(drain_until(path, now));
        path.on_packet(now, packet(index, length));
    }
    arrived.extend(drain(path));
    arrived
}

/// The 99 % interval (normal approximation) of a binomial count.
fn binomial_99(trials: u32, p: f64) -> std::ops::RangeInclusive<f64> {
    let (mean, deviation) = (f64::from(trials) * p, (f64::from(trials) * p * (1.0 - p)).sqrt());
    mean - 2.576 * deviation..=mean + 2.576 * deviation
}

#[test]
fn a_perfect_wire_keeps_packets_and_their_order() {
    let mut path = path(PathConfig { delay: Duration::from_millis(3), ..PathConfig::default() });
    let arrived = run(&mut path, 100, 1200, Duration::from_micros(10));
    assert_eq!(arrived.len(), 100);
    for (index, (at, bytes)) in arrived.iter().enumerate() {
        assert_eq!(number(bytes) as usize, index);
        assert_eq!(*at, Time::ZERO + Duration::from_micros(10) * index as u64 + Duration::from_millis(3));
    }
    assert_eq!(path.held_bytes(), ByteCount::ZERO);
}

#[test]
fn an_outage_loses_what_leaves_the_bottleneck_in_it_and_nothing_else() {
    let outage = Outage { start: Duration::from_millis(2), length: Duration::from_millis(3) };
    let bottleneck = Bottleneck::new(Rate::from_bytes_per_second(1_000_000), ByteCount::new(1 << 20));
    let config = PathConfig { outage: Some(outage), bottleneck: Some(bottleneck), ..PathConfig::default() };
    let mut path = path(PathConfig { delay: Duration::from_millis(10), ..config });
    // Ten packets at once, of a millisecond each: they leave the bottleneck at 1, 2, ... 10 ms.
    let arrived = run(&mut path, 10, 1000, Duration::ZERO);
    let numbers: Vec<u32> = arrived.iter().map(|(_, bytes)| number(bytes)).collect();
    assert_eq!(numbers, [0, 4, 5, 6, 7, 8, 9], "those that left at 2, 3 and 4 ms are lost");
    assert_eq!(path.stats().lost, 3);
    assert!(!outage.covers(Time::from_nanos(1_999_999)) && outage.covers(Time::from_nanos(2_000_000)));
    assert!(outage.covers(Time::from_nanos(4_999_999)) && !outage.covers(Time::from_nanos(5_000_000)));
}

#[test]
fn a_terabit_a_second_carries_a_packet_in_nanoseconds_and_no_rate_overflows() {
    let delay = Duration::from_millis(3);
    for (rate, each) in [(Rate::from_bits_per_second(1_000_000_000_000), 12), (Rate::MAX, 0)] {
        let bottleneck = Some(Bottleneck::new(rate, ByteCount::new(1 << 20)));
        let mut path = path(PathConfig { delay, bottleneck, ..PathConfig::default() });
        let arrived = run(&mut path, 100, 1500, Duration::ZERO);
        let times: Vec<u64> = arrived.iter().map(|(at, _)| at.since(Time::ZERO + delay).as_nanos()).collect();
        assert_eq!(times.len(), 100, "{rate}");
        assert!(times.is_sorted() && times[99] <= 100 * (each + 1), "{rate}: {times:?}");
    }
}

#[test]
fn nothing_arrives_before_its_time() {
    let mut path = path(PathConfig { delay: Duration::from_nanos(10), ..PathConfig::default() });
    path.on_packet(Time::from_nanos(5), packet(0, 4));
    assert_eq!(path.poll(Time::from_nanos(14)), None);
    assert_eq!(path.next_timeout(), Some(Time::from_nanos(15)));
    assert!(path.poll(Time::from_nanos(15)).is_some());
    assert_eq!(path.next_timeout(), None);
}

#[test]
fn independent_impairments_hit_at_their_rates() {
    let trials = 50_000;
    let config = PathConfig {
        loss: 0.05,
        duplication: 0.02,
        corruption: 0.03,
        reordering: Reordering {
            probability: 0.04,
            extra_delay: Duration::from_millis(1),
            ..Reordering::default()
        },
        ..PathConfig::default()
    };
    let mut path = path(config);
    let arrived = run(&mut path, trials, 40, Duration::from_micros(100));
    let stats = path.stats();
    assert!(binomial_99(trials, 0.05).contains(&(stats.lost as f64)), "{stats:?}");
    assert!(binomial_99(trials, 0.95 * 0.02).contains(&(stats.duplicated as f64)), "{stats:?}");
    assert!(binomial_99(trials, 0.95 * 0.03).contains(&(stats.corrupted as f64)), "{stats:?}");
    assert!(binomial_99(trials, 0.95 * 0.04).contains(&(stats.reordered as f64)), "{stats:?}");
    assert_eq!(arrived.len() as u64, u64::from(trials) - stats.lost + stats.duplicated);
    assert_eq!(stats.delivered, arrived.len() as u64);
    assert_eq!(stats.delivered_bytes, 40 * stats.delivered);
    assert_eq!(path.held_bytes(), ByteCount::ZERO);
}

#[test]
fn losses_are_independent_of_each_other() {
    let mut path = path(PathConfig { loss: 0.2, ..PathConfig::default() });
    let arrived = run(&mut path, 50_000, 4, Duration::from_nanos(1));
    // After a delivered packet the next one must be lost as often as any other.
    let gaps = arrived.windows(2).filter(|pair| number(&pair[1].1) != number(&pair[0].1) + 1).count();
    let pairs = arrived.len() as u32 - 1;
    assert!(binomial_99(pairs, 0.2).contains(&(gaps as f64)), "{gaps} of {pairs}");
}

#[test]
fn a_held_back_packet_is_overtaken_by_those_within_its_extra_delay() {
    let config = PathConfig {
        delay: Duration::from_millis(5),
        reordering: Reordering {
            probability: 0.1,
            extra_delay: Duration::from_micros(35),
            ..Reordering::default()
        },
        ..PathConfig::default()
    };
    let mut path = path(config);
    let arrived = run(&mut path, 1_000, 4, Duration::from_micros(10));
    assert_eq!(arrived.len(), 1_000);
    let mut late = 0;
    for (at, bytes) in &arrived {
        let on_time =
            Time::ZERO + Duration::from_micros(10) * u64::from(number(bytes)) + Duration::from_millis(5);
        let extra = at.since(on_time);
        assert!(extra.is_zero() || extra == Duration::from_micros(35), "{extra}");
        late += u64::from(!extra.is_zero());
    }
    assert_eq!(late, path.stats().reordered);
    assert!(late > 0);
    assert!(arrived.windows(2).any(|pair| number(&pair[1].1) < number(&pair[0].1)));
}

#[test]
fn a_copy_is_on_time_where_its_original_is_held_back() {
    let extra_delay = Duration::from_millis(7);
    let config = PathConfig {
        delay: Duration::from_millis(5),
        reordering: Reordering { probability: 1.0, extra_delay, ..Reordering::default() },
        duplication: 1.0,
        corruption: 1.0,
        ..PathConfig::default()
    };
    let mut path = path(config);
    path.on_packet(Time::ZERO, packet(3, 4));
    let arrived = drain(&mut path);
    assert_eq!(arrived[0], (Time::ZERO + Duration::from_millis(5), packet(3, 4)));
    assert_eq!(arrived[1].0, Time::ZERO + Duration::from_millis(12));
    assert_ne!(arrived[1].1, packet(3, 4), "the original is the one that is corrupted");
}

#[test]
fn corruption_flips_exactly_one_bit_anywhere() {
    let mut path = path(PathConfig { corruption: 1.0, ..PathConfig::default() });
    let mut seen = [false; 32];
    for _ in 0..2_000 {
        path.on_packet(Time::ZERO, Bytes::from_static(&[0xa5; 4]));
        let arrived = path.poll(Time::ZERO).expect("delivered at once");
        let flipped = u32::from_be_bytes(arrived[..].try_into().expect("four bytes")) ^ 0xa5a5_a5a5;
        assert_eq!(flipped.count_ones(), 1);
        seen[flipped.trailing_zeros() as usize] = true;
    }
    assert!(seen.iter().all(|&bit| bit));
    path.on_packet(Time::ZERO, Bytes::new());
    assert_eq!(path.poll(Time::ZERO), Some(Bytes::new()), "an empty packet has no bit to flip");
}

#[test]
fn serialisation_is_exact_over_a_busy_period() {
    // 7 bytes at 3 bytes a second take 2.333... s: rounding every packet up would drift by a nanosecond in three.
    let rate = Rate::from_bytes_per_second(3);
    let queue = ByteCount::new(1 << 20);
    let config = PathConfig {
        delay: Duration::from_secs(1),
        bottleneck: Some(Bottleneck::new(rate, queue)),
        ..PathConfig::default()
    };
    let mut path = path(config);
    for index in 0..300 {
        path.on_packet(Time::ZERO, packet(index, 7));
    }
    let arrived = drain(&mut path);
    assert_eq!(arrived.len(), 300);
    for (index, (at, _)) in arrived.iter().enumerate() {
        let nanos = (7_000_000_000 * (index as u64 + 1)).div_ceil(3);
        assert_eq!(at.as_nanos(), nanos + 1_000_000_000);
    }
    // An idle link starts a new busy period: no credit is left over.
    let later = Time::from_nanos(1_000_000_000_000);
    path.on_packet(later, packet(0, 6));
    assert_eq!(path.next_timeout(), Some(later + Duration::from_secs(2)));
}

#[test]
fn a_full_queue_drops_the_newcomer() {
    let bottleneck = Bottleneck::new(Rate::from_bytes_per_second(1_000), ByteCount::new(2_500));
    let mut path = path(PathConfig { bottleneck: Some(bottleneck), ..PathConfig::default() });
    for index in 0..5 {
        path.on_packet(Time::ZERO, packet(index, 1_000));
    }
    // One in transmission, two waiting.
    assert_eq!(path.stats().overflowed, 2);
    assert_eq!(path.held_bytes(), ByteCount::new(3_000));
    // After one departure there is room for one more.
    path.on_packet(Time::from_nanos(1_000_000_000), packet(9, 1_000));
    assert_eq!(path.stats().overflowed, 2);
    let order: Vec<u32> = drain(&mut path).iter().map(|(_, packet)| number(packet)).collect();
    assert_eq!(order, [0, 1, 2, 9]);
}

#[test]
fn a_late_poll_does_not_slow_the_link() {
    let bottleneck = Bottleneck::new(Rate::from_bytes_per_second(1_000), ByteCount::new(10_000));
    let mut path = path(PathConfig { bottleneck: Some(bottleneck), ..PathConfig::default() });
    for index in 0..4 {
        path.on_packet(Time::ZERO, packet(index, 1_000));
    }
    let late = Time::ZERO + Duration::from_millis(3_500);
    assert_eq!(std::iter::from_fn(|| path.poll(late)).count(), 3);
    assert_eq!(path.next_timeout(), Some(Time::ZERO + Duration::from_secs(4)));
}

#[test]
fn what_a_sender_can_fill_is_bounded() {
    let config = PathConfig {
        delay: Duration::from_secs(9),
        capacity: ByteCount::new(5_000),
        ..PathConfig::default()
    };
    let mut path = path(config);
    for index in 0..1_000 {
        path.on_packet(Time::ZERO, packet(index, 1_000));
    }
    assert_eq!(path.held_bytes(), ByteCount::new(5_000));
    assert_eq!(path.stats().overflowed, 995);
}

#[test]
fn the_same_seed_gives_the_same_output_and_another_seed_another() {
    let config = PathConfig {
        delay: Duration::from_millis(10),
        loss: 0.1,
        duplication: 0.1,
        corruption: 0.1,
        reordering: Reordering {
            probability: 0.1,
            extra_delay: Duration::from_millis(2),
            ..Reordering::default()
        },
        bottleneck: Some(Bottleneck::new(Rate::from_bits_per_second(8_000_000), ByteCount::new(20_000))),
        ..PathConfig::default()
    };
    let output = |seed| {
        let mut path = Path::new(config.clone(), Rng::from_test_seed(seed)).expect("a valid configuration");
        run(&mut path, 2_000, 1_200, Duration::from_micros(900))
    };
    assert_eq!(output(1), output(1));
    assert_ne!(output(1), output(2));
}

#[test]
fn one_impairment_leaves_the_fate_of_others_alone() {
    let lost = |duplication| {
        let mut path = path(PathConfig { loss: 0.1, duplication, ..PathConfig::default() });
        run(&mut path, 1_000, 4, Duration::from_nanos(1));
        path.stats().lost
    };
    assert_eq!(lost(0.0), lost(0.5));
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let refused = |config: PathConfig| {
        Path::<Bytes>::new(config, Rng::from_test_seed(0)).expect_err("out of range").to_string()
    };
    assert!(refused(PathConfig { loss: 1.5, ..PathConfig::default() }).contains("loss"));
    assert!(refused(PathConfig { corruption: f64::NAN, ..PathConfig::default() }).contains("corruption"));
    assert!(refused(PathConfig { duplication: -0.1, ..PathConfig::default() }).contains("duplication"));
    let reordering = Reordering { probability: 0.1, extra_delay: Duration::ZERO, ..Reordering::default() };
    assert!(refused(PathConfig { reordering, ..PathConfig::default() }).contains("reordering"));
    let bottleneck = Some(Bottleneck::new(Rate::from_bytes_per_second(0), ByteCount::ZERO));
    assert!(refused(PathConfig { bottleneck, ..PathConfig::default() }).contains("rate"));
}

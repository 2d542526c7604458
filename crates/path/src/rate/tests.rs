use proptest::prelude::*;

use super::*;
use crate::test_support::{NORMAL_99, Probe, drain_until, moments, probe, probe_path};
use crate::trace::{OPPORTUNITY, Trace};
use crate::{Bottleneck, Path, PathConfig};

fn link(rate: impl Into<RateModel>) -> Path<Probe> {
    let bottleneck = Some(Bottleneck::new(rate, ByteCount::new(1 << 40)));
    probe_path(PathConfig { bottleneck, capacity: ByteCount::new(1 << 40), ..PathConfig::default() })
}

fn trace(text: &str) -> RateModel {
    Trace::parse(text).unwrap_or_else(|error| panic!("{error}")).into()
}

/// Sends packets of these lengths, all at once at `start`; when each has left, in nanoseconds.
fn departures(model: RateModel, start: Time, lengths: &[u64]) -> Vec<u64> {
    let mut path = link(model);
    for (number, &length) in lengths.iter().enumerate() {
        path.on_packet(start, probe(number as u64, start, length));
    }
    let arrived = drain_until(&mut path, Time::FAR_FUTURE);
    assert!(arrived.iter().enumerate().all(|(index, (_, packet))| packet.number == index as u64));
    arrived.iter().map(|(at, _)| at.as_nanos()).collect()
}

/// The bytes that have left in each interval of `interval` over `total` from the epoch on, the link never idle.
fn saturated(model: RateModel, length: u64, interval: Duration, total: Duration) -> Vec<f64> {
    let mut path = link(model);
    let mut bytes = vec![0.0; (total.as_nanos() / interval.as_nanos()) as usize];
    let (mut now, end) = (Time::ZERO, Time::ZERO + total);
    while now < end {
        // More than all opportunities of one time take.
        while path.held_packets() < 8 {
            path.on_packet(now, probe(0, now, length));
        }
        now = path.next_timeout().expect("the link is busy");
        // A departure at the end of an interval belongs to it.
        let index = (now.as_nanos().max(1) - 1) / interval.as_nanos();
        while let Some(packet) = path.poll(now) {
            if let Some(bytes) = bytes.get_mut(index as usize) {
                *bytes += packet.length as f64;
            }
        }
    }
    bytes
}

#[test]
fn a_recording_that_begins_elsewhere_is_the_same_recording() {
    for text in ["0\n0\n7\n7\n40\n", "0,800000\n0.01,0\n0.02,9000000\n"] {
        let start = Duration::from_millis(1_013);
        let bottleneck = Bottleneck::new(trace(text), ByteCount::new(1 << 40));
        let config = PathConfig { bottleneck: Some(bottleneck), start, ..PathConfig::default() };
        let mut path = probe_path(config);
        let lengths = [900, 1500, 40, 3000, 700, 1200];
        for (number, &length) in lengths.iter().enumerate() {
            path.on_packet(Time::ZERO, probe(number as u64, Time::ZERO, length));
        }
        let arrived = drain_until(&mut path, Time::FAR_FUTURE);
        let found: Vec<u64> = arrived.iter().map(|(at, _)| (*at + start).as_nanos()).collect();
        assert_eq!(found, departures(trace(text), Time::ZERO + start, &lengths), "{text:?}");
        let all = ByteCount::new(lengths.iter().sum());
        let carried = trace(text).carried(Time::ZERO, all, start);
        assert_eq!((carried + start).as_nanos(), *found.last().expect("six"));
    }
}

#[test]
fn a_rate_that_changes_does_the_exact_integral() {
    // 1000, then 3000 bytes a second, half a second each: 2000 bytes a cycle.
    let model = trace("0,8000\n0.5,24000");
    let lengths = [500, 1500, 1, 7, 1992, 10_000];
    let expected = [
        500_000_000,
        1_000_000_000,
        1_001_000_000,
        1_008_000_000,
        // 500 bytes by 1.5 s, all of the cycle by 2 s.
        2_000_000_000 - 1,
        // 2000 + 5 x 2000: the last byte leaves at 7 s.
        7_000_000_000,
    ];
    let mut departures = departures(model, Time::ZERO, &lengths);
    departures[4] -= 1;
    assert_eq!(departures, expected);
}

#[test]
fn a_rate_of_zero_waits_for_the_next_step() {
    let model = trace("0,0\n1,8000\n2,0");
    assert_eq!(
        departures(model.clone(), Time::ZERO, &[1, 999, 1]),
        [1_001_000_000, 2_000_000_000, 4_001_000_000]
    );
    // A packet that comes in the silence, several cycles later.
    let late = Time::from_nanos(11_500_000_000);
    assert_eq!(departures(model, late, &[500]), [13_500_000_000]);
}

#[test]
fn a_trace_that_is_nearly_always_silent_costs_no_step_for_each_cycle() {
    // One byte a second in the first nanosecond of every second: a billionth of a byte each.
    let model = trace("0,8\n0.000000001,0\n0.500000001,0");
    let cycle = match &model {
        RateModel::Steps(trace) => trace.duration().as_nanos(),
        _ => unreachable!("a CSV trace"),
    };
    let departure = departures(model, Time::ZERO, &[2]);
    assert_eq!(departure, [(2_000_000_000 - 1) * cycle + 1]);
}

proptest! {
    /// Against a sum over segments that knows nothing of credits: by a packet's departure all bytes up to it are
    /// done, a nanosecond before they are not.
    #[test]
    fn departures_are_the_first_nanosecond_by_which_the_work_is_done(
        steps in proptest::collection::vec((1u64..2_000, 0u64..50_000), 1..8),
        lengths in proptest::collection::vec(1u64..3_000, 1..40),
        start in 0u64..10_000_000_000,
    ) {
        let mut text = String::from("0,8000\n");
        let mut millis = 1;
        for (span, rate) in &steps {
            let line = format!("{}.{:03},{}\n", millis / 1000, millis % 1000, rate * 8);
            text.push_str(&line);
            millis += span;
        }
        let Ok(Trace::Steps(parsed)) = Trace::parse(&text) else { panic!("{text}") };
        let mut rates: Vec<(u128, u128)> = Vec::new();
        let (mut time, mut step) = (Duration::ZERO, 0);
        while time < parsed.duration() {
            let (rate, end) = parsed.step(step);
            rates.push((u128::from(rate.as_bytes_per_second()), u128::from(end.saturating_sub(time).as_nanos())));
            (time, step) = (end, step + 1);
        }
        let cycle_span: u128 = rates.iter().map(|(_, span)| span).sum();
        let cycle_work: u128 = rates.iter().map(|(rate, span)| rate * span).sum();
        // Work done from the epoch until a time.
        let done = |time: u128| {
            let (mut rest, mut work) = (time % cycle_span, time / cycle_span * cycle_work);
            for (rate, span) in &rates {
                work += rate * rest.min(*span);
                rest -= rest.min(*span);
            }
            work
        };
        let mut need = done(u128::from(start));
        for (departure, length) in departures(Trace::Steps(parsed).into(), Time::from_nanos(start), &lengths)
            .into_iter()
            .zip(&lengths)
        {
            need += u128::from(*length) * 1_000_000_000;
            prop_assert!(done(u128::from(departure)) >= need);
            prop_assert!(done(u128::from(departure) - 1) < need);
        }
    }

    /// Against a plain reading of Mahimahi's rules, stamp by stamp.
    #[test]
    fn opportunities_are_used_as_mahimahi_uses_them(
        gaps in proptest::collection::vec(0u32..4, 1..12),
        packets in proptest::collection::vec((0u64..6_000_000, 1u64..5_000), 1..40),
    ) {
        let mut stamps: Vec<u64> = Vec::new();
        for gap in gaps {
            stamps.push(stamps.last().copied().unwrap_or(0) + u64::from(gap));
        }
        *stamps.last_mut().expect("one gap at least") += 1;
        let lines: Vec<String> = stamps.iter().map(u64::to_string).collect();
        let text = lines.join("\n");
        let mut path = link(trace(&text));
        let (mut now, mut sent, mut measured) = (Time::ZERO, Vec::new(), Vec::new());
        for (number, (gap, length)) in packets.into_iter().enumerate() {
            now += Duration::from_nanos(gap);
            measured.extend(drain_until(&mut path, now));
            path.on_packet(now, probe(number as u64, now, length));
            sent.push((now, length));
        }
        measured.extend(drain_until(&mut path, Time::FAR_FUTURE));
        let measured: Vec<u64> = measured.iter().map(|(at, _)| at.as_nanos()).collect();
        prop_assert_eq!(measured, by_stamps(&stamps, &sent));
    }
}

/// When packets, as they were sent, have left by a trace of these stamps.
fn by_stamps(stamps: &[u64], sent: &[(Time, u64)]) -> Vec<u64> {
    let (mut departures, mut rest, mut cycle) = (Vec::new(), None, 0);
    loop {
        for stamp in stamps {
            let now = (cycle + stamp) * 1_000_000;
            let mut left = 1500;
            while left > 0 {
                let Some((at, length)) = sent.get(departures.len()) else { return departures };
                if at.as_nanos() >= now {
                    break;
                }
                let need = rest.take().unwrap_or(*length);
                if need > left {
                    rest = Some(need - left);
                    break;
                }
                left -= need;
                departures.push(now);
            }
        }
        cycle += stamps.last().expect("a stamp");
    }
}

#[test]
fn whole_cycles_deliver_every_opportunity_s_bytes() {
    for (text, length) in
        [("1\n", 1500), ("0\n0\n3\n7\n7\n10\n", 1500), ("2\n5\n5\n6\n", 700), ("1\n4\n", 4_000)]
    {
        let RateModel::Opportunities(parsed) = trace(text) else { panic!("{text}") };
        let (cycle, count) = (parsed.duration(), parsed.count() as u64);
        // So many cycles that whole packets fit.
        let cycles = length;
        let delivered: f64 = saturated(trace(text), length, cycle * cycles, cycle * cycles).iter().sum();
        let expected = OPPORTUNITY.get() * count * cycles;
        // A stamp at zero comes too early for the first packet; in its place the next cycle's one falls on the end.
        let rest = expected % length;
        assert!((delivered - (expected - rest) as f64).abs() < 0.5, "{text:?}: {delivered} {expected}");
        let mean = parsed.mean_rate().bytes_in(cycle * cycles);
        assert!(expected.abs_diff(mean.get()) <= cycle.as_secs_f64().ceil() as u64 * cycles, "{text:?}");
    }
}

#[test]
fn opportunities_have_mahimahi_s_edges() {
    let model = || trace("0\n5\n5\n10\n");
    let at = |nanos| Time::from_nanos(nanos);
    // A packet at a stamp is too late for it; two stamps at one time make 3000 bytes.
    assert_eq!(departures(model(), at(5_000_000), &[1500]), [10_000_000]);
    assert_eq!(departures(model(), at(4_999_999), &[3000]), [5_000_000]);
    // The last stamp and the next cycle's zero fall together.
    assert_eq!(departures(model(), at(5_000_000), &[1500, 1500, 1500]), [10_000_000, 10_000_000, 15_000_000]);
    // Small packets share a stamp, a large one needs several, and they share across packets.
    assert_eq!(departures(model(), at(1), &[500, 500, 500, 500]), [5_000_000; 4]);
    assert_eq!(departures(model(), at(1), &[2000, 1000, 10]), [5_000_000, 5_000_000, 10_000_000]);
    // Long idle: the cycle goes on as if there had been traffic.
    assert_eq!(departures(model(), at(1_000_000_000_001), &[100]), [1_000_005_000_000]);
    // What a stamp had left is lost once nothing waits.
    let mut path = link(trace("10\n"));
    path.on_packet(at(1), probe(0, at(1), 100));
    assert_eq!(drain_until(&mut path, at(10_000_001)).len(), 1);
    path.on_packet(at(10_000_000), probe(1, at(10_000_000), 100));
    assert_eq!(path.next_timeout(), Some(at(20_000_000)));
}

#[test]
fn a_drawn_rate_keeps_its_mean_and_deviation() {
    let interval = Duration::from_millis(100);
    for (deviation, shortfall) in [(200_000u64, 1.0), (416_667, 0.986_5), (625_000, 0.8796)] {
        let mean = 1_250_000;
        let model = RateModel::Normal(NormalRate {
            mean: Rate::from_bytes_per_second(mean),
            deviation: Rate::from_bytes_per_second(deviation),
            interval,
        });
        let intervals = 4_000;
        let bytes = saturated(model, 125, interval, interval * intervals);
        let rates: Vec<f64> = bytes.iter().map(|bytes| bytes * 10.0).collect();
        let (achieved, spread) = moments(&rates);
        let (deviation, root) = (deviation as f64 * shortfall, (intervals as f64).sqrt());
        assert!((achieved - mean as f64).abs() < NORMAL_99 * deviation / root, "{achieved}");
        // A normal's fourth moment; a truncated one's is smaller. A packet more or less is 1250 bytes a second.
        let half_width = NORMAL_99 * deviation / (2f64.sqrt() * root) + 1_250.0;
        assert!((spread - deviation).abs() < half_width, "{spread}, not {deviation} +- {half_width}");
        assert!(rates.iter().all(|&rate| rate < 2.0 * mean as f64 + 1_250.0));
    }
}

#[test]
fn a_drawn_rate_is_a_function_of_seed_and_time_alone() {
    let model = NormalRate {
        mean: Rate::from_bytes_per_second(1_000_000),
        deviation: Rate::from_bytes_per_second(200_000),
        interval: Duration::from_millis(100),
    };
    // A packet in a late interval takes the same time whether the link was busy or idle before.
    let lasts = |earlier: &[u64]| {
        let mut path = link(RateModel::Normal(model));
        for &millis in earlier {
            let now = Time::ZERO + Duration::from_millis(millis);
            drain_until(&mut path, now);
            path.on_packet(now, probe(0, now, 1_000));
        }
        drain_until(&mut path, Time::FAR_FUTURE);
        let now = Time::ZERO + Duration::from_millis(12_345);
        path.on_packet(now, probe(0, now, 10_000));
        drain_until(&mut path, Time::FAR_FUTURE)[0].0.since(now)
    };
    assert_eq!(lasts(&[]), lasts(&[5, 105, 6_000, 12_301]));
    assert_ne!(lasts(&[]), Duration::from_millis(10), "it is a draw, not the mean");
}

#[test]
fn the_header_is_charged_to_rate_and_queue() {
    let bottleneck = Bottleneck::new(Rate::from_bytes_per_second(1_000), ByteCount::new(300));
    let config =
        PathConfig { bottleneck: Some(bottleneck), header: ByteCount::new(50), ..PathConfig::default() };
    let mut path = probe_path(config);
    for number in 0..4 {
        path.on_packet(Time::ZERO, probe(number, Time::ZERO, 100));
    }
    // One in transmission, two of 150 bytes fill the queue.
    assert_eq!(path.stats().overflowed, 1);
    assert_eq!(path.queue_bytes(), ByteCount::new(300));
    assert_eq!(path.held_bytes(), ByteCount::new(300));
    assert_eq!(path.stats().peak_queue_bytes, ByteCount::new(300));
    let arrived = drain_until(&mut path, Time::FAR_FUTURE);
    let times: Vec<u64> = arrived.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
    assert_eq!(times, [150, 300, 450]);
    assert_eq!(path.stats().delivered_bytes, 300);
    assert_eq!((path.queue_bytes(), path.held_packets()), (ByteCount::ZERO, 0));
}

#[test]
fn models_that_cannot_be_are_refused() {
    let refused = |mean, deviation, interval| {
        let (mean, deviation) = (Rate::from_bytes_per_second(mean), Rate::from_bytes_per_second(deviation));
        let model = RateModel::Normal(NormalRate { mean, deviation, interval });
        model.validate().expect_err("out of range").to_string()
    };
    assert!(refused(0, 0, Duration::from_secs(1)).contains("above zero"));
    assert!(refused(10, 6, Duration::from_secs(1)).contains("half"));
    assert!(refused(10, 5, Duration::from_micros(10)).contains("1 ms"));
}

//! What holds for every direction and every traffic.

use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};
use proptest::prelude::*;

use crate::test_support::Probe;
use crate::*;

/// A packet that comes some time after the one before, and how long nobody looks at the path afterwards.
#[derive(Debug, Clone)]
struct Step {
    gap: Duration,
    length: u64,
    is_ecn_capable: bool,
    /// False: the path is left alone until the next packet.
    is_drained: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0u64..3_000_000, 0u64..3_000, any::<bool>(), any::<bool>()).prop_map(
        |(gap, length, is_ecn_capable, is_drained)| Step {
            gap: Duration::from_nanos(gap),
            length,
            is_ecn_capable,
            is_drained,
        },
    )
}

fn rate_model() -> impl Strategy<Value = RateModel> {
    let rate = || (1_000u64..5_000_000).prop_map(Rate::from_bytes_per_second);
    let normal = (rate(), 0u64..50, 1u64..40).prop_map(|(mean, percent, millis)| {
        let (deviation, interval) = (mean.mul_ratio(percent, 100), Duration::from_millis(millis));
        RateModel::Normal(NormalRate { mean, deviation, interval })
    });
    let traces = prop::sample::select(vec!["1\n", "0\n0\n7\n7\n40\n", "0,800000\n0.01,0\n0.02,9000000\n"]);
    let trace = traces.prop_map(|text| Trace::parse(text).expect("a trace").into());
    prop_oneof![rate().prop_map(RateModel::Constant), normal, trace]
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let threshold = prop::option::of((0u64..20_000).prop_map(ByteCount::new));
    let drop_tail = threshold.prop_map(|mark_above| Discipline::DropTail(DropTail { mark_above }));
    let codel = (1u64..5, 0u64..20, any::<bool>()).prop_map(|(target, more, ecn)| {
        let (target, interval) = (Duration::from_millis(target), Duration::from_millis(target + more));
        Discipline::CoDel(CoDel { target, interval, ecn })
    });
    prop_oneof![drop_tail, codel]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let shape = prop::sample::select(vec![Distribution::Normal, Distribution::Pareto, Distribution::Wifi]);
    (shape, 0u64..5_000, 0u64..20, any::<bool>()).prop_map(|(distribution, micros, millis, may_reorder)| {
        Jitter {
            distribution,
            deviation: Duration::from_micros(micros),
            interval: Duration::from_millis(millis),
            may_reorder,
        }
    })
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A path that has what radio links and their receivers do with time, and nothing else.
fn radio() -> impl Strategy<Value = PathConfig> {
    let aggregation =
        (1usize..9, 1u64..9).prop_map(|(packets, time)| Aggregation { packets, time: millis(time) });
    let frames = (1u64..4, 0.0..0.5f64, 0u64..9).prop_map(|(interval, failure, repeat)| RadioFrames {
        interval: millis(interval),
        failure,
        repeat: millis(repeat),
    });
    let handover = (20u64..60, 0u64..20, 0u64..9).prop_map(|(interval, delay, gap)| Handover {
        interval: millis(interval),
        delay: millis(delay),
        gap: millis(gap),
    });
    let periods = (0.0..0.5f64, 1u64..9).prop_map(|(share, mean)| LossPeriods { share, mean: millis(mean) });
    let pauses = (9u64..40, 1u64..9, 0u64..2).prop_map(|(every, mean, packet)| Pauses {
        every: millis(every),
        mean: millis(mean),
        packet: millis(packet),
    });
    let (aggregation, frames) = (prop::option::of(aggregation), prop::option::of(frames));
    let receiver = (0u64..4, prop::option::of(pauses));
    let (handover, periods) = (prop::option::of(handover), prop::option::of(periods));
    (aggregation, frames, handover, periods, receiver, 0u64..100).prop_map(
        |(aggregation, frames, handover, loss_periods, (batch, pauses), start)| PathConfig {
            aggregation,
            frames,
            handover,
            loss_periods,
            batch: millis(batch),
            pauses,
            start: millis(start),
            ..PathConfig::default()
        },
    )
}

prop_compose! {
    fn config()(
        delay in 0u64..20,
        jitter in prop::option::of(jitter()),
        loss in 0.0..0.5f64,
        burst in prop::option::of((0.0..0.4f64, 1.0..5.0f64)),
        late in prop::option::of((0.0..1.0f64, 0.0..0.9f64, 1u64..9)),
        duplication in 0.0..0.5f64,
        corruption in 0.0..0.5f64,
        outage in prop::option::of((0u64..50, 0u64..50)),
        bottleneck in prop::option::of((rate_model(), 0u64..40_000, discipline())),
        (header, radio) in (0u64..60, radio()),
        capacity in 3_000u64..100_000,
    ) -> PathConfig {
        PathConfig {
            delay: Duration::from_millis(delay),
            jitter,
            loss,
            burst_loss: burst.and_then(|(loss, burst)| GilbertElliott::from_mean(loss, burst).ok()),
            reordering: late.map_or(Reordering::default(), |(probability, correlation, millis)| Reordering {
                probability,
                correlation,
                extra_delay: Duration::from_millis(millis),
            }),
            duplication,
            corruption,
            outage: outage.map(|(start, length)| Outage {
                start: Duration::from_millis(start),
                length: Duration::from_millis(length),
            }),
            bottleneck: bottleneck.map(|(rate, queue, discipline)| Bottleneck {
                rate,
                queue: ByteCount::new(queue),
                discipline,
            }),
            header: ByteCount::new(header),
            capacity: ByteCount::new(capacity),
            ..radio
        }
    }
}

/// Checks what must hold at any moment.
fn check(path: &Path<Probe>, capacity: ByteCount) {
    let stats = path.stats();
    let gone = stats.delivered + stats.lost + stats.overflowed + stats.managed;
    assert_eq!(stats.offered + stats.duplicated, gone + path.held_packets() as u64, "{stats:?}");
    // Copies come on top of what the sender may fill.
    assert!(path.held_bytes() <= capacity * 2, "{:?}", path.held_bytes());
    assert!(path.queue_bytes() <= stats.peak_queue_bytes, "{stats:?}");
    assert_eq!(path.held_packets() == 0, path.next_timeout().is_none());
}

/// Runs the steps; each delivery with its time.
fn output(config: &PathConfig, steps: &[Step], seed: u64) -> Vec<(Time, Probe)> {
    output_at(config, steps, seed, Path::next_timeout)
}

/// The same by somebody who looks when `next` says.
fn output_at(
    config: &PathConfig,
    steps: &[Step],
    seed: u64,
    next: fn(&Path<Probe>) -> Option<Time>,
) -> Vec<(Time, Probe)> {
    let mut path = Path::new(config.clone(), Rng::from_test_seed(seed)).expect("a valid configuration");
    let (mut now, mut delivered): (Time, Vec<(Time, Probe)>) = (Time::ZERO, Vec::new());
    let mut drain = |path: &mut Path<Probe>, end: Time| {
        while let Some(due) = next(path).filter(|&due| due <= end) {
            while let Some(packet) = path.poll(due) {
                assert!(packet.sent + config.delay <= due || config.jitter.is_some());
                assert!(packet.sent <= due, "nothing arrives before it is sent");
                delivered.push((due, packet));
            }
            check(path, config.capacity);
            // Every timeout brings something or lies in the past: the clock cannot stand still for ever.
            assert!(next(path).is_none_or(|next| next > due));
        }
    };
    for (number, step) in steps.iter().enumerate() {
        now += step.gap;
        if step.is_drained {
            drain(&mut path, now);
        }
        let packet = Probe {
            number: number as u64,
            sent: now,
            length: step.length,
            is_ecn_capable: step.is_ecn_capable,
            is_marked: false,
        };
        path.on_packet(now, packet);
        check(&path, config.capacity);
    }
    drain(&mut path, Time::FAR_FUTURE);
    assert_eq!(path.held_packets(), 0);
    assert_eq!(path.held_bytes() + path.queue_bytes(), ByteCount::ZERO);
    delivered
}

proptest! {
    #[test]
    fn packets_are_conserved_and_the_same_seed_gives_the_same_output(
        config in config(),
        steps in proptest::collection::vec(step(), 1..120),
        seed in any::<u64>(),
    ) {
        let first = output(&config, &steps, seed);
        prop_assert_eq!(&first, &output(&config, &steps, seed));
        // In order, unless reordering was asked for; a copy follows its original.
        let may_reorder = config.reordering.probability > 0.0
            || config.jitter.is_some_and(|jitter| jitter.may_reorder);
        if !may_reorder {
            prop_assert!(first.windows(2).all(|pair| pair[0].1.number <= pair[1].1.number));
        }
    }

    /// What arrives does not depend on how often somebody looks: late polls change when packets are handed out, not
    /// which, nor their order.
    #[test]
    fn lazy_polling_gives_the_same_packets_in_the_same_order(
        config in config(),
        steps in proptest::collection::vec(step(), 1..120),
        seed in any::<u64>(),
    ) {
        // What waits at the far end counts against the capacity, so that is out of reach here.
        let config = PathConfig { capacity: DEFAULT_CAPACITY, ..config };
        let with = |is_drained| {
            let steps: Vec<Step> = steps.iter().map(|step| Step { is_drained, ..step.clone() }).collect();
            output(&config, &steps, seed)
        };
        prop_assert_eq!(with(true), with(false));
    }

    /// Who looks at arrivals only, not at departures, misses nothing and is never late.
    #[test]
    fn looking_at_arrivals_gives_the_same_packets_at_the_same_times(
        config in config(),
        steps in proptest::collection::vec(step(), 1..120),
        seed in any::<u64>(),
    ) {
        let all = output(&config, &steps, seed);
        prop_assert_eq!(all, output_at(&config, &steps, seed, Path::next_arrival));
    }

    /// Switching one impairment on leaves the others' packets as they were.
    #[test]
    fn impairments_draw_independently(seed in any::<u64>(), burst in 1.0..4.0f64, gap in 1u64..50) {
        let plain = PathConfig { loss: 0.2, ..PathConfig::default() };
        let rich = PathConfig {
            burst_loss: GilbertElliott::from_mean(0.1, burst).ok(),
            duplication: 0.1,
            corruption: 0.1,
            jitter: Some(Jitter {
                distribution: Distribution::Pareto,
                deviation: Duration::from_millis(1),
                interval: Duration::ZERO,
                may_reorder: true,
            }),
            ..plain.clone()
        };
        let step = Step { gap: Duration::from_micros(gap), length: 100, is_ecn_capable: false, is_drained: true };
        let steps = vec![step; 400];
        let numbers = |config| {
            let output = output(config, &steps, seed);
            output.iter().map(|(_, packet)| packet.number).collect::<std::collections::BTreeSet<_>>()
        };
        // The rich path loses what the plain one loses, and more.
        prop_assert!(numbers(&rich).is_subset(&numbers(&plain)));
    }
}

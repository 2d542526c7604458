//! Whatever happens in whatever order, and whatever a peer pretends: the window stays within what has been measured.

use posthaste_policy::sample::PacketSample;
use proptest::prelude::*;

use super::super::*;
use crate::congestion::properties::{Event, World, event};
use crate::testing::{Bottleneck, DATAGRAM, Link, loss, milliseconds, packet, steady_rtt};

/// What the window may be after an ack, given the controller's state then and its window `before`.
fn most(controller: &Mobile, before: f64) -> f64 {
    let least = controller.minimum_pipe();
    if controller.state != State::Reach {
        return controller.bounded(controller.target()).max(controller.neighbour.lift).max(least);
    }
    let Some(ceiling) = controller.reach.ceiling else { return f64::INFINITY };
    let seconds = controller.path.least_rtt().as_secs_f64();
    (reach::CEILING_GAIN * ceiling * seconds).max(before).max(least)
}

proptest! {
    /// In startup no more than the ceiling that trains have shown, then no more than the model of what has been delivered
    /// or, next to others, what a CUBIC would hold: for acks of everything at once, in any order of events.
    #[test]
    fn the_window_is_at_most_ceiling_or_model(
        events in prop::collection::vec(event(), 1..300),
        ceiling in prop::option::of(1_000u64..10_000_000_000),
        beside in any::<bool>(),
    ) {
        let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed: 3 };
        let mut controller = Mobile::new(Parameters::default(), limits);
        let rate_ceiling = ceiling.map(Rate::from_bits_per_second);
        controller.adjust(&Adjustment { rate_ceiling, ..Adjustment::default() });
        if beside {
            controller.neighbour.begin_shadow(limits, 100_000.0);
        }
        let mut world = World::new(DATAGRAM);
        for event in &events {
            let before = controller.window;
            world.apply(event, &mut controller);
            if let Event::Acked { .. } = event
                && (controller.window - before).abs() > 0.0
            {
                // A whole number of bytes, and never less than two datagrams.
                let most = most(&controller, before).max((world.size * 2).as_f64()) + 1.0;
                prop_assert!(controller.window <= most, "{} {most} after {event:?}", controller.window);
            }
        }
    }
}

/// What a link of 1 Mbit/s drops in three seconds of a sender that was told of 200 datagrams in flight and of 100 Mbit/s.
#[test]
fn a_slow_path_that_pretends_to_be_fast_drops_little_more_than_one_flight() {
    let link =
        Link { rate: Rate::from_bits_per_second(1_000_000), buffer: ByteCount::new(20_000), ..Link::usual() };
    let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed: 3 };
    let (mut path, mut controller) = (Bottleneck::new(link), Mobile::new(Parameters::default(), limits));
    while !controller.reach.has_begun() {
        path.run(&mut controller, milliseconds(1), |_, _| {});
    }
    let rate_ceiling = Some(Rate::from_bits_per_second(100_000_000));
    let window = Some(DATAGRAM * 200);
    controller.adjust(&Adjustment { window, rate_ceiling, ..Adjustment::default() });
    path.run(&mut controller, milliseconds(3_000), |_, _| {});
    assert!(path.lost <= DATAGRAM * 250, "{}", path.lost);
    assert!(path.delivered >= link.rate.bytes_in(milliseconds(2_000)), "{}", path.delivered);
}

/// Startup reaches its ceiling while 0 or 8 ms of its own queue stand on a path of 40 ms.
#[test]
fn a_probe_does_not_begin_on_the_queue_of_startup() {
    for (queue, state) in [(0, State::Up), (8, State::Ease)] {
        let (_, mut controller) = super::settled(Link::usual());
        controller.reach.ceiling = Some(controller.path.bandwidth());
        controller.reach.is_doubtful = false;
        controller.state = State::Reach;
        let sample = sample_of(controller.path.least_rtt() + milliseconds(queue));
        for _ in 0..8 {
            controller.path.update(&sample, &Rounds::default(), ByteCount::ZERO, 1_200.0);
        }
        let sample = Sample { sent_at: Time::ZERO + milliseconds(60_000), ..sample };
        controller.step_reach(&sample);
        assert_eq!(controller.state, state, "a queue of {queue} ms");
        assert_eq!(controller.reach.is_doubtful, queue > 0, "a probe follows");
    }
}

/// A path that becomes longer, 40 to 120 ms, is filled again only because a rest shows its least round trip. What is added
/// is taken for a neighbour's queue, and the shadow would fill the path now and then: there is none here.
#[test]
fn a_path_that_becomes_longer_is_filled_again() {
    let delivered = |parameters| {
        let (mut path, mut controller) = (Bottleneck::new(Link::usual()), super::mobile(parameters));
        path.run(&mut controller, milliseconds(5_000), |_, _| {});
        path.link.rtt = milliseconds(120);
        path.link.buffer = path.link.bdp() * 2;
        path.run(&mut controller, milliseconds(25_000), |_, _| {});
        super::stretch(&mut path, &mut controller, milliseconds(10_000)).0
    };
    let with = Parameters { shadow: false, ..Parameters::default() };
    let without = Parameters { without: [Part::Rest].into_iter().collect(), ..with };
    let (with_rest, without_rest) = (delivered(with), delivered(without));
    assert!(with_rest > 0.9 && without_rest < 0.7, "{with_rest} {without_rest}");
}

/// A flight of 100 datagrams leaves a path that delivers every fifth.
#[test]
fn nothing_is_sent_in_the_place_of_an_overrun_flight() {
    let mut controller = super::mobile(Parameters::default());
    let start = Time::ZERO + milliseconds(1_000);
    controller.adjust(&Adjustment { window: Some(DATAGRAM * 100), ..Adjustment::default() });
    let lose = |controller: &mut Mobile, lost: std::ops::Range<u64>, sent_at| {
        let sample = |number| PacketSample {
            in_flight: DATAGRAM * 100,
            lost: ByteCount::ZERO,
            ..packet(number, sent_at)
        };
        let packets: Vec<_> = lost.clone().map(sample).collect();
        let bytes = DATAGRAM * packets.len() as u64;
        let rest = DATAGRAM * (100 - lost.end);
        let of = loss(start + milliseconds(40), &packets, steady_rtt(milliseconds(40)));
        controller.on_loss(&posthaste_policy::sample::LossSample {
            bytes,
            lost: bytes,
            in_flight: rest,
            prior_in_flight: rest + bytes,
            ..of
        });
        controller.window
    };
    assert!((lose(&mut controller, 0..10, start) - 120_000.0).abs() < 1.0, "a tenth may be the path's own");
    assert!((lose(&mut controller, 10..80, start) - 24_000.0).abs() < 1.0, "what is still under way");
    assert!(controller.reach.is_overrun());
    assert!((lose(&mut controller, 80..100, start) - controller.minimum_pipe()).abs() < 1.0);
    let growth = |controller: &Mobile, sent_at| {
        let sample = Sample { sent_at, newly_acked: 1_200.0, ..super::round(start, 120_000.0, 0.0) };
        controller.reach_window(&sample) - controller.window
    };
    assert!(growth(&controller, start).abs() < 1.0, "an ack of the same flight");
    assert!((growth(&controller, start + milliseconds(41)) - 2_400.0).abs() < 1.0);
}

#[test]
fn what_is_lost_in_a_queue_is_not_remembered_as_the_paths_own() {
    let mut own = crate::congestion::mobile::own_loss::OwnLoss::default();
    for packet in 0..1_000 {
        let has_queue = packet >= 800;
        if packet % 16 == 0 || has_queue {
            own.on_lost(Time::ZERO, has_queue);
        } else {
            own.on_acked(Time::ZERO, has_queue);
        }
    }
    assert_eq!(own.quiet(), posthaste_policy::sample::PathLoss::new(800, 50));
    own.forget();
    assert_eq!(own.quiet(), posthaste_policy::sample::PathLoss::UNKNOWN, "a queue was hidden");
}

#[test]
fn losses_are_the_paths_own_only_where_a_queue_could_be_seen() {
    // The buffer holds 3 ms, less than counts as a queue: as far as delays tell, others may keep it full.
    let (mut path, mut controller) =
        super::settled(Link { loss: 0.06, buffer: ByteCount::new(4_000), ..Link::usual() });
    path.run(&mut controller, milliseconds(5_000), |_, _| {});
    assert!(controller.own.part(0.1) > 0.02, "{}", controller.own.part(0.1));
    assert!(controller.own_part() <= 0.0, "{}", controller.own_part());
    // A delay above the least shows that there was room above it.
    path.link = Link { rate: Rate::from_bits_per_second(1_000_000), loss: 0.06, ..Link::usual() };
    path.run(&mut controller, milliseconds(1_000), |_, _| {});
    assert!(controller.own_part() > 0.02, "{}", controller.own_part());
}

#[test]
fn a_least_round_trip_that_falls_in_small_steps_was_wrong_too() {
    let mut path = Path::default();
    // Each by less than what counts as a queue.
    let is_told = [80, 77, 74, 71, 68, 65].map(|rtt| {
        path.update(&sample_of(milliseconds(rtt)), &Rounds::default(), ByteCount::ZERO, 1_200.0);
        path.had_hidden_queue
    });
    assert!(is_told.contains(&true), "{is_told:?}");
}

/// An ack that tells nothing but the round trip.
fn sample_of(rtt: Duration) -> Sample {
    Sample {
        now: Time::ZERO,
        rate: 0.0,
        delivered: 0.0,
        prior_delivered: ByteCount::ZERO,
        app_limited: false,
        rtt,
        newly_acked: 0.0,
        lost: 0.0,
        tx_in_flight: 0.0,
        in_flight: 0.0,
        prior_in_flight: 0.0,
        total_delivered: ByteCount::ZERO,
        sent_at: Time::ZERO,
        smoothed_rtt: rtt,
    }
}

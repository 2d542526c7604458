//! The controller on a bottleneck of 10 Mbit/s and 40 ms, one mechanism after the other.

use posthaste_policy::sample::PacketSample;

use super::*;
use crate::testing::{Bottleneck, DATAGRAM, Link, loss, milliseconds, packet, steady_rtt};

mod bounds;
mod neighbours;
mod outages;
mod parts;
mod radio;
mod stalls;

fn mobile(parameters: Parameters) -> Mobile {
    let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed: 3 };
    Mobile::new(parameters, limits)
}

/// What a stretch of time has delivered, as a part of what the link can, and lost, as a part of what was sent.
fn stretch(path: &mut Bottleneck, controller: &mut Mobile, time: Duration) -> (f64, f64) {
    let (delivered, lost) = (path.delivered, path.lost);
    path.run(controller, time, |_, _| {});
    let (delivered, lost) = ((path.delivered - delivered).as_f64(), (path.lost - lost).as_f64());
    (delivered / path.link.rate.bytes_in(time).as_f64(), lost / (delivered + lost).max(1.0))
}

/// The greatest queue of a stretch of time, in least round trips.
fn greatest_queue(path: &mut Bottleneck, controller: &mut Mobile, time: Duration) -> f64 {
    let mut greatest = ByteCount::ZERO;
    path.run(controller, time, |path, _| greatest = greatest.max(path.queue()));
    greatest.as_f64() / path.link.bdp().as_f64()
}

/// A path with its controller, that has found the rate.
fn settled(link: Link) -> (Bottleneck, Mobile) {
    let (mut path, mut controller) = (Bottleneck::new(link), mobile(Parameters::default()));
    path.run(&mut controller, milliseconds(3_000), |_, _| {});
    (path, controller)
}

#[test]
fn the_rate_is_found_and_kept_without_a_queue() {
    let (mut path, mut controller) = settled(Link::usual());
    let (delivered, lost) = stretch(&mut path, &mut controller, milliseconds(5_000));
    assert!(delivered > 0.95, "{delivered}");
    assert!(lost < 0.001, "{lost}");
    let queue = greatest_queue(&mut path, &mut controller, milliseconds(5_000));
    assert!(queue < 0.6, "{queue} round trips of queue");
}

#[test]
fn a_measured_rate_is_the_ceiling_of_startup() {
    let link = Link { buffer: ByteCount::new(12_000), ..Link::usual() };
    let lost = |ceiling: Option<Rate>| {
        let (mut path, mut controller) = (Bottleneck::new(link), mobile(Parameters::default()));
        controller.adjust(&Adjustment { rate_ceiling: ceiling, ..Adjustment::default() });
        path.run(&mut controller, milliseconds(400), |_, _| {});
        path.lost
    };
    let (with, without) = (lost(Some(link.rate)), lost(None));
    assert!(with < without, "{with} lost with a ceiling, {without} without");
}

#[test]
fn below_a_ceiling_the_ceiling_is_paced_at() {
    let mut controller = mobile(Parameters::default());
    let ceiling = Some(Rate::from_bits_per_second(20_000_000));
    let window = Some(DATAGRAM * 1_000);
    controller.adjust(&Adjustment { window, rate_ceiling: ceiling, ..Adjustment::default() });
    let paced = controller.pacing_rate(milliseconds(40));
    assert!((paced - 2_500_000.0).abs() < 1.0, "{paced}");
}

#[test]
fn startup_is_not_left_for_loss_that_the_path_may_have() {
    let (mut path, mut controller) =
        (Bottleneck::new(Link { loss: 0.08, ..Link::usual() }), mobile(Parameters::default()));
    while controller.state == State::Reach && path.now < Time::ZERO + milliseconds(2_000) {
        path.run(&mut controller, milliseconds(5), |_, _| {});
    }
    assert_ne!(controller.state, State::Reach);
    assert!(controller.losses.bound.is_infinite(), "{}", controller.losses.bound);
}

#[test]
fn a_doubtful_rate_is_probed_at_once() {
    let (path, mut controller) = settled(Link::usual());
    controller.start_ease(path.now);
    controller.start_hold();
    controller.cycle.rounds = 1;
    assert!(!controller.is_time_to_probe(path.now));
    controller.reach.is_doubtful = true;
    assert!(controller.is_time_to_probe(path.now));
}

#[test]
fn a_bound_far_below_the_rate_is_left_by_one_probe() {
    let (mut path, mut controller) = settled(Link { loss: 0.02, ..Link::usual() });
    controller.losses.bound = path.link.bdp().as_f64() / 8.0;
    path.run(&mut controller, milliseconds(4_000), |_, _| {});
    let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(3_000));
    assert!(delivered > 0.8, "{delivered}");
}

#[test]
fn one_late_ack_is_no_queue() {
    let [usual, late] = [milliseconds(40), milliseconds(65)];
    assert_eq!(path::second_greatest([usual, late, usual].iter()), usual);
    assert_eq!(path::second_greatest([late, usual, late].iter()), late);
    assert_eq!(path::second_greatest([late].iter()), Duration::ZERO);
}

#[test]
fn own_loss_is_tolerated() {
    let (mut path, mut controller) = settled(Link { loss: 0.08, ..Link::usual() });
    let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(20_000));
    // The test's link drops before its queue, so all of its rate could be delivered.
    assert!(delivered > 0.8, "{delivered}");
}

#[test]
fn loss_beyond_all_tolerance_slows_down_but_never_stops() {
    for loss in [0.3, 0.5] {
        let (mut path, mut controller) = settled(Link { loss, ..Link::usual() });
        let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(10_000));
        assert!(delivered > 0.001, "{loss}: {delivered}");
        assert!(controller.window() <= path.link.bdp() * 3, "{loss}: {}", controller.window());
    }
}

#[test]
fn congestive_loss_is_cut() {
    // A quarter of a bandwidth-delay product: probes overflow it.
    let (mut path, mut controller) = settled(Link { buffer: ByteCount::new(12_500), ..Link::usual() });
    let (delivered, lost) = stretch(&mut path, &mut controller, milliseconds(20_000));
    assert!(delivered > 0.85, "{delivered}");
    assert!(lost < 0.02, "{lost}");
}

#[test]
fn a_fall_of_the_rate_is_followed() {
    let (mut path, mut controller) = settled(Link { buffer: ByteCount::new(1_000_000), ..Link::usual() });
    path.link.rate = Rate::from_bits_per_second(2_000_000);
    path.run(&mut controller, milliseconds(2_000), |_, _| {});
    let queue = greatest_queue(&mut path, &mut controller, milliseconds(1_000));
    assert!(queue < 2.0, "{queue} round trips of queue");
}

#[test]
fn a_rise_of_the_rate_is_found() {
    let (mut path, mut controller) =
        settled(Link { rate: Rate::from_bits_per_second(2_000_000), ..Link::usual() });
    path.link = Link::usual();
    path.run(&mut controller, milliseconds(6_000), |_, _| {});
    let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(3_000));
    assert!(delivered > 0.8, "{delivered}");
}

#[test]
fn a_change_of_a_hundredfold_both_ways_is_survived() {
    let (mut path, mut controller) = settled(Link { buffer: ByteCount::new(200_000), ..Link::usual() });
    path.link.rate = Rate::from_bits_per_second(100_000);
    path.run(&mut controller, milliseconds(60_000), |_, _| {});
    path.link.rate = Rate::from_bits_per_second(10_000_000);
    path.run(&mut controller, milliseconds(20_000), |_, _| {});
    let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(5_000));
    assert!(delivered > 0.5, "{delivered}");
}

#[test]
fn a_mark_in_startup_ends_it() {
    let (mut path, mut controller) = (Bottleneck::new(Link::usual()), mobile(Parameters::default()));
    path.marks = true;
    path.run(&mut controller, milliseconds(100), |_, _| {});
    assert_ne!(controller.state, State::Reach);
    assert!(controller.window() <= path.link.bdp() * 2, "{}", controller.window());
}

#[test]
fn an_outage_is_survived() {
    let (mut path, mut controller) = settled(Link::usual());
    path.link.loss = 1.0;
    path.run(&mut controller, milliseconds(30_000), |_, _| {});
    path.link.loss = 0.0;
    path.run(&mut controller, milliseconds(5_000), |_, _| {});
    let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(5_000));
    assert!(delivered > 0.8, "{delivered}");
}

#[test]
fn losses_of_the_path_are_named_so() {
    let (mut path, mut controller) = settled(Link { loss: 0.03, ..Link::usual() });
    path.run(&mut controller, milliseconds(5_000), |_, _| {});
    let part = controller.own.part(0.1);
    assert!((0.015..0.045).contains(&part), "{part}");
}

#[test]
fn own_loss_is_a_quartile_and_not_counted_where_a_queue_stands() {
    let mut own = OwnLoss::default();
    let at = |index: u64| Time::ZERO + milliseconds(index);
    for index in 0..2_048 {
        if index % 10 == 0 { own.on_lost(at(index), true) } else { own.on_acked(at(index), true) }
    }
    assert!(!own.is_known(), "all of it had a queue");
    for index in 0..2_048 {
        // A tenth of the last eighth is lost: bursts that come and go.
        let is_lost = index % 1_024 < 128 && index % 10 == 0;
        if is_lost { own.on_lost(at(index), false) } else { own.on_acked(at(index), false) }
    }
    assert!(own.is_known());
    assert!(own.part(0.1) < 0.001, "{}", own.part(0.1));
}

#[test]
fn persistent_congestion_collapses_the_window_and_acks_raise_it() {
    let (mut path, mut controller) = settled(Link::usual());
    controller.on_persistent_congestion(path.now);
    assert_eq!(controller.window(), DATAGRAM * 2);
    path.run(&mut controller, milliseconds(2_000), |_, _| {});
    assert!(controller.window() * 2 >= path.link.bdp(), "{}", controller.window());
}

#[test]
fn a_bound_far_below_the_rate_rises_in_one_probe() {
    let (mut path, mut controller) = settled(Link::usual());
    controller.losses.bound = path.link.bdp().as_f64() / 4.0;
    path.run(&mut controller, milliseconds(4_000), |_, _| {});
    let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(2_000));
    assert!(delivered > 0.8, "{delivered}");
}

/// What 64 packets show that leave at the rate of the usual link, delayed by `delay` each; every `lost`th does not arrive.
fn response(delay: impl Fn(u64) -> Duration, lost: u64) -> response::Response {
    let (link, mut response) = (Link::usual(), response::Response::default());
    for number in 0..64 {
        let sent_at = Time::ZERO + milliseconds(1_000) + link.rate.time_for(DATAGRAM) * number;
        if number % lost == lost - 1 {
            continue;
        }
        let now = sent_at + link.rtt + delay(number);
        let packets = [crate::testing::packet(number, sent_at)];
        let ack = crate::testing::ack(now, &packets, crate::testing::steady_rtt(link.rtt), 1);
        let (rate, datagram) = (link.rate.as_bytes_per_second() as f64, DATAGRAM.as_f64());
        let known = response::KnownLink { rate, least_rtt: link.rtt, datagram, may_be_away: true };
        response.on_ack(&ack, &known);
    }
    response
}

#[test]
fn others_are_told_by_delay_beyond_the_own_queue_or_by_what_does_not_arrive() {
    let none = Duration::ZERO;
    let is_crowded = |delay: &dyn Fn(u64) -> Duration, lost| response(delay, lost).is_crowded(none);
    assert!(
        is_crowded(&|number| Duration::from_micros(960) * number, 100),
        "each packet has another before it"
    );
    assert!(is_crowded(&|_| milliseconds(3), 3), "a full queue");
    assert!(!is_crowded(&|_| none, 100), "an empty link");
    assert!(!is_crowded(&|_| milliseconds(3), 12), "a path that loses a twelfth");
    assert!(!is_crowded(&|_| none, 3), "a path that loses a third");
    assert!(
        !is_crowded(&|number| Duration::from_micros(100) * number, 100),
        "a train that showed a tenth too much"
    );
    let jumps = |number| if number % 8 == 0 { none } else { milliseconds(20) };
    assert!(!is_crowded(&jumps, 100), "jitter");
    assert!(!response(|number| Duration::from_micros(200) * number, 100).is_crowded(milliseconds(8)));
    let stepped = |number| if number < 50 { none } else { milliseconds(60) };
    assert!(!is_crowded(&stepped, 100), "a delay that steps and stays");
    let lump = |last: u64, late| milliseconds(late) + Link::usual().rate.time_for(DATAGRAM) * last;
    let lumps = |number| match number {
        0..52 => none,
        52..60 => lump(59 - number, 45),
        _ => lump(63 - number, 65),
    };
    assert!(!is_crowded(&lumps, 100), "a receiver that did not look twice");
}

#[test]
fn one_loss_in_a_hundred_packets_is_no_congestion() {
    let (path, mut controller) = settled(Link::usual());
    let mut lose = |number: u64| {
        // One of twenty: more than two in a hundred.
        let lost = PacketSample { in_flight: DATAGRAM * 20, ..packet(number, path.now) };
        controller.on_loss(&loss(path.now, &[lost], steady_rtt(path.link.rtt)))
    };
    assert_ne!(lose(100_000), LossCause::Congestion);
    assert_ne!(lose(100_100), LossCause::Congestion);
    assert_eq!(lose(100_150), LossCause::Congestion);
}

#[test]
fn a_delay_that_steps_is_no_queue() {
    // Above the least round trip by more than a queue is suspected from, for two to three rounds at a time.
    let (mut path, mut controller) = (Bottleneck::new(Link::usual()), mobile(Parameters::default()));
    let mut rng = Rng::from_test_seed(5);
    let mut wander = |path: &mut Bottleneck, controller: &mut Mobile, steps: u32| {
        for _ in 0..steps {
            path.link.rtt = milliseconds(36 + rng.below(12));
            path.run(controller, milliseconds(100), |_, _| {});
        }
        path.delivered.as_f64()
    };
    let before = wander(&mut path, &mut controller, 30);
    let after = wander(&mut path, &mut controller, 100);
    let part = (after - before) / path.link.rate.bytes_in(milliseconds(10_000)).as_f64();
    assert!(part > 0.93, "{part}");
    assert!(controller.path.eps() > milliseconds(6), "{}", controller.path.eps());
}

#[test]
fn only_what_comes_at_once_and_stays_is_a_step() {
    let service = milliseconds(1);
    let greatest = |rtts: &[u64]| {
        let mut steps = steps::Steps::default();
        for (index, rtt) in rtts.iter().enumerate() {
            let sent_at = Time::ZERO + milliseconds(index as u64);
            steps.update(1, steps::Arrival { sent_at, rtt: milliseconds(*rtt), service });
        }
        steps.greatest()
    };
    assert_eq!(greatest(&[40, 40, 48, 48, 48]), milliseconds(7));
    assert_eq!(greatest(&[40, 40, 48, 40, 40]), Duration::from_millis(0), "one late ack");
    assert_eq!(greatest(&[40, 41, 42, 43, 44, 45]), Duration::ZERO, "a queue that grows");
    assert_eq!(greatest(&[48, 48, 40, 40]), Duration::ZERO);
}

#[test]
fn a_step_is_excused_up_to_half_of_the_round_trip_and_for_twenty_rounds() {
    let (mut path, mut controller) = settled(Link::usual());
    path.link.rtt = milliseconds(240);
    path.run(&mut controller, milliseconds(500), |_, _| {});
    assert!(controller.path.eps() > milliseconds(10), "{}", controller.path.eps());
    assert!(controller.path.eps() <= controller.path.least_rtt() / 2 + controller.path.jitter() * 2);
    path.run(&mut controller, milliseconds(20_000), |_, _| {});
    let eps = controller.path.eps();
    assert!(eps <= (controller.path.least_rtt() / 8).max(milliseconds(4)), "{eps}");
}

#[test]
fn a_startup_that_no_train_has_measured_is_followed_by_a_probe() {
    let (mut path, mut controller) = (Bottleneck::new(Link::usual()), mobile(Parameters::default()));
    let mut held = None;
    let mut probed = None;
    path.run(&mut controller, milliseconds(3_000), |path, controller| match controller.state().phase {
        Phase::Named("hold") if held.is_none() => held = Some(path.now),
        Phase::Named("up") if probed.is_none() => probed = Some(path.now),
        _ => {}
    });
    let waited = probed.expect("a probe").since(held.expect("startup ends"));
    assert!(waited < path.link.rtt * 4, "{waited}");
}

/// A round trip of `flight` bytes, of which `lost` were lost and the rest has arrived.
fn round(now: Time, flight: f64, lost: f64) -> Sample {
    Sample {
        now,
        rate: 0.0,
        delivered: flight - lost,
        prior_delivered: ByteCount::ZERO,
        app_limited: false,
        rtt: milliseconds(40),
        newly_acked: 0.0,
        lost,
        tx_in_flight: flight,
        in_flight: flight,
        prior_in_flight: flight,
        total_delivered: ByteCount::ZERO,
        sent_at: now - milliseconds(40),
        smoothed_rtt: milliseconds(40),
    }
}

#[test]
fn what_is_without_its_parts_is_told_so() {
    let parse = |text: &str| toml::from_str::<Parameters>(text);
    let off = parse("without = [\"steps\", \"early-probe\"]").expect("two parts");
    assert!(off.without.has(Part::Steps) && off.without.has(Part::EarlyProbe));
    assert!(!off.without.has(Part::Ceiling));
    assert!(off.constants().iter().any(|constant| constant.name == "without"));
    assert!(Parameters::default().constants().iter().all(|constant| constant.name != "without"));
    assert!(parse("without = [\"everything\"]").is_err());
}

//! Paths whose delay steps, and what was sent before the controller knew anything.

use super::super::*;
use super::{mobile, round, settled};
use crate::testing::{DATAGRAM, Link, ack, milliseconds, packet, steady_rtt};

/// A packet that left then is acknowledged after `rtt`.
pub(super) fn acknowledge(
    controller: &mut Mobile,
    number: u64,
    sent_at: Time,
    bytes: ByteCount,
    rtt: Duration,
) {
    let packets = [posthaste_policy::sample::PacketSample { bytes, ..packet(number, sent_at) }];
    let delivered = DATAGRAM * (number + 1);
    controller.on_ack(&AckSample { delivered, ..ack(sent_at + rtt, &packets, steady_rtt(rtt), 1) });
}

#[test]
fn what_ends_the_handshakes_datagrams_is_no_first_flight() {
    let (mut controller, start) = (mobile(Parameters::default()), Time::ZERO + milliseconds(1_000));
    acknowledge(&mut controller, 0, start, ByteCount::new(45), milliseconds(40));
    assert!(controller.reach.has_begun());
    let flight = start + milliseconds(41);
    assert!(controller.reach.is_first_flight(flight));
    acknowledge(&mut controller, 1, flight, DATAGRAM, milliseconds(40));
    assert!(controller.reach.is_first_flight(flight + milliseconds(39)));
    assert!(!controller.reach.is_first_flight(flight + milliseconds(41)));
    // An application that has only small messages has a first flight, too.
    let mut controller = mobile(Parameters::default());
    acknowledge(&mut controller, 0, start, ByteCount::new(45), milliseconds(40));
    acknowledge(&mut controller, 1, flight, ByteCount::new(100), milliseconds(40));
    assert!(!controller.reach.is_first_flight(flight + milliseconds(41)));
}

#[test]
fn what_the_first_flight_has_met_does_not_end_startup() {
    let mut controller = mobile(Parameters { shadow: false, ..Parameters::default() });
    let start = Time::ZERO + milliseconds(1_000);
    let rate_ceiling = Some(Link::usual().rate);
    // A flight that a handshake paces at 4.8 Mbit/s, and a medium whose delay steps twice by 6 ms.
    for number in 0..20 {
        let rtt = milliseconds(40 + 6 * (number / 5).min(2));
        acknowledge(&mut controller, number, start + milliseconds(2 * number), DATAGRAM, rtt);
        controller.adjust(&Adjustment { rate_ceiling, ..Adjustment::default() });
    }
    let later =
        |number: u64| start + milliseconds(41) + Link::usual().rate.time_for(DATAGRAM) * (number - 20);
    acknowledge(&mut controller, 20, later(20), DATAGRAM, milliseconds(52));
    assert_eq!(controller.state, State::Reach);
    // Packets that left at the ceiling meet the same: that may be a queue, and they tell the rate.
    for number in 21..30 {
        acknowledge(&mut controller, number, later(number), DATAGRAM, milliseconds(52));
    }
    assert_ne!(controller.state, State::Reach);
    let bandwidth = controller.path.bandwidth() * 8.0;
    assert!((9_000_000.0..11_000_000.0).contains(&bandwidth), "{bandwidth} bit/s");
}

#[test]
fn the_first_ease_takes_a_step_of_the_delay_for_the_mediums() {
    let is_tested = |was_looked_for| {
        let (mut path, mut controller) = settled(Link::usual());
        path.link.rtt = milliseconds(47);
        path.run(&mut controller, milliseconds(60), |_, _| {});
        controller.neighbour.was_looked_for = was_looked_for;
        controller.start_ease(path.now);
        let mut is_tested = false;
        while controller.state == State::Ease {
            path.run(&mut controller, milliseconds(1), |_, _| {});
            is_tested |= controller.cycle.is_testing;
        }
        is_tested
    };
    assert!(!is_tested(false));
    assert!(is_tested(true), "later it may be a neighbour");
}

#[test]
fn what_startup_leaves_in_the_queue_is_nobody_elses() {
    let (mut controller, now) = (mobile(Parameters::default()), Time::ZERO + milliseconds(1_000));
    let sample = round(now, 100_000.0, 0.0);
    controller.join_others(&sample, 50_000.0);
    controller.path.update(&sample, &Rounds::default(), ByteCount::ZERO, 1_200.0);
    let queued = Sample { rtt: milliseconds(80), ..sample };
    for _ in 0..8 {
        controller.path.update(&queued, &Rounds::default(), ByteCount::ZERO, 1_200.0);
    }
    controller.update_lift(&Sample { sent_at: now, ..queued });
    assert_eq!(controller.neighbour.longest_queue, Duration::ZERO);
    controller.update_lift(&Sample { sent_at: now + milliseconds(41), ..queued });
    assert_eq!(controller.neighbour.longest_queue, milliseconds(40));
}

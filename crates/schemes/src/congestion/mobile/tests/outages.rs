//! Paths that are away for a time, and media whose delay steps and steps back.

use posthaste_policy::sample::PacketSample;

use super::super::*;
use super::parts::without;
use super::radio::acknowledge;
use super::{mobile, round};
use crate::testing::{DATAGRAM, Link, ack, loss, milliseconds, packet, steady_rtt};

/// The window, in datagrams, once those of a flight of 200 are lost. They left one each `apart`, over a link that trains
/// have shown to carry 100 Mbit/s.
fn window_after(parameters: Parameters, apart: Duration, is_lost: impl Fn(u64) -> bool) -> f64 {
    let (mut controller, start) = (mobile(parameters), Time::ZERO + milliseconds(1_000));
    let rate_ceiling = Some(Rate::from_bits_per_second(100_000_000));
    controller.adjust(&Adjustment { window: Some(DATAGRAM * 200), rate_ceiling, ..Adjustment::default() });
    let sample =
        |number| PacketSample { in_flight: DATAGRAM * 200, ..packet(number, start + apart * number) };
    let packets: Vec<_> = (0..200).filter(|number| is_lost(*number)).map(sample).collect();
    controller.on_loss(&loss(start + milliseconds(80), &packets, steady_rtt(milliseconds(40))));
    controller.window / DATAGRAM.as_f64()
}

#[test]
fn a_flight_that_an_outage_has_lost_was_not_too_much() {
    let (apart, outage) = (Duration::from_micros(200), |number| (40..140).contains(&number));
    assert!((window_after(Parameters::default(), apart, outage) - 200.0).abs() < 0.1);
    assert!(window_after(without(Part::Outage), apart, outage) < 100.0);
    assert!(window_after(Parameters::default(), apart, |number| number % 2 == 0) < 100.0, "a full queue");
    assert!(window_after(Parameters::default(), apart / 20, outage) < 100.0, "a burst into a full queue");
}

#[test]
fn what_an_outage_has_lost_could_not_have_arrived() {
    let link = Link::usual();
    let is_crowded = |may_be_away, is_lost: &dyn Fn(u64) -> bool| {
        let (mut response, rate) = (response::Response::default(), link.rate.as_bytes_per_second() as f64);
        let of = Link { rtt: milliseconds(200), ..link };
        let known = response::KnownLink { rate, least_rtt: of.rtt, datagram: DATAGRAM.as_f64(), may_be_away };
        for number in (0..200).filter(|number| !is_lost(*number)) {
            let sent_at = Time::ZERO + milliseconds(1_000) + link.rate.time_for(DATAGRAM) * number;
            // Each waits for 3 ms: of a full queue that is enough to tell.
            let now = sent_at + of.rtt + milliseconds(if number == 0 { 0 } else { 3 });
            response.on_ack(&ack(now, &[packet(number, sent_at)], steady_rtt(of.rtt), 1), &known);
        }
        response.is_crowded(Duration::ZERO)
    };
    let outage = |number| (40..120).contains(&number);
    // The pause is shorter than half of a round trip of 200 ms, and 80 packets long.
    assert!(is_crowded(false, &outage));
    assert!(!is_crowded(true, &outage));
    assert!(is_crowded(true, &|number| number % 3 == 2), "a full queue");
}

/// The controller after `find` has found others on a link of 10 Mbit/s and 40 ms by a queue of 20 ms, and that is gone
/// again in packets that left one each 2 ms: `arrives` says how long behind the first of these each is acknowledged.
fn after_a_verdict(
    parameters: Parameters,
    find: impl Fn(&mut Mobile, &Sample),
    arrives: impl Fn(u64) -> Duration,
) -> Mobile {
    let (mut controller, start) = (mobile(parameters), Time::ZERO + milliseconds(1_000));
    let rate_ceiling = Some(Link::usual().rate);
    controller.adjust(&Adjustment { rate_ceiling, ..Adjustment::default() });
    for number in 0..10 {
        acknowledge(&mut controller, number, start + milliseconds(number), DATAGRAM, milliseconds(40));
    }
    let (sent_at, now) = (start + milliseconds(20), start + milliseconds(80));
    let rtt = milliseconds(60);
    find(&mut controller, &Sample { sent_at, now, rtt, smoothed_rtt: rtt, ..round(now, 60_000.0, 0.0) });
    assert!(controller.neighbour.is_beside() && controller.state == State::Hold);
    controller.cycle.rounds = 1;
    for number in 0..20 {
        let sent_at = sent_at + milliseconds(2 * number);
        acknowledge(&mut controller, 11 + number, sent_at, DATAGRAM, (now + arrives(number)).since(sent_at));
    }
    controller
}

/// What left within 20 ms arrives together, and what leaves then has met nothing.
fn stepped_back(number: u64) -> Duration {
    milliseconds(if number <= 10 { 0 } else { 2 * (number - 10) })
}

#[test]
fn startup_goes_on_where_the_delay_of_a_crowded_link_is_gone_at_once() {
    let state = |parameters, arrives: &dyn Fn(u64) -> Duration| {
        let controller = after_a_verdict(parameters, Mobile::leave_to_others, arrives);
        assert_eq!(controller.neighbour.is_beside(), controller.state == State::Hold);
        controller.state
    };
    assert_eq!(state(Parameters::default(), &stepped_back), State::Reach);
    assert_eq!(state(without(Part::Revision), &stepped_back), State::Hold);
    // Others go, and their queue empties at the link's rate.
    let emptied = |number: u64| milliseconds(number.max((2 * number).saturating_sub(20)));
    assert_eq!(state(Parameters::default(), &emptied), State::Hold);
    // They stay.
    assert_eq!(state(Parameters::default(), &|number| milliseconds(2 * number)), State::Hold);
}

#[test]
fn drain_tests_are_refuted_by_a_delay_that_is_gone_at_once() {
    let find = |controller: &mut Mobile, sample: &Sample| {
        controller.path.set_bandwidth(1_000_000.0);
        controller.start_ease(sample.now);
        controller.start_hold();
        controller.neighbour.begin_shadow(controller.limits, 60_000.0);
        controller.neighbour.verdict = controller.test_verdict(sample);
    };
    let controller = after_a_verdict(Parameters::default(), find, stepped_back);
    assert!(!controller.neighbour.is_beside());
    assert_eq!(controller.state, State::Up, "a probe follows");
    let controller = after_a_verdict(Parameters::default(), find, |number| milliseconds(2 * number));
    assert!(controller.neighbour.is_beside());
}

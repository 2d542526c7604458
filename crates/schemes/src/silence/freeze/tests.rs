use posthaste_policy::sample::PacketSpace;
use posthaste_policy::{CongestionState, LossCause, Phase};

use super::*;
use crate::testing::{DATAGRAM, ack, loss, milliseconds, packet, steady_rtt};

const RTT: Duration = milliseconds(50);

fn at(millis: u64) -> Time {
    Time::ZERO + milliseconds(millis)
}

fn freeze(variant: Variant) -> Freeze {
    Freeze::new(Parameters { variant })
}

fn state(datagrams: u64) -> CongestionState {
    CongestionState {
        window: DATAGRAM * datagrams,
        slow_start_threshold: None,
        phase: Phase::CongestionAvoidance,
    }
}

/// The path at `now` with `in_flight` datagrams under way.
fn view(now: Time, in_flight: u64, window: u64) -> PathView {
    PathView {
        now,
        in_flight: DATAGRAM * in_flight,
        max_datagram_size: DATAGRAM,
        rtt: steady_rtt(RTT),
        congestion: state(window),
    }
}

/// Forty datagrams leave, one a millisecond from 2,001 ms on, numbered from 300.
fn send_flight(policy: &mut Freeze) {
    for index in 0..40 {
        let (now, number, prior_in_flight) = (at(2001 + index), 300 + index, DATAGRAM * index);
        let sent = SentSample {
            now,
            space: PacketSpace::Data,
            number,
            bytes: DATAGRAM,
            prior_in_flight,
            app_limited: false,
        };
        assert_eq!(policy.on_sent(&sent, &view(now, index + 1, 50)), None);
    }
}

/// A silence of `probes` probe timeouts with a window of 100 datagrams, ended by an ack at 2 s.
fn silence(policy: &mut Freeze, probes: u32) {
    for count in 1..=probes {
        policy.on_probe_timeout(&SilenceSample { now: at(100), count, state: state(100) });
    }
    assert!(policy.on_end(at(2000), DATAGRAM));
    let probe = [packet(200, at(1950)), packet(201, at(1950))];
    assert_eq!(policy.on_ack(&ack(at(2000), &probe, steady_rtt(RTT), 9)), None);
}

fn is_running(policy: &Freeze) -> bool {
    policy.jump.as_ref().is_some_and(|(_, jump)| jump.is_running())
}

fn on_loss(policy: &mut Freeze, sent_at: Time, now: Time, is_persistent: bool) -> Verdict {
    let lost = [packet(1, sent_at), packet(2, sent_at)];
    // What CUBIC leaves of 100.
    policy.on_loss(
        &loss(now, &lost, steady_rtt(RTT)),
        LossCause::Congestion,
        is_persistent,
        &view(now, 0, 70),
    )
}

fn window(datagrams: u64) -> Adjustment {
    Adjustment { window: Some(DATAGRAM * datagrams), ..Adjustment::default() }
}

#[test]
fn the_papers_form_stops_at_the_first_probe_timeout_and_excuses_what_the_silence_took() {
    let mut policy = freeze(Variant::Paper);
    assert!(!policy.holds_back() && !policy.excuses(at(0)));
    policy.on_probe_timeout(&SilenceSample { now: at(100), count: 1, state: state(100) });
    assert!(policy.holds_back());
    assert!(!policy.excuses(at(50)), "not before it is over: nothing is declared lost in a silence");
    assert!(policy.on_end(at(2000), DATAGRAM), "the time did not pass");
    assert!(!policy.holds_back());
    assert!(policy.excuses(at(50)) && policy.excuses(at(2000)));
    assert!(!policy.excuses(at(2001)), "what is sent afterwards counts");
    assert_eq!(on_loss(&mut policy, at(2001), at(2100), false), Verdict::Stand);
    assert_eq!(on_loss(&mut policy, at(2001), at(9000), true), Verdict::Collapse);
    assert_eq!(policy.pacing(&steady_rtt(RTT), DATAGRAM), None);
    assert!(!policy.on_end(at(2002), DATAGRAM), "once");
}

#[test]
fn the_safe_form_tries_half_of_what_was_frozen() {
    let mut policy = freeze(Variant::Safe);
    policy.on_probe_timeout(&SilenceSample { now: at(100), count: 1, state: state(100) });
    assert!(!policy.holds_back(), "it may be a lost tail");
    silence(&mut policy, 5);
    assert!(!policy.excuses(at(50)));
    assert_eq!(on_loss(&mut policy, at(50), at(2000), true), Verdict::Adjust(window(50)));
    // 50 datagrams of 1,200 bytes in 50 ms.
    assert_eq!(policy.pacing(&steady_rtt(RTT), DATAGRAM).unwrap().rate.as_bytes_per_second(), 1_200_000);
    // The flight of a round trip, then its acks: the jump holds.
    send_flight(&mut policy);
    assert!(policy.is_in_charge(), "acks raise nothing");
    // Losses of the silence that come to light late say nothing of the jump.
    assert_eq!(on_loss(&mut policy, at(60), at(2045), false), Verdict::Stand);
    let first = [packet(300, at(2001))];
    let sample = ack(at(2051), &first, steady_rtt(RTT), 10);
    let sample = AckSample { prior_in_flight: DATAGRAM * 40, in_flight: DATAGRAM * 39, ..sample };
    assert_eq!(policy.on_ack(&sample), Some(window(39)));
    assert!(!policy.is_in_charge(), "what is acknowledged from here on counts");
    let last = [packet(339, at(2040))];
    assert_eq!(policy.on_ack(&ack(at(2090), &last, steady_rtt(RTT), 11)), None);
    assert!(!is_running(&policy));
    assert_eq!(on_loss(&mut policy, at(2060), at(2200), false), Verdict::Stand);
}

#[test]
fn the_safe_form_collapses_if_any_of_the_flight_is_lost_and_does_not_grow_until_it_is_accounted_for() {
    let mut policy = freeze(Variant::Safe);
    silence(&mut policy, 5);
    on_loss(&mut policy, at(50), at(2000), true);
    send_flight(&mut policy);
    assert_eq!(on_loss(&mut policy, at(2003), at(2055), false), Verdict::Collapse);
    assert_eq!(policy.pacing(&steady_rtt(RTT), DATAGRAM), None);
    assert_eq!(on_loss(&mut policy, at(2004), at(2056), false), Verdict::Stand, "it has collapsed already");
    let middle = [packet(320, at(2021))];
    assert_eq!(policy.on_ack(&ack(at(2071), &middle, steady_rtt(RTT), 10)), None);
    assert!(policy.is_in_charge(), "nothing grows");
    let last = [packet(339, at(2040))];
    let end = policy.on_ack(&ack(at(2090), &last, steady_rtt(RTT), 10)).unwrap();
    // Two probes, two of the flight: half of what got through.
    assert_eq!((end.window, end.slow_start_threshold), (None, Some(DATAGRAM * 2)));
    assert!(!is_running(&policy));
}

#[test]
fn a_silence_earns_one_jump_and_only_one_that_is_worth_it() {
    let mut policy = freeze(Variant::Safe);
    assert_eq!(on_loss(&mut policy, at(50), at(2000), true), Verdict::Collapse, "there was no silence");
    silence(&mut policy, 5);
    assert!(matches!(on_loss(&mut policy, at(50), at(2000), true), Verdict::Adjust(_)));
    policy.jump = None;
    assert_eq!(on_loss(&mut policy, at(50), at(2010), true), Verdict::Collapse);
    // Four datagrams were frozen: half of that is what a collapse leaves.
    let mut policy = freeze(Variant::Safe);
    policy.on_probe_timeout(&SilenceSample { now: at(100), count: 1, state: state(4) });
    policy.on_end(at(2000), DATAGRAM);
    assert_eq!(on_loss(&mut policy, at(50), at(2000), true), Verdict::Collapse);
}

#[test]
fn another_path_ends_a_silence() {
    for variant in [Variant::Safe, Variant::Paper] {
        let mut policy = freeze(variant);
        silence(&mut policy, 3);
        policy.on_probe_timeout(&SilenceSample { now: at(3000), count: 2, state: state(100) });
        policy.on_path_change();
        assert!(!policy.holds_back() && !policy.excuses(at(0)));
        assert_eq!(policy.variant, variant);
        assert!(!policy.on_end(at(3001), DATAGRAM));
    }
}

#[test]
fn probes_back_off_as_rfc_9002_has_it() {
    for count in [0, 1, 5, 30, u32::MAX] {
        let collapse = crate::default_profile().silence().probe_timeout(milliseconds(300), count);
        assert_eq!(freeze(Variant::Paper).probe_timeout(milliseconds(300), count), collapse);
    }
}

#[test]
fn what_was_sent_before_the_silence_proves_nothing_after_it() {
    let mut policy = freeze(Variant::Safe);
    policy.on_probe_timeout(&SilenceSample { now: at(100), count: 1, state: state(100) });
    policy.on_end(at(2000), DATAGRAM);
    let acked = [packet(90, at(40)), packet(91, at(99)), packet(200, at(1950)), packet(201, at(1950))];
    policy.on_ack(&ack(at(2000), &acked, steady_rtt(RTT), 9));
    assert_eq!(policy.thaw.unwrap().acked, DATAGRAM * 2, "the probes");
}

/// A safe jump whose flight of forty has been acknowledged but for the last but one, which is missing.
fn validated_but_for_one() -> Freeze {
    let mut policy = freeze(Variant::Safe);
    silence(&mut policy, 5);
    on_loss(&mut policy, at(50), at(2000), true);
    send_flight(&mut policy);
    let first = [packet(300, at(2001))];
    let sample = ack(at(2051), &first, steady_rtt(RTT), 10);
    policy.on_ack(&AckSample { prior_in_flight: DATAGRAM * 40, in_flight: DATAGRAM * 39, ..sample });
    let last = [packet(339, at(2040))];
    policy.on_ack(&ack(at(2090), &last, steady_rtt(RTT), 11));
    policy
}

/// What is answered to the loss of the missing one.
fn on_missing(policy: &mut Freeze, now: Time) -> Verdict {
    let lost = [packet(338, at(2039))];
    policy.on_loss(&loss(now, &lost, steady_rtt(RTT)), LossCause::Congestion, false, &view(now, 0, 70))
}

#[test]
fn a_loss_that_the_ack_of_the_flights_last_packet_shows_collapses_as_any_of_the_flight() {
    let mut policy = validated_but_for_one();
    assert_eq!(on_missing(&mut policy, at(2090)), Verdict::Collapse);
    assert_eq!(on_missing(&mut policy, at(2091)), Verdict::Stand, "once");
}

#[test]
fn a_loss_in_the_flight_that_a_later_ack_shows_collapses_too() {
    let mut policy = validated_but_for_one();
    let later = [packet(342, at(2060))];
    policy.on_ack(&ack(at(2110), &later, steady_rtt(RTT), 12));
    assert_eq!(on_missing(&mut policy, at(2110)), Verdict::Collapse);
}

#[test]
fn a_jump_that_is_over_does_not_outlast_the_next_silence() {
    let mut policy = validated_but_for_one();
    policy.on_probe_timeout(&SilenceSample { now: at(3000), count: 1, state: state(100) });
    policy.on_end(at(6000), DATAGRAM);
    policy.on_ack(&ack(at(6000), &[packet(400, at(5950))], steady_rtt(RTT), 13));
    assert!(matches!(on_loss(&mut policy, at(2990), at(6000), true), Verdict::Adjust(_)), "another chance");
}

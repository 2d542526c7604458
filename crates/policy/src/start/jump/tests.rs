use super::*;
use crate::Phase;
use crate::testing::{DATAGRAM, ack, loss, milliseconds, packet, steady_rtt};

const RTT: Duration = milliseconds(100);

fn at(millis: u64) -> Time {
    Time::ZERO + milliseconds(1000 + millis)
}

fn terms(datagrams: u64) -> JumpTerms {
    JumpTerms {
        now: at(0),
        window: DATAGRAM * datagrams,
        least_window: DATAGRAM * 10,
        pipe: DATAGRAM * 10,
        rtt: RTT,
        max_datagram_size: DATAGRAM,
    }
}

fn state(datagrams: u64) -> CongestionState {
    CongestionState { window: DATAGRAM * datagrams, slow_start_threshold: None, phase: Phase::SlowStart }
}

fn sent(number: u64, millis: u64, prior: u64) -> SentSample {
    let prior_in_flight = DATAGRAM * prior;
    SentSample { now: at(millis), number, bytes: DATAGRAM, prior_in_flight, app_limited: false }
}

/// Sends packets 10 to `last` (before them 10 are in flight), one a millisecond; the last answer.
fn send(jump: &mut Jump, last: u64) -> Option<Adjustment> {
    (10..=last).map(|number| jump.on_sent(&sent(number, number - 10, number))).last().flatten()
}

fn on_ack(jump: &mut Jump, millis: u64, numbers: &[(u64, u64)], prior: u64) -> Option<Adjustment> {
    let packets: Vec<_> = numbers.iter().map(|(number, sent_at)| packet(*number, at(*sent_at))).collect();
    let sample = ack(at(millis), &packets, steady_rtt(RTT), 1);
    let sample = AckSample { prior_in_flight: DATAGRAM * prior, ..sample };
    jump.on_ack(&sample, &state(100))
}

#[expect(clippy::unnecessary_wraps, reason = "what answers are compared with")]
fn window(datagrams: u64) -> Option<Adjustment> {
    Some(window_only(DATAGRAM * datagrams))
}

#[test]
fn the_flight_is_spread_over_one_round_trip() {
    let (jump, adjustment) = Jump::begin(terms(100));
    assert_eq!(Some(adjustment), window(100));
    let pacing = jump.pacing(&steady_rtt(RTT)).unwrap();
    // 100 datagrams of 1,200 bytes in 100 ms.
    assert_eq!(pacing.rate.as_bytes_per_second(), 1_200_000);
    assert_eq!(pacing.burst, DATAGRAM * 2);
    // The round trip as it is now counts, the one of the terms only before there is one.
    let unmeasured = RttView { is_measured: false, ..steady_rtt(milliseconds(333)) };
    assert_eq!(jump.pacing(&unmeasured), Some(pacing));
    assert_eq!(jump.pacing(&steady_rtt(RTT * 2)).unwrap().rate.as_bytes_per_second(), 600_000);
}

#[test]
fn a_jump_that_holds_is_unvalidated_then_validating_then_normal() {
    let (mut jump, _) = Jump::begin(terms(100));
    assert_eq!(send(&mut jump, 60), None);
    assert_eq!(jump.phase(), JumpPhase::Unvalidated);
    // The first unvalidated packet is acknowledged: the window is the flight, and may grow as the controller has it.
    assert_eq!(on_ack(&mut jump, 100, &[(10, 0), (11, 1)], 61), window(61));
    assert_eq!(jump.phase(), JumpPhase::Validating);
    assert_eq!(jump.pacing(&steady_rtt(RTT)), None);
    assert_eq!(on_ack(&mut jump, 149, &[(59, 49)], 40), None);
    assert_eq!(jump.phase(), JumpPhase::Validating);
    assert_eq!(on_ack(&mut jump, 150, &[(60, 50)], 39), None);
    assert!(jump.is_over() && !jump.has_retreated());
}

#[test]
fn acks_of_what_was_sent_before_end_nothing_and_grow_nothing() {
    let (mut jump, _) = Jump::begin(terms(100));
    send(&mut jump, 20);
    let packets = [packet(3, at(0) - milliseconds(90))];
    let sample = ack(at(10), &packets, steady_rtt(RTT), 1);
    assert_eq!(jump.on_ack(&sample, &state(101)), window(100), "what the controller has added goes");
    assert_eq!(jump.on_ack(&sample, &state(100)), None);
    assert_eq!(jump.phase(), JumpPhase::Unvalidated);
}

#[test]
fn the_unvalidated_flight_ends_when_the_window_is_full_or_a_round_trip_is_over() {
    let (mut jump, _) = Jump::begin(terms(30));
    assert_eq!(send(&mut jump, 28), None);
    assert_eq!(jump.on_sent(&sent(29, 19, 29)), window(30), "no room for another");
    assert_eq!(jump.phase(), JumpPhase::Validating);

    let (mut jump, _) = Jump::begin(terms(100));
    send(&mut jump, 39);
    assert_eq!(jump.on_sent(&sent(40, 100, 40)), window(41));
    assert_eq!(jump.phase(), JumpPhase::Validating);
    // The last unvalidated packet is that one.
    assert_eq!(on_ack(&mut jump, 139, &[(39, 29)], 41), None);
    assert_eq!(jump.phase(), JumpPhase::Validating);
    on_ack(&mut jump, 200, &[(40, 100)], 30);
    assert!(jump.is_over());
}

#[test]
fn a_flight_that_proves_nothing_leaves_what_had_got_through() {
    // The application had little to send: seven packets above the pipe of ten, of which ten have been acknowledged.
    let (mut jump, _) = Jump::begin(terms(100));
    jump.on_sent(&sent(10, 1, 5));
    let earlier: Vec<_> = (0..10).map(|number| (number, 0)).collect();
    let earlier: Vec<_> = earlier.iter().map(|(number, _)| packet(*number, at(0) - RTT)).collect();
    let sample = ack(at(50), &earlier, steady_rtt(RTT), 1);
    jump.on_ack(&sample, &state(100));
    assert_eq!(on_ack(&mut jump, 101, &[(10, 1)], 6), window(21), "PipeSize: 10 + 10 + 1");
    assert!(jump.is_over() && !jump.has_retreated());
    // Nothing was sent at all.
    let (mut jump, _) = Jump::begin(JumpTerms { pipe: DATAGRAM * 3, ..terms(100) });
    let sample = ack(at(100), &earlier[..1], steady_rtt(RTT), 1);
    assert_eq!(jump.on_ack(&sample, &state(100)), window(10), "never below the window that needs no proof");
    assert!(jump.is_over());
}

#[test]
fn a_loss_is_a_safe_retreat_to_half_of_what_got_through() {
    for late in [false, true] {
        let (mut jump, _) = Jump::begin(terms(100));
        send(&mut jump, 60);
        if late {
            on_ack(&mut jump, 100, &[(10, 0), (11, 1)], 61);
            assert_eq!(jump.phase(), JumpPhase::Validating);
        }
        let pipe = if late { 12 } else { 10 };
        let lost = [packet(12, at(2))];
        let adjustment = jump.on_loss(&loss(at(103), &lost, steady_rtt(RTT)), &state(70));
        assert_eq!(adjustment, window(pipe / 2));
        assert_eq!(jump.phase(), JumpPhase::SafeRetreat);
        assert!(jump.has_retreated());
        // No growth, and no second retreat, until the last unvalidated packet is accounted for.
        assert_eq!(jump.on_loss(&loss(at(104), &lost, steady_rtt(RTT)), &state(4)), None);
        assert_eq!(on_ack(&mut jump, 120, &[(40, 30), (41, 31)], 30), window(pipe / 2));
        let end = on_ack(&mut jump, 150, &[(60, 50)], 20).unwrap();
        assert_eq!(end.window, Some(DATAGRAM * (pipe / 2)));
        // Half of PipeSize, all acks until now included.
        assert_eq!(end.slow_start_threshold, Some(DATAGRAM * (pipe + 3) / 2));
        assert!(jump.is_over() && jump.has_retreated());
    }
}

#[test]
fn a_mark_is_a_retreat_and_a_retreat_never_widens() {
    let (mut jump, _) = Jump::begin(terms(100));
    send(&mut jump, 60);
    assert_eq!(jump.on_congestion_experienced(&state(3)), window(3), "the controller is below already");
    let (mut jump, _) = Jump::begin(JumpTerms { pipe: DATAGRAM, ..terms(100) });
    assert_eq!(jump.retreat(ByteCount::ZERO, &state(50)), window(2), "two datagrams at the least");
    // Nothing had been sent on trust: the next ack ends it.
    assert!(on_ack(&mut jump, 10, &[(3, 0)], 5).is_some());
    assert!(jump.is_over());
    assert_eq!(jump.retreat(ByteCount::ZERO, &state(50)), None);
    assert_eq!(jump.on_sent(&sent(99, 20, 1)), None);
}

#[test]
fn absurd_terms_are_harmless() {
    let greatest = ByteCount::MAX;
    for (window, pipe, rtt, size) in [
        (ByteCount::ZERO, ByteCount::ZERO, Duration::ZERO, ByteCount::ZERO),
        (greatest, greatest, Duration::MAX, greatest),
        (greatest, ByteCount::ZERO, Duration::ZERO, DATAGRAM),
    ] {
        let terms = JumpTerms { window, pipe, rtt, max_datagram_size: size, ..terms(1) };
        let (mut jump, _) = Jump::begin(terms);
        if let Some(pacing) = jump.pacing(&steady_rtt(rtt)) {
            assert!(pacing.rate.as_bytes_per_second() > 0);
        }
        jump.on_sent(&sent(10, 0, 0));
        on_ack(&mut jump, 50, &[(10, 0)], 1);
        jump.on_congestion_experienced(&state(1));
        assert!(jump.has_retreated() || jump.is_over());
    }
}

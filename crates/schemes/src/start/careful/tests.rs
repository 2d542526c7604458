//! When a saved window is used, and what is saved.

use posthaste_policy::sample::{PacketSample, PacketSpace, RateSample};
use posthaste_policy::{CongestionState, LossCause};
use posthaste_units::{Rate, Time};
use proptest::prelude::*;

use super::*;
use crate::testing::{DATAGRAM, ack, loss, milliseconds, packet, steady_rtt};

const RTT: Duration = Duration::from_millis(50);

fn known(datagrams: u64) -> PathHistory {
    let (age, loss) = (Duration::ZERO, PathLoss::UNKNOWN);
    PathHistory { window: DATAGRAM * datagrams, min_rtt: RTT, age, continues: false, loss }
}

fn careful(parameters: Parameters, history: Option<PathHistory>) -> Careful {
    let mut careful = Careful::new(parameters);
    assert_eq!(careful.initial_window(DATAGRAM), DATAGRAM * 10);
    if let Some(known) = &history {
        careful.recall(known, Time::ZERO);
    }
    assert_eq!(careful.initial_window(DATAGRAM), DATAGRAM * 10, "at most the initial window at first");
    careful
}

fn view(rtt: Duration, window: u64) -> PathView {
    PathView {
        now: Time::ZERO + milliseconds(500),
        in_flight: DATAGRAM * 10,
        max_datagram_size: DATAGRAM,
        rtt: steady_rtt(rtt),
        congestion: CongestionState {
            window: DATAGRAM * window,
            slow_start_threshold: None,
            phase: Phase::SlowStart,
        },
    }
}

fn packets(count: u64) -> Vec<PacketSample> {
    (0..count).map(|number| packet(number, Time::ZERO)).collect()
}

/// Ten packets leave and fill the window.
fn send_first_flight(careful: &mut Careful, rtt: Duration) {
    send(careful, 0..10);
    assert_eq!(careful.on_blocked(&view(rtt, 10)), None);
}

fn send(careful: &mut Careful, numbers: std::ops::Range<u64>) {
    let view = view(RTT, 10);
    for number in numbers {
        let prior_in_flight = DATAGRAM * number;
        let now = sent_at(number);
        let sent = SentSample {
            now,
            space: PacketSpace::Data,
            number,
            bytes: DATAGRAM,
            prior_in_flight,
            app_limited: false,
        };
        assert_eq!(careful.on_sent(&sent, &view), None);
    }
}

/// Packets are acknowledged, and `left` are in flight after that.
fn acknowledge(careful: &mut Careful, numbers: &[u64], left: u64) {
    let acked: Vec<_> = numbers.iter().map(|number| packet(*number, sent_at(*number))).collect();
    let view = view(RTT, 20);
    let sample = AckSample { in_flight: DATAGRAM * left, ..ack(view.now, &acked, steady_rtt(RTT), 1) };
    assert_eq!(careful.on_ack(&sample, &view), None);
}

fn sent_at(number: u64) -> Time {
    Time::ZERO + milliseconds(number)
}

/// The first flight of ten has been acknowledged.
fn confirm(careful: &mut Careful, rtt: Duration) {
    send_first_flight(careful, rtt);
    let flight: Vec<_> = (0..10).map(|number| packet(number, sent_at(number))).collect();
    let view = view(rtt, 20);
    assert_eq!(careful.on_ack(&ack(view.now, &flight, steady_rtt(rtt), 1), &view), None);
}

#[test]
fn the_window_is_raised_to_half_once_the_first_flight_has_arrived() {
    // spec: rfc9959 3.3 half-at-most
    let mut careful = careful(Parameters::default(), Some(known(300)));
    assert_eq!(careful.phase(), Some("reconnaissance"));
    send_first_flight(&mut careful, RTT);
    acknowledge(&mut careful, &[0, 1, 2, 3, 4, 5, 6, 7, 8], 1);
    assert_eq!(careful.on_blocked(&view(RTT, 19)), None, "nine of ten");
    assert_eq!(careful.phase(), Some("reconnaissance"));
    acknowledge(&mut careful, &[9], 0);
    assert!(!careful.is_in_charge(), "nothing happens until more is wanted");
    let adjustment = careful.on_blocked(&view(RTT, 20)).expect("the path is confirmed");
    assert_eq!(adjustment.window, Some(DATAGRAM * 150));
    assert!(careful.is_in_charge() && careful.pacing(&steady_rtt(RTT), DATAGRAM).is_some());
    assert_eq!(careful.on_blocked(&view(RTT, 150)), None, "once");
}

/// Section 3.2: an ack that acknowledges all of the initial data. The gap may be a loss that is not declared yet.
#[test]
fn a_gap_in_the_first_flight_is_waited_for() {
    let mut careful = careful(Parameters::default(), Some(known(300)));
    send_first_flight(&mut careful, RTT);
    acknowledge(&mut careful, &[0, 1, 2, 3, 4, 5, 6, 7, 9], 1);
    assert_eq!(careful.on_blocked(&view(RTT, 19)), None, "number 8 is missing");
    send(&mut careful, 10..20);
    acknowledge(&mut careful, &[10, 11], 9);
    assert_eq!(careful.on_blocked(&view(RTT, 20)), None, "still");
    acknowledge(&mut careful, &[8, 12], 7);
    assert!(careful.on_blocked(&view(RTT, 20)).is_some(), "what is in flight left later");
}

/// Where the machine wakes the sender late, the pacer keeps the window from ever being full.
#[test]
fn a_sender_that_only_the_pacer_holds_back_jumps_after_three_round_trips() {
    for app_limited in [false, true] {
        let mut careful = careful(Parameters::default(), Some(known(300)));
        let mut jumped = Vec::new();
        for round in 0..5 {
            let numbers = round * 9..round * 9 + 9;
            for number in numbers.clone() {
                let bytes = DATAGRAM;
                let sent = SentSample {
                    now: sent_at(number),
                    space: PacketSpace::Data,
                    number,
                    bytes,
                    prior_in_flight: bytes,
                    app_limited,
                };
                jumped.extend(careful.on_sent(&sent, &view(RTT, 20)).map(|jump| (round, jump.window)));
            }
            let flight: Vec<_> = numbers.map(|number| packet(number, sent_at(number))).collect();
            let ack = ack(view(RTT, 20).now, &flight, steady_rtt(RTT), round);
            let ack = AckSample { round_started: true, app_limited, ..ack };
            careful.on_ack(&ack, &view(RTT, 20));
        }
        let expected = if app_limited { vec![] } else { vec![(3, Some(DATAGRAM * 150))] };
        assert_eq!(jumped, expected, "{app_limited}");
    }
}

/// Section 3.2, lifetime: it may end while a sender with little to send still reconnoitres.
#[test]
fn what_has_become_too_old_since_it_was_recalled_is_not_used() {
    // spec: rfc9959 3.2 lifetime-kept
    let lifetime = Parameters::default().lifetime;
    let now = view(RTT, 20).now.since(Time::ZERO);
    let oldest = lifetime.saturating_sub(now);
    for (age, jumps) in [(oldest, true), (oldest + milliseconds(1), false), (lifetime, false)] {
        let mut careful = careful(Parameters::default(), Some(PathHistory { age, ..known(300) }));
        confirm(&mut careful, RTT);
        assert_eq!(careful.on_blocked(&view(RTT, 20)).is_some(), jumps, "{age:?}");
        assert_eq!(careful.phase(), jumps.then_some("unvalidated"));
    }
}

#[test]
fn a_path_that_is_not_the_known_one_is_left_to_normal_control() {
    // spec: rfc9959 3.2 short-rtt-ends-it
    // (least RTT now, jumps)
    for (rtt, jumps) in [(24_999, false), (25_000, false), (25_001, true), (500_000, true), (500_001, false)]
    {
        let rtt = Duration::from_micros(rtt);
        let mut careful = careful(Parameters::default(), Some(known(300)));
        confirm(&mut careful, rtt);
        assert_eq!(careful.on_blocked(&view(rtt, 20)).is_some(), jumps, "{rtt}");
        assert_eq!(careful.phase(), jumps.then_some("unvalidated"));
        assert!(!careful.has_failed(), "it was not tried");
    }
}

#[test]
fn congestion_before_the_jump_rules_it_out() {
    // spec: rfc9959 3.2 congestion-ends-it
    for is_marked in [false, true] {
        let mut careful = careful(Parameters::default(), Some(known(300)));
        let lost = packets(1);
        let answer = if is_marked {
            careful.on_congestion_experienced(&view(RTT, 10))
        } else {
            careful.on_loss(&loss(Time::ZERO, &lost, steady_rtt(RTT)), LossCause::Congestion, &view(RTT, 10))
        };
        assert_eq!(answer, None, "the controller's answer stands");
        confirm(&mut careful, RTT);
        assert_eq!(careful.on_blocked(&view(RTT, 20)), None);
        assert!(!careful.has_failed());
    }
    let mut careful = careful(Parameters::default(), Some(known(300)));
    confirm(&mut careful, RTT);
    let mut found = view(RTT, 20);
    found.congestion.slow_start_threshold = Some(DATAGRAM * 20);
    assert_eq!(careful.on_blocked(&found), None, "slow start has found the capacity");
    assert_eq!(careful.on_blocked(&view(RTT, 20)), None);
}

#[test]
fn another_path_before_the_jump_rules_it_out() {
    // spec: rfc9959 3.2 other-path-ends-it
    let mut careful = careful(Parameters::default(), Some(known(300)));
    send_first_flight(&mut careful, RTT);
    assert_eq!(careful.on_path_change(&view(RTT, 10)), None, "the window is not touched");
    assert_eq!(careful.phase(), None);
    confirm(&mut careful, RTT);
    assert_eq!(careful.on_blocked(&view(RTT, 20)), None);
    assert!(!careful.has_failed(), "it was not tried");
}

#[test]
fn a_jump_is_bounded_and_never_a_step_down() {
    let parameters = Parameters { max_jump: DATAGRAM * 40, ..Parameters::default() };
    let mut bounded = careful(parameters, Some(known(300)));
    confirm(&mut bounded, RTT);
    assert_eq!(bounded.on_blocked(&view(RTT, 20)).unwrap().window, Some(DATAGRAM * 40));
    // Half of it is not more than the window; and too little to be worth it.
    for (datagrams, window) in [(40, 20), (39, 11)] {
        let mut small = careful(Parameters::default(), Some(known(datagrams)));
        confirm(&mut small, RTT);
        assert_eq!(small.on_blocked(&view(RTT, window)), None);
        assert_eq!(small.phase(), None);
    }
    let mut unknown = careful(Parameters::default(), None);
    confirm(&mut unknown, RTT);
    assert_eq!(unknown.on_blocked(&view(RTT, 20)), None);
}

#[test]
fn a_shorter_round_trip_in_the_midst_of_it_takes_the_jump_back() {
    // spec: rfc9959 3.3 path-change-retreats
    let mut careful = careful(Parameters::default(), Some(known(300)));
    confirm(&mut careful, RTT);
    careful.on_blocked(&view(RTT, 20)).unwrap();
    let short = milliseconds(20);
    let late = packets(1);
    let adjustment = careful.on_ack(&ack(view(RTT, 1).now, &late, steady_rtt(short), 1), &view(short, 150));
    assert_eq!(adjustment.unwrap().window, Some(DATAGRAM * 5), "half of what was in flight");
    assert!(careful.has_failed());
    assert_eq!(careful.phase(), Some("safe_retreat"));
}

/// Section 3.3: it does not matter that the same ack would end the phase for another reason.
#[test]
fn a_shorter_round_trip_counts_with_the_first_unvalidated_packet_too() {
    let mut careful = careful(Parameters::default(), Some(known(300)));
    confirm(&mut careful, RTT);
    careful.on_blocked(&view(RTT, 20)).unwrap();
    let at = view(RTT, 20).now;
    let sent = SentSample {
        now: at,
        space: PacketSpace::Data,
        number: 20,
        bytes: DATAGRAM,
        prior_in_flight: DATAGRAM * 10,
        app_limited: false,
    };
    assert_eq!(careful.on_sent(&sent, &view(RTT, 150)), None);
    let first = [packet(20, at)];
    let short = milliseconds(20);
    let adjustment = careful.on_ack(&ack(at + short, &first, steady_rtt(short), 1), &view(short, 150));
    assert_eq!(adjustment.unwrap().window, Some(DATAGRAM * 5));
    assert_eq!(careful.phase(), Some("safe_retreat"));
}

/// Section 3.1: what is seen after a retreat is the path as it is, with its losses.
#[test]
fn after_a_failed_jump_the_path_is_observed_again() {
    let mut careful = careful(Parameters::default(), Some(known(300)));
    confirm(&mut careful, RTT);
    observe(&mut careful, 120, false);
    careful.on_blocked(&view(RTT, 20)).unwrap();
    let lost = packets(1);
    let found = loss(view(RTT, 20).now, &lost, steady_rtt(RTT));
    careful.on_loss(&found, LossCause::Congestion, &view(RTT, 150));
    assert!(careful.has_failed());
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), None, "what was seen before is void");
    // The retreat ends with any ack: nothing was sent since the jump.
    acknowledge_anything(&mut careful);
    assert_eq!(careful.phase(), None);
    observe(&mut careful, 90, false);
    careful.on_loss(&found, LossCause::Congestion, &view(RTT, 90));
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), Some(90), "later losses void nothing");
}

fn acknowledge_anything(careful: &mut Careful) {
    let some = packets(1);
    let view = view(RTT, 20);
    careful.on_ack(&ack(view.now, &some, steady_rtt(RTT), 1), &view);
}

/// A round in which the path carried `datagrams` a round trip.
fn observe(careful: &mut Careful, datagrams: u64, app_limited: bool) {
    let packets = packets(1);
    let rate = Rate::from_transfer(DATAGRAM * datagrams, RTT);
    let sample = RateSample { rate, delivered: DATAGRAM * datagrams, interval: RTT, app_limited };
    let ack = ack(Time::ZERO, &packets, steady_rtt(RTT), 1);
    let ack = AckSample { round_started: true, delivery_rate: Some(sample), ..ack };
    careful.on_ack(&ack, &view(RTT, 10));
}

fn remembered(careful: &Careful, window: u64, phase: Phase) -> Option<u64> {
    let congestion = CongestionState { window: DATAGRAM * window, slow_start_threshold: None, phase };
    remembered_of(careful, congestion, 1000)
}

/// The same in congestion avoidance, with a threshold.
fn remembered_with(careful: &Careful, window: u64, threshold: Option<u64>, delivered: u64) -> Option<u64> {
    let slow_start_threshold = threshold.map(|threshold| DATAGRAM * threshold);
    let phase = Phase::CongestionAvoidance;
    let congestion = CongestionState { window: DATAGRAM * window, slow_start_threshold, phase };
    remembered_of(careful, congestion, delivered)
}

fn remembered_of(careful: &Careful, congestion: CongestionState, delivered: u64) -> Option<u64> {
    let (rtt, delivered) = (steady_rtt(RTT), DATAGRAM * delivered);
    let summary =
        PathSummary { congestion, rtt, delivered, max_datagram_size: DATAGRAM, own_loss: PathLoss::UNKNOWN };
    let unmeasured = PathSummary { rtt: RttView { is_measured: false, ..rtt }, ..summary };
    assert_eq!(careful.remember(&unmeasured), None);
    careful.remember(&summary).map(|known| {
        assert_eq!((known.min_rtt, known.age, known.continues), (RTT, Duration::ZERO, false));
        known.window.get().div_ceil(DATAGRAM.get())
    })
}

#[test]
fn what_is_saved_is_what_was_carried() {
    // spec: rfc9959 3.1 updated
    let mut careful = careful(Parameters::default(), None);
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), None, "nothing was measured");
    observe(&mut careful, 100, false);
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), Some(100), "not an overshot window");
    assert_eq!(remembered(&careful, 120, Phase::SlowStart), Some(60), "half of the window of slow start");
    assert_eq!(remembered(&careful, 80, Phase::Recovery), Some(80), "no more than the window");
    assert_eq!(remembered(&careful, 40, Phase::CongestionAvoidance), Some(40), "four initial windows");
    assert_eq!(remembered(&careful, 39, Phase::CongestionAvoidance), None, "not worth it");
    assert_eq!(
        remembered_with(&careful, 39, Some(39), 40),
        Some(39),
        "a path that proved small replaces another"
    );
    assert_eq!(remembered_with(&careful, 39, Some(39), 39), None, "too little was sent to say so");
    // Rounds with little to send displace nothing; others do, eight of them.
    for _ in 0..20 {
        observe(&mut careful, 5, true);
    }
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), Some(100));
    for _ in 0..7 {
        observe(&mut careful, 50, false);
    }
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), Some(100));
    observe(&mut careful, 50, false);
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), Some(50));
}

proptest! {
    #[test]
    fn absurd_inputs_never_break_it(
        window in any::<u64>(),
        rtt in any::<u64>(),
        now_rtt in any::<u64>(),
        in_flight in any::<u64>(),
        events in proptest::collection::vec(0u8..7, 0..60),
    ) {
        let mut careful = Careful::new(Parameters::default());
        careful.recall(&PathHistory {
            window: ByteCount::new(window),
            min_rtt: Duration::from_nanos(rtt),
            age: Duration::ZERO,
            continues: true,
            loss: PathLoss::UNKNOWN,
        }, Time::ZERO);
        let rtt = steady_rtt(Duration::from_nanos(now_rtt));
        let mut view = PathView { rtt, in_flight: ByteCount::new(in_flight), ..view(RTT, 20) };
        let flight = packets(20);
        for (number, event) in events.into_iter().enumerate() {
            view.now += milliseconds(3);
            let adjustment = match event {
                0 => careful.on_blocked(&view),
                1 => careful.on_ack(&ack(view.now, &flight, rtt, 1), &view),
                2 => careful.on_loss(&loss(view.now, &flight[..1], rtt), LossCause::Congestion, &view),
                3 => careful.on_congestion_experienced(&view),
                4 => careful.on_path_change(&view),
                5 => {
                    careful.on_persistent_congestion();
                    None
                }
                _ => {
                    let (number, bytes) = (number as u64, DATAGRAM);
                    let prior_in_flight = view.in_flight;
                    careful.on_sent(&SentSample { now: view.now, space: PacketSpace::Data, number, bytes, prior_in_flight, app_limited: false }, &view)
                }
            };
            if let Some(window) = adjustment.and_then(|adjustment| adjustment.window)
                && careful.phase() == Some("unvalidated")
            {
                prop_assert!(window <= Parameters::default().max_jump);
            }
            let _ = careful.pacing(&rtt, DATAGRAM);
        }
    }
}

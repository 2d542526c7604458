//! When a saved window is used, and what is saved.

use proptest::prelude::*;

use super::*;
use crate::CongestionState;
use crate::sample::{PacketSample, RateSample};
use crate::testing::{DATAGRAM, ack, loss, milliseconds, packet, steady_rtt};
use posthaste_units::{Rate, Time};

const RTT: Duration = Duration::from_millis(50);

fn known(datagrams: u64) -> PathHistory {
    PathHistory { window: DATAGRAM * datagrams, min_rtt: RTT, continues: false }
}

fn careful(parameters: Parameters, history: Option<PathHistory>) -> Careful {
    let mut careful = Careful::new(parameters);
    assert_eq!(careful.initial_window(DATAGRAM), DATAGRAM * 10);
    if let Some(known) = &history {
        careful.recall(known);
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
    let view = view(rtt, 10);
    for number in 0..10 {
        let prior_in_flight = DATAGRAM * number;
        let now = sent_at(number);
        let sent = SentSample { now, number, bytes: DATAGRAM, prior_in_flight, app_limited: false };
        assert_eq!(careful.on_sent(&sent, &view), None);
    }
    assert_eq!(careful.on_blocked(&view), None);
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
    let mut careful = careful(Parameters::default(), Some(known(300)));
    assert_eq!(careful.phase(), Some("reconnaissance"));
    send_first_flight(&mut careful, RTT);
    let flight: Vec<_> = (0..10).map(|number| packet(number, sent_at(number))).collect();
    careful.on_ack(&ack(Time::ZERO, &flight[..9], steady_rtt(RTT), 1), &view(RTT, 19));
    assert_eq!(careful.on_blocked(&view(RTT, 19)), None, "nine of ten");
    assert_eq!(careful.phase(), Some("reconnaissance"));
    careful.on_ack(&ack(Time::ZERO, &flight[9..], steady_rtt(RTT), 1), &view(RTT, 20));
    assert!(!careful.is_in_charge(), "nothing happens until more is wanted");
    let adjustment = careful.on_blocked(&view(RTT, 20)).expect("the path is confirmed");
    assert_eq!(adjustment.window, Some(DATAGRAM * 150));
    assert!(careful.is_in_charge() && careful.pacing(&steady_rtt(RTT), DATAGRAM).is_some());
    assert_eq!(careful.on_blocked(&view(RTT, 150)), None, "once");
}

#[test]
fn a_path_that_is_not_the_known_one_is_left_to_normal_control() {
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
    for is_marked in [false, true] {
        let mut careful = careful(Parameters::default(), Some(known(300)));
        let lost = packets(1);
        let answer = if is_marked {
            careful.on_congestion_experienced(&view(RTT, 10))
        } else {
            careful.on_loss(&loss(Time::ZERO, &lost, steady_rtt(RTT)), &view(RTT, 10))
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
fn a_jump_is_bounded_and_never_a_step_down() {
    let parameters = Parameters { max_jump: DATAGRAM * 40, ..Parameters::default() };
    let mut bounded = careful(parameters, Some(known(300)));
    confirm(&mut bounded, RTT);
    assert_eq!(bounded.on_blocked(&view(RTT, 20)).unwrap().window, Some(DATAGRAM * 40));
    let mut small = careful(Parameters::default(), Some(known(40)));
    confirm(&mut small, RTT);
    assert_eq!(small.on_blocked(&view(RTT, 20)), None);
    assert_eq!(small.phase(), None);
    let mut unknown = careful(Parameters::default(), None);
    confirm(&mut unknown, RTT);
    assert_eq!(unknown.on_blocked(&view(RTT, 20)), None);
}

#[test]
fn a_shorter_round_trip_in_the_midst_of_it_takes_the_jump_back() {
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
    let (rtt, delivered) = (steady_rtt(RTT), DATAGRAM * 1000);
    let summary = PathSummary { congestion, rtt, delivered, max_datagram_size: DATAGRAM };
    let unmeasured = PathSummary { rtt: RttView { is_measured: false, ..rtt }, ..summary };
    assert_eq!(careful.remember(&unmeasured), None);
    careful.remember(&summary).map(|known| {
        assert_eq!((known.min_rtt, known.continues), (RTT, false));
        known.window.get().div_ceil(DATAGRAM.get())
    })
}

#[test]
fn what_is_saved_is_what_was_carried() {
    let mut careful = careful(Parameters::default(), None);
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), None, "nothing was measured");
    observe(&mut careful, 100, false);
    assert_eq!(remembered(&careful, 1000, Phase::CongestionAvoidance), Some(100), "not an overshot window");
    assert_eq!(remembered(&careful, 120, Phase::SlowStart), Some(60), "half of the window of slow start");
    assert_eq!(remembered(&careful, 80, Phase::Recovery), Some(80), "no more than the window");
    assert_eq!(remembered(&careful, 40, Phase::CongestionAvoidance), Some(40), "four initial windows");
    assert_eq!(remembered(&careful, 39, Phase::CongestionAvoidance), None, "not worth it");
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
            continues: true,
        });
        let rtt = steady_rtt(Duration::from_nanos(now_rtt));
        let mut view = PathView { rtt, in_flight: ByteCount::new(in_flight), ..view(RTT, 20) };
        let flight = packets(20);
        for (number, event) in events.into_iter().enumerate() {
            view.now += milliseconds(3);
            let adjustment = match event {
                0 => careful.on_blocked(&view),
                1 => careful.on_ack(&ack(view.now, &flight, rtt, 1), &view),
                2 => careful.on_loss(&loss(view.now, &flight[..1], rtt), &view),
                3 => careful.on_congestion_experienced(&view),
                4 => careful.on_path_change(&view),
                5 => {
                    careful.on_persistent_congestion();
                    None
                }
                _ => {
                    let (number, bytes) = (number as u64, DATAGRAM);
                    let prior_in_flight = view.in_flight;
                    careful.on_sent(&SentSample { now: view.now, number, bytes, prior_in_flight, app_limited: false }, &view)
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

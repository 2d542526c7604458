use posthaste_policy::sample::{AckSample, PacketSpace};

use super::*;
use crate::congestion::cubic::{self, CubicIncrease};
use crate::congestion::newreno::{AdditiveIncrease, NewReno};
use crate::slow_start::classic::Classic;
use crate::testing::{DATAGRAM, Path, ack, datagrams, loss, milliseconds, packet, steady_rtt};

const RTT: Duration = milliseconds(100);

fn limits(initial: u64) -> PathLimits {
    PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * initial, seed: 1 }
}

fn reno(initial: u64) -> NewReno {
    LossBased::new(AdditiveIncrease::default(), Box::new(Classic), limits(initial))
}

fn all(initial: u64) -> Vec<Box<dyn Congestion>> {
    let cubic = CubicIncrease::new(cubic::Parameters::default());
    vec![Box::new(reno(initial)), Box::new(LossBased::new(cubic, Box::new(Classic), limits(initial)))]
}

#[test]
fn new_reno_doubles_halves_and_adds_a_datagram_a_round_trip() {
    // spec: rfc9002 7.3.1 slow-start-ends, 7.3.2 threshold-halved, 7.3.2 window-reduced
    // spec: rfc9002 7.3.3 one-datagram-a-window
    let (mut reno, mut path) = (reno(10), Path::new(RTT));
    let mut windows = vec![reno.window().get()];
    let mut phases = vec![reno.state().phase.name()];
    for round in 0..10 {
        if round == 3 {
            path.lose(&mut reno, 1);
        } else {
            path.round_trip(&mut reno);
        }
        windows.push(reno.window().get());
        phases.push(reno.state().phase.name());
    }
    assert_eq!(windows[..5], [12_000, 24_000, 48_000, 96_000, 48_000]);
    for pair in windows[4..].windows(2) {
        // A little less than a datagram, since the window grows within the round trip.
        assert!((1150..=1200).contains(&(pair[1] - pair[0])), "{windows:?}");
    }
    insta::assert_debug_snapshot!(windows.iter().zip(phases).collect::<Vec<_>>());
}

#[test]
fn a_window_of_gigabytes_still_grows_by_single_acks() {
    let (mut reno, mut path) = (reno(1_000_000), Path::new(RTT));
    path.lose(&mut reno, 1);
    let before = reno.window;
    let flight = path.send(&mut reno, 2);
    path.now += RTT;
    path.acknowledge(&mut reno, &flight, false);
    // 2 x 1200 x 1200 / 600,000,000 bytes: integers would lose it.
    assert!((reno.window - before - 0.0048).abs() < 1e-6, "{}", reno.window - before);
}

#[test]
fn losses_and_marks_of_one_flight_count_once() {
    for mut controller in all(100) {
        let mut path = Path::new(RTT);
        let flight = path.send(&mut *controller, 100);
        path.now += RTT;
        controller.on_loss(&loss(path.now, &flight[..1], steady_rtt(RTT)));
        let reduced = controller.window();
        assert!(reduced < DATAGRAM * 100);
        assert_eq!(controller.state().phase, Phase::Recovery);
        path.now += milliseconds(1);
        controller.on_loss(&loss(path.now, &flight[1..20], steady_rtt(RTT)));
        controller.on_congestion_experienced(path.now, flight[50].sent_at, DATAGRAM * 80);
        path.acknowledge(&mut *controller, &flight[20..], false);
        assert_eq!(controller.window(), reduced, "acks of that flight earn nothing either");
        assert_eq!(controller.state().phase, Phase::Recovery);

        path.round_trip(&mut *controller);
        assert_eq!(controller.state().phase, Phase::CongestionAvoidance);
        let regrown = controller.window();
        assert!(regrown > reduced);
        // A mark on a packet sent since counts as a loss would.
        let sent_at = path.now;
        path.now += RTT;
        controller.on_congestion_experienced(path.now, sent_at, DATAGRAM);
        assert!(controller.window() < regrown);
    }
}

#[test]
fn a_sender_without_data_earns_nothing() {
    for mut controller in all(10) {
        let mut path = Path::new(RTT);
        (0..50).for_each(|_| path.limited_round_trip(&mut *controller));
        assert_eq!(controller.window(), DATAGRAM * 10, "slow start");
        path.lose(&mut *controller, 1);
        let reduced = controller.window();
        (0..50).for_each(|_| path.limited_round_trip(&mut *controller));
        assert_eq!(controller.window(), reduced, "avoidance");
        assert_eq!(controller.state().phase, Phase::CongestionAvoidance, "but recovery is over");
    }
}

#[test]
fn the_window_never_falls_below_two_datagrams() {
    for mut controller in all(10) {
        let mut path = Path::new(RTT);
        (0..20).for_each(|_| {
            path.lose(&mut *controller, 1);
        });
        assert_eq!(controller.window(), DATAGRAM * 2);
        // And it is not stuck there.
        (0..20).for_each(|_| path.round_trip(&mut *controller));
        assert!(datagrams(controller.window()) > 8.0, "{}", controller.window());
    }
}

#[test]
fn losses_that_all_prove_spurious_are_undone() {
    for mut controller in all(100) {
        let mut path = Path::new(RTT);
        let before = controller.state();
        let flight = path.send(&mut *controller, 100);
        path.now += RTT;
        controller.on_loss(&loss(path.now, &flight[..2], steady_rtt(RTT)));
        controller.on_loss(&loss(path.now + milliseconds(1), &flight[2..5], steady_rtt(RTT)));
        path.refute(&mut *controller, &flight[..2]);
        path.refute(&mut *controller, &flight[2..4]);
        assert!(controller.window() < before.window, "one is still lost");
        path.refute(&mut *controller, &flight[4..5]);
        assert_eq!(controller.state(), before, "slow start and all");
        // Packets of before the loss earn growth again.
        path.acknowledge(&mut *controller, &flight[..10], false);
        assert_eq!(controller.window(), DATAGRAM * 110);
    }
}

#[test]
fn an_undone_loss_leaves_no_trace_on_cubics_curve() {
    let start = || {
        let cubic = CubicIncrease::new(cubic::Parameters::default());
        let (mut cubic, mut path) = (LossBased::new(cubic, Box::new(Classic), limits(1000)), Path::new(RTT));
        path.lose(&mut cubic, 1);
        (0..20).for_each(|_| path.round_trip(&mut cubic));
        (cubic, path)
    };
    let (mut calm, mut calm_path) = start();
    let (mut scared, mut scared_path) = start();
    let lost = scared_path.lose(&mut scared, 3);
    scared_path.refute(&mut scared, &lost);
    assert_eq!(scared.state(), calm.state());
    // The episode's round trip counts as time (RFC 9438 section 4.9 restores the epoch as it was).
    calm_path.now = scared_path.now;
    let flight = calm_path.send(&mut calm, 1);
    assert_eq!(
        scared_path.send(&mut scared, 1),
        flight.iter().map(|one| packet(one.number + 3, one.sent_at)).collect::<Vec<_>>()
    );
    for _ in 0..50 {
        calm_path.round_trip(&mut calm);
        scared_path.round_trip(&mut scared);
        assert_eq!(scared.window(), calm.window());
    }
}

#[test]
fn a_mark_or_an_older_loss_is_no_ground_for_an_undo() {
    for mut controller in all(100) {
        let mut path = Path::new(RTT);
        let first = path.lose(&mut *controller, 2);
        path.round_trip(&mut *controller);
        let second = path.lose(&mut *controller, 2);
        let reduced = controller.window();
        path.refute(&mut *controller, &first);
        assert_eq!(controller.window(), reduced, "the first episode's packets");
        controller.on_congestion_experienced(path.now, second[0].sent_at, DATAGRAM);
        path.refute(&mut *controller, &second);
        assert_eq!(controller.window(), reduced, "a mark has confirmed the second");
    }
}

#[test]
fn an_undo_takes_nothing_away() {
    let (mut reno, mut path) = (reno(10), Path::new(RTT));
    let lost = path.lose(&mut reno, 1);
    (0..20).for_each(|_| path.round_trip(&mut reno));
    let grown = reno.state();
    assert!(grown.window > DATAGRAM * 10);
    path.refute(&mut reno, &lost);
    assert_eq!(reno.state(), grown);
}

#[test]
fn one_ack_across_the_threshold_doubles_only_up_to_it() {
    let (mut reno, mut path) = (reno(64), Path::new(RTT));
    path.lose(&mut reno, 1);
    reno.on_persistent_congestion(path.now);
    (0..3).for_each(|_| path.round_trip(&mut reno));
    assert_eq!(reno.window(), DATAGRAM * 16);
    let flight = path.send(&mut reno, 30);
    path.now += RTT;
    reno.on_ack(&ack(path.now, &flight, steady_rtt(RTT), 99));
    // 16 to 32, and the other 14 of 32 as avoidance has it.
    assert!((datagrams(reno.window()) - (32.0 + 14.0 / 32.0)).abs() < 1e-3, "{}", datagrams(reno.window()));
}

#[test]
fn persistent_congestion_ends_the_recovery_period() {
    // spec: rfc9002 7.6.2 window-collapses
    let (mut reno, mut path) = (reno(64), Path::new(RTT));
    let flight = path.send(&mut reno, 10);
    path.lose(&mut reno, 1);
    reno.on_persistent_congestion(path.now);
    assert_eq!(reno.state().phase, Phase::SlowStart);
    // RFC 9002 appendix B.8: what was sent before counts again.
    path.acknowledge(&mut reno, &flight[..2], false);
    assert_eq!(reno.window(), DATAGRAM * 4);
}

#[test]
fn pacing_follows_the_phase_and_the_burst_follows_the_rate() {
    let (mut reno, mut path) = (reno(10), Path::new(RTT));
    let unmeasured = RttView { is_measured: false, ..steady_rtt(RTT) };
    assert_eq!(reno.pacing(&unmeasured), None);

    let first = reno.pacing(&steady_rtt(RTT)).unwrap();
    assert_eq!(first.rate.as_bytes_per_second(), 240_000, "two windows a round trip");
    assert_eq!(first.burst, DATAGRAM * 10, "the first flight may leave at once");
    path.round_trip(&mut reno);
    assert_eq!(reno.pacing(&steady_rtt(RTT)).unwrap().burst, DATAGRAM * 2, "the second may not");

    path.lose(&mut reno, 1);
    let after = reno.pacing(&steady_rtt(RTT)).unwrap();
    assert_eq!(after.rate.as_bytes_per_second(), 150_000, "1.25 windows a round trip");
    assert_eq!(reno.window(), DATAGRAM * 10);
    assert_eq!(after.burst, DATAGRAM * 4, "a small window's burst is larger");
    // 1.25 x 12,000 bytes in 1 ms: the burst is one millisecond of it.
    assert_eq!(reno.pacing(&steady_rtt(milliseconds(1))).unwrap().burst, ByteCount::new(15_000));
    assert_eq!(reno.pacing(&steady_rtt(Duration::from_micros(10))).unwrap().burst, DATAGRAM * 256);
    assert_eq!(reno.pacing(&steady_rtt(Duration::ZERO)).unwrap().burst, DATAGRAM * 256);
    path.round_trip(&mut reno);
    assert!(reno.window() > DATAGRAM * 10);
    assert_eq!(reno.pacing(&steady_rtt(RTT)).unwrap().burst, DATAGRAM * 2, "small no more");
}

#[test]
fn another_policy_may_set_window_and_threshold() {
    for mut controller in all(10) {
        let mut path = Path::new(RTT);
        path.lose(&mut *controller, 1);
        let adjustment = Adjustment {
            window: Some(DATAGRAM * 40),
            slow_start_threshold: Some(ByteCount::MAX),
            ..Adjustment::default()
        };
        controller.adjust(&adjustment);
        let state = controller.state();
        assert_eq!((state.window, state.slow_start_threshold), (DATAGRAM * 40, None));
        path.round_trip(&mut *controller);
        assert_eq!(controller.window(), DATAGRAM * 80, "slow start again");
        controller.adjust(&Adjustment { window: Some(ByteCount::ZERO), ..Adjustment::default() });
        assert_eq!(controller.window(), DATAGRAM * 2);
        controller.adjust(&Adjustment { window: Some(ByteCount::MAX), ..Adjustment::default() });
        assert_eq!(controller.window().as_f64().to_bits(), MAXIMUM_WINDOW.to_bits());
    }
}

#[test]
fn a_larger_datagram_raises_the_minimum_without_a_return_to_slow_start() {
    let (mut reno, mut path) = (reno(2), Path::new(RTT));
    path.lose(&mut reno, 1);
    reno.on_max_datagram_size(ByteCount::new(1452));
    assert_eq!(reno.window(), ByteCount::new(2904));
    path.round_trip(&mut reno);
    assert_eq!(reno.state().phase, Phase::CongestionAvoidance);
}

#[test]
fn an_ack_of_old_and_new_packets_counts_the_new() {
    let (mut reno, mut path) = (reno(100), Path::new(RTT));
    let old = path.send(&mut reno, 4);
    path.lose(&mut reno, 1);
    let new = path.send(&mut reno, 2);
    let before = reno.window;
    path.now += RTT;
    let both: Vec<_> = old.into_iter().chain(new).collect();
    let sample = ack(path.now, &both, steady_rtt(RTT), 9);
    reno.on_ack(&AckSample { app_limited: false, ..sample });
    assert!((reno.window - before - 2.0 * 1200.0 / 50.0).abs() < 1e-6, "{}", reno.window - before);
}

/// A flight of 100 of which one is lost, acknowledged by pairs; the windows over what is in flight then, in datagrams.
fn shrink(controller: &mut dyn Congestion, path: &mut Path) -> Vec<u64> {
    let flight = path.send(controller, 100);
    path.now += RTT;
    let mut in_flight = 98;
    let at = |in_flight: u64| (DATAGRAM * in_flight, steady_rtt(RTT));
    let mut room = Vec::new();
    for (index, pair) in flight[1..].chunks(2).enumerate() {
        let (left, rtt) = at(in_flight);
        controller.on_ack(&AckSample { in_flight: left, ..ack(path.now, pair, rtt, 1) });
        if index == 0 {
            let sample = loss(path.now, &flight[..1], rtt);
            let (prior_in_flight, left) = (DATAGRAM * in_flight, DATAGRAM * (in_flight - 1));
            controller.on_loss(&LossSample { prior_in_flight, in_flight: left, ..sample });
            in_flight -= 1;
        }
        let count = (controller.window() - DATAGRAM * in_flight) / DATAGRAM.get();
        room.push(count.get());
        for _ in 0..count.get() {
            let (now, number, bytes) = (path.now + milliseconds(1), 1000, DATAGRAM);
            let prior_in_flight = DATAGRAM * in_flight;
            controller.on_sent(&SentSample {
                now,
                space: PacketSpace::Data,
                number,
                bytes,
                prior_in_flight,
                app_limited: false,
            });
            in_flight += 1;
        }
        in_flight = in_flight.saturating_sub(2);
    }
    room
}

#[test]
fn proportional_reduction_spreads_what_at_once_keeps_back() {
    let mut at_once = reno(100);
    let room = shrink(&mut at_once, &mut Path::new(RTT));
    assert!(room[..20].iter().all(|count| *count == 0), "silent for half a round trip: {room:?}");
    let mut prr = reno(100).with_shrinking(Shrinking::Prr);
    let room = shrink(&mut prr, &mut Path::new(RTT));
    assert!(room.iter().all(|count| (0..=2).contains(count)), "{room:?}");
    let sent: u64 = room.iter().sum();
    assert!((49..=53).contains(&sent), "one for two that arrive: {room:?}");
    assert!(room[..25].iter().sum::<u64>() >= 24, "from the start on: {room:?}");
    assert_eq!(prr.state().window, DATAGRAM * 51, "half of 102");
    assert_eq!(prr.state().phase, Phase::Recovery);
}

#[test]
fn a_recovery_period_ends_with_the_reduced_window() {
    let mut prr = reno(100).with_shrinking(Shrinking::Prr);
    let mut path = Path::new(RTT);
    shrink(&mut prr, &mut path);
    path.now += milliseconds(2);
    path.limited_round_trip(&mut prr);
    assert_eq!(prr.window(), DATAGRAM * 51);
    assert_eq!(prr.state().phase, Phase::CongestionAvoidance);
}

#[test]
fn a_spurious_loss_ends_the_reduction_too() {
    let mut prr = reno(100).with_shrinking(Shrinking::Prr);
    let mut path = Path::new(RTT);
    let lost = path.lose(&mut prr, 3);
    assert!(prr.window() < DATAGRAM * 50, "{}", prr.window());
    path.refute(&mut prr, &lost);
    assert_eq!(prr.window(), DATAGRAM * 100);
    path.lose(&mut prr, 3);
    prr.on_persistent_congestion(path.now);
    assert_eq!(prr.window(), DATAGRAM * 2);
}

#[test]
fn a_mark_reduces_in_proportion_as_well() {
    let mut prr = reno(100).with_shrinking(Shrinking::Prr);
    let mut path = Path::new(RTT);
    let flight = path.send(&mut prr, 100);
    path.now += RTT;
    let sample = ack(path.now, &flight[..2], steady_rtt(RTT), 1);
    prr.on_ack(&AckSample { in_flight: DATAGRAM * 98, newly_marked: 1, ..sample });
    prr.on_congestion_experienced(path.now, flight[1].sent_at, DATAGRAM * 98);
    assert_eq!(prr.state().window, DATAGRAM * 51, "half of 102");
    // Two of 100 arrived: ceil(2 x 51 / 100) datagrams may leave.
    assert_eq!(prr.window(), DATAGRAM * 98 + DATAGRAM.mul_ratio(102, 100));
}

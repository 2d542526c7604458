//! The start of a path that an earlier connection has seen.

use posthaste_policy::sample::RateSample;

use super::*;

/// What a round trip of the path carried: 100 Mbit/s.
const CARRIED: ByteCount = ByteCount::new(500_000);

fn known(window: ByteCount, min_rtt: Duration, age: Duration) -> PathHistory {
    PathHistory { window, min_rtt, age, continues: false, loss: PathLoss::new(800, 64) }
}

/// A path of which this is known; the handshake's datagrams are acknowledged this far apart.
fn again(known: &PathHistory, apart: Duration) -> World {
    let mut world = World::with(Parameters { history: true, ..Parameters::default() });
    world.start.recall(known, world.now);
    world.handshake(apart);
    world
}

fn summary(delivered: ByteCount) -> PathSummary {
    let congestion = World::new().view().congestion;
    let own_loss = PathLoss::new(200, 2);
    PathSummary { congestion, rtt: steady_rtt(RTT), delivered, max_datagram_size: DATAGRAM, own_loss }
}

fn remembered(world: &World) -> Option<ByteCount> {
    world.start.remember(&summary(ByteCount::new(1_000_000))).map(|history| history.window)
}

#[test]
fn half_of_what_a_path_carried_leaves_in_the_first_round_trip() {
    let mut world = again(&known(CARRIED, RTT, Duration::ZERO), Duration::ZERO);
    assert_eq!(world.window, CARRIED / 2);
    world.send(PacketSpace::Data, 0);
    let pacing = world.start.pacing(&steady_rtt(RTT), DATAGRAM).unwrap();
    assert!(is_near(Some(pacing.rate), 75 * MBIT), "{:?}", pacing.rate);
    let at_once = DATAGRAM * CAREFUL_BURST;
    assert!(pacing.burst < at_once, "no more at once than without: {}", pacing.burst);
}

#[test]
fn a_server_that_learns_of_the_path_when_the_handshake_is_over_loses_nothing() {
    let mut world = World::with(Parameters { history: true, ..Parameters::default() });
    world.handshake(Duration::ZERO);
    let initial = world.start.initial_window(DATAGRAM);
    world.start.recall(&known(CARRIED, RTT, Duration::ZERO), world.now);
    assert_eq!((initial, world.start.initial_window(DATAGRAM)), (DATAGRAM * 10, CARRIED / 2));
    // Data have left already.
    let mut world = World::with(Parameters { history: true, ..Parameters::default() });
    world.handshake(Duration::ZERO);
    world.send(PacketSpace::Data, 0);
    world.start.recall(&known(CARRIED, RTT, Duration::ZERO), world.now);
    assert_eq!(world.start.initial_window(DATAGRAM), initial);
}

#[test]
fn what_does_not_fit_the_path_is_not_used() {
    let cold = |apart| {
        let mut world = World::new();
        world.handshake(apart);
        world.window
    };
    let fast = Duration::from_micros(100);
    let hour = Parameters::default().lifetime;
    let large = ByteCount::new(100 << 20);
    for (what, known, apart, expected) in [
        ("older than its lifetime", known(CARRIED, RTT, hour + milliseconds(1)), fast, cold(fast)),
        ("from a path twice as long", known(large, RTT * 2, Duration::ZERO), fast, cold(fast)),
        ("from a path a tenth as long", known(large, milliseconds(3), Duration::ZERO), fast, cold(fast)),
        ("less than what is sent anyway", known(DATAGRAM * 20, RTT, Duration::ZERO), fast, cold(fast)),
        (
            "more than twelve times what is shown",
            known(CARRIED, RTT, Duration::ZERO),
            milliseconds(1),
            cold(milliseconds(1)),
        ),
        ("beyond the greatest jump", known(large, RTT, Duration::ZERO), fast, Parameters::default().max_jump),
    ] {
        assert_eq!(again(&known, apart).window, expected, "{what}");
    }
    // 400 bytes in 640 us are 5 Mbit/s; 62 Mbit/s were carried, and 16.
    let slow = Duration::from_micros(640);
    let world = again(&known(ByteCount::new(310_000), RTT, Duration::ZERO), slow);
    assert_eq!(world.window, cold(slow), "twelve times slower");
    let world = again(&known(ByteCount::new(80_000), RTT, Duration::ZERO), slow);
    assert!(world.window > cold(slow), "a handshake that looks slower, but not by twelve");
}

#[test]
fn a_handshake_behind_a_queue_gets_no_flight_from_history() {
    let cold = DATAGRAM * 84;
    for (least_rtt, expected) in [
        (milliseconds(32), CARRIED / 2),
        (milliseconds(30), CARRIED / 2),
        (milliseconds(29), cold),
        (milliseconds(21), cold),
    ] {
        let known = known(CARRIED, least_rtt, Duration::ZERO);
        let world = again(&known, Duration::ZERO);
        assert_eq!(world.window, expected, "{least_rtt} known, {RTT} found");
        assert_eq!(world.start.known_loss(), known.loss, "it is the same path");
    }
}

#[test]
fn congestion_in_a_flight_from_history_voids_it() {
    for is_used in [true, false] {
        let window = if is_used { CARRIED } else { DATAGRAM };
        let mut world = again(&known(window, RTT, Duration::ZERO), Duration::ZERO);
        let first = world.send(PacketSpace::Data, 0);
        let lost = crate::testing::loss(world.now, std::slice::from_ref(&first), steady_rtt(RTT));
        let view = world.view();
        world.start.on_loss(&lost, LossCause::Path, &view);
        assert!(!world.start.has_failed(), "the path's own loss");
        world.start.on_loss(&lost, LossCause::Congestion, &view);
        assert_eq!(world.start.has_failed(), is_used);
    }
}

#[test]
fn what_trains_show_is_remembered_and_a_short_transfer_takes_nothing_back() {
    let mut world = World::with(Parameters { history: true, ..Parameters::default() });
    world.handshake(Duration::from_micros(100));
    assert_eq!(remembered(&world), None, "nothing seen");
    world.train(16, 100 * MBIT, &[]);
    let first = remembered(&world).unwrap();
    assert!((0.9..=1.1).contains(&(first.as_f64() / CARRIED.as_f64())), "{first}");
    // The next connection sees no train.
    let world = again(&known(first, RTT, Duration::ZERO), Duration::ZERO);
    assert_eq!(remembered(&world), Some(first));
    assert_eq!(world.start.remember(&summary(DATAGRAM)), None, "no transfer");
    let mut world = World::new();
    world.handshake(Duration::from_micros(100));
    world.train(16, 100 * MBIT, &[]);
    assert_eq!(remembered(&world), None, "without history");
}

#[test]
fn a_long_transfer_replaces_what_was_known() {
    let mut world = again(&known(CARRIED, RTT, Duration::ZERO), Duration::ZERO);
    let rate = Rate::from_bits_per_second(20 * MBIT);
    let delivery = RateSample { rate, delivered: rate.bytes_in(RTT), interval: RTT, app_limited: false };
    for number in 0..20 {
        let sent = world.send(PacketSpace::Data, number);
        world.now += RTT;
        let packets = [sent];
        let sample = AckSample {
            delivery_rate: Some(delivery),
            round_started: true,
            ..ack(world.now, &packets, steady_rtt(RTT), number)
        };
        let view = world.view();
        world.start.on_ack(&sample, &view);
    }
    assert_eq!(remembered(&world), Some(rate.bytes_in(RTT)));
}

#[test]
fn the_loss_of_a_path_is_kept_and_told_as_long_as_it_is_the_same_path() {
    let lossy = known(CARRIED, RTT, Duration::ZERO);
    let seen = |world: &World| world.start.remember(&summary(ByteCount::new(1_000_000))).unwrap().loss;
    let same = again(&lossy, Duration::ZERO);
    assert_eq!(same.start.known_loss(), PathLoss::new(800, 64));
    assert_eq!(seen(&same), PathLoss::new(1_000, 66), "with what this connection has seen");
    // A small first flight is none of a larger one's business.
    let small = again(&known(DATAGRAM * 20, RTT, Duration::ZERO), Duration::ZERO);
    assert_eq!(small.start.known_loss(), PathLoss::new(800, 64));
    let hour = Parameters::default().lifetime;
    for other in [known(CARRIED, RTT * 2, Duration::ZERO), known(CARRIED, RTT, hour + milliseconds(1))] {
        assert_eq!(again(&other, Duration::ZERO).start.known_loss(), PathLoss::UNKNOWN);
    }
    let mut moved = again(&lossy, Duration::ZERO);
    let view = moved.view();
    moved.start.on_path_change(&view);
    assert_eq!(moved.start.known_loss(), PathLoss::UNKNOWN);
}

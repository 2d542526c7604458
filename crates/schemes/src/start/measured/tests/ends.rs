//! Packets that end the handshake's datagrams: a thin uplink is told from a slow path.

use super::*;

/// The size of a 1-RTT packet with nothing but a PING.
const END: ByteCount = ByteCount::new(45);

/// A handshake of three datagrams whose ends are acknowledged `second` and `third` after the first datagram.
fn handshake(second: Duration, third: Duration) -> World {
    let mut world = World::new();
    let began = world.now + RTT;
    let first = world.send(PacketSpace::Initial, 0);
    let body = PacketSample { bytes: DATAGRAM - END, ..world.send(PacketSpace::Handshake, 0) };
    let ends = [0, 2].map(|number| {
        world.start.on_datagram_end(number);
        PacketSample { bytes: END, ..world.send(PacketSpace::Data, number) }
    });
    world.now = began;
    world.ack(PacketSpace::Initial, &[first]);
    world.now = began + second;
    world.ack(PacketSpace::Handshake, &[body]);
    world.ack(PacketSpace::Data, &ends[..1]);
    world.now = began + third;
    world.ack(PacketSpace::Data, &ends[1..]);
    world
}

fn pacing(world: &World) -> Option<Pacing> {
    world.start.flight.map(|flight| flight.pacing)
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

#[test]
fn a_thin_uplink_does_not_make_a_path_slow() {
    // An uplink of 10 Mbit/s takes 0.42 ms for what a client sends second, and 0.09 ms for the last acknowledgement.
    let world = handshake(micros(420), micros(510));
    let pacing = pacing(&world).unwrap();
    // 2,400 bytes in 0.51 ms and ten times 0.09 ms.
    assert!(is_near(Some(pacing.rate), 13_617_000), "{}", pacing.rate);
    assert_eq!(pacing.burst, DATAGRAM * (CAREFUL_BURST - 1), "no more than a slow path's leave at once");
    assert_eq!(world.window, pacing.rate.bytes_in(RTT));
}

#[test]
fn a_slow_path_stays_slow() {
    // 2 Mbit/s in both directions: the third datagram takes 4.8 ms, as the second did.
    let plain = {
        let mut world = World::new();
        world.handshake(micros(2_000));
        pacing(&world).unwrap().rate
    };
    let world = handshake(micros(2_000), micros(6_800));
    assert_eq!(pacing(&world).unwrap().rate, plain);
    // What ends the second datagram is a part of it: without it the flight would be paced more slowly.
    assert_eq!(plain, Rate::from_transfer((DATAGRAM - ByteCount::new(800)) * 5, micros(8_000)));
}

#[test]
fn a_path_that_its_ends_prove_to_be_fast_is_fast() {
    // 20 Mbit/s up: 0.22 ms for what a client sends second, and 0.05 ms for the last acknowledgement.
    let world = handshake(micros(280), micros(330));
    let parameters = Parameters::default();
    let pacing = pacing(&world).unwrap();
    assert_eq!(pacing.rate, parameters.rate);
    assert_eq!(pacing.burst, DATAGRAM * (parameters.burst - 1));
    assert_eq!(world.window, parameters.rate.bytes_in(RTT).min(DATAGRAM * parameters.most));
}

#[test]
fn ends_acknowledged_at_one_instant_prove_nothing() {
    for third in [2_500, 1_500] {
        let world = handshake(micros(2_500), micros(third));
        // What the second datagram shows without them: five quarters of 400 bytes in 2.5 ms.
        assert_eq!(pacing(&world).unwrap().rate, Rate::from_bits_per_second(1_600_000), "{third}");
    }
}

#[test]
fn whole_milliseconds_are_a_schedule_and_no_rate() {
    for (second, third) in [(1_000, 1_000), (3_000, 3_000), (4_960, 6_040), (2_000, 4_000)] {
        let world = handshake(micros(second), micros(third));
        let pacing = pacing(&world).unwrap();
        assert_eq!(pacing.rate, SCHEDULED_RATE, "{second}, {third}");
        assert_eq!(pacing.burst, DATAGRAM * (CAREFUL_BURST - 1), "no more than a slow path's leave at once");
        assert_eq!(world.window, DATAGRAM * SCHEDULED.1);
    }
    // One gap alone may be a whole one by chance, and what comes later than a radio waits is slow.
    for (second, third) in [(8_000, 16_650), (8_350, 17_000), (11_000, 22_000)] {
        let world = handshake(micros(second), micros(third));
        assert!(pacing(&world).unwrap().rate < Rate::from_bits_per_second(MBIT), "{second}, {third}");
    }
}

#[test]
fn a_schedule_is_known_by_the_third_datagram_only() {
    let mut world = World::new();
    world.handshake(milliseconds(3));
    // Five quarters of 400 bytes in 3 ms.
    assert!(is_near(pacing(&world).map(|pacing| pacing.rate), 1_333_000));
}

#[test]
fn the_window_keeps_what_it_has_grown_by() {
    let mut world = World::new();
    let began = world.now + RTT;
    let first = world.send(PacketSpace::Initial, 0);
    let body = PacketSample { bytes: DATAGRAM - END, ..world.send(PacketSpace::Handshake, 0) };
    world.start.on_datagram_end(0);
    let end = PacketSample { bytes: END, ..world.send(PacketSpace::Data, 0) };
    world.now = began;
    world.ack(PacketSpace::Initial, &[first]);
    world.now = began + milliseconds(3);
    world.ack(PacketSpace::Handshake, &[body]);
    let planned = pacing(&world).unwrap().rate;
    // The controller counts the handshake's bytes.
    world.window += DATAGRAM * 2;
    let grown = world.window;
    world.ack(PacketSpace::Data, &[end]);
    assert!(pacing(&world).unwrap().rate > planned, "more of the second datagram is known to have come");
    assert_eq!(world.window, grown);
}

#[test]
fn what_ends_datagrams_counts_where_all_came_at_one_instant() {
    // The first datagram is lost, so that the client can read the second only with the copy in the third.
    let mut world = World::new();
    let sizes = [
        (PacketSpace::Initial, 1, 137),
        (PacketSpace::Handshake, 0, 1_155),
        (PacketSpace::Handshake, 1, 1_018),
    ];
    world.send(PacketSpace::Initial, 0);
    let flight = sizes.map(|(space, number, bytes)| PacketSample {
        bytes: ByteCount::new(bytes),
        ..world.send(space, number)
    });
    let ends = [0, 2].map(|number| {
        world.start.on_datagram_end(number);
        PacketSample { bytes: END, ..world.send(PacketSpace::Data, number) }
    });
    world.now += RTT;
    world.ack(PacketSpace::Initial, &flight[..1]);
    world.ack(PacketSpace::Handshake, &flight[1..]);
    world.ack(PacketSpace::Data, &ends);
    assert_eq!(world.window, DATAGRAM * 84);
    assert_eq!(pacing(&world).unwrap().burst, DATAGRAM * (CAREFUL_BURST - 1));
}

//! An answer to a request that came early: its packets left with the handshake's flight, which has no certificate.

use super::*;

/// A resumed handshake whose flight says nothing, and `count` 1-RTT packets behind it; every second is acknowledged, this far
/// apart, from a round trip later on.
fn early(count: u64, apart: Duration) -> World {
    let mut world = World::new();
    let first = world.send(PacketSpace::Initial, 0);
    let sent: Vec<_> = (0..count).map(|number| world.send(PacketSpace::Data, number)).collect();
    world.now += RTT;
    world.ack(PacketSpace::Initial, &[first]);
    for pair in sent.chunks(2) {
        world.now += apart;
        world.ack(PacketSpace::Data, pair);
    }
    world
}

/// Datagrams that `world` may have in flight.
fn datagrams(world: &World) -> u64 {
    world.window.get() / DATAGRAM.get()
}

#[test]
fn packets_that_left_with_the_handshake_show_a_fast_path() {
    // 2,400 bytes in 0.2 ms are 96 Mbit/s.
    let world = early(4, Duration::from_micros(200));
    assert_eq!(datagrams(&world), 200);
    let burst = world.start.flight.map(|flight| flight.pacing.burst);
    assert_eq!(burst, Some(DATAGRAM * 47));
}

#[test]
fn packets_that_left_with_the_handshake_show_a_slow_path() {
    // 1 Mbit/s, of which a client's padding hides a third; the second look at the same packets tells.
    let world = early(4, Duration::from_micros(19_200));
    assert_eq!(datagrams(&world), 10);
    let rate = world.start.flight.map(|flight| flight.pacing.rate);
    assert!(is_near(rate, 1_000_000), "{rate:?}");
}

#[test]
fn nothing_is_planned_before_they_tell() {
    let mut world = World::new();
    let before = world.window;
    let first = world.send(PacketSpace::Initial, 0);
    let sent: Vec<_> = (0..4).map(|number| world.send(PacketSpace::Data, number)).collect();
    world.now += RTT;
    world.ack(PacketSpace::Initial, &[first]);
    assert_eq!(world.window, before, "their acknowledgements are a moment away");
    // A later packet is acknowledged first: they are lost.
    let later = world.send(PacketSpace::Data, 4);
    world.now += RTT;
    world.ack(PacketSpace::Data, &[later]);
    assert!(world.window > before, "{}", world.window);
    world.ack(PacketSpace::Data, &sent);
}

#[test]
fn an_acknowledgement_shared_with_a_later_train_tells_nothing() {
    let mut world = World::new();
    let first = world.send(PacketSpace::Initial, 0);
    let mut sent = vec![world.send(PacketSpace::Data, 0), world.send(PacketSpace::Data, 1)];
    world.now += milliseconds(5);
    sent.extend((2..5).map(|number| world.send(PacketSpace::Data, number)));
    world.now += RTT.saturating_sub(milliseconds(5));
    world.ack(PacketSpace::Initial, &[first]);
    world.ack(PacketSpace::Data, &sent[..1]);
    world.now += milliseconds(5);
    world.ack(PacketSpace::Data, &sent[1..3]);
    // The five milliseconds were the sender's own.
    world.now += Duration::from_micros(200);
    world.ack(PacketSpace::Data, &sent[3..]);
    assert_eq!(datagrams(&world), 200);
}

#[test]
fn early_packets_told_faster_than_they_were_gain_the_flight_of_a_fast_path_and_no_more() {
    let world = early(4, Duration::from_nanos(1));
    assert_eq!(datagrams(&world), 200);
    let burst = world.start.flight.map(|flight| flight.pacing.burst);
    assert_eq!(burst, Some(DATAGRAM * 83), "as a handshake can claim");
}

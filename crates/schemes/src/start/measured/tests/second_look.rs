//! Clients that compute in between, and make a path look slow that is not.

use super::*;

fn paced(world: &World) -> Option<Rate> {
    world.start.pacing(&steady_rtt(RTT), DATAGRAM).map(|pacing| pacing.rate)
}

/// A handshake that shows 0.4 Mbit/s, and eight datagrams a millisecond apart, of which those of `lost` never arrive. The
/// first is acknowledged alone, all others 24 ms later.
fn eight(lost: &[u64]) -> World {
    let mut world = World::new();
    world.handshake(milliseconds(8));
    let mut sent = Vec::new();
    for number in 0..8 {
        sent.push(world.send(PacketSpace::Data, number));
        world.now += milliseconds(1);
    }
    let rest: Vec<_> = sent[1..].iter().filter(|packet| !lost.contains(&packet.number)).copied().collect();
    world.now = sent[0].sent_at + RTT;
    world.ack(PacketSpace::Data, &sent[..1]);
    world.now += milliseconds(24);
    world.ack(PacketSpace::Data, &rest);
    world
}

/// Twelve datagrams, 14 ms apart. Each takes `met` longer than the one before.
fn one_by_one(met: Duration) -> World {
    let mut world = World::new();
    world.handshake(milliseconds(8));
    for number in 0..12 {
        let sent = world.send(PacketSpace::Data, number);
        world.now += RTT + met * number;
        world.ack(PacketSpace::Data, &[sent]);
        world.now = sent.sent_at + milliseconds(14);
    }
    world
}

#[test]
fn what_comes_without_the_queue_of_a_slow_path_refutes_it() {
    // At 0.4 Mbit/s a datagram takes 24 ms, so that each has 10 ms more of a queue to meet than the one before. It is paced
    // as a path of which nothing is known, and its flight is as large as that one's.
    let world = one_by_one(Duration::ZERO);
    assert_eq!((paced(&world), world.ceiling), (Some(Rate::from_bits_per_second(12 * MBIT)), None));
    assert_eq!(world.start.flight.map(|flight| flight.window), Some(ByteCount::new(60_000)));
    // The queue is there, or a half of it.
    for met in [10, 5] {
        let world = one_by_one(milliseconds(met));
        assert!(is_near(paced(&world), 400_000), "{met}: {:?}", paced(&world));
    }
}

#[test]
fn a_queue_that_drops_refutes_nothing() {
    assert!(paced(&eight(&[])) > Some(Rate::from_bits_per_second(2 * MBIT)), "seven in 24 ms");
    // What was dropped is not waited for.
    assert!(is_near(paced(&eight(&[1, 2, 3, 4, 5, 6])), 400_000));
}

#[test]
fn small_packets_do_not_make_a_path_slow() {
    let mut world = World::new();
    world.handshake(milliseconds(8));
    let first = world.send(PacketSpace::Data, 0);
    let small = SentSample {
        now: world.now,
        space: PacketSpace::Data,
        number: 1,
        bytes: ByteCount::new(89),
        prior_in_flight: ByteCount::ZERO,
        app_limited: false,
    };
    let view = world.view();
    world.start.on_sent(&small, &view);
    let second = PacketSample { bytes: small.bytes, ..packet(1, world.now) };
    world.now += RTT;
    world.ack(PacketSpace::Data, &[first]);
    world.now += Duration::from_micros(600);
    world.ack(PacketSpace::Data, &[second]);
    assert_eq!(world.ceiling, None);
    assert_eq!(world.start.flight.map(|flight| flight.is_slow), Some(true), "not yet known");
}

#[test]
fn a_train_that_a_stall_has_held_up_is_no_ceiling() {
    // 20 packets, a stall, and 20 more, of a link of 100 Mbit/s.
    let ceiling = |stall: Duration| {
        let mut world = World::new();
        world.handshake(Duration::from_micros(100));
        world.window = DATAGRAM * 10;
        let sent: Vec<_> = (0..40).map(|number| world.send(PacketSpace::Data, number)).collect();
        let time = Rate::from_bits_per_second(100 * MBIT).time_for(DATAGRAM);
        let began = world.now + RTT;
        for pair in sent.chunks(2) {
            let last = pair[1].number;
            world.now = began + time * (last + 1) + if last < 20 { Duration::ZERO } else { stall };
            world.ack(PacketSpace::Data, pair);
        }
        (world.ceiling, world.window > DATAGRAM * 10)
    };
    assert!(is_near(ceiling(Duration::ZERO).0, 100 * MBIT), "{:?}", ceiling(Duration::ZERO));
    let (rate, has_jumped) = ceiling(milliseconds(60));
    // What was known before the stall stays.
    assert!(rate.is_none_or(|rate| rate > Rate::from_bits_per_second(80 * MBIT)) && has_jumped, "{rate:?}");
}

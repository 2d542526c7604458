//! Trains over a medium whose delay steps, or which delivers in lumps.

use super::*;

/// What a slow handshake's train of ten shows that a link of 66 Mbit/s delivers, with `delay` added to each packet.
fn shown(delay: impl Fn(u64) -> Duration) -> Option<Rate> {
    let mut world = World::new();
    world.handshake(Duration::from_micros(640));
    let sent: Vec<_> = (0..10).map(|number| world.send(PacketSpace::Data, number)).collect();
    let began = world.now + RTT;
    let time = Rate::from_bits_per_second(66 * MBIT).time_for(DATAGRAM);
    for pair in sent.chunks(2) {
        let last = pair[1].number;
        world.now = began + time * last + delay(last);
        world.ack(PacketSpace::Data, pair);
    }
    world.ceiling
}

#[test]
fn a_step_of_the_delay_within_a_train_is_no_slow_link() {
    let stepped = |at| move |number| if number < at { Duration::ZERO } else { Duration::from_micros(3_500) };
    for at in [3, 5, 9] {
        assert!(is_near(shown(stepped(at)), 66 * MBIT), "{at}: {:?}", shown(stepped(at)));
    }
    assert!(is_near(shown(|_| Duration::ZERO), 66 * MBIT));
}

#[test]
fn lumps_are_no_steps() {
    // All of a lump at one instant, two or three of them.
    let time = Rate::from_bits_per_second(66 * MBIT).time_for(DATAGRAM);
    for lump in [4, 6] {
        let ends = |number: u64| (number / lump + 1) * lump - 1 - number;
        let late = |number| time * ends(number) + Duration::from_micros(4_000) * (number / lump);
        let rate = shown(late).map_or(0, Rate::as_bits_per_second);
        assert!(rate < 22 * MBIT, "{lump}: {rate}");
    }
}

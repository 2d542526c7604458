//! The start, told of handshakes and trains as links of known rates would have them.

use posthaste_policy::CongestionState;
use posthaste_policy::sample::PacketSample;
use posthaste_units::Time;

use super::*;
use crate::testing::{DATAGRAM, ack, milliseconds, packet, steady_rtt};

mod early;
mod ends;
mod history;
mod second_look;
mod steps;

const RTT: Duration = milliseconds(40);
const MBIT: u64 = 1_000_000;

/// A path, and the start on it.
struct World {
    start: Measured,
    now: Time,
    window: ByteCount,
    ceiling: Option<Rate>,
}

impl World {
    fn new() -> Self {
        Self::with(Parameters::default())
    }

    fn with(parameters: Parameters) -> Self {
        let start = Measured::new(parameters);
        let window = start.initial_window(DATAGRAM);
        Self { start, now: Time::ZERO + milliseconds(1000), window, ceiling: None }
    }

    fn view(&self) -> PathView {
        let congestion = CongestionState {
            window: self.window,
            slow_start_threshold: None,
            phase: posthaste_policy::Phase::SlowStart,
        };
        PathView {
            now: self.now,
            in_flight: ByteCount::ZERO,
            max_datagram_size: DATAGRAM,
            rtt: steady_rtt(RTT),
            congestion,
        }
    }

    fn send(&mut self, space: PacketSpace, number: u64) -> PacketSample {
        let sent = SentSample {
            now: self.now,
            space,
            number,
            bytes: DATAGRAM,
            prior_in_flight: ByteCount::ZERO,
            app_limited: false,
        };
        let view = self.view();
        self.start.on_sent(&sent, &view);
        packet(number, self.now)
    }

    fn ack(&mut self, space: PacketSpace, packets: &[PacketSample]) {
        self.ack_held(space, packets, Duration::ZERO);
    }

    /// The client says that it held the newest for `ack_delay`.
    fn ack_held(&mut self, space: PacketSpace, packets: &[PacketSample], ack_delay: Duration) {
        let newest = packets.last().map_or(self.now, |packet| packet.sent_at);
        let rtt_sample = Some(self.now.since(newest).saturating_sub(ack_delay));
        let sample = AckSample { space, ack_delay, rtt_sample, ..ack(self.now, packets, steady_rtt(RTT), 1) };
        let view = self.view();
        let Some(answer) = self.start.on_ack(&sample, &view) else { return };
        self.window = answer.window.unwrap_or(self.window);
        self.ceiling = answer.rate_ceiling.or(self.ceiling);
    }

    /// A handshake of two datagrams whose acknowledgements come `apart`.
    fn handshake(&mut self, apart: Duration) {
        let first = self.send(PacketSpace::Initial, 0);
        let second = self.send(PacketSpace::Handshake, 0);
        self.now += RTT;
        self.ack(PacketSpace::Initial, &[first]);
        self.now += apart;
        self.ack(PacketSpace::Handshake, &[second]);
    }

    /// The same by a client that computes for `held` before its second acknowledgement, and says that it did so.
    fn handshake_held(&mut self, apart: Duration, held: Duration) {
        let first = self.send(PacketSpace::Initial, 0);
        let second = self.send(PacketSpace::Handshake, 0);
        self.now += RTT;
        self.ack(PacketSpace::Initial, &[first]);
        self.now += apart + held;
        self.ack_held(PacketSpace::Handshake, &[second], held);
    }

    /// A train of `count` that leaves at once; every second packet that arrives is acknowledged as a link of `rate`
    /// delivers them, but those of `lost` never.
    fn train(&mut self, count: u64, rate: u64, lost: &[u64]) {
        let sent: Vec<_> = (0..count).map(|number| self.send(PacketSpace::Data, number)).collect();
        let began = self.now + RTT;
        let time = Rate::from_bits_per_second(rate).time_for(DATAGRAM);
        let arrived: Vec<_> = sent.iter().filter(|packet| !lost.contains(&packet.number)).copied().collect();
        for pair in arrived.chunks(2) {
            self.now = began + time * (pair.last().unwrap().number + 1);
            self.ack(PacketSpace::Data, pair);
        }
    }
}

fn is_near(rate: Option<Rate>, bits: u64) -> bool {
    let measured = rate.map_or(0, Rate::as_bits_per_second);
    measured.abs_diff(bits) * 20 <= bits
}

#[test]
fn the_handshake_sizes_the_first_flight() {
    // (how far apart in microseconds, datagrams of the first flight): 400 bytes in 0.1, 0.25, 0.32, 0.64 and 8 ms.
    for (apart, datagrams) in [(100, 200), (250, 200), (320, 52), (640, 26), (8_000, 10)] {
        let mut world = World::new();
        world.handshake(Duration::from_micros(apart));
        assert_eq!(world.window.get() / DATAGRAM.get(), datagrams, "{apart} us");
    }
    let mut world = World::new();
    world.handshake(Duration::ZERO);
    assert_eq!(world.window, DATAGRAM * 84, "both at one instant");
    let mut world = World::new();
    let first = world.send(PacketSpace::Initial, 0);
    world.now += RTT;
    world.ack(PacketSpace::Initial, &[first]);
    assert_eq!(world.window, Rate::from_bits_per_second(12 * MBIT).bytes_in(RTT), "nothing shown");
}

#[test]
fn a_client_that_computes_and_says_so_does_not_make_a_path_slow() {
    for held in [0, 7, 60, 400].map(milliseconds) {
        let mut world = World::new();
        world.handshake_held(Duration::from_micros(100), held);
        assert_eq!(world.window, DATAGRAM * 200, "fast, held for {held}");
        let mut world = World::new();
        world.handshake_held(milliseconds(8), held);
        assert_eq!(world.window, DATAGRAM * 10, "400 kbit/s, held for {held}");
    }
    // More than has passed: it counts as arrived with the first.
    let mut world = World::new();
    let first = world.send(PacketSpace::Initial, 0);
    let second = world.send(PacketSpace::Handshake, 0);
    world.now += RTT;
    world.ack(PacketSpace::Initial, &[first]);
    world.now += milliseconds(8);
    world.ack_held(PacketSpace::Handshake, &[second], Duration::from_micros(u64::MAX));
    assert_eq!(world.window, DATAGRAM * 84);
}

#[test]
fn a_path_is_no_slower_than_a_datagram_in_a_round_trip() {
    let mut world = World::new();
    world.handshake(milliseconds(400));
    let least = Rate::from_transfer(ByteCount::new(1_200), RTT);
    assert_eq!(world.start.flight.map(|flight| flight.pacing.rate), Some(least));
}

#[test]
fn only_a_very_fast_path_is_sent_its_least_flight_at_once() {
    // 400 bytes in 10, 16, 17 and 100 us.
    for (apart, datagrams) in [(10, 84), (16, 84), (17, 48), (100, 48)] {
        let mut world = World::new();
        world.handshake(Duration::from_micros(apart));
        let burst = world.start.flight.map(|flight| flight.pacing.burst);
        assert_eq!(burst, Some(DATAGRAM * (datagrams - 1)), "{apart} us");
        assert_eq!(world.window.get() / DATAGRAM.get(), 200, "{apart} us");
    }
}

#[test]
fn a_very_slow_path_is_spared_the_burst() {
    // The first packet leaves before a flight is paced.
    for (apart, datagrams) in [(1_000, 10), (4_000, 10), (8_000, 4)] {
        let mut world = World::new();
        world.handshake(Duration::from_micros(apart));
        let burst = world.start.flight.map(|flight| flight.pacing.burst);
        assert_eq!(burst, Some(DATAGRAM * (datagrams - 1)), "{apart} us");
    }
}

#[test]
fn a_second_datagram_no_larger_than_the_padding_tells_nothing() {
    // A client's first Initial is full, what follows is the rest of its hello.
    let mut world = World::new();
    let first = world.send(PacketSpace::Initial, 0);
    let rest = PacketSample { bytes: ByteCount::new(562), ..world.send(PacketSpace::Initial, 1) };
    world.now += RTT;
    world.ack(PacketSpace::Initial, &[first]);
    world.now += Duration::from_micros(300);
    world.ack(PacketSpace::Initial, &[rest]);
    assert_eq!(world.window, Rate::from_bits_per_second(12 * MBIT).bytes_in(RTT));
}

#[test]
fn no_handshake_makes_the_pacer_stand_still() {
    for apart in [RTT, RTT * 1_000, RTT * 1_000_000] {
        let mut world = World::new();
        world.handshake(apart);
        world.send(PacketSpace::Data, 0);
        let view = world.view();
        let pacing = world.start.pacing(&view.rtt, DATAGRAM).unwrap();
        assert!(pacing.rate.time_for(DATAGRAM) < milliseconds(200), "{apart:?}: {:?}", pacing.rate);
    }
}

#[test]
fn a_mark_on_the_handshake_makes_a_path_slow() {
    let mut world = World::new();
    let view = world.view();
    world.start.on_congestion_experienced(&view);
    world.handshake(Duration::from_micros(100));
    assert!(world.window <= DATAGRAM * SLOW.1, "{}", world.window);
}

#[test]
fn a_repair_of_the_handshake_tells_nothing_of_the_rate() {
    let mut world = World::new();
    let first = world.send(PacketSpace::Initial, 0);
    world.now += milliseconds(300);
    let again = world.send(PacketSpace::Initial, 1);
    world.now += RTT;
    world.ack(PacketSpace::Initial, &[first]);
    world.now += Duration::from_micros(50);
    world.ack(PacketSpace::Initial, &[again]);
    assert_eq!(world.start.opening.showing(), Showing::Nothing);
}

#[test]
fn trains_tell_the_rate_and_the_window_jumps_to_half_of_it() {
    for rate in [10 * MBIT, 100 * MBIT] {
        for lost in [&[][..], &[4, 9]] {
            let mut world = World::new();
            world.handshake(Duration::from_micros(100));
            // So that the jump is not below the first flight.
            world.window = DATAGRAM * 10;
            world.train(16, rate, lost);
            assert!(is_near(world.ceiling, rate), "{rate}, {lost:?}: {:?}", world.ceiling);
            let half = Rate::from_bits_per_second(rate / 2).bytes_in(RTT);
            let expected = half.max(DATAGRAM * 10);
            let ratio = world.window.as_f64() / expected.as_f64();
            assert!((0.9..=1.1).contains(&ratio), "{rate}, {lost:?}: {} of {expected}", world.window);
        }
    }
}

#[test]
fn a_fast_path_that_the_handshake_has_not_shown_is_jumped_to_as_far_as_any() {
    let mut world = World::new();
    world.handshake(Duration::ZERO);
    let flight = world.window;
    world.train(64, 400 * MBIT, &[]);
    let half = Rate::from_bits_per_second(200 * MBIT).bytes_in(RTT);
    let ratio = world.window.as_f64() / half.as_f64();
    assert!((0.9..=1.1).contains(&ratio) && world.window > flight * 6, "{} of {half}", world.window);
    assert_eq!(world.start.jumps(), Jumps { taken: 1, undone: 0 });
    let lost = world.send(PacketSpace::Data, 64);
    let lost = crate::testing::loss(world.now, std::slice::from_ref(&lost), steady_rtt(RTT));
    let view = world.view();
    world.start.on_loss(&lost, LossCause::Path, &view);
    assert_eq!(world.start.jumps().undone, 0, "the path's own loss says nothing of the window");
    world.start.on_loss(&lost, LossCause::Congestion, &view);
    assert_eq!(world.start.jumps(), Jumps { taken: 1, undone: 1 });
}

#[test]
fn a_train_that_met_the_flights_of_others_is_no_reason_to_jump() {
    let jump = |queue| {
        let mut world = World::new();
        world.handshake(Duration::ZERO);
        let flight = world.window;
        let sent: Vec<_> = (0..64).map(|number| world.send(PacketSpace::Data, number)).collect();
        world.now += RTT + queue;
        for packet in sent {
            world.now += Duration::from_micros(30);
            world.ack(PacketSpace::Data, &[packet]);
        }
        assert!(is_near(world.ceiling, 320 * MBIT), "{:?}", world.ceiling);
        assert_eq!(world.start.jumps().taken, u64::from(world.window > flight));
        world.window > flight
    };
    assert!(jump(milliseconds(8)));
    assert!(!jump(milliseconds(11)));
}

#[test]
fn a_train_acknowledged_at_once_tells_nothing() {
    let mut world = World::new();
    world.handshake(Duration::from_micros(100));
    let before = world.window;
    let sent: Vec<_> = (0..32).map(|number| world.send(PacketSpace::Data, number)).collect();
    world.now += RTT;
    for pair in sent.chunks(2) {
        world.ack(PacketSpace::Data, pair);
    }
    assert_eq!((world.window, world.ceiling), (before, None));
}

#[test]
fn what_left_as_slowly_as_it_arrived_tells_nothing() {
    let mut world = World::new();
    world.handshake(Duration::from_micros(100));
    let mut sent = Vec::new();
    for number in 0..32 {
        sent.push((world.now, world.send(PacketSpace::Data, number)));
        world.now += Duration::from_micros(200);
    }
    for (at, packet) in sent {
        world.now = at + RTT;
        world.ack(PacketSpace::Data, &[packet]);
    }
    assert_eq!(world.ceiling, None);
}

#[test]
fn a_train_told_faster_than_it_was_gains_six_first_flights_at_most() {
    let mut world = World::new();
    world.handshake(Duration::from_micros(100));
    let flight = world.window;
    let sent: Vec<_> = (0..64).map(|number| world.send(PacketSpace::Data, number)).collect();
    world.now += RTT;
    for pair in sent.chunks(2) {
        world.now += Duration::from_nanos(1);
        world.ack(PacketSpace::Data, pair);
    }
    assert!(world.window <= flight * 6, "{} of {flight}", world.window);
    assert_eq!(world.ceiling, None, "what came faster than can be measured is no ceiling");
}

#[test]
fn congestion_in_the_first_flight_ends_the_start() {
    let mut world = World::new();
    world.handshake(Duration::from_micros(100));
    let first = world.send(PacketSpace::Data, 0);
    let view = world.view();
    world.start.on_congestion_experienced(&view);
    let before = world.window;
    world.train(16, 100 * MBIT, &[]);
    assert_eq!((world.window, world.ceiling), (before, None));
    let mut world = World::new();
    world.handshake(Duration::from_micros(100));
    world.send(PacketSpace::Data, 0);
    let lost = crate::testing::loss(world.now, std::slice::from_ref(&first), steady_rtt(RTT));
    let view = world.view();
    world.start.on_loss(&lost, LossCause::Congestion, &view);
    world.train(16, 100 * MBIT, &[]);
    assert_eq!(world.ceiling, None);
}

#[test]
fn a_short_answer_does_not_use_the_measurement_up() {
    let mut world = World::new();
    world.handshake(Duration::from_micros(100));
    let sent: Vec<_> = (100..104).map(|number| world.send(PacketSpace::Data, number)).collect();
    world.now += RTT;
    world.ack(PacketSpace::Data, &sent);
    let numbers: Vec<_> = (104..136).map(|number| world.send(PacketSpace::Data, number)).collect();
    for (index, pair) in numbers.chunks(2).enumerate() {
        world.now += if index == 0 { RTT } else { Duration::from_micros(192) };
        world.ack(PacketSpace::Data, pair);
    }
    assert!(is_near(world.ceiling, 100 * MBIT), "{:?}", world.ceiling);
}

/// A handshake that shows 0.4 Mbit/s, and a train of four of which pairs are acknowledged this far apart.
fn very_slow(apart: Duration) -> World {
    let mut world = World::new();
    world.handshake(milliseconds(8));
    let sent: Vec<_> = (0..4).map(|number| world.send(PacketSpace::Data, number)).collect();
    world.now += RTT;
    for pair in sent.chunks(2) {
        world.now += apart;
        world.ack(PacketSpace::Data, pair);
    }
    world
}

#[test]
fn a_path_too_slow_for_a_train_has_a_ceiling() {
    let world = very_slow(milliseconds(48));
    assert!(is_near(world.ceiling, 400_000), "{:?}", world.ceiling);
    let paced = world.start.pacing(&steady_rtt(RTT), DATAGRAM).map(|pacing| pacing.rate);
    assert!(is_near(paced, 400_000), "{paced:?}");
}

#[test]
fn packets_that_arrive_faster_than_a_slow_handshake_has_shown_are_paced_at() {
    let world = very_slow(milliseconds(24));
    let paced = world.start.pacing(&steady_rtt(RTT), DATAGRAM).map(|pacing| pacing.rate);
    assert!(is_near(paced, 800_000), "{paced:?}");
    assert_eq!(world.ceiling, paced);
}

#[test]
fn a_slow_path_is_paced_at_five_quarters_of_what_the_padding_leaves() {
    // 400 bytes in 0.64 and 8 ms; the second is too slow to be paced at more.
    for (apart, rate) in [(640, 6_250_000), (8_000, 400_000)] {
        let mut world = World::new();
        world.handshake(Duration::from_micros(apart));
        let paced = world.start.flight.map(|flight| flight.pacing.rate);
        assert!(is_near(paced, rate), "{apart} us: {paced:?}");
    }
}

#[test]
fn packets_that_arrive_fast_refute_a_slow_handshake() {
    let world = very_slow(milliseconds(1));
    assert_eq!(world.ceiling, None);
    let paced = world.start.pacing(&steady_rtt(RTT), DATAGRAM).map(|pacing| pacing.rate);
    assert_eq!(paced, Some(Rate::from_bits_per_second(12 * MBIT)));
}

#[test]
fn a_train_whose_end_is_acknowledged_with_the_next_tells_a_least_rate() {
    let mut world = World::new();
    world.handshake(Duration::from_micros(100));
    world.window = DATAGRAM * 10;
    let first: Vec<_> = (0..10).map(|number| world.send(PacketSpace::Data, number)).collect();
    world.now += milliseconds(2);
    let next: Vec<_> = (10..20).map(|number| world.send(PacketSpace::Data, number)).collect();
    world.now += RTT;
    world.ack(PacketSpace::Data, &first[..2]);
    world.now += milliseconds(1);
    let both: Vec<_> = first[2..].iter().chain(&next[..2]).copied().collect();
    world.ack(PacketSpace::Data, &both);
    // Eight of them in a millisecond, or in less.
    let half = Rate::from_bits_per_second(8 * 9_600 * 1_000 / 2).bytes_in(RTT);
    assert!((0.9..=1.1).contains(&(world.window.as_f64() / half.as_f64())), "{} of {half}", world.window);
    assert_eq!(world.ceiling, None, "it may have been faster");
}

#[test]
fn a_path_shorter_than_the_pause_between_packets_is_paced_for_one_flight() {
    // The client computes for 8 ms, so the path looks slow; each packet is acknowledged before the next leaves. That none
    // meets a queue refutes it, and what follows is paced as on a path of which nothing is known: 50 datagrams.
    let mut world = World::new();
    world.handshake(milliseconds(8));
    let pacing = |world: &World| world.start.pacing(&steady_rtt(RTT), DATAGRAM);
    for number in 0..50 {
        let sent = world.send(PacketSpace::Data, number);
        let rate = pacing(&world).map(|pacing| pacing.rate);
        assert!(is_near(rate, if number < 3 { 400_000 } else { 12 * MBIT }), "{number}: {rate:?}");
        world.now += milliseconds(1);
        world.ack(PacketSpace::Data, &[sent]);
        world.now += milliseconds(6);
    }
    assert_eq!(pacing(&world), None);
    // What follows is measured as ever.
    let sent: Vec<_> = (50..82).map(|number| world.send(PacketSpace::Data, number)).collect();
    for (index, pair) in sent.chunks(2).enumerate() {
        world.now += if index == 0 { RTT } else { Duration::from_micros(192) };
        world.ack(PacketSpace::Data, pair);
    }
    assert!(is_near(world.ceiling, 100 * MBIT), "{:?}", world.ceiling);
}

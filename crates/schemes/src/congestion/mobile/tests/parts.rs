//! Parts that have no other step response: each test compares the controller with itself without the part.

use super::super::*;
use super::{mobile, stretch};
use crate::testing::{Bottleneck, DATAGRAM, Link, milliseconds};

pub(super) fn without(part: Part) -> Parameters {
    Parameters { without: [part].into_iter().collect(), ..Parameters::default() }
}

/// The part of the usual link's rate that arrives over the seconds 3 to 23.
fn delivered(link: Link, lumps: Duration, parameters: Parameters) -> f64 {
    let (mut path, mut controller) = (Bottleneck::new(link), mobile(parameters));
    path.lumps = lumps;
    path.run(&mut controller, milliseconds(3_000), |_, _| {});
    stretch(&mut path, &mut controller, milliseconds(20_000)).0
}

/// A probe that finds what it tries goes on with more.
#[test]
fn a_tenfold_rise_takes_the_cascade_half_the_time() {
    let time = |parameters| {
        let link = Link { buffer: ByteCount::new(400_000), ..Link::usual() };
        let rate = Rate::from_bits_per_second(1_000_000);
        let (mut path, mut controller) = (Bottleneck::new(Link { rate, ..link }), mobile(parameters));
        path.run(&mut controller, milliseconds(6_000), |_, _| {});
        path.link = link;
        let from = path.now;
        while controller.path.bandwidth() * 8.0 < 9_000_000.0 && path.now < from + milliseconds(10_000) {
            path.run(&mut controller, milliseconds(5), |_, _| {});
        }
        path.now.since(from)
    };
    let (with, off) = (time(Parameters::default()), time(without(Part::Cascade)));
    assert!(with < milliseconds(500) && with * 3 < off * 2, "{with} {off}");
}

/// 12.5 ms of queue in a round trip: a quarter of 50 ms, and less of longer ones.
#[test]
fn the_first_gain_of_a_probe_builds_as_much_queue_on_long_paths_as_on_short_ones() {
    for (rtt, gain) in [(40, 1.25), (160, 1.078)] {
        let link = Link { rtt: milliseconds(rtt), ..Link::usual() };
        let (mut path, mut controller) = (Bottleneck::new(link), mobile(Parameters::default()));
        while controller.state != State::Up {
            path.run(&mut controller, milliseconds(1), |_, _| {});
        }
        let first = controller.cycle.up_gain();
        assert!((first - gain).abs() < 0.005, "{first} at {rtt} ms");
    }
}

#[test]
fn what_the_path_loses_is_compensated() {
    let link = Link { loss: 0.08, ..Link::usual() };
    let off = Parameters { compensate: false, ..Parameters::default() };
    let [with, off] =
        [Parameters::default(), off].map(|parameters| delivered(link, Duration::ZERO, parameters));
    assert!(with > 0.95 && with > off + 0.05, "{with} {off}");
}

/// Acks that come every 40 ms on a path of 10 ms: without room for such a lump the window stands still in between.
#[test]
fn acks_in_lumps_do_not_stall_the_sender() {
    let link = Link { rtt: milliseconds(10), buffer: ByteCount::new(400_000), ..Link::usual() };
    let [with, off] = [Parameters::default(), without(Part::Lumps)]
        .map(|parameters| delivered(link, milliseconds(40), parameters));
    assert!(with > 0.95 && off < 0.5, "{with} {off}");
}

/// The least RTT and whether others are taken to be there, two seconds after the delay has doubled. Trains have shown so many
/// times the link's rate.
fn after_a_longer_route(parameters: Parameters, trains: u64) -> (Duration, bool) {
    let (mut path, mut controller) = (Bottleneck::new(Link::usual()), mobile(parameters));
    path.run(&mut controller, milliseconds(3_000), |_, _| {});
    let rate_ceiling = Some(Rate::from_bytes_per_second(path.link.rate.as_bytes_per_second() * trains));
    controller.adjust(&Adjustment { rate_ceiling, ..Adjustment::default() });
    path.link.rtt = milliseconds(80);
    path.run(&mut controller, milliseconds(2_000), |_, _| {});
    (controller.path.least_rtt(), controller.neighbour.is_beside())
}

#[test]
fn a_delay_that_does_not_move_with_the_flight_is_a_longer_route() {
    let (least, is_beside) = after_a_longer_route(Parameters::default(), 1);
    assert!(least >= milliseconds(80) && !is_beside, "{least} {is_beside}");
    let (least, is_beside) = after_a_longer_route(without(Part::Route), 1);
    assert!(least < milliseconds(45), "{least} {is_beside}");
}

#[test]
fn who_has_a_small_part_of_the_link_finds_no_longer_route() {
    let (least, is_beside) = after_a_longer_route(Parameters::default(), 4);
    assert!(least < milliseconds(45) && is_beside, "{least} {is_beside}");
}

/// A packet that met no queue is acknowledged, or lost.
fn settle(own: &mut OwnLoss, sent_at: Time, is_lost: bool) {
    if is_lost {
        own.on_lost(sent_at, false);
    } else {
        own.on_acked(sent_at, false);
    }
}

#[test]
fn startup_tolerates_what_the_worst_chunk_has_lost() {
    // Two chunks of 128 packets that met no queue lose 5 and 11; the round that is judged, 17 of 100.
    let is_too_much = |parameters| {
        let mut controller = mobile(parameters);
        for packet in 0..256 {
            let is_lost = packet % 128 < if packet < 128 { 5 } else { 11 };
            settle(&mut controller.own, Time::ZERO, is_lost);
        }
        let flight = DATAGRAM.as_f64() * 100.0;
        controller.is_too_much(0.17 * flight, flight)
    };
    assert!(!is_too_much(Parameters::default()));
    assert!(is_too_much(without(Part::Greatest)));
}

#[test]
fn loss_is_compensated_only_where_it_does_not_follow_the_rate() {
    let is_flat = |fast: [u32; 2], slow: [u32; 2]| {
        let mut own = OwnLoss::default();
        own.begin_fast(Time::ZERO);
        own.end_fast(Time::ZERO + milliseconds(1_000));
        for (sent_at, [settled, lost]) in [(milliseconds(500), fast), (milliseconds(1_500), slow)] {
            for packet in 0..settled {
                settle(&mut own, Time::ZERO + sent_at, packet < lost);
            }
        }
        own.is_flat()
    };
    assert!(is_flat([500, 40], [500, 40]));
    assert!(!is_flat([500, 80], [500, 40]), "twice as much is lost of what is sent faster");
    assert!(!is_flat([40, 4], [500, 40]), "too few to tell");
}

/// What decides when a queue stands, and when a rate has fallen, is told as the rest is.
#[test]
fn the_constants_name_what_counts_as_a_queue() {
    let constants = Parameters::default().constants();
    for name in ["queue", "fallen rate", "steps of the delay"] {
        assert!(constants.iter().any(|constant| constant.name == name), "{name}");
    }
}

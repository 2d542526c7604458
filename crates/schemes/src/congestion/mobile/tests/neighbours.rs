//! Others on the link: how they are found, what the shadow does, and what is no neighbour.

use super::super::*;
use super::parts::without;
use super::{mobile, round, settled, stretch};
use crate::testing::{Bottleneck, Link, milliseconds};

/// Datagrams of two bandwidth-delay products of the usual link: one that holds so many holds a queue of a round trip.
const NEIGHBOUR: usize = 82;

#[test]
fn a_neighbour_is_met_with_a_shadow_that_goes_when_it_goes() {
    let (mut path, mut controller) = settled(Link::usual());
    assert!(!controller.neighbour.is_beside());
    path.others = NEIGHBOUR;
    path.run(&mut controller, milliseconds(10_000), |_, _| {});
    assert!(controller.neighbour.is_beside());
    let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(5_000));
    // Two of the three bandwidth-delay products that fit are the neighbour's. Steps back, drain tests and rests take a
    // quarter of the third that is left.
    assert!((0.24..0.5).contains(&delivered), "{delivered}");
    path.others = 0;
    path.run(&mut controller, milliseconds(15_000), |_, _| {});
    assert!(!controller.neighbour.is_beside());
    let (delivered, _) = stretch(&mut path, &mut controller, milliseconds(5_000));
    assert!(delivered > 0.9, "{delivered}");
}

#[test]
fn without_a_shadow_a_neighbour_changes_nothing() {
    let parameters = Parameters { shadow: false, ..Parameters::default() };
    let (mut path, mut controller) = (Bottleneck::new(Link::usual()), mobile(parameters));
    path.others = NEIGHBOUR;
    path.run(&mut controller, milliseconds(20_000), |_, _| {});
    assert!(!controller.neighbour.is_beside());
    assert!(controller.neighbour.lift <= 0.0);
}

#[test]
fn a_fall_of_the_rate_is_no_neighbour() {
    let (mut path, mut controller) = settled(Link { buffer: ByteCount::new(1_000_000), ..Link::usual() });
    path.link.rate = Rate::from_bits_per_second(5_000_000);
    let mut was_beside = false;
    for _ in 0..100 {
        path.run(&mut controller, milliseconds(100), |_, _| {});
        was_beside |= controller.neighbour.is_beside();
    }
    assert!(!was_beside);
    let bandwidth = controller.path.bandwidth() * 8.0;
    assert!((4_000_000.0..6_000_000.0).contains(&bandwidth), "{bandwidth} bit/s");
}

#[test]
fn a_neighbour_is_no_fall_of_the_rate() {
    let (mut path, mut controller) = settled(Link::usual());
    path.others = NEIGHBOUR;
    let mut least = f64::INFINITY;
    for _ in 0..20 {
        path.run(&mut controller, milliseconds(100), |_, _| {});
        if controller.neighbour.is_beside() {
            least = least.min(controller.path.bandwidth() * 8.0);
        }
    }
    // A third would be what is left of the rate at the flight that was before.
    assert!((3_300_000.0..f64::INFINITY).contains(&least), "{least} bit/s");
}

#[test]
fn own_loss_alone_brings_no_shadow() {
    let (mut path, mut controller) = settled(Link { loss: 0.08, ..Link::usual() });
    for _ in 0..100 {
        path.run(&mut controller, milliseconds(300), |_, _| {});
        assert!(!controller.neighbour.is_beside());
    }
}

#[test]
fn the_window_beside_others_is_at_most_a_cubics() {
    let (mut path, mut controller) = settled(Link::usual());
    path.others = NEIGHBOUR;
    path.run(&mut controller, milliseconds(10_000), |_, _| {});
    let mut seen = 0;
    for _ in 0..500 {
        // A loss cuts the shadow at once and the window with the next ack.
        let before = controller.neighbour.window();
        path.run(&mut controller, milliseconds(20), |_, _| {});
        if !controller.neighbour.is_beside() {
            continue;
        }
        seen += 1;
        let most = controller.cycle.up_gain().max(1.0) * controller.neighbour.window().max(before);
        let window = controller.window().as_f64();
        assert!(window <= most.max(controller.minimum_pipe()) + 1.0, "{window} {most}");
    }
    assert!(seen > 100, "{seen}");
}

/// A path that `others` datagrams have been sent over for half a second when the controller begins, whose first ten tell a
/// start the rate: the ceiling, and a jump to the bandwidth-delay product.
fn late(link: Link, others: usize) -> (Bottleneck, Mobile) {
    let (mut path, mut controller) = (Bottleneck::new(link), mobile(Parameters::default()));
    path.others = others;
    path.idle = true;
    path.run(&mut controller, milliseconds(500), |_, _| {});
    path.idle = false;
    for _ in 0..200 {
        if !controller.reach.has_begun() {
            path.run(&mut controller, milliseconds(1), |_, _| {});
        }
    }
    let window = Some(link.bdp());
    controller.adjust(&Adjustment { window, rate_ceiling: Some(link.rate), ..Adjustment::default() });
    (path, controller)
}

#[test]
fn who_comes_late_to_a_filled_link_begins_with_a_quarter_of_it() {
    for buffer in [100_000, 400_000] {
        let link = Link { buffer: ByteCount::new(buffer), ..Link::usual() };
        let (mut path, mut controller) = late(link, NEIGHBOUR);
        let mut met = None;
        path.run(&mut controller, milliseconds(1_000), |path, controller| {
            let is_over = controller.state().phase != Phase::SlowStart;
            if is_over && met.is_none() {
                met = Some((controller.window(), path.queue() + path.link.bdp()));
            }
        });
        let (window, held) = met.expect("startup ends");
        assert!(controller.neighbour.is_beside(), "{buffer}");
        assert!(window <= held * 3 / 10, "{buffer}: {window} of {held}");
    }
}

#[test]
fn an_empty_link_is_not_crowded() {
    for loss in [0.0, 0.02, 0.08] {
        for buffer in [12_500, 50_000, 400_000] {
            let link = Link { buffer: ByteCount::new(buffer), loss, ..Link::usual() };
            let (mut path, mut controller) = late(link, 0);
            path.run(&mut controller, milliseconds(2_000), |_, _| {});
            assert!(!controller.neighbour.is_beside(), "{loss} lost, {buffer} of buffer");
        }
    }
}

#[test]
fn a_train_that_showed_half_too_much_is_no_crowd() {
    let link = Link { buffer: ByteCount::new(400_000), ..Link::usual() };
    let (mut path, mut controller) = late(link, 0);
    let ceiling = Some(Rate::from_bits_per_second(14_000_000));
    controller.adjust(&Adjustment { rate_ceiling: ceiling, ..Adjustment::default() });
    path.run(&mut controller, milliseconds(2_000), |_, _| {});
    assert!(!controller.neighbour.is_beside());
}

#[test]
fn losses_of_startup_do_not_cut_the_shadow_that_answers_them() {
    let (mut path, mut controller) = late(Link::usual(), NEIGHBOUR);
    let mut began = None;
    path.run(&mut controller, milliseconds(1_000), |path, controller| {
        if began.is_none() && controller.state().phase != Phase::SlowStart {
            began = Some(path.now);
        }
    });
    let began = began.expect("startup ends");
    let mut lose = |sent_at| {
        let before = controller.neighbour.window();
        let packets = [crate::testing::packet(1, sent_at); 20];
        let loss = crate::testing::loss(path.now, &packets, crate::testing::steady_rtt(milliseconds(40)));
        controller.on_loss(&loss);
        controller.neighbour.window() < before
    };
    assert!(!lose(began + milliseconds(20)));
    assert!(lose(path.now));
}

#[test]
fn a_shadow_next_to_nobody_hears_of_no_chance_loss() {
    let (mut path, mut controller) = settled(Link { loss: 0.004, ..Link::usual() });
    let window = controller.path.bdp() / 4.0;
    controller.neighbour.begin_shadow(controller.limits, window);
    let (_, lost) = stretch(&mut path, &mut controller, milliseconds(2_500));
    assert!(lost > 0.0);
    assert!(controller.neighbour.window() > window, "{} of {window}", controller.neighbour.window());
}

#[test]
fn a_shadow_falls_to_what_arrives_where_a_third_is_lost_once_in_two_round_trips() {
    let mut controller = mobile(Parameters::default());
    controller.neighbour.begin_shadow(controller.limits, 200_000.0);
    let start = Time::ZERO + milliseconds(1_000);
    let mut fit = |after, lost| {
        controller.fit_shadow(&round(start + milliseconds(after), 200_000.0, lost));
        controller.neighbour.window()
    };
    assert!((fit(0, 60_000.0) - 200_000.0).abs() < 1.0, "not for three tenths");
    assert!((fit(10, 150_000.0) - 50_000.0).abs() < 1.0);
    assert!(
        (fit(50, 190_000.0) - 50_000.0).abs() < 1.0,
        "what was sent before is lost for a round trip more"
    );
    assert!((fit(95, 190_000.0) - 10_000.0).abs() < 1.0);
    assert!((fit(500, 20_000.0) - 10_000.0).abs() < 1.0, "it never rises by that");
}

/// One that holds three quarters of a bandwidth-delay product takes a part of the rate, as a link that became slower would,
/// and when the flight eases the queue falls by no more than this flow's share of what was drained.
#[test]
fn a_rate_that_fell_with_a_queue_that_others_hold_is_a_neighbour() {
    let after_its_coming = |parameters| {
        let link = Link { buffer: ByteCount::new(400_000), ..Link::usual() };
        let (mut path, mut controller) = (Bottleneck::new(link), mobile(parameters));
        path.run(&mut controller, milliseconds(3_000), |_, _| {});
        path.others = 30;
        path.run(&mut controller, milliseconds(5_000), |_, _| {});
        let is_beside = controller.neighbour.is_beside();
        (is_beside, stretch(&mut path, &mut controller, milliseconds(10_000)).0)
    };
    let (is_beside, delivered) = after_its_coming(Parameters::default());
    assert!(is_beside && delivered > 0.6, "{is_beside} {delivered}");
    let (is_beside, delivered) = after_its_coming(without(Part::Drained));
    assert!(!is_beside && delivered < 0.5, "{is_beside} {delivered}");
}

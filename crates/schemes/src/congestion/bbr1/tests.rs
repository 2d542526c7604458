//! The controller on a bottleneck of 10 Mbit/s and 40 ms, against the draft's constants.

use posthaste_units::Duration;

use super::*;
use crate::testing::{Bottleneck, DATAGRAM, Link, milliseconds, steady_rtt};

fn bbr(seed: u64) -> Bbr1 {
    Bbr1::new(PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed })
}

fn rate(bbr: &Bbr1, link: &Link) -> f64 {
    let pacing = bbr.pacing(&steady_rtt(link.rtt)).expect("a rate");
    pacing.rate.as_bytes_per_second() as f64 / link.rate.as_bytes_per_second() as f64
}

#[test]
fn startup_fills_the_pipe_with_the_high_gain_and_drain_empties_its_queue() {
    let link = Link { buffer: ByteCount::new(300_000), ..Link::usual() };
    let (mut path, mut bbr) = (Bottleneck::new(link), bbr(1));
    let mut last = 0.0;
    while bbr.state == State::Startup {
        last = rate(&bbr, &link);
        path.run(&mut bbr, milliseconds(1), |_, _| {});
    }
    assert!((last - 2.885).abs() < 0.1, "{last}");
    assert_eq!(bbr.state, State::Drain);
    assert!((rate(&bbr, &link) - 1.0 / 2.885).abs() < 0.03, "{}", rate(&bbr, &link));
    let began = path.now;
    while bbr.state == State::Drain {
        path.run(&mut bbr, milliseconds(1), |_, _| {});
    }
    assert!(path.now.since(began) < milliseconds(200));
    assert!(path.in_flight() <= path.link.bdp() + DATAGRAM * 7, "{}", path.in_flight());
}

#[test]
fn the_cycle_has_eight_phases_of_a_round_trip_and_begins_anywhere_but_in_the_slow_one() {
    let mut firsts = Vec::new();
    for seed in 0..40 {
        let link = Link::usual();
        let (mut path, mut bbr) = (Bottleneck::new(link), bbr(seed));
        while bbr.state != State::ProbeBw {
            path.run(&mut bbr, milliseconds(1), |_, _| {});
        }
        firsts.push(bbr.cycle.gain());
        if seed > 0 {
            continue;
        }
        let mut gains: Vec<(f64, u32)> = Vec::new();
        for _ in 0..5_000 {
            path.run(&mut bbr, milliseconds(1), |_, _| {});
            let gain = rate(&bbr, &link);
            match gains.last_mut() {
                Some((last, time)) if (*last - gain).abs() < 0.1 => *time += 1,
                _ => gains.push((gain, 1)),
            }
        }
        let cycle: Vec<_> = gains[1..gains.len() - 1].to_vec();
        assert!(cycle.len() > 20, "{gains:?}");
        for (gain, time) in cycle {
            let expected = if gain > 1.1 {
                (1.25, 40..=100)
            } else if gain < 0.9 {
                (0.75, 1..=45)
            } else {
                (1.0, 200..=400)
            };
            assert!(
                (gain - expected.0).abs() < 0.06 && expected.1.contains(&time),
                "{gain} for {time} ms: {gains:?}"
            );
        }
    }
    assert!(firsts.iter().all(|gain| *gain > 0.9), "{firsts:?}");
    assert!(firsts.iter().any(|gain| *gain > 1.1) && firsts.iter().any(|gain| *gain < 1.1), "{firsts:?}");
}

#[test]
fn the_least_rtt_is_probed_after_ten_seconds_with_four_datagrams() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(1));
    let (mut probes, mut began, mut least) = (Vec::new(), None, ByteCount::MAX);
    path.run(&mut bbr, Duration::from_secs(25), |path, controller| {
        if controller.state().phase == Phase::Named("probe_rtt") {
            began = began.or(Some(path.now));
            least = least.min(controller.window());
        } else if let Some(at) = began.take() {
            probes.push(path.now.since(at));
        }
    });
    assert_eq!(probes.len(), 2, "{probes:?}");
    assert!(probes.iter().all(|time| (milliseconds(200)..milliseconds(340)).contains(time)), "{probes:?}");
    assert_eq!(least, DATAGRAM * 4);
}

#[test]
fn random_loss_does_not_slow_it_down() {
    for loss in [0.0, 0.02, 0.08] {
        let link = Link { loss, ..Link::usual() };
        let (mut path, mut bbr) = (Bottleneck::new(link), bbr(1));
        path.run(&mut bbr, Duration::from_secs(2), |_, _| {});
        let before = path.delivered;
        path.run(&mut bbr, Duration::from_secs(20), |_, _| {});
        let used = (path.delivered - before).as_f64() / (20.0 * 1_250_000.0);
        assert!(used > 0.93 * (1.0 - loss), "{loss}: {used}");
    }
}

#[test]
fn recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(1));
    path.run(&mut bbr, Duration::from_secs(3), |_, _| {});
    let window = bbr.window();
    path.link.loss = 1.0;
    path.run(&mut bbr, milliseconds(8), |_, _| {});
    path.link.loss = 0.0;
    let mut least = window;
    path.run(&mut bbr, milliseconds(90), |_, controller| least = least.min(controller.window()));
    assert!(least < window.mul_ratio(3, 4), "{least} of {window}");
    path.run(&mut bbr, milliseconds(90), |_, _| {});
    assert!(!bbr.recovery.is_active());
    assert!(bbr.window() >= window.mul_ratio(95, 100), "{} of {window}", bbr.window());
}

#[test]
fn an_idle_sender_is_not_a_slow_one() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(1));
    path.run(&mut bbr, Duration::from_secs(3), |_, _| {});
    let (known, window) = (bbr.model_rate(), bbr.window());
    path.run_dry();
    path.run(&mut bbr, Duration::from_secs(60), |_, _| {});
    path.idle = false;
    path.run(&mut bbr, milliseconds(30), |_, _| {});
    assert_eq!((bbr.model_rate(), bbr.window()), (known, window));
    assert!((rate(&bbr, &path.link) - 1.0).abs() < 0.05, "{}", rate(&bbr, &path.link));
    path.run(&mut bbr, milliseconds(100), |_, _| {});
    assert_ne!(bbr.state, State::ProbeRtt, "the pause was as good");
}

#[test]
fn a_mark_conserves_packets_too() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(1));
    path.run(&mut bbr, Duration::from_secs(3), |_, _| {});
    path.marks = true;
    path.run(&mut bbr, milliseconds(60), |_, _| {});
    assert!(bbr.recovery.is_active());
}

#[test]
fn persistent_congestion_and_other_policies_set_the_window() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(1));
    path.run(&mut bbr, Duration::from_secs(3), |_, _| {});
    bbr.on_persistent_congestion(path.now);
    assert_eq!(bbr.window(), DATAGRAM * 2);
    path.run(&mut bbr, Duration::from_secs(1), |_, _| {});
    assert!(bbr.window() > path.link.bdp());
    let half = posthaste_units::Rate::from_bits_per_second(5_000_000);
    bbr.adjust(&Adjustment { rate: Some(half), ..Adjustment::default() });
    assert_eq!(bbr.model_rate(), Some(half));
    bbr.adjust(&Adjustment { slow_start_threshold: Some(ByteCount::MAX), ..Adjustment::default() });
    assert_eq!(bbr.state().phase, Phase::SlowStart);
    path.run(&mut bbr, Duration::from_secs(2), |_, _| {});
    assert_eq!(bbr.state, State::ProbeBw, "the pipe is found again");
}

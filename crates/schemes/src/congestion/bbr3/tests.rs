//! The controller on a bottleneck of 10 Mbit/s and 40 ms, against the draft's constants.

use posthaste_policy::Phase;
use posthaste_units::{Duration, Rate};

use super::*;
use crate::testing::{Bottleneck, DATAGRAM, Link, milliseconds};

fn limits(seed: u64) -> PathLimits {
    PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed }
}

fn bbr(tolerated_loss: f64) -> Bbr3 {
    Bbr3::new(Parameters { tolerated_loss }, limits(3))
}

/// What was seen in one stretch of one state.
#[derive(Debug, Clone)]
struct Stretch {
    phase: Phase,
    began: Time,
    ended: Time,
    /// The pacing rate at its end, as a part of the link's.
    rate: f64,
    /// The window at its end, and the least in it, in BDP.
    window: f64,
    least_window: f64,
    /// The least in flight, in BDP.
    least_in_flight: f64,
}

/// Runs and tells what the states did.
fn course(path: &mut Bottleneck, controller: &mut dyn Congestion, time: Duration) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let (bdp, link) = (path.link.bdp().as_f64(), path.link.rate.as_bytes_per_second() as f64);
    path.run(controller, time, |path, controller| {
        let phase = controller.state().phase;
        let rtt = crate::testing::steady_rtt(path.link.rtt);
        let rate = controller.pacing(&rtt).map_or(0.0, |pacing| pacing.rate.as_bytes_per_second() as f64);
        let window = controller.window().as_f64() / bdp;
        let in_flight = path.in_flight().as_f64() / bdp;
        if stretches.last().is_none_or(|last| last.phase != phase) {
            let (began, ended) = (path.now, path.now);
            let (least_window, least_in_flight) = (window, in_flight);
            stretches.push(Stretch { phase, began, ended, rate, window, least_window, least_in_flight });
        }
        if let Some(last) = stretches.last_mut() {
            last.ended = path.now;
            last.rate = rate / link;
            last.window = window;
            last.least_window = last.least_window.min(window);
            last.least_in_flight = last.least_in_flight.min(in_flight);
        }
    });
    stretches
}

fn named(name: &'static str) -> Phase {
    Phase::Named(name)
}

fn close(value: f64, expected: f64, within: f64) -> bool {
    (value - expected).abs() <= within * expected
}

#[test]
fn startup_doubles_until_the_pipe_is_full_then_drains_and_cycles() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    let course = course(&mut path, &mut bbr, Duration::from_secs(20));
    let phases: Vec<Phase> = course.iter().take(6).map(|stretch| stretch.phase).collect();
    // The first DOWN has nothing left to drain: the ack that begins it ends it.
    let cycle = ["drain", "probe_bw_cruise", "probe_bw_refill", "probe_bw_up", "probe_bw_down"].map(named);
    assert_eq!(phases[0], Phase::SlowStart);
    assert_eq!(phases[1..], cycle);

    let startup = &course[0];
    // 2.77 x the link, with a margin of 1 %.
    assert!(close(startup.rate, 2.77 * 0.99, 0.05), "{startup:?}");
    // Doubling from 10 datagrams to 41 takes 3 rounds, the plateau 3 more, with a queue of one BDP.
    let rounds = startup.ended.since(startup.began).as_secs_f64() / 0.04;
    assert!((5.0..14.0).contains(&rounds), "{rounds} round trips");
    assert!(course[1].ended.since(course[1].began) < milliseconds(120), "{:?}", course[1]);
    assert!(course[1].least_in_flight < 1.15, "drained: {:?}", course[1]);
}

#[test]
fn the_states_have_the_drafts_gains() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    course(&mut path, &mut bbr, Duration::from_secs(1));
    let course = course(&mut path, &mut bbr, Duration::from_secs(25));
    for (name, gain) in
        [("probe_bw_down", 0.9), ("probe_bw_cruise", 1.0), ("probe_bw_refill", 1.0), ("probe_bw_up", 1.25)]
    {
        let stretches: Vec<_> = course.iter().filter(|stretch| stretch.phase == named(name)).collect();
        assert!(stretches.len() >= 3, "{name}: {}", stretches.len());
        for stretch in stretches {
            assert!(close(stretch.rate, gain * 0.99, 0.03), "{stretch:?}");
        }
    }
    let window = |name| course.iter().rev().find(|stretch| stretch.phase == named(name)).unwrap().window;
    // Two BDP, and 2.25; aggregation and quanta come on top.
    assert!((2.0..2.4).contains(&window("probe_bw_cruise")), "{}", window("probe_bw_cruise"));
    assert!((2.25..2.7).contains(&window("probe_bw_up")), "{}", window("probe_bw_up"));
}

#[test]
fn bandwidth_is_probed_every_two_to_three_seconds_at_most_63_rounds_apart() {
    // From the end of one probe to the beginning of the next, with no other state between than these.
    let waits = |rtt: u64, seed: u64| -> Vec<f64> {
        let link = Link { rtt: milliseconds(rtt), buffer: ByteCount::new(400_000), ..Link::usual() };
        let mut bbr = Bbr3::new(Parameters::default(), limits(seed));
        let course = course(&mut Bottleneck::new(link), &mut bbr, Duration::from_secs(60));
        let mut since = None;
        let mut waits = Vec::new();
        for stretch in &course {
            match stretch.phase.name() {
                "probe_bw_down" => since = Some(stretch.began),
                // ProbeRTT ends with a DOWN that is over at once.
                "probe_rtt" => since = Some(stretch.ended),
                "probe_bw_refill" => waits.extend(since.map(|at| stretch.began.since(at).as_secs_f64())),
                _ => {}
            }
        }
        waits
    };
    // At 100 ms, the BDP is 104 datagrams: the clock decides.
    let slow = waits(100, 1);
    assert!(slow.len() >= 10 && slow.iter().all(|wait| (2.0..3.1).contains(wait)), "{slow:?}");
    let spread = slow.iter().fold(0.0, |most: f64, wait| most.max((wait - slow[0]).abs()));
    assert!(spread > 0.1, "drawn, not fixed: {slow:?}");
    // At 10 ms it is 10 datagrams: as often as Reno would probe, every 10 rounds.
    let fast = waits(10, 1);
    assert!(fast.len() >= 50 && fast.iter().all(|wait| *wait < 0.5), "{fast:?}");
    // The same seed, the same draws; another seed, others.
    assert_eq!(slow, waits(100, 1));
    assert_ne!(slow, waits(100, 2));
}

#[test]
fn probe_rtt_halves_the_flight_for_200_ms_every_five_seconds() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    let course = course(&mut path, &mut bbr, Duration::from_secs(21));
    let probes: Vec<&Stretch> = course.iter().filter(|stretch| stretch.phase == named("probe_rtt")).collect();
    assert_eq!(probes.len(), 4, "one in 5 s");
    for probe in probes {
        let time = probe.ended.since(probe.began);
        // Half a BDP must drain first, and it ends with an ack.
        assert!(time >= milliseconds(200) && time < milliseconds(320), "{time}");
        assert!(close(probe.least_window, 0.5, 0.1), "{probe:?}");
    }
}

#[test]
fn the_link_is_used_and_the_queue_short() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    course(&mut path, &mut bbr, Duration::from_secs(1));
    let before = path.delivered;
    let mut queues = Vec::new();
    path.run(&mut bbr, Duration::from_secs(20), |path, _| queues.push(path.queue().as_f64()));
    let utilisation = (path.delivered - before).as_f64() / (20.0 * 1_250_000.0);
    assert!(utilisation > 0.93, "{utilisation}");
    let mean = queues.iter().sum::<f64>() / queues.len() as f64;
    assert!(mean < 0.35 * 50_000.0, "{mean} bytes of queue");
    assert!(path.lost < ByteCount::new(100_000), "{:?}", path.lost);
}

#[test]
fn capacity_that_appears_is_found_and_capacity_that_goes_is_given_up() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    course(&mut path, &mut bbr, Duration::from_secs(4));
    path.link.rate = Rate::from_bits_per_second(40_000_000);
    path.link.buffer = ByteCount::new(400_000);
    course(&mut path, &mut bbr, Duration::from_secs(15));
    let rate = bbr.model_rate().unwrap().as_bits_per_second() as f64;
    assert!(close(rate, 40e6, 0.1), "{rate}");
    path.link.rate = Rate::from_bits_per_second(5_000_000);
    // The buffer holds all that the window lets out, so nothing is lost: two cycles of long rounds must pass.
    course(&mut path, &mut bbr, Duration::from_secs(25));
    let rate = bbr.model_rate().unwrap().as_bits_per_second() as f64;
    assert!(close(rate, 5e6, 0.1), "{rate}");
}

/// Bytes delivered in 30 s, after 5, as a part of what the link can carry.
fn utilisation(link: Link, mut controller: Bbr3) -> f64 {
    let mut path = Bottleneck::new(link);
    course(&mut path, &mut controller, Duration::from_secs(5));
    let before = path.delivered;
    course(&mut path, &mut controller, Duration::from_secs(30));
    (path.delivered - before).as_f64() / link.rate.bytes_in(Duration::from_secs(30)).as_f64()
}

#[test]
fn random_loss_below_the_threshold_costs_little_and_above_it_the_draft_decays() {
    let link = Link { rtt: milliseconds(100), buffer: ByteCount::new(250_000), ..Link::usual() };
    let with = |loss| Link { loss, ..link };
    assert!(utilisation(with(0.005), bbr(0.0)) > 0.85, "{}", utilisation(with(0.005), bbr(0.0)));
    // 8 %: the draft collapses, tolerance does not.
    let (letter, tolerant) = (utilisation(with(0.08), bbr(0.0)), utilisation(with(0.08), bbr(0.1)));
    assert!(letter < 0.3, "{letter}");
    assert!(tolerant > 0.8, "{tolerant}");
}

#[test]
fn losses_of_a_shallow_buffer_are_not_taken_for_the_paths_own() {
    // A tenth of a BDP: probing overflows it.
    let link = Link { rtt: milliseconds(100), buffer: ByteCount::new(12_000), ..Link::usual() };
    for tolerated in [0.0, 0.1] {
        let (mut path, mut bbr) = (Bottleneck::new(link), bbr(tolerated));
        course(&mut path, &mut bbr, Duration::from_secs(5));
        let (delivered, lost) = (path.delivered, path.lost);
        course(&mut path, &mut bbr, Duration::from_secs(30));
        let lost = (path.lost - lost).as_f64();
        let part = lost / ((path.delivered - delivered).as_f64() + lost);
        assert!(part < 0.02, "{tolerated}: {part}");
        assert!(bbr.model.inflight_longterm.is_finite(), "the buffer's bound has been found");
    }
}

#[test]
fn a_mark_counts_as_too_much_loss() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    path.marks = true;
    path.run(&mut bbr, milliseconds(60), |_, _| {});
    assert!(bbr.full_pipe.reached && bbr.state != State::Startup, "startup ends with the first mark");
    path.marks = false;
    course(&mut path, &mut bbr, Duration::from_secs(3));
    let before = bbr.model.bandwidth;
    path.marks = true;
    let mut lowest = f64::INFINITY;
    let mut cruised = false;
    for _ in 0..100 {
        path.run(&mut bbr, milliseconds(10), |_, _| {});
        cruised |= bbr.state == State::ProbeBwCruise;
        lowest = lowest.min(bbr.model.bandwidth);
    }
    assert!(cruised && lowest < before, "{lowest} {before}");
}

#[test]
fn an_idle_sender_is_not_a_slow_one() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    course(&mut path, &mut bbr, Duration::from_secs(3));
    let (rate, window) = (bbr.model_rate().unwrap(), bbr.window());
    path.run_dry();
    path.run(&mut bbr, Duration::from_secs(60), |_, _| {});
    assert_eq!(bbr.model_rate(), Some(rate));
    path.idle = false;
    path.run(&mut bbr, milliseconds(5), |_, _| {});
    // Paced at exactly the bandwidth, from the window as it was.
    let pacing = bbr.pacing(&crate::testing::steady_rtt(milliseconds(40))).unwrap().rate;
    assert!(close(pacing.as_bytes_per_second() as f64, 0.99 * rate.as_bytes_per_second() as f64, 0.01));
    assert!(bbr.window() >= window.mul_ratio(9, 10), "{} {window}", bbr.window());
    let before = path.delivered;
    path.run(&mut bbr, Duration::from_secs(2), |_, _| {});
    assert!((path.delivered - before).as_f64() > 0.85 * 2.0 * 1_250_000.0);
    assert_ne!(bbr.state, State::ProbeRtt, "the pause was as good");
}

#[test]
fn losses_that_prove_spurious_restore_bounds_and_state() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.0));
    while bbr.state != State::ProbeBwUp {
        path.run(&mut bbr, milliseconds(1), |_, _| {});
    }
    bbr.cycle.is_probe_sample = true;
    let (bound, window) = (bbr.model.inflight_longterm, bbr.window());
    let sent: Vec<_> = (0..5)
        .map(|number| posthaste_policy::sample::PacketSample {
            in_flight: DATAGRAM * 50,
            lost: path.lost,
            ..crate::testing::packet(number, path.now)
        })
        .collect();
    let bytes = DATAGRAM * 5;
    let sample = crate::testing::loss(path.now, &sent, crate::testing::steady_rtt(milliseconds(40)));
    bbr.on_loss(&LossSample { lost: path.lost + bytes, delivered: path.delivered, ..sample });
    assert_eq!(bbr.state, State::ProbeBwDown, "10 % is too much");
    // The losses crossed 2 % at the first of them: 49 datagrams were in flight before it.
    assert!(bbr.model.inflight_longterm < bound);
    bbr.on_spurious_loss(&SpuriousSample { now: path.now, packets: 4, sent_at: path.now });
    assert_eq!(bbr.state, State::ProbeBwDown, "one is still lost");
    bbr.on_spurious_loss(&SpuriousSample { now: path.now, packets: 1, sent_at: path.now });
    assert_eq!(bbr.state, State::ProbeBwRefill);
    assert!(bbr.model.inflight_longterm >= bound);
    assert!(bbr.window() >= window);
}

#[test]
fn the_level_at_which_losses_crossed_the_threshold_is_the_drafts() {
    let mut bbr = bbr(0.0);
    bbr.model.set_bandwidth(1.0);
    bbr.cycle.is_probe_sample = true;
    let packet = |number| posthaste_policy::sample::PacketSample {
        in_flight: DATAGRAM * 100,
        ..crate::testing::packet(number, Time::ZERO)
    };
    let lost: Vec<_> = (0..3).map(packet).collect();
    let sample = crate::testing::loss(Time::ZERO, &lost, crate::testing::steady_rtt(milliseconds(40)));
    bbr.on_loss(&sample);
    // The third loss crosses 2 % of 100: before it 99 were in flight and 2 lost, so (1.98 - 2) / 0.98 of it fits.
    let expected = (99.0 + (0.02 * 99.0 - 2.0) / 0.98) * 1200.0;
    assert!((bbr.model.inflight_longterm - expected).abs() < 0.01, "{}", bbr.model.inflight_longterm);
}

#[test]
fn persistent_congestion_collapses_the_window_and_the_model_brings_it_back() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    course(&mut path, &mut bbr, Duration::from_secs(3));
    bbr.on_persistent_congestion(path.now);
    assert_eq!(bbr.window(), DATAGRAM * 2);
    course(&mut path, &mut bbr, Duration::from_secs(2));
    assert!(bbr.window() > path.link.bdp(), "{}", bbr.window());
}

#[test]
fn another_policy_may_set_window_threshold_and_rate() {
    let (mut path, mut bbr) = (Bottleneck::new(Link::usual()), bbr(0.1));
    bbr.adjust(&Adjustment { window: Some(DATAGRAM * 40), ..Adjustment::default() });
    assert_eq!(bbr.window(), DATAGRAM * 40);
    // Forty datagrams in 40 ms, times the startup gain.
    let rate = bbr.pacing(&crate::testing::steady_rtt(milliseconds(40))).unwrap().rate;
    assert!(close(rate.as_bytes_per_second() as f64, 2.77 * 1_200_000.0, 0.01), "{rate}");
    bbr.adjust(&Adjustment { slow_start_threshold: Some(DATAGRAM * 20), ..Adjustment::default() });
    assert_eq!(bbr.state, State::Drain);
    bbr.adjust(&Adjustment { slow_start_threshold: Some(ByteCount::MAX), ..Adjustment::default() });
    assert_eq!(bbr.state, State::Startup);
    course(&mut path, &mut bbr, Duration::from_secs(3));
    let half = Rate::from_bits_per_second(5_000_000);
    bbr.adjust(&Adjustment { rate: Some(half), ..Adjustment::default() });
    assert_eq!(bbr.model_rate(), Some(half));
    let rate = bbr.pacing(&crate::testing::steady_rtt(milliseconds(40))).unwrap().rate;
    assert!(rate.as_bytes_per_second() < half.as_bytes_per_second() * 13 / 10);
}

//! The TCP model's controllers against their formulas.

use crate::tcp_support::{Fetch, MSS, ON_TIME, Way, Wire};
use posthaste_lab::result::Outcome;
use posthaste_lab::run::run;
use posthaste_lab::spec::{FlowSpec, NetworkSpec, RunSpec, WorkloadSpec};
use posthaste_path::{PathSpec, QueueSize};
use posthaste_units::{ByteCount, Duration};

/// Mathis et al.: MSS/RTT x C/sqrt(p) under independent loss p, with C = sqrt(3/2) = 1.22.
///
/// That C is for a window that grows by a segment for every window of *segments* acknowledged. The receiver here
/// delays its acks, which would make it sqrt(3/4), were growth counted in acks; but Linux counts the segments that
/// an ack covers, so 1.22 holds.
fn ratio_to_mathis(p: f64) -> (f64, u64) {
    let window = 1.5_f64.sqrt() / p.sqrt();
    let rtt = 0.05;
    // A reduction and its regrowth take two thirds of the mean window in round trips. Losses that share one are
    // one reduction: time for 1,600.
    let seconds = 1_600.0 * window * (2.0 / 3.0) * rtt;
    let mut path = PathSpec::named("average").expect("a built-in path");
    path.rtt = Duration::from_secs_f64(rtt);
    path.rate = None;
    path.loss = p;
    path.up_loss = Some(0.0);
    path.queue = QueueSize::Bdp(1.0);
    let flow = FlowSpec {
        name: String::new(),
        stack: "tcp:newreno".parse().expect("a stack"),
        workload: WorkloadSpec::Bulk { object: ByteCount::new(u64::MAX / 4), read_rate: None },
        start: Duration::ZERO,
        start_within: Duration::ZERO,
        background: false,
        count: 1,
        warm_up: None,
    };
    let deadline = Duration::from_secs_f64(seconds);
    let network = NetworkSpec::Simple { path };
    let spec = RunSpec { network, flows: vec![flow], deadline, datagram: 1252, series: None };
    let result = run(&spec, 7, None).expect("a sound description");
    assert_eq!(result.outcome, Outcome::Deadline);
    let down = &result.flows[0].down;
    let events = down.counters.congestion_events.expect("the model counts");
    let segments = down.packets_sent as f64 / (result.virtual_seconds / rtt);
    let timeouts = down.counters.probe_timeouts.expect("the model counts");
    println!(
        "p {p}: {segments:.2} segments a round trip, Mathis {window:.2}, {events} reductions, {timeouts} timeouts"
    );
    (segments / window, events)
}

#[test]
fn new_reno_keeps_to_mathis() {
    for p in [0.001, 0.003, 0.01, 0.02] {
        let (ratio, events) = ratio_to_mathis(p);
        assert!(events >= 1_000, "{events} reductions at {p}");
        assert!((0.85..=1.15).contains(&ratio), "p {p}: {ratio}");
    }
}

/// The window after a loss at `lost_at` seconds, at an RTT of 100 ms: the window at the loss, and then pairs of
/// seconds since recovery ended and windows.
fn after_one_loss(stack: &str, lost_at: f64, until: f64) -> (f64, Vec<(f64, f64)>) {
    let mut wire = Wire::new(stack, Duration::from_millis(100));
    let mut fetch = Fetch::new(&[1], 1 << 40);
    let mut is_lost = false;
    wire.run(&mut fetch, until, |sent| {
        let hits = !is_lost && sent.at > lost_at && sent.way == Way::Down && sent.segment.length == MSS;
        is_lost |= hits;
        if hits { None } else { ON_TIME }
    });
    assert!(is_lost);
    assert_eq!(wire.counters().congestion_events, Some(1));
    assert_eq!(wire.counters().resent_bytes, Some(MSS));
    let windows: Vec<(f64, f64)> =
        wire.windows.iter().map(|(at, bytes)| (*at, (bytes / MSS) as f64)).collect();
    let at_loss = windows.iter().rfind(|(at, _)| *at <= lost_at + 0.1).expect("the window was seen").1;
    // One round trip until the loss is known, one until it is repaired.
    let begin =
        windows.iter().find(|(at, window)| *at > lost_at + 0.21 && *window < at_loss).expect("reduced").0;
    let later = windows.iter().filter(|(at, _)| *at >= begin).map(|(at, window)| (at - begin, *window));
    (at_loss, later.collect())
}

#[test]
fn cubic_grows_by_its_formula_after_a_loss() {
    let (at_loss, windows) = after_one_loss("tcp:cubic", 0.75, 16.0);
    let (c, beta) = (0.4, 0.7);
    let k = libm::cbrt(at_loss * (1.0 - beta) / c);
    println!("W_max {at_loss}, K {k}");
    assert!(at_loss > 300.0, "large enough to be beyond the Reno-friendly region");
    let first = windows[0].1;
    assert!((first - beta * at_loss).abs() <= 2.0, "{first} segments of {at_loss}");
    let mut checked = 0;
    for (time, window) in windows.iter().filter(|(time, _)| *time > 0.2) {
        // The kernel aims at the window of one RTT ahead and gets there an RTT later.
        let expected = c * (time - k).powi(3) + at_loss;
        assert!((window / expected - 1.0).abs() < 0.04, "{time:.2} s: {window} instead of {expected:.1}");
        checked += 1;
    }
    assert!(checked > 100, "{checked}");
    assert!(windows.last().is_some_and(|(_, window)| *window > 1.2 * at_loss), "it went past the plateau");
}

#[test]
fn new_reno_halves_and_grows_by_a_segment_a_round_trip() {
    let (at_loss, windows) = after_one_loss("tcp:newreno", 0.75, 8.0);
    for (time, window) in windows.iter().filter(|(time, _)| *time > 0.2) {
        let expected = at_loss / 2.0 + time / 0.1;
        assert!((window - expected).abs() <= 3.0, "{time:.2} s: {window} instead of {expected:.1}");
    }
}

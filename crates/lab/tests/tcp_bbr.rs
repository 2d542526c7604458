//! The TCP model's BBR: what its model of the path promises.

use posthaste_lab::result::RunResult;
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;

fn done(path: &str, flows: &str, deadline: &str) -> RunResult {
    let text = format!(
        "network = {{ kind = \"simple\", path = {{ {path} }} }}\ndeadline = \"{deadline}\"\nseries = \"20ms\"\nflows = [{flows}]"
    );
    let spec: RunSpec = toml::from_str(&text).expect("a run");
    run(&spec, 3, None).expect("it can be built")
}

const ENDLESS: &str = r#"{ stack = "tcp:bbr", workload = { kind = "endless" } }"#;

/// The gauge's values with their times.
fn gauge(result: &RunResult, quantity: &str) -> Vec<(f64, f64)> {
    let series = result.series.as_ref().expect("a series");
    let gauge = series.gauges.iter().find(|gauge| gauge.quantity == quantity).expect(quantity);
    series
        .times
        .iter()
        .copied()
        .zip(&gauge.values)
        .filter_map(|(time, value)| Some((time, (*value)?)))
        .collect()
}

#[test]
fn it_fills_the_path_without_a_lasting_queue_whatever_is_lost() {
    for loss in ["0%", "1%", "5%"] {
        let path =
            format!("rate = \"20mbit\", rtt = \"40ms\", queue = \"2bdp\", loss = \"{loss}\", up-loss = 0.0");
        let result = done(&path, ENDLESS, "20s");
        let flow = &result.flows[0];
        let share = flow.goodput / 20e6;
        assert!(share > 0.83, "{loss}: {share}");
        // In the long run a window of two products keeps at most one of them in the queue: 40 ms; mostly far less.
        assert!(flow.down.queueing_mean_ms < 20.0, "{loss}: {}", flow.down.queueing_mean_ms);
    }
}

#[test]
fn it_probes_upwards_in_a_cycle_and_for_the_round_trip_every_ten_seconds() {
    let result = done("rate = \"20mbit\", rtt = \"40ms\", queue = \"4bdp\"", ENDLESS, "25s");
    let pacing = gauge(&result, "pacing");
    let steady: Vec<f64> =
        pacing.iter().filter(|(time, _)| (3.0..9.0).contains(time)).map(|(_, rate)| *rate).collect();
    let mut sorted = steady.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let at = |factor: f64| steady.iter().filter(|rate| (*rate / median - factor).abs() < 0.06).count();
    // One eighth of the time upwards, one downwards (less where the queue drains sooner), six at the estimate.
    assert!(at(1.25) * 20 > steady.len() && at(0.75) * 40 > steady.len(), "{} {}", at(1.25), at(0.75));
    assert!(at(1.0) * 2 > steady.len());
    let small: Vec<f64> = gauge(&result, "in_flight")
        .into_iter()
        .filter(|(time, bytes)| *time > 1.0 && *bytes < 5.0 * 1260.0)
        .map(|(time, _)| time)
        .collect();
    let probes =
        small.windows(2).filter(|pair| pair[1] - pair[0] > 5.0).count() + usize::from(!small.is_empty());
    assert_eq!(probes, 2, "{small:?}");
}

#[test]
fn two_of_them_share() {
    let two = format!("{ENDLESS}, {ENDLESS}");
    let result = done("rate = \"20mbit\", rtt = \"40ms\", queue = \"2bdp\"", &two, "60s");
    let (one, other) = (result.flows[0].goodput, result.flows[1].goodput);
    assert!(one.min(other) / one.max(other) > 0.6, "{one} {other}");
}

/// The kernel's medians over the same paths, Linux 6.18, from `cargo campaigns emulator-truth` (docs/results/emulator.md): path,
/// object, seconds, seeds.
const KERNEL: [(&str, &str, f64, u64); 8] = [
    (r#"rate = "10mbit", rtt = "20ms""#, "2MB", 1.7311, 3),
    (r#"rate = "10mbit", rtt = "100ms""#, "2MB", 2.2061, 3),
    (r#"rate = "100mbit", rtt = "20ms""#, "20MB", 1.7926, 3),
    (r#"rate = "100mbit", rtt = "100ms""#, "20MB", 2.6301, 3),
    (r#"rate = "10mbit", rtt = "20ms", loss = "1%", up-loss = 0.0"#, "2MB", 1.7527, 20),
    (r#"rate = "10mbit", rtt = "100ms", loss = "1%", up-loss = 0.0"#, "1MB", 1.4890, 20),
    (r#"rate = "100mbit", rtt = "20ms", loss = "1%", up-loss = 0.0"#, "2MB", 0.3405, 20),
    (r#"rate = "100mbit", rtt = "100ms", loss = "1%", up-loss = 0.0"#, "1MB", 1.1554, 20),
];

#[test]
fn it_takes_as_long_as_the_kernels_within_a_tenth() {
    let mut apart = Vec::new();
    for (path, object, kernel, seeds) in KERNEL {
        let text = format!(
            "network = {{ kind = \"simple\", path = {{ {path} }} }}\ndatagram = 1472\n\
             flows = [{{ stack = \"tcp:bbr/h1\", workload = {{ kind = \"bulk\", object = \"{object}\" }} }}]"
        );
        let spec: RunSpec = toml::from_str(&text).expect("a run");
        let seconds =
            |seed| run(&spec, seed, None).expect("it can be built").flows[0].completion.expect("complete");
        let mut times: Vec<f64> = (1..=seeds).map(seconds).collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        println!("{path}: {median:.4}, the kernel {kernel}: {:+.1} %", (kernel / median - 1.0) * 100.0);
        if (kernel / median - 1.0).abs() > 0.1 {
            apart.push(path);
        }
    }
    assert!(apart.is_empty(), "{apart:?}");
}

//! The transport in the lab against closed forms.

use posthaste_lab::limit::limit;
use posthaste_lab::result::{Outcome, RunResult};
use posthaste_lab::run::run;
use posthaste_lab::spec::{FlowSpec, NetworkSpec, RunSpec, WorkloadSpec};
use posthaste_path::{PathSpec, QueueSize};
use posthaste_units::{ByteCount, Duration, Rate};

/// Bytes of UDP payload that the transport counts its window in.
const DATAGRAM: f64 = 1252.0;

fn path(rtt: u64, rate: Option<&str>, loss: f64) -> PathSpec {
    let mut path = PathSpec::named("average").expect("a built-in path");
    path.rtt = Duration::from_millis(rtt);
    path.rate = rate.map(|rate| rate.parse::<Rate>().expect("a rate").into());
    path.loss = loss;
    path.up_loss = Some(0.0);
    path.queue = QueueSize::Bdp(1.0);
    path
}

fn spec(path: PathSpec, stack: &str, object: u64, deadline: Duration) -> RunSpec {
    let flow = FlowSpec {
        name: String::new(),
        stack: stack.parse().expect("a stack"),
        workload: WorkloadSpec::Bulk { object: ByteCount::new(object), read_rate: None },
        start: Duration::ZERO,
        start_within: Duration::ZERO,
        background: false,
        count: 1,
        warm_up: None,
    };
    let network = NetworkSpec::Simple { path };
    RunSpec { network, flows: vec![flow], deadline, datagram: 1252, series: None }
}

fn done(spec: &RunSpec, seed: u64) -> RunResult {
    run(spec, seed, None).expect("a sound description")
}

/// Mathis et al.: the mean window of New Reno under independent loss p is C / sqrt(p) packets, C = sqrt(3/2) = 1.22
/// where every acknowledged byte makes the window grow.
fn ratio_to_mathis(p: f64) -> f64 {
    // A reduction takes two thirds of the mean window in round trips to regrow: time for a thousand where two losses share a round trip now and then.
    let window = 1.22 / p.sqrt();
    let rtt = 0.05;
    let seconds = 1_600.0 * window * (2.0 / 3.0) * rtt;
    let spec = spec(path(50, None, p), "standard", u64::MAX / 4, Duration::from_secs_f64(seconds));
    let result = done(&spec, 7);
    assert_eq!(result.outcome, Outcome::Deadline);
    let down = &result.flows[0].down;
    let events = down.counters.congestion_events.expect("our transport tells");
    assert!(events >= 1_000, "{events} reductions at p = {p}");
    let packets_per_rtt = down.packets_sent as f64 / (result.virtual_seconds / rtt);
    println!("p {p}: {packets_per_rtt:.2} packets a round trip, Mathis {window:.2}, {events} reductions");
    packets_per_rtt / window
}

#[test]
fn new_reno_keeps_to_mathis_at_a_thousandth() {
    let ratio = ratio_to_mathis(0.001);
    assert!((0.85..=1.15).contains(&ratio), "{ratio}");
}

#[test]
fn new_reno_keeps_to_mathis_from_three_thousandths_to_two_hundredths() {
    for p in [0.003, 0.01, 0.02] {
        let ratio = ratio_to_mathis(p);
        assert!((0.85..=1.15).contains(&ratio), "p {p}: {ratio}");
    }
}

#[test]
fn a_small_object_takes_its_round_trips_and_its_serialisation() {
    // 10,000 bytes fit the initial window: handshake, request, and the last packet's end of serialisation.
    let spec = spec(path(50, Some("10mbit"), 0.0), "standard", 9_000, Duration::from_secs(10));
    let completion = done(&spec, 1).flows[0].completion.expect("it finishes");
    let bound = limit(&spec).expect("a bulk flow has a limit").seconds;
    // The Initial packets' serialisation, both ways, is what the limit leaves out: three full datagrams at least.
    let datagram = (DATAGRAM + 28.0) * 8.0 / 10e6;
    assert!((bound..bound + 6.0 * datagram).contains(&completion), "{completion} against {bound}");
}

#[test]
fn a_long_transfer_fills_a_clean_link() {
    let spec = spec(path(20, Some("50mbit"), 0.0), "cubic", 50_000_000, Duration::from_secs(60));
    let result = done(&spec, 1);
    let completion = result.flows[0].completion.expect("it finishes");
    let bound = limit(&spec).expect("a bulk flow has a limit").seconds;
    assert!(completion >= bound, "nothing beats the limit: {completion} against {bound}");
    assert!(completion < bound * 1.05, "{completion} against {bound}");
}

/// A rate that falls to a tenth when half is there: the mean of its trace would say twice the time that it takes.
#[test]
fn a_long_transfer_fills_a_recorded_link() {
    for trace in ["0,20000000\n2,2000000\n1000,2000000\n", "0,2000000\n10,20000000\n1000,20000000\n"] {
        let mut path = path(20, None, 0.0);
        path.rate = Some(posthaste_path::Trace::parse(trace).expect("a trace").into());
        path.queue = QueueSize::Bytes(ByteCount::new(50_000));
        // The change of rate is to come while the object is under way.
        path.trace_start = posthaste_path::TraceStart::At(Duration::ZERO);
        let spec = spec(path, "cubic", 8_000_000, Duration::from_secs(100));
        let completion = done(&spec, 1).flows[0].completion.expect("it finishes");
        let bound = limit(&spec).expect("a bulk flow has a limit").seconds;
        assert!(completion >= bound, "nothing beats the limit: {completion} against {bound}");
        assert!(completion < bound * 1.1, "{completion} against {bound}");
    }
}

#[test]
fn a_dead_path_ends_by_its_deadline() {
    let spec = spec(path(20, Some("50mbit"), 1.0), "cubic", 1_000, Duration::from_secs(30));
    let result = done(&spec, 1);
    assert_eq!(result.outcome, Outcome::Deadline);
    assert_eq!(result.flows[0].completion, None);
    assert!((result.virtual_seconds - 30.0).abs() < 1e-9);
}

#[test]
fn no_workload_of_any_stack_beats_its_limit() {
    let workloads = [
        r#"{ kind = "bulk", object = "30kB", read-rate = "1mbit" }"#,
        r#"{ kind = "page", page = "news" }"#,
        r#"{ kind = "request-response", object = "20kB", count = 5, think = "20ms" }"#,
        r#"{ kind = "video", rate = "1mbit", chunk = "1s", chunks = 4, buffer = "2s" }"#,
    ];
    for text in workloads {
        let table: toml::Table = format!("workload = {text}").parse().expect("TOML");
        let workload: WorkloadSpec = table["workload"].clone().try_into().expect(text);
        for stack in ["cubic", "quinn:bbr", "tcp:cubic"] {
            let mut spec = spec(path(40, Some("5mbit"), 0.0), stack, 0, Duration::from_secs(60));
            spec.flows[0].workload = workload.clone();
            let bound = limit(&spec).expect("it ends").seconds;
            let completion = done(&spec, 3).flows[0].completion.expect("it finishes");
            println!("{} {stack}: {completion:.4} s, limit {bound:.4} s", workload.kind());
            // A paced reader takes whole bytes, rounded up: microseconds early. Not far above either: a limit of zero
            // would prove nothing.
            assert!(
                (bound - 50e-6..2.5 * bound).contains(&completion),
                "{text} {stack}: {completion} {bound}"
            );
        }
    }
}

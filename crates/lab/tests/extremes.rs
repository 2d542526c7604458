//! Figures that nobody would choose: each is harmless, or refused with a reason.

use posthaste_lab::result::{Outcome, RunResult};
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;

/// One download with a stack as TOML has it; the run.
fn download(path: &str, stack: &str, object: &str) -> RunResult {
    let spec = format!(
        r#"
        network = {{ kind = "simple", path = {path} }}
        flows = [{{ stack = {stack}, workload = {{ kind = "bulk", object = "{object}" }} }}]
        series = "5ms"
        deadline = "60s"
        "#
    );
    let spec: RunSpec = toml::from_str(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    let result = run(&spec, 4, None).expect("a run");
    assert_eq!(result.outcome, Outcome::Completed, "{path}, {stack}");
    result
}

/// The sender's greatest window in bytes.
fn greatest_window(result: &RunResult) -> f64 {
    let series = result.series.as_ref().expect("a series was asked for");
    let window = series.gauges.iter().find(|gauge| gauge.quantity == "window").expect("it is told");
    window.values.iter().flatten().copied().fold(0.0, f64::max)
}

#[test]
fn sixty_four_emulated_flows_complete_with_a_bounded_window() {
    // 40 kB are the path's, and as many the queue's.
    let path = |loss| format!(r#"{{ rtt = "40ms", rate = "8mbit", queue = "1bdp", loss = {loss} }}"#);
    for (variant, loss) in [("safe", 0.0), ("safe", 0.02), ("paper", 0.0), ("paper", 0.02)] {
        let stack = format!(
            r#"{{ name = "many", congestion = {{ cubic = {{ flows = 64, variant = "{variant}" }} }} }}"#
        );
        let result = download(&path(loss), &stack, "2MB");
        let window = greatest_window(&result);
        // What arrives bounds the growth: slow start's overshoot doubles what path and queue hold, and a flow that
        // hardly backs off stays there.
        assert!((12_000.0..=400_000.0).contains(&window), "{variant}, {loss}: {window}");
    }
}

#[test]
fn a_terabit_a_second_is_a_path_like_any_other() {
    let path = r#"{ rtt = "40ms", rate = "1000gbit", queue = "1bdp" }"#;
    for stack in ["cubic", "bbr", "modquic-cubic", "quicming@min_rate=100gbit", "fast-autotune", "history"] {
        let result = download(path, &format!("\"{stack}\""), "2MB");
        // The receiver's credit is 1 MiB at first, and grows: nothing is granted or sent without a bound.
        assert!(greatest_window(&result) <= 64e6, "{stack}: {}", greatest_window(&result));
        let download = &result.flows[0];
        assert_eq!(download.bytes, 2_000_000, "{stack}");
    }
}

#[test]
fn a_client_that_states_too_much_gets_what_the_server_grants_in_virtual_time_too() {
    let path = r#"{ rtt = "200ms", rate = "2mbit", queue = "1bdp", loss = 0.05 }"#;
    let time = |stack: &str| download(path, &format!("\"{stack}\""), "500kB");
    let granted = time("quicming@max_stated_rate=1mbit,stated_rate=100gbit");
    let promised = time("quicming@max_stated_rate=1mbit,stated_rate=1mbit");
    let silent = time("quicming@max_stated_rate=1mbit");
    let unheard = time("cubic");
    let seconds = |run: &RunResult| run.flows[0].completion.expect("it ends");
    assert_eq!(granted.trace_hash, time("quicming@max_stated_rate=1mbit,stated_rate=100gbit").trace_hash);
    // 500 kB and what is lost take 4.5 s at the floor, and loss-based senders of that round trip several times as long.
    assert!(
        seconds(&granted) < 7.0 && seconds(&promised) < 7.0,
        "{}, {}",
        seconds(&granted),
        seconds(&promised)
    );
    assert!(seconds(&silent) > 1.5 * seconds(&granted), "{}, {}", seconds(&silent), seconds(&granted));
    assert!(seconds(&unheard) > 1.5 * seconds(&granted), "{}, {}", seconds(&unheard), seconds(&granted));
}

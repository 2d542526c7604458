//! What the lab says it measures: losses that links have made, limits of runs that begin anywhere in a recording.

use posthaste_lab::result::{Outcome, RunResult};
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;

fn done(text: &str, seed: u64) -> RunResult {
    let spec: RunSpec = toml::from_str(text).expect("a run");
    let result = run(&spec, seed, None).expect("it can be built");
    assert!(!matches!(result.outcome, Outcome::Failed(_)), "{:?}", result.outcome);
    result
}

#[test]
fn what_is_under_way_when_a_run_ends_is_not_lost() {
    // A bandwidth-delay product of 125 packets is under way at the end.
    let text = r#"
        network = { kind = "simple", path = { rate = "10mbit", rtt = "150ms", queue = "10s", duplicate = "5%" } }
        deadline = "3s"
        flows = [{ stack = "cubic", workload = { kind = "endless" } }]
    "#;
    let result = done(text, 1);
    let (down, up) = (&result.flows[0].down, &result.flows[0].up);
    assert_eq!((down.packets_lost, up.packets_lost), (0, 0));
    assert!(down.packets_sent > down.originals_received + 50, "{down:?}");
    assert!(down.packets_received > down.originals_received, "copies were made: {down:?}");
    let lossy = done(&text.replace("duplicate = \"5%\"", "loss = \"3%\""), 1);
    let links: u64 = lossy.links.iter().map(|link| link.lost + link.dropped).sum();
    let flow = &lossy.flows[0];
    assert_eq!(flow.down.packets_lost + flow.up.packets_lost, links);
    assert!(links > 0);
}

#[test]
fn seeds_are_samples_of_a_recording_and_each_has_its_limit() {
    let text = r#"
        network = { kind = "simple", path = { base = "lte-trace", loss = 0.0 } }
        deadline = "300s"
        flows = [{ stack = "cubic", workload = { kind = "bulk", object = "500kB" } }]
    "#;
    let times: Vec<(f64, f64)> = (1..=8)
        .map(|seed| {
            let result = done(text, seed);
            (result.flows[0].completion.expect("complete"), result.limit.expect("its own limit"))
        })
        .collect();
    assert!(times.iter().all(|(time, limit)| time >= limit), "{times:?}");
    let mut limits: Vec<f64> = times.iter().map(|(_, limit)| *limit).collect();
    limits.sort_by(f64::total_cmp);
    limits.dedup();
    assert!(limits.len() > 4, "{limits:?}");
    let fixed = text.replace("loss = 0.0", "loss = 0.0, trace-start = \"0s\"");
    let (one, other) = (done(&fixed, 1), done(&fixed, 2));
    assert_eq!(one.limit, None);
    assert_eq!(one.flows[0].completion, other.flows[0].completion, "one sample");
}

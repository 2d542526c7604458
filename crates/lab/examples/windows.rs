//! Where a stack's congestion window comes to lie: downloads of one object over a built-in path, one line a seed.
//!
//! `windows STACK PATH OBJECT RUNS`, for instance `windows noq:bbr3 bad 10MB 50`: completion time, and the window's
//! median and least value over the time after the first second.

use posthaste_lab::result::RunResult;
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stack, path, object, runs] = arguments.as_slice() else {
        eprintln!("usage: windows STACK PATH OBJECT RUNS, for instance: windows noq:bbr3 bad 10MB 50");
        std::process::exit(2);
    };
    let runs: u64 = runs.parse().expect("RUNS is a number");
    let spec = format!(
        r#"
        network = {{ kind = "simple", path = "{path}" }}
        flows = [{{ stack = "{stack}", workload = {{ kind = "bulk", object = "{object}" }} }}]
        series = "50ms"
        deadline = "1000s"
        "#
    );
    let spec: RunSpec = toml::from_str(&spec).unwrap_or_else(|error| panic!("{error}"));
    let mut collapsed = 0;
    for seed in 0..runs {
        let result = run(&spec, seed, None).expect("a path that can be");
        let windows = windows(&result);
        let (least, median) = (windows.first(), windows.get(windows.len() / 2));
        collapsed += u64::from(median.is_some_and(|median| *median <= 20_000.0));
        println!(
            "{seed} {:?} {:?} s, window median {median:?} least {least:?}",
            result.outcome, result.flows[0].completion
        );
    }
    println!("{stack} on {path}, {object}: median window at most 20 kB in {collapsed} of {runs} runs");
}

/// The server's windows after the first second, the smallest first.
fn windows(result: &RunResult) -> Vec<f64> {
    let Some(series) = &result.series else { return Vec::new() };
    let Some(gauge) = series.gauges.iter().find(|gauge| gauge.quantity == "window") else {
        return Vec::new();
    };
    let late = series.times.iter().zip(&gauge.values).filter(|(time, _)| **time > 1.0);
    let mut windows: Vec<f64> = late.filter_map(|(_, window)| *window).collect();
    windows.sort_by(f64::total_cmp);
    windows
}

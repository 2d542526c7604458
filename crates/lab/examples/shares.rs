//! Two flows on one bottleneck: the first one's part of what both read from the sixth second to the 25th, as a multiple of
//! its fair part. `cargo run --release -p posthaste-lab --example shares FIRST SECOND`; docs/results/kernel-fairness.md has what
//! the kernel's TCP does in the same cells.

use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;

/// The share of the first flow; `None` if the run cannot be had.
fn share(stacks: [&str; 2], rate: &str, queue: &str, start: &str) -> Option<f64> {
    let text = format!(
        r#"
        network = {{ kind = "simple", path = {{ rate = "{rate}", rtt = "40ms", queue = "{queue}" }} }}
        deadline = "25s"
        datagram = 1472
        series = "1s"
        [[flows]]
        name = "first"
        stack = "{}"
        workload = {{ kind = "endless" }}
        start = "{start}"
        [[flows]]
        name = "second"
        stack = "{}"
        workload = {{ kind = "endless" }}
        "#,
        stacks[0], stacks[1]
    );
    let spec: RunSpec = toml::from_str(&text).ok()?;
    let series = run(&spec, 1, None).ok()?.series?;
    let read = |name: &str| {
        let gauge = series.gauges.iter().find(|gauge| gauge.of == name && gauge.quantity == "delivery")?;
        let counted = series.times.iter().zip(&gauge.values).filter(|(time, _)| **time > 5.5);
        Some(counted.filter_map(|(_, value)| *value).sum::<f64>())
    };
    let (first, second) = (read("first")?, read("second")?);
    Some(2.0 * first / (first + second))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, second] = &arguments[..] else {
        eprintln!("usage: shares FIRST SECOND, both stacks");
        std::process::exit(2);
    };
    for rate in ["10mbit", "30mbit"] {
        for queue in ["0.5bdp", "1bdp", "2bdp", "4bdp"] {
            // When the first begins, compared with the second: who comes first is chance between programs.
            let starts = ["0ms", "13ms", "30ms", "70ms", "150ms", "300ms", "1s"];
            let mut found: Vec<f64> =
                starts.iter().filter_map(|start| share([first, second], rate, queue, start)).collect();
            let each: Vec<String> = found.iter().map(|share| format!("{share:.2}")).collect();
            found.sort_by(f64::total_cmp);
            let median = found.get(found.len() / 2).copied().unwrap_or(f64::NAN);
            println!("{rate} {queue}: median {median:.2} ({})", each.join(", "));
        }
    }
}

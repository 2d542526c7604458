//! Two flows on one bottleneck: the first one's part of what both read from the sixth second to the 25th, as a multiple of
//! its fair part. `cargo run --release -p posthaste-lab --example shares FIRST SECOND`; docs/results/kernel-fairness.md has what
//! the kernel's TCP does in the same cells.
//!
//! With a third argument, a number, so many of `SECOND` have been there for 5 s when `FIRST` begins: the parts of the first
//! and of the others, on average, as multiples of their fair part, over the next 30 s and over the next 10.

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

/// Parts of a latecomer and, on average, of those that were there, as multiples of a fair part: over the whole of its
/// time and over its first ten seconds; and what it lost, as a part of what it sent.
fn late(stacks: [&str; 2], others: usize, path: [&str; 2], seed: u64) -> Option<[f64; 5]> {
    let start = 5.0 + 0.137 * (seed - 1) as f64;
    let [rate, queue] = path;
    let text = format!(
        r#"
        network = {{ kind = "dumbbell", path = {{ rate = "{rate}", rtt = "40ms", queue = "{queue}" }} }}
        deadline = "35s"
        series = "100ms"
        [[flows]]
        name = "first"
        stack = "{}"
        workload = {{ kind = "endless" }}
        start = "{}ms"
        [[flows]]
        name = "second"
        stack = "{}"
        workload = {{ kind = "endless" }}
        count = {others}
        "#,
        stacks[0],
        start * 1e3,
        stacks[1]
    );
    let spec: RunSpec = toml::from_str(&text).ok()?;
    let result = run(&spec, seed, None).ok()?;
    let series = result.series.as_ref()?;
    let parts = |until: f64| {
        let read = |name: &str| -> f64 {
            let gauges = series
                .gauges
                .iter()
                .filter(|gauge| gauge.of.starts_with(name) && gauge.quantity == "delivery");
            let values = gauges.flat_map(|gauge| series.times.iter().zip(&gauge.values));
            values.filter(|(time, _)| **time > start && **time <= until).filter_map(|(_, value)| *value).sum()
        };
        let (first, second) = (read("first"), read("second"));
        let fair = (first + second) / (others as f64 + 1.0);
        [first / fair, second / others as f64 / fair]
    };
    let down = &result.flows.first()?.down;
    let ([first, other], [early, other_early]) = (parts(35.0), parts(start + 10.0));
    Some([first, other, early, other_early, down.packets_lost as f64 / down.packets_sent.max(1) as f64])
}

/// The medians of five runs of each cell.
fn print_late(stacks: [&str; 2], others: usize) {
    for rate in ["10mbit", "30mbit", "100mbit"] {
        for queue in ["0.5bdp", "1bdp", "2bdp", "4bdp"] {
            let runs: Vec<_> = (1..=5).filter_map(|seed| late(stacks, others, [rate, queue], seed)).collect();
            let median = |index: usize| {
                let mut found: Vec<f64> = runs.iter().map(|run| run[index]).collect();
                found.sort_by(f64::total_cmp);
                found.get(found.len() / 2).copied().unwrap_or(f64::NAN)
            };
            println!(
                "{rate} {queue}: first {:.2}, others {:.2}; in ten seconds {:.2}, {:.2}; first lost {:.1} %",
                median(0),
                median(1),
                median(2),
                median(3),
                100.0 * median(4)
            );
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, second, others] = &arguments[..]
        && let Ok(others @ 1..) = others.parse()
    {
        print_late([first, second], others);
        return;
    }
    let [first, second] = &arguments[..] else {
        eprintln!(
            "usage: shares FIRST SECOND [OTHERS], two stacks and how many of the second were there before"
        );
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

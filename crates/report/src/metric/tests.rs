//! With results made by hand.

use super::*;
use crate::experiment_result::{Axis, Limit};
use crate::result::{DirectionResult, ExchangeResult, FlowResult, Outcome};

fn run(seed: u64, completion: Option<f64>) -> RunResult {
    let flow = FlowResult {
        name: "main".to_owned(),
        stack: "cubic".to_owned(),
        completion,
        connect: Some(0.1),
        bytes: 1_000_000,
        goodput: 8e6 / completion.unwrap_or(30.0),
        down: DirectionResult {
            packets_sent: 1000,
            packets_received: 980,
            packets_lost: 20,
            bytes_sent: 1_250_000,
            bytes_received: 1_225_000,
            delay_mean_ms: 25.0,
            ..DirectionResult::default()
        },
        up: DirectionResult { packets_sent: 490, packets_received: 490, ..DirectionResult::default() },
        ..FlowResult::default()
    };
    RunResult {
        seed,
        outcome: if completion.is_some() { Outcome::Completed } else { Outcome::Deadline },
        virtual_seconds: completion.unwrap_or(30.0),
        limit: None,
        trace_hash: String::new(),
        packets: 1490,
        flows: vec![flow],
        links: Vec::new(),
        series: None,
    }
}

fn cell(stack: &str, completions: &[Option<f64>]) -> CellResult {
    let mut runs: Vec<RunResult> =
        completions.iter().enumerate().map(|(seed, completion)| run(seed as u64, *completion)).collect();
    for run in &mut runs {
        run.flows[0].stack = stack.to_owned();
    }
    CellResult { coordinates: vec!["bad".to_owned(), stack.to_owned()], runs, ..CellResult::default() }
}

fn experiment(cells: Vec<CellResult>) -> ExperimentResult {
    let axis = |name: &str, values: &[&str]| Axis {
        name: name.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    };
    ExperimentResult {
        axes: vec![axis("path", &["bad"]), axis("stack", &["cubic", "quinn:cubic", "tcp:cubic"])],
        cells,
        ..ExperimentResult::default()
    }
}

/// The metric's values in the cell at an index.
fn values(name: &str, experiment: &ExperimentResult, cell: usize) -> Vec<f64> {
    find(name).expect("a metric").metric.sample(experiment, &experiment.cells[cell]).numbers()
}

fn is_near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9
}

#[test]
fn names_are_unique_and_found() {
    let names = names();
    for (index, name) in names.iter().enumerate() {
        assert!(!names[..index].contains(name), "{name} twice");
        let column = find(name).expect("its own name");
        assert_eq!((column.metric.name, column.to_string().as_str()), (*name, *name));
        assert!(column.metric.doc.ends_with('.') && !column.metric.label.is_empty(), "{name}");
    }
    assert_eq!(find("completion.p95").expect("a statistic").to_string(), "completion.p95");
    assert_eq!(find("first_byte").expect("a metric").to_string(), "first-byte");
    assert_eq!(find("completion.cov").expect("a statistic").unit(), Unit::Index);
}

#[test]
fn an_unknown_name_lists_the_valid_ones() {
    for name in ["speed", "completion.p42", "", ".mean"] {
        let error = find(name).expect_err("no such metric").to_string();
        assert!(error.contains(&format!("`{name}`")), "{error}");
        assert!(error.contains("completion, connect, first-byte") && error.contains(".p95"), "{error}");
    }
}

#[test]
fn a_run_worked_by_hand() {
    let mut one = cell("cubic", &[Some(2.0)]);
    one.limit = Some(Limit { seconds: 0.5, ..Limit::default() });
    let counters = &mut one.runs[0].flows[0].down.counters;
    (counters.resent_bytes, counters.spuriously_lost) = (Some(25_000), Some(3));
    one.runs[0].flows[0].up.counters.acks_sent = Some(480);
    let all = experiment(vec![one]);
    for (name, expected) in [
        ("completion", 2.0),
        ("connect", 0.1),
        ("to-limit", 4.0),
        ("goodput", 4e6),
        ("throughput", 4.9e6),
        ("loss", 0.02),
        ("loss-up", 0.0),
        ("retransmission", 0.02),
        ("rtr", 2.0),
        ("ack-ratio", 0.48),
        ("acks-sent", 480.0),
        ("spurious-losses", 3.0),
        ("delay", 25.0),
        ("packets-down", 1000.0),
        ("bytes-down", 1_250_000.0),
        ("jain", 1.0),
        ("max-min-share", 1.0),
        ("saving", 0.0),
        ("gain", 0.0),
    ] {
        let values = values(name, &all, 0);
        assert!(
            values.len() == 1 && is_near(values[0], expected),
            "{name}: {values:?} instead of {expected}"
        );
    }
    // The stack does not tell, there is no background, it is no video: unknown, and counted as such.
    for name in [
        "probe-timeouts",
        "pure-acks",
        "blocked",
        "stalled",
        "stalled-share",
        "startup",
        "chunk-rate",
        "latency",
        "harm",
        "harm-loss",
    ] {
        let sample = find(name).expect("a metric").metric.sample(&all, &all.cells[0]);
        assert_eq!((sample.values.len(), sample.unknown), (0, 1), "{name}");
        assert_eq!(find(name).expect("a metric").value(&all, &all.cells[0]), None);
    }
    // The first byte never came.
    assert_eq!(values("first-byte", &all, 0), [f64::INFINITY]);
}

#[test]
fn a_video_that_does_not_end_and_requests_without_answer_are_the_worst() {
    let exchange = ExchangeResult { object: 0, requested: 0.1, first_byte: 0.2, finished: 0.4, bytes: 1_000 };
    let mut all = experiment(vec![cell("cubic", &[Some(0.6), None])]);
    for run in &mut all.cells[0].runs {
        run.flows[0].stalled_seconds = Some(0.05);
        run.flows[0].exchanges = vec![exchange.clone()];
    }
    let worst = f64::INFINITY;
    for (name, expected) in
        [("startup", [0.4, 0.4]), ("stalled-share", [0.25, worst]), ("latency", [0.3, worst])]
    {
        let values = values(name, &all, 0);
        assert!(is_near(values[0], expected[0]), "{name}: {values:?}");
        let is_right = if expected[1].is_finite() {
            is_near(values[1], expected[1])
        } else {
            values[1].is_infinite() && values[1] > 0.0
        };
        assert!(is_right, "{name}: {values:?}");
    }
    all.cells[0].runs[1].flows[0].exchanges.clear();
    assert!(values("startup", &all, 0)[1].is_infinite(), "nothing was ever shown");
}

#[test]
fn incomplete_runs_are_the_worst_not_absent() {
    let all = experiment(vec![
        cell("cubic", &[Some(1.0), None, Some(3.0), None]),
        cell("quinn:cubic", &[Some(2.0), Some(2.0), None, None]),
    ]);
    assert_eq!(values("completion", &all, 0), [1.0, f64::INFINITY, 3.0, f64::INFINITY]);
    let value = |name| find(name).expect("a metric").value(&all, &all.cells[0]);
    assert_eq!(value("completion"), Some(f64::INFINITY));
    assert_eq!(value("completion.mean"), None);
    assert_eq!(values("goodput", &all, 0).len(), 4);
    // Without a limit there is no ratio to it.
    assert!(values("to-limit", &all, 0).is_empty());
}

#[test]
fn saving_is_against_the_baseline_seed_by_seed() {
    let mut all = experiment(vec![
        cell("cubic", &[Some(1.0), None, Some(3.0), None]),
        cell("quinn:cubic", &[Some(2.0), Some(2.0), None, None]),
    ]);
    all.baseline = Some("quinn:cubic".to_owned());
    // Half saved; never finished; 3 s against a deadline of 30 s; neither finished.
    assert_eq!(values("saving", &all, 0), [0.5, f64::NEG_INFINITY, 0.9]);
    all.baseline = Some("unheard of".to_owned());
    assert_eq!(values("saving", &all, 0), [0.0, 0.0]);
    let saving = find("saving").expect("a metric");
    assert_eq!(saving.metric.sample(&all, &all.cells[0]).unknown, 2);
}

#[test]
fn harm_is_against_one_more_of_the_rivals_own_kind() {
    let with_background = |stack: &str, goodput: f64, received: u64| {
        let mut cell = cell(stack, &[Some(1.0)]);
        cell.runs[0].flows.push(FlowResult {
            stack: "tcp:cubic".to_owned(),
            is_background: true,
            goodput,
            down: DirectionResult {
                packets_sent: 100,
                packets_received: received,
                packets_lost: 100 - received,
                ..DirectionResult::default()
            },
            ..FlowResult::default()
        });
        cell
    };
    let mut all = experiment(vec![
        with_background("cubic", 3e6, 96),
        with_background("quinn:cubic", 5e6, 99),
        with_background("tcp:cubic", 4e6, 98),
    ]);
    assert!(is_near(values("harm", &all, 0)[0], 0.25) && is_near(values("harm-loss", &all, 0)[0], 0.02));
    assert!(is_near(values("harm", &all, 1)[0], -0.25) && is_near(values("harm-loss", &all, 1)[0], -0.01));
    assert!(is_near(values("harm", &all, 2)[0], 0.0));
    // Only what the run waits for is shared fairly or not.
    assert_eq!(values("jain", &all, 0), [1.0]);
    // Without the cell of its own kind there is nothing to compare with.
    all.cells.pop();
    assert!(values("harm", &all, 0).is_empty());
}

#[test]
fn fairness_is_over_foreground_flows() {
    let mut two = cell("cubic", &[Some(1.0)]);
    let mut second = two.runs[0].flows[0].clone();
    second.goodput = 0.0;
    two.runs[0].flows.push(second);
    let all = experiment(vec![two]);
    assert_eq!(values("jain", &all, 0), [0.5]);
    assert_eq!(values("max-min-share", &all, 0), [0.0]);
}

#[test]
fn published_figures_are_converted_to_our_unit() {
    let all = experiment(vec![cell("cubic", &[Some(2.0)])]);
    let published = |metric: &str, value: f64, unit: &str| Published {
        metric: metric.to_owned(),
        value,
        unit: unit.to_owned(),
        ..Published::default()
    };
    let compare = |published: &Published| beside(&all, &all.cells[0], published);
    let same = compare(&published("completion.mean", 1600.0, "ms"));
    assert_eq!((same.ours, same.published), (Some(2.0), Some(1.6)));
    assert!(is_near(same.ratio.expect("both known"), 1.25));
    assert_eq!(compare(&published("goodput", 2.0, "Mbps")).ratio, Some(2.0));
    let odd = compare(&published("completion", 3.0, "parsecs"));
    assert_eq!((odd.ours, odd.published, odd.ratio), (Some(2.0), None, None));
    assert_eq!(
        compare(&published("nonsense", 3.0, "s")),
        Beside { ours: None, published: None, ratio: None }
    );
}

#[test]
fn numbers_are_written_alike_everywhere() {
    assert_eq!(Unit::Seconds.text(3.3149), "3.31 s");
    assert_eq!(Unit::Seconds.text(0.081), "0.081 s");
    assert_eq!(Unit::BitsPerSecond.text(4.9e6), "4.90 Mbit/s");
    assert_eq!(Unit::Share.text(0.0123), "1.23 %");
    assert_eq!(Unit::Times.text(1.876), "1.88 \u{d7}");
    assert_eq!(Unit::Bytes.text(1_250_000.0), "1.25 MB");
    assert_eq!(Unit::Count.text(17.0), "17");
    assert_eq!(Unit::Seconds.text(f64::INFINITY), ">deadline");
    let scale = Unit::Seconds.scale(120.0);
    assert_eq!((scale.number(3.0).as_str(), scale.suffix), ("3.0", "s"));
    assert_eq!(scale.number(-0.001), "0.0");
    assert_eq!(scale.number(f64::NAN), "\u{2013}");
}

/// Three flows, the last in the background.
#[test]
fn further_flows_and_their_parts() {
    let mut one = cell("cubic", &[Some(2.0)]);
    let first = one.runs[0].flows[0].clone();
    let other = |goodput, is_background| FlowResult { is_background, goodput, ..first.clone() };
    one.runs[0].flows.extend([other(3e6, false), other(1e6, true)]);
    let all = experiment(vec![one]);
    for (name, expected) in
        [("goodput-2", 3e6), ("goodput-3", 1e6), ("part", 0.5), ("part-2", 0.375), ("part-3", 0.125)]
    {
        let values = values(name, &all, 0);
        assert!(values.len() == 1 && is_near(values[0], expected), "{name}: {values:?}");
    }
    assert!(values("goodput-4", &all, 0).is_empty() && values("part-4", &all, 0).is_empty());
}

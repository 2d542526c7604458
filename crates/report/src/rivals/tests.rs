use super::*;
use crate::experiment_result::{Axis, CellResult, ExperimentResult};
use crate::result::{FlowResult, Outcome, RunResult};

fn run(seed: u64, stack: &str, completion: Option<f64>) -> RunResult {
    let flow = FlowResult { stack: stack.to_owned(), completion, ..FlowResult::default() };
    RunResult {
        seed,
        outcome: if completion.is_some() { Outcome::Completed } else { Outcome::Deadline },
        virtual_seconds: completion.unwrap_or(60.0),
        limit: None,
        trace_hash: String::new(),
        packets: 0,
        flows: vec![flow],
        links: Vec::new(),
        series: None,
    }
}

/// Twenty runs a cell: `(path, stack, seconds of most, seconds of the slowest two)`.
fn experiment(cells: &[(&str, &str, f64, Option<f64>)]) -> ExperimentResult {
    let axis = |name: &str, values: &[&str]| Axis {
        name: name.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let made = cells.iter().map(|(path, stack, most, slowest)| CellResult {
        coordinates: vec![(*path).to_owned(), (*stack).to_owned()],
        runs: (1..=20).map(|seed| run(seed, stack, if seed > 18 { *slowest } else { Some(*most) })).collect(),
        ..CellResult::default()
    });
    ExperimentResult {
        subject: Some("bbr".to_owned()),
        axes: vec![axis("path", &["good", "bad"]), axis("stack", &["cubic", "quinn:bbr", "bbr"])],
        metrics: vec!["completion".to_owned()],
        cells: made.collect(),
        ..ExperimentResult::default()
    }
}

#[test]
fn the_best_other_stack_is_named_at_both_statistics() {
    let result = experiment(&[
        ("good", "cubic", 2.0, Some(3.0)),
        ("good", "quinn:bbr", 1.5, Some(9.0)),
        ("good", "bbr", 3.0, Some(4.5)),
        ("bad", "cubic", 8.0, Some(9.0)),
        ("bad", "quinn:bbr", 4.0, Some(5.0)),
        ("bad", "bbr", 2.0, Some(2.5)),
    ]);
    let text = lines(&Layout::new(&result)).join("\n");
    let line = |begin: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(begin)).expect(begin);
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("good"), "good 2.000 quinn:bbr 1.500 cubic");
    assert_eq!(line("bad"), "bad 0.500 quinn:bbr 0.500 quinn:bbr");
    assert_eq!(line("median:"), "median: bbr is first (within 0.5 %) in 1 of 2; at worst 2.000 (good)");
}

#[test]
fn a_deadline_is_slower_than_anything_and_silence_says_nothing() {
    let result = experiment(&[("bad", "cubic", 8.0, Some(9.0)), ("bad", "bbr", 2.0, None)]);
    let text = lines(&Layout::new(&result)).join("\n");
    assert!(text.contains("0.250") && text.contains("inf"), "{text}");
    let alone = experiment(&[("bad", "bbr", 2.0, Some(3.0))]);
    let text = lines(&Layout::new(&alone)).join("\n");
    assert!(text.contains("in 0 of 0"), "{text}");
    let without = ExperimentResult { subject: None, ..result };
    assert!(lines(&Layout::new(&without)).is_empty());
}

use posthaste_emulator::RelayStats;
use posthaste_report::result::FlowResult;

use super::super::plan::Start;
use super::*;

fn run(racer: usize, round: u64, seconds: Option<f64>) -> Run {
    Run {
        start: Start { racer, round, seed: round },
        outcome: seconds.map(|_| ()).ok_or_else(|| "it failed".to_owned()),
        flow: FlowResult { completion: seconds, ..FlowResult::default() },
        relay: RelayStats::default(),
        lateness: LatenessHistogram::new(),
    }
}

fn seconds(run: &Run) -> f64 {
    run.flow.completion.unwrap_or(f64::INFINITY)
}

#[test]
fn medians_and_percentiles() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[3.0, 1.0]), Some(2.0));
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
    // Between the 19th and the 20th: the mean of both, as everywhere.
    assert_eq!(finite_quantile(&twenty, 0.95), Some(19.5));
    assert_eq!(finite_quantile(&twenty, 0.95), statistics::summarise(&twenty).map(|summary| summary.p95));
    assert_eq!(finite_quantile(&twenty[..19], 0.95), Some(19.0), "the slowest of fewer than 20");
    assert_eq!(finite_quantile(&[7.0], 0.95), Some(7.0));
    assert_eq!(finite_quantile(&[], 0.95), None);
}

#[test]
fn failures_are_slower_than_everything() {
    assert_eq!(median(&[1.0, 2.0, f64::INFINITY]), Some(2.0));
    assert_eq!(median(&[1.0, f64::INFINITY]), None, "half of the runs failed");
    assert_eq!(finite_quantile(&[1.0, 2.0, f64::INFINITY], 0.95), None);
}

#[test]
fn runs_are_kept_in_the_order_of_rounds() {
    let mut tally = Tally::new(2);
    for round in [2, 1, 3] {
        tally.add(run(1, round, Some(1.0)));
    }
    let rounds: Vec<u64> = tally.runs[1].iter().map(|run| run.start.round).collect();
    assert_eq!(rounds, [1, 2, 3]);
    tally.add(run(0, 1, None));
    assert_eq!((tally.failures(), tally.all_runs().count()), (1, 4));
}

#[test]
fn a_saving_is_counted_over_common_rounds_and_has_an_interval() {
    let base: Vec<Run> = (1..=30).map(|round| run(0, round, Some(2.0 + round as f64 / 30.0))).collect();
    let other: Vec<Run> = (1..=30).map(|round| run(1, round, Some(1.0 + round as f64 / 60.0))).collect();
    let saved = saving(&base, &other, seconds).expect("both have run");
    assert!((saved.share - 0.5).abs() < 1e-9, "{saved:?}");
    assert!((saved.low - 0.5).abs() < 1e-9 && (saved.high - 0.5).abs() < 1e-9, "always by half: {saved:?}");
    assert_eq!(saving(&base, &other, seconds), Some(saved), "the same runs give the same interval");

    let noisy: Vec<Run> = (1..=30).map(|round| run(1, round, Some(1.0 + (round % 5) as f64))).collect();
    let saved = saving(&base, &noisy, seconds).expect("both have run");
    assert!(saved.low < saved.share && saved.share < saved.high, "{saved:?}");
    assert_eq!(saving(&base, &[], seconds), None);
}

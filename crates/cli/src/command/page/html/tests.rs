use super::super::build::Builds;
use super::super::plan::PathPlan;
use super::super::protocol::Protocol;
use super::super::record::{Build, Record, Seen};
use super::super::tally::tests::record;
use super::super::target::{Contestant, Origin};
use super::*;

fn plan(names: &[&str]) -> Plan {
    let contestant = |name: &&str| Contestant {
        name: (*name).to_owned(),
        protocol: Protocol::H3,
        origin: Origin::Profile("cubic".to_owned()),
    };
    Plan {
        pages: vec![PagePlan {
            name: "p".to_owned(),
            description: "a <page>".to_owned(),
            folder: None,
            requests: None,
            hosts: 1,
        }],
        paths: vec![PathPlan {
            name: "q".to_owned(),
            description: "slow".to_owned(),
            text: String::new(),
            argument: None,
        }],
        contestants: names.iter().map(contestant).collect(),
        runs: 8,
        seed: 1,
        parallel: 1,
        background: 0,
        is_warm_wanted: true,
        gives_up: false,
        timeout: std::time::Duration::from_secs(1),
        browser: "b".into(),
        spki: Vec::new(),
        qlog: None,
        net_log: None,
        certificate: "c".into(),
        key: "k".into(),
        posthaste: "p".into(),
        builds: Builds::default(),
        ground: tempfile::tempdir().unwrap(),
    }
}

fn records(name: &str, slowness: f64) -> impl Iterator<Item = Record> {
    (1..=8).map(move |round| record(name, round, slowness + round as f64 / 100.0))
}

#[test]
fn the_page_says_who_is_faster_and_needs_nothing_from_elsewhere() {
    let plan = plan(&["posthaste standard", "nginx <h2>"]);
    let records = records("posthaste standard", 1.0).chain(records("nginx <h2>", 2.0)).collect();
    let html = page(&plan, &Tally { records, was_interrupted: false });
    assert!(html.contains("<b>posthaste standard</b> takes 49 % less time than nginx &lt;h2&gt;"), "{html}");
    assert!(html.contains("0.51 <small>") && html.contains("class=\"faster\""));
    assert!(!html.contains("nginx <h2>") && !html.contains("a <page>"), "names are escaped");
    for outside in ["http://", "src=", "@import", "url(http"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert_eq!(html.matches("Requests of ").count(), 2, "a waterfall each");
    assert!(!html.contains("builds"), "all are of one");
}

#[test]
fn runs_of_several_builds_are_said_to_be_that() {
    let plan = plan(&["a"]);
    let build = |program: &str| {
        Some(Build { program: program.to_owned(), path: String::new(), server: String::new() })
    };
    let runs = ["x", "y"].into_iter().zip(1..);
    let records =
        runs.map(|(program, round)| Record { build: build(program), ..record("a", round, 1.0) }).collect();
    let tally = Tally { records, was_interrupted: false };
    assert!(page(&plan, &tally).contains("<li>runs of 2 builds of posthaste</li>"));
    assert!(super::super::table::table(&plan, &tally).contains("runs of 2 builds of posthaste"));
    let report = serde_json::to_value(super::super::report::Report::new(&plan, &tally)).unwrap();
    assert_eq!(report["builds"], serde_json::json!(["x", "y"]));
}

#[test]
fn failures_and_missing_runs_are_said() {
    let plan = plan(&["posthaste standard", "other"]);
    let mut failed: Vec<Record> = records("other", 1.0).collect();
    for record in &mut failed {
        record.seen = Seen { failure: Some("no & never".to_owned()), ..Seen::default() };
    }
    let html = page(&plan, &Tally { records: failed, was_interrupted: true });
    assert!(html.contains("8 of 8 runs failed: no &amp; never") && html.contains("most runs failed"));
    assert!(html.contains("no run yet") && html.contains("Interrupted"));
}

#[test]
fn rounds_rotate_and_a_journal_of_another_plan_is_not_taken() {
    let plan = plan(&["a", "b"]);
    let order = plan.order();
    assert_eq!(order.len(), 16);
    assert_eq!(order[..4].iter().map(|item| item.contestant).collect::<Vec<_>>(), [0, 1, 1, 0]);
    assert!(plan.includes(&record("a", 8, 1.0)));
    assert!(!plan.includes(&record("a", 9, 1.0)) && !plan.includes(&record("c", 1, 1.0)));
    let mut cold = record("a", 1, 1.0);
    cold.seen.visits.truncate(1);
    assert!(!plan.includes(&cold), "the warm visit is missing");
    assert!(!plan.includes(&Record { seed: 2, ..record("a", 1, 1.0) }));
    assert!(!plan.includes(&record("a", 0, 1.0)), "rounds count from 1");
    let last = Plan { seed: u64::MAX, ..plan };
    assert_eq!((last.seed_of(1), last.seed_of(2)), (u64::MAX, 0));
}

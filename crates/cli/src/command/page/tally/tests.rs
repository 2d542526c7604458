use super::super::record::{Key, Object, Seen};
use super::*;

/// A run in which the page was loaded after so many seconds, cold, and warm in half of them.
pub(in super::super) fn record(contestant: &str, round: u64, load: f64) -> Record {
    let visit = |load: f64| Visit {
        load,
        first_paint: Some(load / 2.0),
        largest_paint: None,
        response: Some(load / 4.0),
        complete: load * 1.5,
        bytes: 1_000,
        objects: vec![Object {
            url: "https://posthaste.test:4433/page.html".to_owned(),
            protocol: "h3".to_owned(),
            status: 200,
            sent: Some(load / 10.0),
            connecting: Some((0.0, load / 8.0)),
            end: Some(load),
            ..Object::default()
        }],
    };
    Record {
        key: Key { page: "p".to_owned(), path: "q".to_owned(), contestant: contestant.to_owned(), round },
        seed: round,
        background: 0,
        build: None,
        seen: Seen {
            browser: "B/1".to_owned(),
            visits: vec![visit(load), visit(load / 2.0)],
            ..Seen::default()
        },
        voided: 0,
        faults: Vec::new(),
        lateness: Some(1e-4),
        dropped: Some(0),
        took: 1.0,
    }
}

#[test]
fn failures_are_slower_than_everything_and_void_runs_do_not_count() {
    let mut records: Vec<Record> =
        [(3, 4.0), (1, 2.0), (2, 3.0)].iter().map(|&(round, load)| record("a", round, load)).collect();
    let mut failed = record("a", 4, 1.0);
    failed.seen = Seen { failure: Some("no".to_owned()), ..Seen::default() };
    let mut void = record("a", 5, 1.0);
    void.faults.push("late".to_owned());
    records.extend([failed, void, record("b", 1, 1.0)]);
    let tally = Tally { records, was_interrupted: false };
    let cell = tally.cell("p", "q", "a");
    assert_eq!((cell.runs.len(), cell.void.len(), cell.failed(), cell.reason()), (4, 1, 1, Some("no")));
    let summary = cell.summary(Temperature::Cold, Metric::Load).unwrap();
    assert_eq!((summary.p50, summary.censored, summary.p95.is_finite()), (3.5, 1, false));
    assert_eq!(cell.median_run(Temperature::Cold).unwrap().key.round, 2);
    assert_eq!((tally.bad_runs(), tally.voided()), (2, 1));
    assert_eq!(cell.connect(Temperature::Warm), Some(0.15), "the request went before the handshake was over");
    let paired = cell.against(&tally.cell("p", "q", "b"), Temperature::Cold).unwrap();
    assert_eq!(paired.ratio, Some(2.0));
}

#[test]
fn a_run_made_again_takes_the_place_of_the_void_one_with_its_attempts() {
    let void = Record { faults: vec!["late".to_owned()], voided: 2, ..record("a", 1, 9.0) };
    let mut tally = Tally { records: vec![void, record("a", 2, 1.0)], was_interrupted: false };
    assert_eq!(tally.add(Record { voided: 1, ..record("a", 1, 1.0) }).voided, 4);
    assert_eq!((tally.records.len(), tally.bad_runs(), tally.voided()), (2, 0, 4));
    assert_eq!(tally.add(record("a", 3, 1.0)).voided, 0);
}

use std::sync::Mutex;

use super::*;
use crate::run::RunError;
use crate::spec::RunSpec;

const MS: Duration = Duration::from_millis(1);

const TEXT: &str = r#"
title = "Short fetches"
question = "Is the sweep right?"
source = "ours"
metrics = ["completion"]
[run]
network = { kind = "simple", path = "average" }
flows = [{ stack = "cubic", workload = { kind = "bulk", object = "5kB" } }]
deadline = "30s"
[[axis]]
name = "path"
key = "network.path"
values = ["good", "average"]
[[axis]]
name = "object"
key = "flows.0.workload.object"
values = ["5kB", "20kB"]
"#;

fn experiment() -> Experiment {
    Experiment::from_toml("test", TEXT, None).unwrap()
}

fn command(cell: Option<&Cell>) -> String {
    cell.map_or("all".to_owned(), |cell| cell.coordinates.join("+"))
}

fn options(jobs: usize) -> Options<'static> {
    Options { selection: selection(), jobs: jobs.try_into().unwrap(), shard: None, qlog: None, journal: None }
}

fn selection() -> Selection<'static> {
    Selection { cells: (0..4).collect(), seeds: 0..3, series: None, command: &command }
}

#[expect(clippy::needless_pass_by_value, reason = "each test makes its own")]
fn sweep(options: Options<'_>, runner: Arc<Runner>) -> Report {
    run_with(&experiment(), options, &mut |_| {}, &AtomicBool::new(false), &runner)
}

fn complete(report: Report) -> ExperimentResult {
    match report.ending {
        Ending::Complete(result) => *result,
        other => panic!("{other:?} at {:?}", report.progress),
    }
}

fn real(options: Options<'_>) -> ExperimentResult {
    complete(sweep(options, Arc::new(crate::run::run)))
}

/// A run that takes no time: its object's size and its seed, to tell them apart.
fn told(spec: &RunSpec, seed: u64) -> RunResult {
    let label = format!("{:?}", spec.flows[0].workload);
    RunResult { trace_hash: format!("{label} {seed} {:?}", spec.series), ..failed(seed, String::new()) }
}

#[expect(clippy::unnecessary_wraps, reason = "a runner may fail")]
fn teller(spec: &RunSpec, seed: u64, _: Option<Arc<dyn QlogSink>>) -> Result<RunResult, RunError> {
    Ok(RunResult { outcome: Outcome::Completed, ..told(spec, seed) })
}

fn journal(folder: &tempfile::TempDir) -> Journal {
    let program = posthaste_campaign::identity::Identity::of_this_program().unwrap();
    Journal::open(folder.path(), "test", &program, false).unwrap()
}

#[test]
fn the_result_does_not_depend_on_the_number_of_jobs() {
    let one = real(options(1));
    assert_eq!(one, real(options(4)));
    assert_eq!((one.cells.len(), one.seeds), (4, 3));
    for cell in &one.cells {
        assert_eq!(cell.runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(cell.runs.iter().all(|run| run.outcome == Outcome::Completed), "{:?}", cell.runs);
        assert!(cell.limit.as_ref().is_some_and(|limit| limit.seconds > 0.0));
        let hashes: BTreeSet<&str> = cell.runs.iter().map(|run| run.trace_hash.as_str()).collect();
        assert_eq!(hashes.len(), 3, "each seed is a run of its own");
    }
    assert_eq!((one.command.as_str(), one.cells[2].command.as_str()), ("all", "average+5kB"));
}

#[test]
fn a_cell_alone_gives_what_it_gives_among_others() {
    let all = real(options(2));
    let alone =
        real(Options { selection: Selection { cells: vec![2], seeds: 1..2, ..selection() }, ..options(2) });
    assert_eq!(alone.cells.len(), 1);
    assert_eq!(alone.cells[0].runs[0], all.cells[2].runs[1]);
    assert_eq!(alone.axes[0].values, ["average"]);
    assert_eq!(alone.axes[1].values, ["5kB"]);
}

#[test]
fn the_first_run_of_a_cell_has_the_series() {
    let series = Some(Duration::from_millis(10));
    let result = real(Options { selection: Selection { series, seeds: 5..7, ..selection() }, ..options(2) });
    for cell in &result.cells {
        assert!(cell.runs[0].series.as_ref().is_some_and(|series| series.times.len() > 5));
        assert!(cell.runs[1].series.is_none());
    }
}

/// The message of a panic is in the test's output; that is meant.
#[test]
fn a_panic_is_a_failed_run_with_cell_and_seed() {
    let result = sweep(
        options(2),
        Arc::new(|spec, seed, qlog| {
            let WorkloadSpecBytes(bytes) = WorkloadSpecBytes::of(spec);
            assert!(bytes != 20_000 || seed != 1, "on purpose");
            teller(spec, seed, qlog)
        }),
    );
    assert_eq!((result.progress.failed, result.progress.done), (2, 12));
    let result = complete(result);
    let reason = "panicked in the cell (good, 20kB) with the seed 1: on purpose";
    assert_eq!(result.cells[1].runs[1].outcome, Outcome::Failed(reason.into()));
    assert_eq!(result.cells[1].runs[2].outcome, Outcome::Completed);
}

struct WorkloadSpecBytes(u64);

impl WorkloadSpecBytes {
    fn of(spec: &RunSpec) -> Self {
        let crate::spec::WorkloadSpec::Bulk { object, .. } = spec.flows[0].workload else {
            panic!("no bulk")
        };
        Self(object.get())
    }
}

#[test]
fn a_run_that_cannot_begin_is_a_failed_run() {
    let result = complete(sweep(options(2), Arc::new(|_, _, _| Err(RunError::NoFlows))));
    let outcome = Outcome::Failed(RunError::NoFlows.to_string());
    assert!(result.cells.iter().flat_map(|cell| &cell.runs).all(|run| run.outcome == outcome));
}

#[test]
fn stacks_that_do_not_repeat_are_told() {
    let noted = |text: &str| {
        let experiment = Experiment::from_toml("test", text, None).unwrap();
        (note(&experiment, &[0, 1, 2, 3]), note(&experiment, &[0, 1]))
    };
    assert_eq!(noted(TEXT), (None, None));
    let text = TEXT
        .replace("source =", "note = \"Mind.\"\nsource =")
        .replace("\"20kB\"]", "{ label = \"bbr\", set = { \"flows.0.stack\" = \"noq:bbr3\" } }]");
    let expected = "Mind. Runs with noq:bbr3 do not repeat bit for bit: the stack seeds itself.";
    assert_eq!(noted(&text), (Some(expected.to_owned()), Some(expected.to_owned())));
    let experiment = Experiment::from_toml("test", &text, None).unwrap();
    assert_eq!(note(&experiment, &[0, 2]).as_deref(), Some("Mind."), "these cells have none of it");
}

#[test]
fn progress_is_told() {
    let mut seen = Vec::new();
    let never = AtomicBool::new(false);
    let runner: Arc<Runner> = Arc::new(teller);
    run_with(&experiment(), options(2), &mut |progress| seen.push(progress), &never, &runner);
    assert!(seen.windows(2).all(|pair| pair[0].done <= pair[1].done));
    assert_eq!(seen.last(), Some(&Progress { done: 12, reused: 0, failed: 0, total: 12 }));
}

#[test]
fn a_sweep_that_is_told_to_end_does_not_wait() {
    let cancel = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&cancel);
    // The first run wishes the end and then never comes back by itself.
    let (keep, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let runner = move |_: &RunSpec, _: u64, _: Option<Arc<dyn QlogSink>>| {
        told.store(true, Ordering::Relaxed);
        let _ = wait.lock().unwrap().recv();
        Err(RunError::NoFlows)
    };
    let runner: Arc<Runner> = Arc::new(runner);
    let report = run_with(&experiment(), options(1), &mut |_| {}, &cancel, &runner);
    assert!(matches!(report.ending, Ending::Cancelled), "{report:?}");
    assert_eq!(report.progress.done, 0);
    drop(keep);
}

/// Counts the runs that are made.
fn counting(count: &Arc<Mutex<usize>>) -> Arc<Runner> {
    let count = Arc::clone(count);
    Arc::new(move |spec, seed, qlog| {
        *count.lock().unwrap() += 1;
        teller(spec, seed, qlog)
    })
}

#[test]
fn what_the_journal_has_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let count = Arc::default();
    let two = Selection { seeds: 0..2, ..selection() };
    let first =
        sweep(Options { journal: Some(journal(&folder)), selection: two, ..options(2) }, counting(&count));
    assert!(first.journal_error.is_none());
    assert_eq!(*count.lock().unwrap(), 8);

    let again = sweep(Options { journal: Some(journal(&folder)), ..options(2) }, counting(&count));
    assert_eq!(again.progress, Progress { done: 12, reused: 8, failed: 0, total: 12 });
    assert_eq!(*count.lock().unwrap(), 12, "the third seed was missing");
    let all = complete(sweep(options(1), counting(&count)));
    assert_eq!(complete(again), all);
}

#[test]
fn a_journal_knows_series_and_makes_runs_with_traces_again() {
    let folder = tempfile::tempdir().unwrap();
    let count = Arc::default();
    drop(sweep(Options { journal: Some(journal(&folder)), ..options(2) }, counting(&count)));
    let with_series = Selection { series: Some(Duration::from_millis(10)), ..selection() };
    let report = sweep(
        Options { journal: Some(journal(&folder)), selection: with_series, ..options(2) },
        counting(&count),
    );
    assert_eq!(report.progress.reused, 8, "four first runs lack their series");
    let qlog: Option<Arc<QlogMaker>> = Some(Arc::new(|_, _, _| None));
    let report = sweep(Options { journal: Some(journal(&folder)), qlog, ..options(2) }, counting(&count));
    assert_eq!(report.progress.reused, 0);
}

#[test]
fn runs_that_panicked_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let report = sweep(
        Options { journal: Some(journal(&folder)), ..options(2) },
        Arc::new(|_, _, _| panic!("on purpose")),
    );
    assert_eq!(report.progress.failed, 12);
    let report = sweep(Options { journal: Some(journal(&folder)), ..options(2) }, Arc::new(teller));
    assert_eq!((report.progress.failed, report.progress.reused), (0, 0));
}

#[test]
fn results_survive_a_journal_that_does_not_take_them() {
    let folder = tempfile::tempdir().unwrap();
    let full = journal(&folder).bounded(0);
    let report = sweep(Options { journal: Some(full), ..options(2) }, Arc::new(teller));
    assert!(report.journal_error.is_some());
    assert_eq!(complete(report), complete(sweep(options(1), Arc::new(teller))));
}

/// Real runs through the journal, bit for bit.
#[test]
fn a_result_is_the_same_after_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let with_series = Selection { series: Some(Duration::from_millis(7)), ..selection() };
    let selection = with_series.clone();
    let made = real(Options { journal: Some(journal(&folder)), selection, ..options(2) });
    let report = sweep(
        Options { journal: Some(journal(&folder)), selection: with_series, ..options(2) },
        Arc::new(|_, _, _| panic!("nothing must run")),
    );
    assert_eq!(report.progress.reused, 12);
    let read = complete(report);
    assert_eq!(serde_json::to_string(&made).unwrap(), serde_json::to_string(&read).unwrap());
}

fn program() -> posthaste_campaign::identity::Identity {
    posthaste_campaign::identity::Identity::of_this_program().unwrap()
}

/// The journals of three shards that `runner` has made.
fn shards(folder: &tempfile::TempDir, runner: &Arc<Runner>) -> Vec<Journal> {
    let made = |index: usize| {
        let shard: Shard = format!("{index}/3").parse().unwrap();
        let path = folder.path().join(index.to_string());
        let header = ShardHeader::new("test", Vec::new(), &experiment(), &selection(), &program(), shard);
        let journal = Journal::open_file(&path, &header, &program(), false).unwrap();
        let report =
            sweep(Options { journal: Some(journal), shard: Some(shard), ..options(2) }, Arc::clone(runner));
        assert!(matches!(report.ending, Ending::Shard), "{report:?}");
        assert_eq!((report.progress.done, report.progress.total), (4, 4));
        let (found, journal) = Journal::read_file::<ShardHeader>(&path, &program()).unwrap();
        assert_eq!(found, header);
        journal
    };
    (0..3).map(made).collect()
}

fn merged(journals: &mut [Journal]) -> Result<ExperimentResult, MergeError> {
    merge(&experiment(), &selection(), &program(), journals, "1/3".parse().unwrap())
}

#[test]
fn shards_together_are_what_one_machine_makes() {
    let folder = tempfile::tempdir().unwrap();
    let count = Arc::default();
    let mut journals = shards(&folder, &counting(&count));
    assert_eq!(*count.lock().unwrap(), 12, "each run was made once");
    let one = complete(sweep(options(2), counting(&count)));
    assert_eq!(merged(&mut journals).unwrap(), one);
    // In any order, and twice.
    let mut again = shards(&folder, &counting(&count));
    assert_eq!(*count.lock().unwrap(), 24, "what a shard has is not made again");
    again.reverse();
    again.append(&mut journals);
    assert_eq!(merged(&mut again).unwrap(), one);
}

#[test]
fn a_shard_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut journals = shards(&folder, &(Arc::new(teller) as Arc<Runner>));
    journals.remove(1);
    let error = merged(&mut journals).unwrap_err();
    let MergeError::Missing { missing: 4, total: 12, first, shard } = &error else { panic!("{error}") };
    assert_eq!((first.as_str(), shard.to_string().as_str()), ("good, 20kB, seed 0", "1/3"));
}

#[test]
fn results_of_one_run_that_differ_are_refused() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut journals = shards(&folders[0], &(Arc::new(teller) as Arc<Runner>));
    let other: Arc<Runner> = Arc::new(|spec, seed, qlog| {
        let packets = u64::from(spec.flows.len() == 1 && seed == 2);
        teller(spec, seed, qlog).map(|result| RunResult { packets, ..result })
    });
    journals.append(&mut shards(&folders[1], &other));
    assert_eq!(merged(&mut journals), Err(MergeError::Differ("good, 20kB, seed 2".to_owned())));
}

#[test]
fn headers_tell_sweeps_apart() {
    let header = |selection: &Selection<'_>, program: &[u8], shard: &str| {
        let program = posthaste_campaign::identity::Identity::of_parts([program]);
        ShardHeader::new("test", Vec::new(), &experiment(), selection, &program, shard.parse().unwrap())
    };
    let one = header(&selection(), b"a", "0/2");
    assert!(one.is_of_same_sweep(&header(&selection(), b"a", "1/2")));
    assert!(!one.is_of_same_sweep(&header(&selection(), b"b", "1/2")));
    assert!(!one.is_of_same_sweep(&header(&Selection { seeds: 0..4, ..selection() }, b"a", "1/2")));
    assert!(!one.is_of_same_sweep(&header(&Selection { cells: vec![1], ..selection() }, b"a", "1/2")));
}

#[test]
fn runs_made_elsewhere_give_what_one_machine_makes() {
    let (experiment, selection) = (experiment(), Selection { series: Some(MS), ..selection() });
    let assignments = assignments(&experiment, &selection, &program());
    let make_one = |it: &Assignment| make(&experiment.cells[it.cell], it.seed, it.series);
    // In another order than that in which they are gathered, as processes make them.
    let mut results: Vec<_> = assignments.iter().rev().map(make_one).collect();
    results.reverse();
    let here = real(Options { selection: selection.clone(), ..options(2) });
    assert_eq!(gather(&experiment, &selection, results.clone()).unwrap(), here);
    results.pop();
    let error = gather(&experiment, &selection, results).unwrap_err().to_string();
    assert!(error.contains("11 results for 12 runs"), "{error}");
}

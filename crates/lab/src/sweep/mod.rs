//! All runs of an experiment, in parallel, with results that do not depend on how.
//!
//! Each pair of a cell and a seed is one item of work. Workers take items in a fixed order and each runs wholly on
//! one thread; results are gathered by index. The plain seed number is the run's seed, the same for all cells, so
//! that stacks are compared on the same luck as far as they behave alike.

mod elsewhere;
mod journal;
mod merge;
mod plan;
mod shard;
mod worker;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration as WallDuration;

use posthaste_campaign::identity::Identity;
use posthaste_transport::QlogSink;
use posthaste_units::Duration;

pub use elsewhere::{Assignment, GatherError, assignments, gather, make};
pub use journal::Journal;
pub use merge::{MergeError, merge};
pub use plan::Plan;
pub use shard::{ParseShardError, Shard, ShardHeader};
use worker::{Item, Runner};

use crate::experiment::{Cell, Experiment, MAX_SEEDS};
use crate::experiment_result::{Axis, CellResult, ExperimentResult, Limit};
use crate::result::{Outcome, RunResult};

/// How often progress is told when nothing happens, and the wish to end is looked for.
const TICK: WallDuration = WallDuration::from_millis(100);

/// Makes the place for the traces of one run: the cell's index in the grid, the cell, the seed.
pub type QlogMaker = dyn Fn(usize, &Cell, u64) -> Option<Arc<dyn QlogSink>> + Send + Sync;

/// What of an experiment is run and reported.
#[derive(Clone)]
pub struct Selection<'a> {
    /// Indices into [`Experiment::cells`], ascending; see [`Experiment::select`].
    pub cells: Vec<usize>,
    /// The seeds of each cell, at most [`MAX_SEEDS`] of them.
    pub seeds: Range<u64>,
    /// Interval of time series of each cell's first run; the experiment's own unless given.
    pub series: Option<Duration>,
    /// The command that repeats a cell, or all of the experiment.
    pub command: &'a dyn Fn(Option<&Cell>) -> String,
}

/// What to run, and how.
pub struct Options<'a> {
    /// What is run.
    pub selection: Selection<'a>,
    /// Threads.
    pub jobs: NonZeroUsize,
    /// The part of the selection that is run; all of it unless given.
    pub shard: Option<Shard>,
    /// Where traces go. With it every run is made again, whatever the journal holds.
    pub qlog: Option<Arc<QlogMaker>>,
    /// Results of earlier sweeps, which takes in those of this one.
    pub journal: Option<Journal>,
}

/// How far a sweep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Runs that are done, those from the journal included.
    pub done: usize,
    /// Of these, runs from the journal.
    pub reused: usize,
    /// Of these, runs that failed.
    pub failed: usize,
    /// All runs.
    pub total: usize,
}

/// How a sweep ended.
#[derive(Debug)]
pub enum Ending {
    /// Everything ran.
    Complete(Box<ExperimentResult>),
    /// A shard's part ran; its results are in the journal.
    Shard,
    /// It was told to end.
    Cancelled,
    /// The system gave it no thread to work on.
    NoThreads,
}

/// What came of a sweep.
#[derive(Debug)]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// How far it came.
    pub progress: Progress,
    /// Why the journal has not all of it. The results are complete nevertheless.
    pub journal_error: Option<std::io::Error>,
}

/// Runs the cells of an experiment. `progress` is told after each run and every now and then; once `cancel` is true
/// the call returns at once and leaves what is running to the end of the process.
pub fn run(
    experiment: &Experiment,
    options: Options<'_>,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Report {
    let runner: Arc<Runner> = Arc::new(crate::run::run);
    run_with(experiment, options, progress, cancel, &runner)
}

fn run_with(
    experiment: &Experiment,
    mut options: Options<'_>,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
    runner: &Arc<Runner>,
) -> Report {
    let mut journal = options.journal.take();
    let mut items = items(experiment, &options.selection, journal.as_ref().map(Journal::program));
    if let Some(shard) = options.shard {
        items = shard.part_of(items);
    }
    let mut sweep = Sweep::new(&options.selection, items.len());
    if let Some(journal) = journal.as_mut().filter(|_| options.qlog.is_none()) {
        sweep.reuse(&mut items, journal);
    }
    let results = worker::start(items, options.jobs, runner, options.qlog.as_ref());
    let mut journal_error = None;
    while sweep.progress.done < sweep.progress.total && !cancel.load(Ordering::Relaxed) {
        progress(sweep.progress);
        match results.recv_timeout(TICK) {
            Ok((item, outcome)) => {
                if let (Ok(result), Some(kept)) = (&outcome, &mut journal)
                    && let Err(error) = kept.append(&item.key, result)
                {
                    journal_error = Some(error);
                    journal = None;
                }
                sweep.place(&item, outcome);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    progress(sweep.progress);
    let progress = sweep.progress;
    let ending = if progress.done == progress.total {
        match options.shard {
            None => Ending::Complete(Box::new(sweep.finish(experiment, &options.selection))),
            Some(_) => Ending::Shard,
        }
    } else if cancel.load(Ordering::Relaxed) {
        Ending::Cancelled
    } else {
        Ending::NoThreads
    };
    Report { ending, progress, journal_error }
}

/// The selection's seeds; those beyond [`MAX_SEEDS`] do not count.
fn seeds_of(selection: &Selection<'_>) -> Range<u64> {
    let Range { start, end } = selection.seeds.clone();
    start..end.min(start.saturating_add(MAX_SEEDS))
}

/// Cell and seed of all runs of a selection, in the order in which they are made and which shards are made of. All cells'
/// first seeds come first, so that the time that is left can be told early.
pub fn runs(selection: &Selection<'_>) -> impl Iterator<Item = (usize, u64)> {
    let cells = &selection.cells;
    seeds_of(selection).flat_map(move |seed| cells.iter().map(move |&cell| (cell, seed)))
}

/// The runs of a selection, as [`runs`] has them.
fn items(experiment: &Experiment, selection: &Selection<'_>, program: Option<&Identity>) -> Vec<Item> {
    debug_assert!(selection.cells.iter().all(|&cell| cell < experiment.cells.len()));
    let cell = |&index: &usize| {
        let cell = &experiment.cells[index];
        (index, Arc::new(cell.clone()), journal::digest_of(program, &cell.spec))
    };
    let cells: Vec<_> = selection.cells.iter().map(cell).collect();
    let item = |(index, (_, seed)): (usize, (usize, u64))| {
        let (position, run) = (index % cells.len(), index / cells.len());
        let (index, cell, digest) = &cells[position];
        let series = (run == 0).then_some(selection.series.or(cell.spec.series)).flatten();
        let key = journal::key(digest, seed, series);
        Item { position, run, index: *index, seed, series, key, cell: Arc::clone(cell) }
    };
    runs(selection).enumerate().map(item).collect()
}

/// The results so far, by place.
struct Sweep {
    /// A list for each chosen cell, in the order of seeds.
    results: Vec<Vec<Option<RunResult>>>,
    progress: Progress,
}

impl Sweep {
    /// Of nothing yet, where `total` runs are to be made.
    fn new(selection: &Selection<'_>, total: usize) -> Self {
        let seeds = seeds_of(selection).count();
        Self {
            results: vec![vec![None; seeds]; selection.cells.len()],
            progress: Progress { done: 0, reused: 0, failed: 0, total },
        }
    }

    /// Takes what the journal has, and leaves the rest.
    fn reuse(&mut self, items: &mut Vec<Item>, journal: &mut Journal) {
        journal.load(items.iter().map(|item| &item.key));
        items.retain(|item| match journal.take(&item.key) {
            Some(result) if result.seed == item.seed => {
                self.progress.reused += 1;
                self.place(item, Ok(result));
                false
            }
            _ => true,
        });
    }

    fn place(&mut self, item: &Item, outcome: Result<RunResult, String>) {
        let result = outcome.unwrap_or_else(|reason| failed(item.seed, reason));
        self.progress.done += 1;
        self.progress.failed += usize::from(matches!(result.outcome, Outcome::Failed(_)));
        self.results[item.position][item.run] = Some(result);
    }

    fn finish(self, experiment: &Experiment, selection: &Selection<'_>) -> ExperimentResult {
        let cells: Vec<CellResult> = selection
            .cells
            .iter()
            .zip(self.results)
            .map(|(&index, runs)| {
                let cell = &experiment.cells[index];
                let runs: Vec<RunResult> = runs.into_iter().flatten().collect();
                CellResult {
                    coordinates: cell.coordinates.clone(),
                    command: (selection.command)(Some(cell)),
                    limit: crate::limit::limit(&cell.spec).map(|limit| over_places(limit, &runs)),
                    published: cell.published.clone(),
                    runs,
                }
            })
            .collect();
        ExperimentResult {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            question: experiment.question.clone(),
            source: experiment.source.clone(),
            command: (selection.command)(None),
            note: note(experiment, &selection.cells),
            baseline: experiment.baseline.clone().filter(|baseline| {
                let position = experiment.axes.iter().position(|axis| axis.name == "stack");
                position.is_some_and(|at| cells.iter().any(|cell| cell.coordinates[at] == *baseline))
            }),
            subject: experiment.subject.clone(),
            axes: axes_of(experiment, &cells),
            metrics: experiment.metrics.clone(),
            seeds: seeds_of(selection).count() as u64,
            cells,
        }
    }
}

/// A cell's limit where its runs begin at places of their own in a recording: the median of theirs.
fn over_places(limit: Limit, runs: &[RunResult]) -> Limit {
    let own: Vec<f64> = runs.iter().filter_map(|run| run.limit).collect();
    match crate::statistics::summarise(&own) {
        None => limit,
        Some(own) => Limit {
            seconds: own.p50,
            terms: format!(
                "median over the places where {} runs begin in the recording, {:.3} to {:.3} s; of its beginning: {}",
                runs.len(),
                own.least,
                own.greatest,
                limit.terms
            ),
            ..limit
        },
    }
}

/// What readers must know: the experiment's own note, and which stacks do not repeat.
fn note(experiment: &Experiment, cells: &[usize]) -> Option<String> {
    let flows = cells.iter().flat_map(|&index| &experiment.cells[index].spec.flows);
    let stacks = flows.filter(|flow| !flow.stack.is_repeatable()).map(|flow| flow.stack.to_string());
    let stacks: BTreeSet<String> = stacks.collect();
    if stacks.is_empty() {
        return experiment.note.clone();
    }
    let names = stacks.into_iter().collect::<Vec<_>>().join(", ");
    let remark = format!("Runs with {names} do not repeat bit for bit: the stack seeds itself.");
    Some(experiment.note.iter().map(String::as_str).chain([remark.as_str()]).collect::<Vec<_>>().join(" "))
}

/// The axes with those values only that a cell has.
fn axes_of(experiment: &Experiment, cells: &[CellResult]) -> Vec<Axis> {
    let axis = |(position, axis): (usize, &Axis)| {
        let is_there = |value: &&String| cells.iter().any(|cell| cell.coordinates[position] == **value);
        Axis { name: axis.name.clone(), values: axis.values.iter().filter(is_there).cloned().collect() }
    };
    experiment.axes.iter().enumerate().map(axis).collect()
}

/// A run that came to nothing.
fn failed(seed: u64, reason: String) -> RunResult {
    RunResult {
        seed,
        outcome: Outcome::Failed(reason),
        virtual_seconds: 0.0,
        limit: None,
        trace_hash: String::new(),
        packets: 0,
        flows: Vec::new(),
        links: Vec::new(),
        series: None,
    }
}

#[cfg(test)]
mod tests;

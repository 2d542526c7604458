//! Sweeps whose runs are made by other processes or machines and gathered here.

use posthaste_campaign::identity::Identity;
use posthaste_campaign::keyed::Key;
use posthaste_units::Duration;

use super::worker::attempt;
use super::{Item, Selection, Sweep, items};
use crate::experiment::{Cell, Experiment};
use crate::experiment_result::ExperimentResult;
use crate::result::RunResult;

/// One run to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The cell's index in [`Experiment::cells`].
    pub cell: usize,
    /// The seed.
    pub seed: u64,
    /// Interval of time series, if it has any.
    pub series: Option<Duration>,
    /// All that its result follows from, for a [`Journal`](super::Journal).
    pub key: Key,
}

/// The results are not those of the assignments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{given} results for {expected} runs: give one result for each, in their order")]
pub struct GatherError {
    given: usize,
    expected: usize,
}

/// All runs of a selection, in the order of [`runs`](super::runs), for this program.
pub fn assignments(
    experiment: &Experiment,
    selection: &Selection<'_>,
    program: &Identity,
) -> Vec<Assignment> {
    let assignment = |Item { index, seed, series, key, .. }| Assignment { cell: index, seed, series, key };
    items(experiment, selection, Some(program)).into_iter().map(assignment).collect()
}

/// Makes one run of a cell.
///
/// # Errors
/// Why there is no result; a panic is one, too.
pub fn make(cell: &Cell, seed: u64, series: Option<Duration>) -> Result<RunResult, String> {
    attempt(cell, seed, series, |spec| crate::run::run(spec, seed, None))
}

/// The result of a selection from those of its [`assignments`], the same as [`run`](super::run)'s.
///
/// # Errors
/// If there is not one result for each.
pub fn gather(
    experiment: &Experiment,
    selection: &Selection<'_>,
    results: Vec<Result<RunResult, String>>,
) -> Result<ExperimentResult, GatherError> {
    let items = items(experiment, selection, None);
    let (given, expected) = (results.len(), items.len());
    if given != expected {
        return Err(GatherError { given, expected });
    }
    let mut sweep = Sweep::new(selection, expected);
    for (item, result) in items.iter().zip(results) {
        sweep.place(item, result);
    }
    Ok(sweep.finish(experiment, selection))
}

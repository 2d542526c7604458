//! One result of what several machines have run.

use posthaste_campaign::identity::Identity;

use super::worker::Item;
use super::{Journal, Selection, Shard, Sweep, items};
use crate::experiment::Experiment;
use crate::experiment_result::ExperimentResult;

/// The journals do not make up a sweep.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Some runs are in none of them.
    #[error(
        "{missing} of {total} runs are missing, the first of them ({first}) of shard {shard}: it has not come to \
         its end, or a run of it failed"
    )]
    Missing {
        /// Number of runs that are missing.
        missing: usize,
        /// Number of runs of the sweep.
        total: usize,
        /// Coordinates of the first one's cell, and its seed.
        first: String,
        /// The shard that makes it.
        shard: Shard,
    },
    /// Two of them have different results of the same run.
    #[error("two files have different results of the run {0}: a machine is faulty, or a file was changed")]
    Differ(String),
}

/// The result of a sweep whose runs are in `journals`, the same as one machine's. `shard` is that of any of them.
///
/// # Errors
/// A run is missing, or there twice with different results.
pub fn merge(
    experiment: &Experiment,
    selection: &Selection<'_>,
    program: &Identity,
    journals: &mut [Journal],
    shard: Shard,
) -> Result<ExperimentResult, MergeError> {
    let items = items(experiment, selection, Some(program));
    let mut results = vec![None; items.len()];
    for journal in journals {
        journal.load(items.iter().map(|item| &item.key));
        for (item, known) in items.iter().zip(&mut results) {
            match journal.take(&item.key).filter(|result| result.seed == item.seed) {
                Some(result) if known.as_ref().is_some_and(|known| *known != result) => {
                    return Err(MergeError::Differ(name_of(item)));
                }
                Some(result) => *known = Some(result),
                None => {}
            }
        }
    }
    if let Some(first) = results.iter().position(Option::is_none) {
        return Err(MergeError::Missing {
            missing: results.iter().filter(|result| result.is_none()).count(),
            total: items.len(),
            first: name_of(&items[first]),
            shard: shard.of_run(first),
        });
    }
    let mut sweep = Sweep::new(selection, items.len());
    for (item, result) in items.iter().zip(results) {
        sweep.place(item, result.ok_or_else(String::new));
    }
    Ok(sweep.finish(experiment, selection))
}

fn name_of(item: &Item) -> String {
    format!("{}, seed {}", item.cell.coordinates.join(", "), item.seed)
}

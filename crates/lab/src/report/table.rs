//! Results for a terminal.

use crate::experiment_result::ExperimentResult;

/// An experiment as plain text. (The columns are to come.)
pub fn print(experiment: &ExperimentResult) -> String {
    format!("{}: {}\n", experiment.name, experiment.title)
}

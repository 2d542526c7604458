//! Results for programs.

use crate::experiment_result::ExperimentResult;

/// Experiments as JSON.
pub fn to_string(experiments: &[ExperimentResult]) -> String {
    serde_json::to_string_pretty(experiments).unwrap_or_default()
}

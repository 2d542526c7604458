//! Results as a page.

use crate::experiment_result::ExperimentResult;

/// One self-contained HTML page. (The figures are to come.)
pub fn page(experiments: &[ExperimentResult]) -> String {
    format!("<!doctype html><title>{} experiments</title>\n", experiments.len())
}

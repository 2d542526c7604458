//! What of an experiment is run or reported.

use posthaste_lab::experiment::{Cell, CellFilter};
use posthaste_lab::sweep::Plan;
use posthaste_units::Duration;

use crate::args::Seeds;
use crate::exit::Failure;
use crate::printer::shell_quote;

/// Of the experiment that the user calls `name`.
///
/// # Errors
/// There is no such experiment, or no such cells.
pub(super) fn of(
    name: &str,
    filters: &[CellFilter],
    seeds: Option<&Seeds>,
    series: Option<Duration>,
) -> Result<Plan, Failure> {
    let experiment = super::find(name)?;
    Plan::new(experiment, filters, seeds.map(|seeds| seeds.0.clone()), series).map_err(|error| {
        Failure::usage(format!("--cells: {error}"))
            .hint(format!("`posthaste lab describe {}` shows the grid", shell_quote(name)))
    })
}

/// The command that repeats a cell, or all of it.
pub(super) fn command(plan: &Plan, cell: Option<&Cell>) -> String {
    let words = plan.words(cell);
    words.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")
}

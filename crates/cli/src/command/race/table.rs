//! The result for people.

use std::fmt::Write as _;
use std::time::Duration;

use posthaste_emulator::Lateness;

use super::figures::{self, Figure};
use super::page;
use super::plan::{Plan, Racer};
use super::tally::{Summary, Tally};
use crate::printer::{self, printable};

/// Lateness at the 99th percentile from which on the figures are doubtful.
pub(super) const DOUBTFUL_LATENESS: posthaste_units::Duration = posthaste_units::Duration::from_millis(1);

/// Characters of a column with a figure, at the least.
const LEAST_WIDTH: usize = 8;

/// Failed runs whose reasons are shown.
const SHOWN_FAILURES: usize = 5;

/// The table and what must be known beside it.
pub(super) fn table(plan: &Plan, tally: &Tally) -> String {
    let summaries = tally.summaries(plan);
    let mut text = rows(plan, tally, &summaries);
    let _ = writeln!(text, "\nLimit   {}: {}", time(plan.limit.seconds), plan.limit.terms);
    if plan.racers.iter().any(Racer::is_model) {
        let _ = writeln!(text, "Models  computed in virtual time over the same path with the same seeds");
    }
    let _ = writeln!(text, "Timing  {}", trust(&tally.lateness(), tally.missed()));
    for warning in warnings(tally) {
        let _ = writeln!(text, "        \x1b[33m{warning}\x1b[0m");
    }
    text + &failures(plan, tally)
}

fn rows(plan: &Plan, tally: &Tally, summaries: &[Summary]) -> String {
    let names: Vec<String> = plan.labels().iter().map(|name| printable(name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("profile".len());
    let has_failures = summaries.iter().any(|summary| summary.failed > 0);
    let baseline = names.get(plan.baseline).map_or("", String::as_str);
    let columns = columns(plan, tally);
    let mut text = format!("\x1b[1m{:width$}  {:>5}", "profile", "runs");
    if has_failures {
        let _ = write!(text, "  {:>6}", "failed");
    }
    for column in &columns {
        let _ = write!(text, "  {:>width$}", column.head, width = column.width);
    }
    let _ = write!(text, "  {:>7}", "x limit");
    if summaries.len() > 1 {
        let _ = write!(text, "  saves against {baseline}");
    }
    text.push_str("\x1b[0m\n");
    for (row, (name, summary)) in names.iter().zip(summaries).enumerate() {
        let _ = write!(text, "{name:width$}  {:>5}", summary.completed + summary.failed);
        if has_failures {
            let _ = write!(text, "  {:>6}", summary.failed);
        }
        for column in &columns {
            let _ = write!(text, "  {}", column.cell(row));
        }
        let ratio = optional(summary.ratio_to_limit, |ratio| format!("{ratio:.2}"));
        let _ = write!(text, "  {ratio:>7}");
        if summaries.len() > 1 {
            let _ = write!(text, "  {}", saves(summary));
        }
        text.push('\n');
    }
    text
}

/// A figure of all racers.
struct Column {
    head: &'static str,
    cells: Vec<String>,
    width: usize,
    /// The row with the least value, in the first column.
    best: Option<usize>,
}

impl Column {
    fn cell(&self, row: usize) -> String {
        let text = format!("{:>width$}", self.cells[row], width = self.width);
        if self.best == Some(row) { format!("\x1b[1;32m{text}\x1b[0m") } else { text }
    }
}

fn columns(plan: &Plan, tally: &Tally) -> Vec<Column> {
    let result = page::result(plan, tally);
    let figures = figures::all(&plan.workload.spec).iter().enumerate();
    let column = |(place, figure): (usize, &Figure)| {
        let values: Vec<Option<f64>> =
            result.cells.iter().map(|cell| figures::value(*figure, &result, cell)).collect();
        let cells: Vec<String> = values.iter().map(|value| figures::text(*figure, *value)).collect();
        let known = values.iter().enumerate().filter_map(|(row, value)| Some((row, (*value)?)));
        let best = known.min_by(|(_, a), (_, b)| a.total_cmp(b)).filter(|_| place == 0);
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let width = width.max(figure.head.len()).max(LEAST_WIDTH);
        Column { head: figure.head, cells, width, best: best.map(|(row, _)| row) }
    };
    figures.map(column).collect()
}

/// `24 % (10 to 35 %)`.
fn saves(summary: &Summary) -> String {
    let Some(saving) = &summary.saving else { return "-".to_owned() };
    let percent = |share: f64| {
        let rounded = (share * 100.0).round();
        // No negative zero.
        if rounded == 0.0 { 0.0 } else { rounded }
    };
    let text =
        format!("{:>3} % ({} to {} %)", percent(saving.share), percent(saving.low), percent(saving.high));
    if saving.low > 0.0 {
        format!("\x1b[32m{text}\x1b[0m")
    } else if saving.high < 0.0 {
        format!("\x1b[31m{text}\x1b[0m")
    } else {
        format!("{text}, which may be chance")
    }
}

/// How much the times can be trusted.
pub(super) fn trust(lateness: &Lateness, missed: u64) -> String {
    let time = |duration: posthaste_units::Duration| printer::duration(duration.into());
    let missed = match missed {
        0 => String::new(),
        count => format!("; the system itself lost {count} packets"),
    };
    format!(
        "real time on this machine; packets left the emulated path {} late on average, {} at p99, {} at most{missed}",
        time(lateness.mean),
        time(lateness.p99),
        time(lateness.max)
    )
}

/// What makes the figures doubtful.
pub(super) fn warnings(tally: &Tally) -> Vec<&'static str> {
    let mut warnings = Vec::new();
    if tally.lateness().p99 > DOUBTFUL_LATENESS {
        warnings
            .push("the machine was too busy for exact times: stop other programs, or choose --parallel 1");
    }
    if tally.missed() > 0 {
        warnings.push(
            "packets were lost that the path did not lose: choose --parallel 1, or raise net.core.rmem_max",
        );
    }
    warnings
}

fn failures(plan: &Plan, tally: &Tally) -> String {
    let mut text = String::new();
    let failed = tally.all_runs().filter_map(|run| Some((run, run.outcome.as_ref().err()?)));
    for (run, reason) in failed.take(SHOWN_FAILURES) {
        let name = printable(&plan.racers[run.start.racer].name);
        let reason = printable(reason);
        let _ = writeln!(
            text,
            "Failed  {name} in round {}, after {} bytes: {reason}",
            run.start.round, run.flow.bytes
        );
    }
    let more = tally.failures().saturating_sub(SHOWN_FAILURES);
    if more > 0 {
        let _ = writeln!(text, "Failed  {more} more");
    }
    text
}

fn time(seconds: f64) -> String {
    printer::duration(Duration::from_secs_f64(seconds))
}

fn optional(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

//! The result for people.

use std::fmt::Write as _;

use super::build;
use super::plan::Plan;
use super::record::{Record, Temperature};
use super::tally::{Cell, Metric, Tally, baseline};
use crate::printer::printable;

/// One run, while it is news.
pub(super) fn line(record: &Record) -> String {
    let key = &record.key;
    let place = format!("{} over {} from {}", key.page, key.path, printable(&key.contestant));
    if !record.is_valid() {
        return format!("{place}: void: {}", record.faults.join("; "));
    }
    let again = if record.voided > 0 { format!(" (attempt {})", record.voided + 1) } else { String::new() };
    if let Some(reason) = &record.seen.failure {
        return format!("{place}: failed: {}{again}", printable(reason));
    }
    let visit = |temperature: Temperature| {
        Some(format!("{} {}", temperature.name(), time(record.visit(temperature)?.load)))
    };
    let visits: Vec<String> = Temperature::ALL.into_iter().filter_map(visit).collect();
    format!("{place}: {}{again}", visits.join(", "))
}

/// All cells.
pub(super) fn table(plan: &Plan, tally: &Tally) -> String {
    let mut text = String::new();
    if tally.was_interrupted {
        let _ = writeln!(
            text,
            "\x1b[33mInterrupted: {} of {} runs were made.\x1b[0m",
            tally.records.len(),
            plan.order().len()
        );
    }
    for page in &plan.pages {
        for path in &plan.paths {
            let _ = writeln!(
                text,
                "\n\x1b[1m{}\x1b[0m ({}) over \x1b[1m{}\x1b[0m ({})",
                printable(&page.name),
                page.description,
                printable(&path.name),
                path.description
            );
            rows(plan, tally, (&page.name, &path.name), &mut text);
        }
    }
    text + &remarks(tally)
}

fn rows(plan: &Plan, tally: &Tally, (page, path): (&str, &str), text: &mut String) {
    let names: Vec<String> = plan.contestants.iter().map(|contestant| printable(&contestant.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let base = &plan.contestants[baseline(plan)];
    let base_cell = tally.cell(page, path, &base.name);
    for temperature in Temperature::ALL.into_iter().take(1 + usize::from(plan.is_warm_wanted)) {
        let _ = writeln!(
            text,
            "\x1b[1m{:width$}  {:>4}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  load / {}\x1b[0m",
            temperature.name(),
            "runs",
            "load",
            "p95",
            "FCP",
            "LCP",
            "connect",
            printable(&base.name)
        );
        for (name, contestant) in names.iter().zip(&plan.contestants) {
            let cell = tally.cell(page, path, &contestant.name);
            let _ = writeln!(text, "{name:width$}  {}", figures(&cell, &base_cell, temperature));
        }
    }
    for (name, contestant) in names.iter().zip(&plan.contestants) {
        let cell = tally.cell(page, path, &contestant.name);
        if let Some(reason) = cell.reason() {
            let _ = writeln!(text, "\x1b[33m{name}: {} failed: {}\x1b[0m", cell.failed(), printable(reason));
        }
        if let Some(void) = cell.void.first() {
            let _ =
                writeln!(text, "\x1b[33m{name}: {} void: {}\x1b[0m", cell.void.len(), void.faults.join("; "));
        }
    }
}

fn figures(cell: &Cell<'_>, base: &Cell<'_>, temperature: Temperature) -> String {
    let median = |metric| {
        cell.summary(temperature, metric).map_or_else(|| "-".to_owned(), |summary| time(summary.p50))
    };
    let p95 =
        cell.summary(temperature, Metric::Load).map_or_else(|| "-".to_owned(), |summary| time(summary.p95));
    let ratio = cell
        .against(base, temperature)
        .and_then(|paired| paired.ratio)
        .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    format!(
        "{:>4}  {:>8}  {p95:>8}  {:>8}  {:>8}  {:>8}  {ratio:>6}",
        cell.runs.len(),
        median(Metric::Load),
        median(Metric::FirstPaint),
        median(Metric::LargestPaint),
        cell.connect(temperature).map_or_else(|| "-".to_owned(), time),
    )
}

/// How far the figures can be trusted.
fn remarks(tally: &Tally) -> String {
    let mut text = format!("\nBrowser  {}", tally.browsers().join(", "));
    if let Some(builds) = build::describe(&tally.records) {
        let _ = write!(text, "\n\x1b[33mBuilds   {}\x1b[0m", printable(&builds));
    }
    if let Some(rate) = tally.background_rate() {
        let _ = write!(text, "\nBeside   the downloads got {:.2} Mbit/s together, median", rate / 1e6);
    }
    if let Some(lateness) = tally.lateness() {
        let _ = write!(
            text,
            "\nTiming   packets left the emulated path {} late at p99 in the worst run that counts; {} attempts were void",
            time(lateness),
            tally.voided()
        );
    }
    text
}

/// Seconds for people, `-` if there are none.
pub(super) fn time(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "-".to_owned();
    }
    crate::printer::duration(std::time::Duration::from_secs_f64(seconds.max(0.0)))
}

//! Every number.

use std::fmt::Write as _;

use posthaste_report::html::escape;

use super::{METRICS, temperatures};
use crate::command::page::plan::{PagePlan, PathPlan, Plan};
use crate::command::page::record::Temperature;
use crate::command::page::table::time;
use crate::command::page::tally::{Cell, Metric, Tally, baseline};

/// One path's table.
pub(super) fn table(plan: &Plan, tally: &Tally, page: &PagePlan, path: &PathPlan) -> String {
    let base = &plan.contestants[baseline(plan)];
    let base_cell = tally.cell(&page.name, &path.name, &base.name);
    let mut out = String::from("<div class=\"scroll\"><table><thead><tr><th>server</th><th>runs</th>");
    for metric in METRICS {
        let _ = write!(out, "<th>{}</th><th>p95</th>", metric.label());
    }
    let _ = write!(out, "<th>connect</th><th>load / {}</th></tr></thead><tbody>", escape(&base.name));
    for temperature in temperatures(plan) {
        let _ = write!(
            out,
            "<tr class=\"group\"><th colspan=\"{}\">{}, {}<span>{}</span></th></tr>",
            4 + 2 * METRICS.len(),
            escape(&path.name),
            temperature.name(),
            escape(&path.description),
        );
        let cells: Vec<Cell<'_>> =
            plan.contestants.iter().map(|one| tally.cell(&page.name, &path.name, &one.name)).collect();
        let best = METRICS.map(|metric| {
            let medians = cells.iter().filter_map(|cell| cell.summary(temperature, metric));
            medians.map(|summary| summary.p50).fold(f64::INFINITY, f64::min)
        });
        for (contestant, cell) in plan.contestants.iter().zip(&cells) {
            let _ = write!(out, "<tr><td>{}</td>", escape(&contestant.name));
            row(cell, &base_cell, temperature, &best, &mut out);
            out.push_str("</tr>");
        }
    }
    out.push_str("</tbody></table></div>\n");
    out.push_str(&troubles(plan, tally, page, path));
    out
}

fn row(cell: &Cell<'_>, base: &Cell<'_>, temperature: Temperature, best: &[f64; 4], out: &mut String) {
    let failed = match cell.failed() {
        0 => String::new(),
        failed => format!(" <span class=\"warn\">{failed} failed</span>"),
    };
    let _ = write!(out, "<td>{}{failed}</td>", cell.runs.len());
    for (metric, best) in METRICS.into_iter().zip(best) {
        let Some(summary) = cell.summary(temperature, metric) else {
            out.push_str("<td>-</td><td>-</td>");
            continue;
        };
        let class = if summary.p50 <= *best && summary.p50.is_finite() { " class=\"best\"" } else { "" };
        let interval = summary
            .median_interval
            .filter(|_| metric == Metric::Load)
            .map(|interval| format!(" <small>{} to {}</small>", time(interval.low), time(interval.high)))
            .unwrap_or_default();
        let _ = write!(out, "<td{class}>{}{interval}</td><td>{}</td>", time(summary.p50), time(summary.p95));
    }
    let connect = cell.connect(temperature).map_or_else(|| "-".to_owned(), time);
    let _ = write!(out, "<td>{connect}</td>{}", ratio(cell, base, temperature));
}

/// A ratio to the baseline with its interval, coloured where it is decided.
fn ratio(cell: &Cell<'_>, base: &Cell<'_>, temperature: Temperature) -> String {
    let Some(paired) = cell.against(base, temperature) else { return "<td>-</td>".to_owned() };
    let Some(ratio) = paired.ratio else { return "<td>-</td>".to_owned() };
    let class = match paired.is_decided() {
        true if ratio < 1.0 => " class=\"faster\"",
        true if ratio > 1.0 => " class=\"slower\"",
        _ => "",
    };
    let interval = paired
        .interval
        .map(|interval| format!(" <small>{:.2} to {:.2}</small>", interval.low, interval.high))
        .unwrap_or_default();
    format!("<td{class}>{ratio:.2}{interval}</td>")
}

/// What failed, and why.
fn troubles(plan: &Plan, tally: &Tally, page: &PagePlan, path: &PathPlan) -> String {
    let mut out = String::new();
    for contestant in &plan.contestants {
        let cell = tally.cell(&page.name, &path.name, &contestant.name);
        let name = escape(&contestant.name);
        if let Some(reason) = cell.reason() {
            let _ = writeln!(
                out,
                "<p class=\"note\">{name}: {} of {} runs failed: {}</p>",
                cell.failed(),
                cell.runs.len(),
                escape(reason)
            );
        }
        if let Some(void) = cell.void.first() {
            let faults = escape(&void.faults.join("; "));
            let _ = writeln!(
                out,
                "<p class=\"note\">{name}: {} runs were void at every attempt: {faults}</p>",
                cell.void.len()
            );
        }
    }
    out
}

//! The outcome for people at a terminal.

use std::fmt::Write as _;

use super::super::table::time;
use super::outcome::{Outcome, Times, Verdict, as_it_is};
use crate::printer::printable;

/// Tables and remarks.
pub(super) fn text(outcome: &Outcome<'_>) -> String {
    let mut text = format!(
        "\x1b[1m{}\x1b[0m\n{}\nthrough the edge: HTTP/3, profile {}\n",
        printable(&outcome.site.url),
        as_it_is(outcome.site),
        printable(outcome.profile)
    );
    for path in &outcome.plan.paths {
        let _ = writeln!(text, "\n\x1b[1m{}\x1b[0m ({})", printable(&path.name), path.description);
        let _ = writeln!(
            text,
            "{:<5} {:<10} {:<33} {:<33} time",
            "visit", "", "as it is (range)", "through the edge (range)"
        );
        for row in outcome.of_path(path) {
            let verdict = match row.verdict {
                Verdict::Faster | Verdict::Slower => format!("\x1b[1m{}\x1b[0m", row.saved_text()),
                Verdict::MayBeChance => format!("{}, may be chance", row.saved_text()),
                Verdict::Unknown => "-".to_owned(),
            };
            let _ = writeln!(
                text,
                "{:<5} {:<10} {:<33} {:<33} {verdict}",
                row.visit,
                row.metric,
                range(row.as_it_is),
                range(row.edge)
            );
        }
    }
    text.push('\n');
    for remark in &outcome.remarks {
        let _ = writeln!(text, "- {remark}");
    }
    text
}

/// Median and range.
pub(super) fn range(times: Option<Times>) -> String {
    times.map_or_else(
        || "-".to_owned(),
        |it| {
            format!(
                "{} ({} to {})",
                time(it.median),
                time(it.least),
                if it.greatest.is_finite() { time(it.greatest) } else { "failed".to_owned() }
            )
        },
    )
}

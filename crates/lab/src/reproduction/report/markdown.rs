//! The judgement as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use posthaste_report::markdown::head;

use super::{
    COLUMNS, INTRODUCTION, KINDS, Made, Notes, QUICK, causes, command, ours, reasons, verdicts_differ,
};
use crate::reproduction::{JudgedFigure, JudgedRow, JudgedRuleSet, Judgement, Verdict};

/// A page about all rows.
pub fn markdown(judgement: &Judgement, made: &Made) -> String {
    let mut out = format!(
        "# Published figures compared with ours\n{INTRODUCTION}\n\n{} rows, {} runs: `{}`. The rules by which each row is read are \
         `experiments/reproduction/*.toml`, the rows `reference/*.csv`.\n",
        judgement.rows(),
        made.runs,
        made.command
    );
    let _ = writeln!(out, "\nRuns of each cell: {}.", seeds(judgement));
    if made.is_quick {
        let _ = writeln!(out, "\n**{QUICK}**");
    }
    out.push_str("\n## What the verdicts mean\n");
    for verdict in COLUMNS {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "- *{}*: {}", verdict.label(), verdict.meaning());
    }
    counts(judgement, &mut out);
    for rule_set in &judgement.rule_sets {
        section(rule_set, &mut out);
    }
    out
}

/// How often each experiment was run.
fn seeds(judgement: &Judgement) -> String {
    let rows = judgement.rule_sets.iter().flat_map(|rule_set| &rule_set.rows);
    let runs = rows.filter_map(|row| Some((row.experiment.as_deref()?, row.seeds)));
    let runs: BTreeMap<&str, u64> = runs.collect();
    runs.iter().map(|(name, seeds)| format!("`{name}` {seeds}")).collect::<Vec<_>>().join(", ")
}

fn counts(judgement: &Judgement, out: &mut String) {
    let _ = writeln!(
        out,
        "\nAn *effect* is a reduction, a gain or a comparison between two senders. A *plain value* is a time or a rate \
         of one: many of them say no more than that a link is full. They are counted apart."
    );
    for (name, is_effect) in KINDS {
        let _ = writeln!(out, "\n## Count of {name}, by scheme");
        table(judgement, &|rule_set, verdict| rule_set.count_of(is_effect, verdict), out);
    }
    out.push_str("\n## Count of all rows, by scheme\n");
    table(judgement, &JudgedRuleSet::count, out);
    out.push_str("\n## Rows that are not reproduced, by what would have to be known\n");
    out.push_str(&head(&["scheme", "rows", "what would have to be known of the paper's setting"]));
    for (scheme, cause, rows) in causes(judgement) {
        let _ = writeln!(out, "| {} | {rows} | {} |", cell(scheme), cell(cause));
    }
}

fn table(judgement: &Judgement, count: &dyn Fn(&JudgedRuleSet, Verdict) -> usize, out: &mut String) {
    let columns: Vec<&str> =
        ["scheme", "rows"].into_iter().chain(COLUMNS.iter().map(|verdict| verdict.label())).collect();
    out.push_str(&head(&columns));
    let mut line = |name: &str, counts: [usize; COLUMNS.len()]| {
        let texts = counts.map(|count| count.to_string());
        let _ = writeln!(out, "| {name} | {} | {} |", counts.iter().sum::<usize>(), texts.join(" | "));
    };
    for rule_set in &judgement.rule_sets {
        line(&cell(&rule_set.scheme), COLUMNS.map(|verdict| count(rule_set, verdict)));
    }
    let all = |verdict| judgement.rule_sets.iter().map(|rule_set| count(rule_set, verdict)).sum();
    line("**all**", COLUMNS.map(all));
}

fn section(rule_set: &JudgedRuleSet, out: &mut String) {
    let notes = Notes::of(rule_set);
    let _ = writeln!(out, "\n## {} ({})\n`reference/{}`.", rule_set.scheme, rule_set.source, rule_set.file);
    if let Some(note) = &rule_set.note {
        let _ = writeln!(out, "{note}");
    }
    let columns = ["row", "published as", "what", "published", "ours", "verdict", "notes"];
    let _ = write!(out, "\n{}", head(&columns));
    for row in &rule_set.rows {
        let _ = writeln!(
            out,
            "| {} | {}, {}{} | {} | {} | {} | {} | {} |",
            row.row,
            cell(&row.published_as),
            cell(&row.setting),
            if row.place.is_empty() { String::new() } else { format!(" ({})", cell(&row.place)) },
            lines(row, |figure| figure.what.clone()),
            lines(row, |figure| figure.published.clone()),
            lines(row, ours),
            verdict(row),
            notes.numbers(row).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
    }
    if !notes.0.is_empty() {
        out.push_str("\nNotes:\n\n");
    }
    for (index, note) in notes.0.iter().enumerate() {
        let _ = writeln!(out, "{}. {}", index + 1, note.replace('\n', " "));
    }
    if let Some(example) = rule_set.rows.iter().find_map(command) {
        let _ = writeln!(out, "\nOne row alone, for example the first that was run: `{example}`.");
    }
}

fn lines(row: &JudgedRow, text: impl Fn(&JudgedFigure) -> String) -> String {
    row.figures.iter().map(|figure| cell(&text(figure))).collect::<Vec<_>>().join("<br>")
}

fn verdict(row: &JudgedRow) -> String {
    let mut lines = vec![format!("**{}**", row.verdict.label())];
    if verdicts_differ(row) {
        let each = row.figures.iter().map(|figure| figure.verdict.map_or("shown", Verdict::label));
        lines.push(format!("({})", each.collect::<Vec<_>>().join("; ")));
    }
    lines.extend(reasons(row).into_iter().map(cell));
    lines.join("<br>")
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

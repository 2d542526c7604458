//! The judgement as a page of its own.

use std::fmt::Write as _;

use super::{
    COLUMNS, INTRODUCTION, KINDS, Made, Notes, QUICK, causes, command, ours, reasons, verdicts_differ,
};
use crate::reproduction::{JudgedFigure, JudgedRow, JudgedRuleSet, Judgement, Verdict};
use posthaste_report::html::{escape, frame};

/// A self-contained page about all rows.
pub fn page(judgement: &Judgement, made: &Made) -> String {
    let links: Vec<(String, &str)> = judgement
        .rule_sets
        .iter()
        .enumerate()
        .map(|(index, rule_set)| (format!("s{index}"), rule_set.scheme.as_str()))
        .collect();
    let mut sections = summary(judgement, made);
    for (index, rule_set) in judgement.rule_sets.iter().enumerate() {
        section(index, rule_set, &mut sections);
    }
    frame("Published figures compared with ours", "Posthaste lab", &links, &sections, FOOTER)
}

const FOOTER: &str = "<footer><p><b>How to read it.</b> Percent in brackets are the effect that is judged: how much more or less than what the \
    paper compares with. An interval is a bootstrap over our runs (95&#8239;%, seeds drawn in pairs). Everything is in virtual time and repeats bit for \
    bit; the command of each row stands below its table.</p></footer>\n";

/// A colour of the style sheet for each verdict, with good contrast to its neighbours.
fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "var(--c2)",
        Verdict::SameDirection => "var(--c4)",
        Verdict::NotReproduced => "var(--c1)",
        Verdict::CannotHold => "var(--c6)",
        Verdict::NoEffect => "var(--c5)",
        Verdict::NotMeasured | Verdict::Fitted | Verdict::Repeated => "var(--axis)",
    }
}

fn summary(judgement: &Judgement, made: &Made) -> String {
    let mut out = format!(
        "<section>\n<h1>Published figures compared with ours</h1>\n<p class=\"question\">{}</p>\n<ul class=\"facts\"><li><b>{}</b> rows</li>\
         <li><b>{}</b> runs</li></ul>\n<p class=\"caption\">All of it again: <code class=\"copy\">{}</code></p>\n",
        escape(INTRODUCTION),
        judgement.rows(),
        made.runs,
        escape(&made.command)
    );
    if made.is_quick {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(QUICK));
    }
    out.push_str("<h3>Count of each, by scheme</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th></th><th>rows</th><th></th>");
    for verdict in COLUMNS {
        // Writing to a text cannot fail.
        let _ = write!(out, "<th>{}</th>", verdict.label());
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (index, rule_set) in judgement.rule_sets.iter().enumerate() {
        let name = format!(
            "<a href=\"#s{index}\">{}</a> <span class=\"ci\">{}</span>",
            escape(&rule_set.scheme),
            escape(&rule_set.source)
        );
        count_row(&name, rule_set.rows.len(), &|verdict| rule_set.count(verdict), &mut out);
    }
    count_row("all", judgement.rows(), &|verdict| judgement.count(verdict), &mut out);
    for (name, is_effect) in KINDS {
        let count = |verdict| judgement.count_of(is_effect, verdict);
        count_row(name, COLUMNS.map(count).iter().sum(), &count, &mut out);
    }
    out.push_str("</tbody>\n</table></div>\n<h3>What the verdicts mean</h3>\n<dl>");
    for verdict in COLUMNS {
        let _ = writeln!(
            out,
            "<dt>{}{}</dt><dd>{}</dd>",
            square(verdict),
            verdict.label(),
            escape(verdict.meaning())
        );
    }
    out.push_str(
        "</dl>\n<h3>Rows that are not reproduced, by what would have to be known</h3>\n<div class=\"scroll\"><table><tbody>\n",
    );
    for (scheme, cause, rows) in causes(judgement) {
        let (scheme, cause) = (escape(scheme), escape(cause));
        let _ = writeln!(
            out,
            "<tr><td class=\"label\">{scheme}</td><td>{rows}</td><td class=\"left\">{cause}</td></tr>"
        );
    }
    out.push_str("</tbody>\n</table></div>\n</section>\n");
    out
}

/// `name` is HTML.
fn count_row(name: &str, rows: usize, count: &dyn Fn(Verdict) -> usize, out: &mut String) {
    let _ = write!(out, "<tr><td class=\"label\">{name}</td><td>{rows}</td><td>{}</td>", bar(rows, count));
    for verdict in COLUMNS {
        let number = count(verdict);
        let _ =
            write!(out, "<td>{}</td>", if number == 0 { "\u{2013}".to_owned() } else { number.to_string() });
    }
    out.push_str("</tr>\n");
}

/// Shares of the verdicts, side by side.
fn bar(rows: usize, count: &dyn Fn(Verdict) -> usize) -> String {
    let mut out = String::from("<svg viewBox=\"0 0 200 12\" style=\"width:130px\" aria-hidden=\"true\">");
    let mut left = 0.0;
    for verdict in COLUMNS {
        let width = 200.0 * count(verdict) as f64 / rows.max(1) as f64;
        let _ = write!(
            out,
            "<rect x=\"{left:.1}\" y=\"1\" width=\"{width:.1}\" height=\"10\" style=\"fill:{}\"/>",
            colour(verdict)
        );
        left += width;
    }
    out.push_str("</svg>");
    out
}

fn square(verdict: Verdict) -> String {
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 22 10\" aria-hidden=\"true\"><rect width=\"14\" height=\"10\" style=\"fill:{}\"/></svg>",
        colour(verdict)
    )
}

fn section(index: usize, rule_set: &JudgedRuleSet, out: &mut String) {
    let notes = Notes::of(rule_set);
    let _ = write!(
        out,
        "<section id=\"s{index}\">\n<div class=\"name\">reference/{}</div>\n<h2>{}</h2>\n<p class=\"question\">{}</p>\n",
        escape(&rule_set.file),
        escape(&rule_set.scheme),
        escape(&rule_set.source)
    );
    if let Some(note) = &rule_set.note {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
    out.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th>row</th><th class=\"left\">setting</th><th class=\"left\">what</th>\
         <th class=\"left\">published</th><th class=\"left\">ours</th><th class=\"left\">verdict</th><th class=\"left\">notes</th></tr></thead>\n",
    );
    let mut group = None;
    for row in &rule_set.rows {
        if group != Some(&row.published_as) {
            let (end, name) = (if group.is_some() { "</tbody>\n" } else { "" }, escape(&row.published_as));
            let _ = writeln!(out, "{end}<tbody><tr class=\"group\"><th colspan=\"7\">{name}</th></tr>");
            group = Some(&row.published_as);
        }
        table_row(index, row, &notes, out);
    }
    out.push_str("</tbody>\n</table></div>\n");
    note_list(index, &notes, out);
    commands(rule_set, out);
    out.push_str("</section>\n");
}

fn table_row(index: usize, row: &JudgedRow, notes: &Notes, out: &mut String) {
    let place = if row.place.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"ci\">{}</span>", escape(&row.place))
    };
    let numbers: Vec<String> = notes
        .numbers(row)
        .iter()
        .map(|number| format!("<a href=\"#s{index}n{number}\">{number}</a>"))
        .collect();
    let _ = writeln!(
        out,
        "<tr><td>{}</td><td class=\"left wrap\">{}{place}</td><td class=\"left wrap\">{}</td><td class=\"left\">{}</td><td class=\"left wrap\">{}</td>\
         <td class=\"left wrap\">{}</td><td class=\"left\">{}</td></tr>",
        row.row,
        escape(&row.setting),
        lines(row, |figure| escape(&figure.what)),
        lines(row, |figure| escape(&figure.published)),
        lines(row, ours_cell),
        verdict(row),
        numbers.join(", ")
    );
}

fn ours_cell(figure: &JudgedFigure) -> String {
    let whole = ours(figure);
    match whole.strip_prefix(figure.ours.as_str()) {
        Some(detail) => format!("{}<span class=\"ci\">{}</span>", escape(&figure.ours), escape(detail)),
        None => escape(&whole),
    }
}

fn lines(row: &JudgedRow, text: impl Fn(&JudgedFigure) -> String) -> String {
    row.figures.iter().map(text).collect::<Vec<_>>().join("<br>")
}

fn verdict(row: &JudgedRow) -> String {
    let mut lines = vec![format!("{}<b>{}</b>", square(row.verdict), row.verdict.label())];
    let small = |text: &str| format!("<span class=\"ci\">{}</span>", escape(text));
    if verdicts_differ(row) {
        lines.extend(row.figures.iter().map(|figure| small(figure.verdict.map_or("shown", Verdict::label))));
    }
    lines.extend(reasons(row).into_iter().map(small));
    lines.join("<br>")
}

fn note_list(index: usize, notes: &Notes, out: &mut String) {
    if notes.0.is_empty() {
        return;
    }
    out.push_str("<h3>Notes</h3>\n<dl>");
    for (place, note) in notes.0.iter().enumerate() {
        let number = place + 1;
        let _ = writeln!(out, "<dt id=\"s{index}n{number}\">{number}</dt><dd>{}</dd>", escape(note));
    }
    out.push_str("</dl>\n");
}

fn commands(rule_set: &JudgedRuleSet, out: &mut String) {
    out.push_str("<details><summary>Commands<span>each row alone</span></summary>\n<dl>");
    for row in &rule_set.rows {
        if let Some(command) = command(row) {
            let _ = writeln!(out, "<dt>row {}</dt><dd><code>{}</code></dd>", row.row, escape(&command));
        }
    }
    out.push_str("</dl></details>\n");
}

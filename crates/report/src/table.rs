//! Results for a terminal: plain text, aligned, 120 columns where names permit.

use super::layout::{Group, Incomplete, Layout, Member, UNREPEATABLE, UNREPEATABLE_NOTE};
use super::rivals;
use crate::experiment_result::{CellResult, ExperimentResult};
use crate::metric::{self, Column, Scale, Unit};
use crate::statistics::{Interval, Paired};

/// Columns of text that a block of the table fills at most, unless a name or a single column is wider.
const WIDTH: usize = 120;

/// Where a number is missing.
const NOTHING: &str = "-";

/// A table's column: a head, and a cell for each member of each group.
struct TableColumn {
    head: Vec<String>,
    /// By group, then by member.
    cells: Vec<Vec<String>>,
}

impl TableColumn {
    fn width(&self) -> usize {
        let texts = self.head.iter().chain(self.cells.iter().flatten());
        texts.map(|text| width(text)).max().unwrap_or(0)
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// An experiment as plain text: a block for each group of cells with median, 95 % confidence interval, 95th
/// percentile, ratio to the limit and to the baseline; then what did not finish, and what others have published.
pub fn print(experiment: &ExperimentResult) -> String {
    let layout = Layout::new(experiment);
    let mut out = String::new();
    heading(&mut out, &layout);
    let names = TableColumn {
        head: vec![String::new()],
        cells: each(&layout, |_, member| printable(&member.label())),
    };
    let mut block: Vec<TableColumn> = Vec::new();
    let mut used = names.width() + 2;
    for column in columns(&layout) {
        if !block.is_empty() && used + column.width() + 2 > WIDTH {
            write_block(&mut out, &layout, &names, &block);
            block.clear();
            used = names.width() + 2;
        }
        used += column.width() + 2;
        block.push(column);
    }
    write_block(&mut out, &layout, &names, &block);
    out.push_str(&printable_lines(&rivals::lines(&layout)));
    footing(&mut out, &layout);
    out
}

/// Control characters of a hostile name must not reach the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn printable_lines(lines: &[String]) -> String {
    lines.iter().map(|line| printable(line) + "\n").collect()
}

fn push(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

fn heading(out: &mut String, layout: &Layout<'_>) {
    let experiment = layout.experiment;
    push(out, &format!("{}: {}", printable(&experiment.name), printable(&experiment.title)));
    for line in [Some(&experiment.question), experiment.note.as_ref()].into_iter().flatten() {
        if !line.is_empty() {
            push(out, &printable(line));
        }
    }
    push(out, &printable(&experiment.command));
    for name in &layout.unknown {
        push(
            out,
            &printable(&format!(
                "! {}",
                metric::find(name).map_or_else(|error| error.to_string(), |_| String::new())
            )),
        );
    }
}

fn each(layout: &Layout<'_>, text: impl Fn(&Group<'_>, &Member<'_>) -> String) -> Vec<Vec<String>> {
    let groups = layout.groups.iter();
    groups.map(|group| group.members.iter().map(|member| text(group, member)).collect()).collect()
}

fn columns(layout: &Layout<'_>) -> Vec<TableColumn> {
    let mut columns = vec![TableColumn {
        head: vec!["runs".to_owned(), "done".to_owned()],
        cells: each(layout, |_, member| {
            let incomplete = Incomplete::of(member.cell);
            format!("{}/{}", incomplete.runs - incomplete.total(), incomplete.runs)
        }),
    }];
    columns.extend(headline_columns(layout));
    for column in &layout.further {
        columns.push(further_column(layout, *column));
    }
    columns
}

fn headline_columns(layout: &Layout<'_>) -> Vec<TableColumn> {
    let scales = layout.scales(layout.headline);
    let summaries = |text: &dyn Fn(&crate::statistics::Summary, Scale) -> String| -> Vec<Vec<String>> {
        let with_scales = layout.groups.iter().zip(&scales);
        let texts = with_scales.map(|(group, scale)| {
            let members = group.members.iter().map(|member| layout.sample(member.cell).summary());
            members.map(|summary| summary.map_or_else(|| NOTHING.to_owned(), |s| text(&s, *scale))).collect()
        });
        texts.collect()
    };
    let suffix = scales.first().map_or("", |scale| scale.suffix);
    let label = layout.headline.metric.label;
    let mut columns = vec![
        TableColumn {
            head: vec![label.to_owned(), with_unit("median", suffix)],
            cells: summaries(&|summary, scale| scale.number(summary.p50)),
        },
        TableColumn {
            head: vec!["95 % CI".to_owned()],
            cells: summaries(&|summary, scale| interval(summary.median_interval, scale)),
        },
        TableColumn {
            head: vec!["p95".to_owned()],
            cells: summaries(&|summary, scale| scale.number(summary.p95)),
        },
    ];
    if layout.has_limits() {
        columns.push(to_limit_column(layout));
    }
    if let Some(baseline) = layout.baseline {
        columns.push(TableColumn {
            head: vec![format!("x {}", printable(baseline)), "[95 % CI]".to_owned()],
            cells: each(layout, |_, member| paired(layout.against_baseline(member.cell))),
        });
    }
    columns
}

fn with_unit(text: &str, suffix: &str) -> String {
    if suffix.is_empty() { text.to_owned() } else { format!("{text}, {suffix}") }
}

fn to_limit_column(layout: &Layout<'_>) -> TableColumn {
    let scale = Unit::Times.scale(1.0);
    let cells = each(layout, |_, member| {
        let limit = member.cell.limit.as_ref().filter(|limit| limit.seconds > 0.0);
        let median = layout.sample(member.cell).summary().map(|summary| summary.p50);
        median
            .zip(limit)
            .map_or_else(|| NOTHING.to_owned(), |(median, limit)| scale.number(median / limit.seconds))
    });
    TableColumn { head: vec!["x limit".to_owned()], cells }
}

fn further_column(layout: &Layout<'_>, column: Column) -> TableColumn {
    let scales = layout.scales(column);
    let with_scales = layout.groups.iter().zip(&scales);
    let cells = with_scales.map(|(group, scale)| {
        let values = group.members.iter().map(|member| column.value(layout.experiment, member.cell));
        values.map(|value| value.map_or_else(|| NOTHING.to_owned(), |value| scale.number(value))).collect()
    });
    let cells = cells.collect();
    let suffix = scales.first().map_or("", |scale| scale.suffix);
    TableColumn { head: vec![column.label(), suffix.to_owned()], cells }
}

fn interval(interval: Option<Interval>, scale: Scale) -> String {
    let interval = interval.filter(|interval| interval.low.is_finite() || interval.high.is_finite());
    interval.map_or_else(
        || NOTHING.to_owned(),
        |interval| format!("{}..{}", scale.number(interval.low), scale.number(interval.high)),
    )
}

fn paired(paired: Option<Paired>) -> String {
    let Some(paired) = paired else { return NOTHING.to_owned() };
    let number = |value: f64| if value.is_finite() { format!("{value:.2}") } else { "inf".to_owned() };
    let is_measured = |ratio: f64| ratio.is_finite() && ratio > 0.0;
    let ratio = paired.ratio.map_or_else(
        || "?".to_owned(),
        |ratio| match ratio {
            // One of the two met its deadline in the middle of all pairs.
            ratio if is_measured(ratio) => number(ratio),
            ratio if ratio > 1.0 => ">1".to_owned(),
            _ => "<1".to_owned(),
        },
    );
    let interval = paired.interval.filter(|i| is_measured(i.low) || is_measured(i.high));
    let interval = interval.map(|i| format!(" [{}..{}]", number(i.low), number(i.high)));
    ratio + &interval.unwrap_or_default()
}

fn write_block(out: &mut String, layout: &Layout<'_>, names: &TableColumn, block: &[TableColumn]) {
    push(out, "");
    let name_width = names.width();
    let line = |out: &mut String, name: &str, texts: &mut dyn Iterator<Item = &str>| {
        let mut line = format!("  {name:name_width$}");
        for (text, column) in texts.zip(block) {
            let padding = column.width().saturating_sub(width(text));
            line.extend(["  ", &" ".repeat(padding), text]);
        }
        push(out, &line);
    };
    let height = block.iter().map(|column| column.head.len()).max().unwrap_or(0);
    for row in 0..height {
        line(out, "", &mut block.iter().map(|column| column.head.get(row).map_or("", String::as_str)));
    }
    for (index, group) in layout.groups.iter().enumerate() {
        push(out, &group_line(group));
        for (row, name) in names.cells[index].iter().enumerate() {
            line(out, name, &mut block.iter().map(|column| column.cells[index][row].as_str()));
        }
    }
}

fn group_line(group: &Group<'_>) -> String {
    let limit = group.members.iter().find_map(|member| member.cell.limit.as_ref());
    let limit =
        limit.map(|limit| format!("  (limit {})", Unit::Seconds.text(limit.seconds))).unwrap_or_default();
    format!("{}{limit}", printable(&group.label()))
}

fn footing(out: &mut String, layout: &Layout<'_>) {
    let mut is_first = true;
    for group in &layout.groups {
        for member in &group.members {
            let Some(text) = Incomplete::of(member.cell).describe() else { continue };
            if std::mem::take(&mut is_first) {
                push(out, "\nincomplete (counted as slower than all others)");
            }
            let (label, name) = (printable(&group.label()), printable(member.name));
            push(out, &format!("  {label}, {name}: {}", printable(&text)));
        }
    }
    is_first = true;
    for group in &layout.groups {
        for member in &group.members {
            for published in &member.cell.published {
                if std::mem::take(&mut is_first) {
                    push(out, "\nbeside published figures");
                }
                let line = published_line(layout, member.cell, published);
                push(out, &format!("  {}, {}: {line}", printable(&group.label()), printable(member.name)));
            }
        }
    }
    push(out, "");
    push(
        out,
        &format!("{} runs a cell. CI: 95 % of the median, from order statistics.", layout.experiment.seeds),
    );
    if layout.has_unrepeatable() {
        push(out, &format!("{UNREPEATABLE} {UNREPEATABLE_NOTE}."));
    }
    if let Some(baseline) = layout.baseline {
        push(out, &format!("x {0}: median of the ratios to {0} for the same seed.", printable(baseline)));
    }
    if layout.has_limits() {
        push(out, "x limit: median over the least time that the path permits.");
    }
}

fn published_line(
    layout: &Layout<'_>,
    cell: &CellResult,
    published: &crate::experiment_result::Published,
) -> String {
    let beside = metric::beside(layout.experiment, cell, published);
    let unit = metric::find(&published.metric).map(Column::unit);
    let text = |value: f64| unit.as_ref().map_or_else(|_| NOTHING.to_owned(), |unit| unit.text(value));
    let theirs = beside.published.map_or_else(|| format!("{} {}", published.value, published.unit), text);
    let ours = beside.ours.map_or_else(|| NOTHING.to_owned(), text);
    let ratio = beside.ratio.map(|ratio| format!(", {ratio:.2} x")).unwrap_or_default();
    let verdict = published.verdict.as_ref().map(|verdict| format!(", {verdict}")).unwrap_or_default();
    printable(&format!(
        "{}: {ours}, published {theirs}{ratio}{verdict} ({})",
        published.metric, published.source
    ))
}

//! The page's tables: everything in numbers, published figures beside ours, limits, and commands.

use std::fmt::Write as _;

use super::style::Look;
use super::svg::escape;
use crate::layout::{Group, Incomplete, Layout, Member};
use crate::metric::{self, Column, Scale, Unit};
use crate::statistics::{Interval, Paired, Summary};

const NOTHING: &str = "\u{2013}";

/// A piece of a line in the series' look, as wide as a word.
pub(super) fn swatch(look: Look, series: usize) -> String {
    format!(
        r#"<svg class="swatch" viewBox="0 0 22 10" aria-hidden="true"><g class="{}"><path class="curve" d="M0 6H22"/></g></svg>"#,
        look.classes(series)
    )
}

/// The table of all cells: the headline metric from every side.
pub(super) fn cells(layout: &Layout<'_>, looks: &[Look]) -> String {
    let scales = layout.scales(layout.headline);
    let width = 7 + usize::from(layout.has_limits()) + usize::from(layout.baseline.is_some());
    let mut out = String::from("<div class=\"scroll\"><table>\n");
    head(&mut out, layout, &scales);
    for (group, scale) in layout.groups.iter().zip(scales) {
        group_head(&mut out, layout, group, width);
        let best = best_of(layout, group);
        for member in &group.members {
            row(&mut out, layout, member, looks, (scale, best));
        }
        out.push_str("</tbody>\n");
    }
    out.push_str("</table></div>\n");
    out
}

/// The table of the other metrics; empty if there are none.
pub(super) fn further(layout: &Layout<'_>, looks: &[Look]) -> String {
    if layout.further.is_empty() {
        return String::new();
    }
    let scales: Vec<Vec<Scale>> = layout.further.iter().map(|column| layout.scales(*column)).collect();
    let mut out = String::from(
        "<details><summary>Further metrics<span>medians, unless said, with their 95&#8239;% confidence intervals</span></summary>\n\
            <div class=\"scroll second\"><table>\n<thead><tr><th></th>",
    );
    for (column, scales) in layout.further.iter().zip(&scales) {
        let suffix = unit_of(scales);
        let (label, doc) = (escape(&column.label()), escape(column.metric.doc));
        let _ = write!(out, "<th title=\"{doc}\">{label}{suffix}</th>");
    }
    out.push_str("</tr></thead>\n");
    for (index, group) in layout.groups.iter().enumerate() {
        group_head(&mut out, layout, group, layout.further.len() + 1);
        for member in &group.members {
            name_cell(&mut out, member, looks);
            for (column, scales) in layout.further.iter().zip(&scales) {
                out.push_str(&further_cell(layout, *column, member, scales[index]));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n");
    }
    out.push_str("</table></div></details>\n");
    out
}

fn further_cell(layout: &Layout<'_>, column: Column, member: &Member<'_>, scale: Scale) -> String {
    let summary = column.metric.sample(layout.experiment, member.cell).summary();
    let value = summary.as_ref().and_then(|summary| column.statistic.of(summary));
    let (Some(summary), Some(value)) = (summary, value) else { return format!("<td>{NOTHING}</td>") };
    let of_statistic = match column.statistic {
        metric::Statistic::Mean => summary.mean_interval,
        metric::Statistic::P50 => summary.median_interval,
        _ => None,
    };
    let (value, interval) = (escape(&scale.number(value)), interval(of_statistic, scale));
    format!("<td>{value} <span class=\"ci\">{interval}</span></td>")
}

fn unit_of(scales: &[Scale]) -> String {
    let suffix = scales.first().map_or("", |scale| scale.suffix);
    if suffix.is_empty() { String::new() } else { format!(", {suffix}") }
}

/// Begins a body with a group's name; the caller ends it.
fn group_head(out: &mut String, layout: &Layout<'_>, group: &Group<'_>, width: usize) {
    let limit = super::cdf::limit_of(layout, group);
    let limit =
        limit.map(|limit| format!("<span>limit {}</span>", Unit::Seconds.text(limit))).unwrap_or_default();
    let label = escape(&group.label());
    let _ = writeln!(out, "<tbody><tr class=\"group\"><th colspan=\"{width}\">{label}{limit}</th></tr>");
}

/// Begins a row with a stack's name; the caller ends it.
fn name_cell(out: &mut String, member: &Member<'_>, looks: &[Look]) {
    let look = looks[member.series];
    let ours = if look.is_ours { "ours" } else { "" };
    let (swatch, name) = (swatch(look, member.series), escape(&member.label()));
    let _ = write!(out, "<tr class=\"{ours}\"><td class=\"label\">{swatch}{name}</td>");
}

fn head(out: &mut String, layout: &Layout<'_>, scales: &[Scale]) {
    let (label, unit) = (escape(layout.headline.metric.label), unit_of(scales));
    let _ = write!(
        out,
        "<thead><tr><th></th><th>runs<br>done</th><th>{label}{unit}<br>median [95&#8239;% CI]</th>"
    );
    out.push_str("<th>mean \u{b1} 95&#8239;% CI</th><th>p95</th><th>p99</th><th>CoV</th>");
    if layout.has_limits() {
        out.push_str("<th>median<br>\u{d7} limit</th>");
    }
    if let Some(baseline) = layout.baseline {
        let _ = write!(out, "<th>run by run<br>\u{d7} {} [95&#8239;% CI]</th>", escape(baseline));
    }
    out.push_str("</tr></thead>\n");
}

/// The best median of a group, to be set in bold.
fn best_of(layout: &Layout<'_>, group: &Group<'_>) -> f64 {
    let medians = group.members.iter().filter_map(|member| Some(layout.sample(member.cell).summary()?.p50));
    match layout.headline.metric.better {
        metric::Better::Lower => medians.fold(f64::INFINITY, f64::min),
        metric::Better::Higher => medians.fold(f64::NEG_INFINITY, f64::max),
        metric::Better::Neither => f64::NAN,
    }
}

fn row(
    out: &mut String,
    layout: &Layout<'_>,
    member: &Member<'_>,
    looks: &[Look],
    (scale, best): (Scale, f64),
) {
    name_cell(out, member, looks);
    let incomplete = Incomplete::of(member.cell);
    match incomplete.describe() {
        Some(text) => {
            let (done, text) = (incomplete.runs - incomplete.total(), escape(&format!("incomplete: {text}")));
            let _ = write!(out, "<td class=\"warn\" title=\"{text}\">{done} of {}</td>", incomplete.runs);
        }
        None => cell(out, Some(&incomplete.runs.to_string())),
    }
    let summary = layout.sample(member.cell).summary();
    headline(out, layout, summary.as_ref(), scale, best);
    if layout.has_limits() {
        let limit = member.cell.limit.as_ref().map(|limit| limit.seconds).filter(|limit| *limit > 0.0);
        let ratio =
            summary.zip(limit).map(|(summary, limit)| Unit::Times.scale(1.0).number(summary.p50 / limit));
        cell(out, ratio.as_deref());
    }
    if layout.baseline.is_some() {
        out.push_str(&paired(layout, layout.against_baseline(member.cell)));
    }
    out.push_str("</tr>\n");
}

fn cell(out: &mut String, text: Option<&str>) {
    let _ = write!(out, "<td>{}</td>", text.map_or(NOTHING.to_owned(), escape));
}

fn headline(out: &mut String, layout: &Layout<'_>, summary: Option<&Summary>, scale: Scale, best: f64) {
    let Some(summary) = summary else {
        out.push_str(&format!("<td>{NOTHING}</td>").repeat(5));
        return;
    };
    let is_best = layout.series.len() > 1 && summary.p50.total_cmp(&best).is_eq() && best.is_finite();
    let class = if is_best { "best" } else { "" };
    let interval = interval(summary.median_interval, scale);
    let median = escape(&scale.number(summary.p50));
    let _ = write!(out, "<td class=\"{class}\">{median} <span class=\"ci\">{interval}</span></td>");
    let mean = summary.mean.map(|mean| {
        let half = summary.mean_interval.map(|i| format!(" \u{b1} {}", scale.number((i.high - i.low) / 2.0)));
        scale.number(mean) + &half.unwrap_or_default()
    });
    cell(out, mean.as_deref());
    cell(out, Some(&scale.number(summary.p95)));
    cell(out, Some(&scale.number(summary.p99)));
    cell(out, summary.cov.map(|cov| format!("{cov:.2}")).as_deref());
}

fn interval(interval: Option<Interval>, scale: Scale) -> String {
    let interval = interval.filter(|i| i.low.is_finite() || i.high.is_finite());
    let text = interval.map(|i| format!("[{}, {}]", scale.number(i.low), scale.number(i.high)));
    escape(&text.unwrap_or_default())
}

fn paired(layout: &Layout<'_>, paired: Option<Paired>) -> String {
    let Some(paired) = paired else { return format!("<td>{NOTHING}</td>") };
    let number = |value: f64| if value.is_finite() { format!("{value:.2}") } else { "\u{221e}".to_owned() };
    let ratio = escape(&paired.ratio.map_or_else(|| "?".to_owned(), ratio_text));
    let class = match (paired.is_decided(), paired.ratio, layout.headline.metric.better) {
        (true, Some(ratio), metric::Better::Lower) => {
            if ratio < 1.0 {
                "faster"
            } else {
                "slower"
            }
        }
        (true, Some(ratio), metric::Better::Higher) => {
            if ratio > 1.0 {
                "faster"
            } else {
                "slower"
            }
        }
        _ => "",
    };
    let interval = paired
        .interval
        .filter(|interval| is_measured(interval.low) || is_measured(interval.high))
        .map(|i| format!(" <span class=\"ci\">[{}, {}]</span>", number(i.low), number(i.high)));
    let tip = format!(
        "{} pairs of equal seed, {} undetermined, {} below 1",
        paired.pairs, paired.undetermined, paired.below
    );
    format!("<td class=\"{class}\" title=\"{tip}\">{ratio}{}</td>", interval.unwrap_or_default())
}

/// False for what the deadline has made of a ratio: nothing, or without end.
pub(super) fn is_measured(ratio: f64) -> bool {
    ratio.is_finite() && ratio > 0.0
}

fn ratio_text(ratio: f64) -> String {
    match ratio {
        ratio if is_measured(ratio) => format!("{ratio:.2}"),
        ratio if ratio > 1.0 => ">1".to_owned(),
        _ => "<1".to_owned(),
    }
}

/// Against the baseline, in how many groups a stack is better, worse, or not to be told apart.
pub(super) fn scoreboard(layout: &Layout<'_>, looks: &[Look]) -> String {
    let (Some(baseline), true) = (layout.baseline, layout.groups.len() > 1) else { return String::new() };
    let is_higher_better = layout.headline.metric.better == metric::Better::Higher;
    let mut rows = String::new();
    for (series, look) in looks.iter().enumerate() {
        let members = layout.groups.iter().flat_map(|group| &group.members).filter(|m| m.series == series);
        let pairs: Vec<Paired> = members.filter_map(|member| layout.against_baseline(member.cell)).collect();
        if pairs.is_empty() {
            continue;
        }
        let decided = |above: bool| pairs.iter().filter(|pair| pair.is_decidedly(above)).count();
        let (better, worse) = (decided(is_higher_better), decided(!is_higher_better));
        let open = pairs.len() - better - worse;
        let ratios = pairs.iter().filter_map(|pair| pair.ratio).filter(|ratio| is_measured(*ratio));
        let range = super::axis::extent(ratios);
        let range = range.map_or(NOTHING.to_owned(), |(low, high)| format!("{low:.2} \u{2026} {high:.2}"));
        let (swatch, name) = (swatch(*look, series), escape(&layout.series_label(series)));
        let ours = if look.is_ours { "ours" } else { "" };
        let _ = writeln!(
            rows,
            "<tr class=\"{ours}\"><td class=\"label\">{swatch}{name}</td><td class=\"faster\">{better}</td><td>{open}</td>\
             <td class=\"slower\">{worse}</td><td>{range}</td></tr>"
        );
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Against {0}</h3>\n<p class=\"caption\">Conditions (of {1}) in which a stack is better than {0}, cannot be told from it, or is \
         worse: by the 95&#8239;% interval of the median ratio between runs of equal seed.</p>\n<div class=\"scroll\">\
         <table style=\"width:auto\"><thead><tr><th></th><th>better</th><th>open</th><th>worse</th><th>median ratios, least \u{2026} greatest</th></tr></thead>\n<tbody>{rows}</tbody></table></div>\n",
        escape(baseline),
        layout.groups.len()
    )
}

/// Published figures beside ours; empty if there are none.
pub(super) fn published(layout: &Layout<'_>) -> String {
    let mut rows = String::new();
    for group in &layout.groups {
        for member in &group.members {
            for published in &member.cell.published {
                let beside = metric::beside(layout.experiment, member.cell, published);
                let column = metric::find(&published.metric);
                let label = column.map_or_else(|_| published.metric.clone(), Column::label);
                let text = |value: f64| {
                    metric::find(&published.metric).map_or(NOTHING.to_owned(), |c| c.unit().text(value))
                };
                let ours = beside.ours.map_or(NOTHING.to_owned(), text);
                let theirs =
                    beside.published.map_or_else(|| format!("{} {}", published.value, published.unit), text);
                let ratio = beside.ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.2}"));
                let verdict = published.verdict.as_deref().unwrap_or(NOTHING);
                let texts = [&*group.label(), member.name, &label].map(escape);
                let _ = write!(
                    rows,
                    "<tr><td>{}</td><td class=\"left\">{}</td><td class=\"left\">{}</td>",
                    texts[0], texts[1], texts[2]
                );
                let texts = [&*ours, &theirs, &ratio, verdict, &published.source].map(escape);
                let _ = writeln!(
                    rows,
                    "<td><b>{}</b></td><td>{}</td><td>{}</td><td class=\"left wrap\">{}</td><td class=\"left wrap\"><small>{}</small></td></tr>",
                    texts[0], texts[1], texts[2], texts[3], texts[4]
                );
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Beside published figures</h3>\n<div class=\"scroll\"><table><thead><tr><th>conditions</th><th class=\"left\">stack</th>\
         <th class=\"left\">metric</th><th>ours</th><th>published</th><th>ours / published</th><th class=\"left\">verdict</th>\
         <th class=\"left\">where</th></tr></thead>\n<tbody>{rows}</tbody></table></div>\n"
    )
}

/// Why runs are incomplete; empty if none is.
pub(super) fn incomplete(layout: &Layout<'_>) -> String {
    let mut rows = String::new();
    for group in &layout.groups {
        for member in &group.members {
            if let Some(text) = Incomplete::of(member.cell).describe() {
                let (label, name) = (escape(&group.label()), escape(member.name));
                let _ = writeln!(rows, "<dt>{label}, {name}</dt><dd>{}</dd>", escape(&text));
            }
        }
    }
    if rows.is_empty() { rows } else { format!("<h3>Incomplete runs</h3>\n<dl>\n{rows}</dl>\n") }
}

/// The limits spelled out; empty if there are none.
pub(super) fn limits(layout: &Layout<'_>) -> String {
    let mut rows = String::new();
    for group in &layout.groups {
        let mut seen: Vec<&str> = Vec::new();
        for member in &group.members {
            let Some(limit) = &member.cell.limit else { continue };
            if seen.contains(&limit.terms.as_str()) {
                continue;
            }
            // Stacks may differ in their handshakes.
            let whose = if seen.is_empty() { String::new() } else { format!(", {}", escape(member.name)) };
            seen.push(&limit.terms);
            let (label, time, terms) =
                (escape(&group.label()), Unit::Seconds.text(limit.seconds), escape(&limit.terms));
            let _ = writeln!(rows, "<dt>{label}{whose}</dt><dd><b>{time}</b> = {terms}</dd>");
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h3>The physical limit</h3>\n<p class=\"caption\">What no stack can beat on average: round trips that must be waited for, and the \
         bytes at the rate that loss leaves.</p>\n<dl>\n{rows}</dl>\n"
    )
}

/// The command of the experiment and of each cell.
pub(super) fn commands(layout: &Layout<'_>) -> String {
    let mut out = format!(
        "<h3>Repeat it</h3>\n<p><code class=\"copy\">{}</code></p>\n<details><summary>One cell alone ({})</summary>\n<dl>\n",
        escape(&layout.experiment.command),
        layout.experiment.cells.len()
    );
    for group in &layout.groups {
        for member in &group.members {
            let (label, name, command) =
                (escape(&group.label()), escape(&member.label()), escape(&member.cell.command));
            let _ = writeln!(out, "<dt>{label}, {name}</dt><dd><code class=\"copy\">{command}</code></dd>");
        }
    }
    out.push_str("</dl></details>\n");
    out
}

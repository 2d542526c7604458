//! Figures with their headings and captions: what is measured, how many runs, what the whiskers are.

use std::fmt::Write as _;

use super::bars::{Bars, What};
use super::style::Look;
use super::svg::escape;
use super::{cdf, series, trend};
use crate::layout::{Group, Layout};
use crate::metric::Unit;
use crate::statistics::median_ranks;

/// Further metrics that get a figure; the table has them all.
const MAX_FURTHER_FIGURES: usize = 6;

/// Conditions above which panels for each fold away, if lines along an axis show them all.
const MAX_OPEN_GROUPS: usize = 8;

/// Runs of a cell, as captions say it.
fn runs(layout: &Layout<'_>) -> String {
    let counts = layout.experiment.cells.iter().map(|cell| cell.runs.len());
    match (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0)) {
        (least, most) if least == most => format!("n = {most} runs"),
        (least, most) => format!("n = {least} to {most} runs"),
    }
}

fn panel_figure(layout: &Layout<'_>, group: &Group<'_>, panel: &str) -> String {
    let limit = cdf::limit_of(layout, group);
    let limit =
        limit.map(|limit| format!("<span>limit {}</span>", Unit::Seconds.text(limit))).unwrap_or_default();
    format!("<figure><figcaption>{}{limit}</figcaption>{panel}</figure>\n", escape(&group.label()))
}

/// The headline metric in each condition, in all ways that it can be drawn.
pub(super) fn by_condition(layout: &Layout<'_>, looks: &[Look]) -> String {
    let panels = ratios(layout, looks) + &distributions(layout, looks);
    let lines = lines(layout, looks);
    if lines.is_empty() || layout.groups.len() <= MAX_OPEN_GROUPS {
        return lines + &panels;
    }
    let count = layout.groups.len();
    format!(
        "{lines}<details><summary>Each of the {count} conditions by itself</summary>\n{panels}</details>\n"
    )
}

/// Lines along an axis of numbers, where there is one.
fn lines(layout: &Layout<'_>, looks: &[Look]) -> String {
    let Some(axis) = trend::axis_of(layout) else { return String::new() };
    let (label, name) = (layout.headline.metric.label, &layout.experiment.axes[axis].name);
    let mut out = format!(
        "<h3>Along {}</h3>\n<p class=\"caption\">Medians of {}, {}; vertical lines are the 95&#8239;% confidence \
         interval of the median. A ring at the upper edge lies beyond the deadline. Scales differ between \
         panels.</p>\n<div class=\"panels\">\n",
        escape(name),
        escape(label),
        runs(layout)
    );
    for (title, panel) in trend::panels(layout, axis, looks) {
        let _ = writeln!(out, "<figure><figcaption>{}</figcaption>{panel}</figure>", escape(&title));
    }
    out.push_str("</div>\n");
    out
}

/// One number a stack, in a panel for each condition; empty if no run says anything.
fn bars(layout: &Layout<'_>, looks: &[Look], what: What) -> String {
    let bars = Bars::new(layout, what);
    if !bars.has_values() {
        return String::new();
    }
    let tail = what.tail_name();
    let whiskers = if layout.experiment.cells.iter().any(|cell| median_ranks(cell.runs.len()).is_some()) {
        format!("Whiskers are the 95&#8239;% confidence interval of the median, the ring is the {tail}")
    } else {
        format!("The ring is the {tail}; for an interval of the median there are too few runs")
    };
    let shape = match what {
        What::ToLimit => {
            "Median completion time as a multiple of the physical limit; bars begin at the limit"
        }
        What::Metric(_) if bars.is_log() => "Medians (dots) on a logarithmic scale",
        What::Metric(_) => "Medians",
    };
    let one_scale = if layout.groups.len() > 1 { " All panels share one scale;" } else { "" };
    let runs = runs(layout);
    let mut out =
        format!("<p class=\"caption\">{shape}. {whiskers}.{one_scale} {runs}.</p>\n<div class=\"panels\">\n");
    for (index, group) in layout.groups.iter().enumerate() {
        out.push_str(&panel_figure(layout, group, &bars.panel(index, looks)));
    }
    out.push_str("</div>\n");
    out
}

/// How far from the limit, or the headline metric itself where there is none.
fn ratios(layout: &Layout<'_>, looks: &[Look]) -> String {
    if layout.has_limits() {
        let figure = bars(layout, looks, What::ToLimit);
        return format!("<h3>How far from what the path permits</h3>\n{figure}");
    }
    let figure = bars(layout, looks, What::Metric(layout.headline));
    let mut label = layout.headline.metric.label.to_owned();
    if let Some(first) = label.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if figure.is_empty() { figure } else { format!("<h3>{}</h3>\n{figure}", escape(&label)) }
}

fn distributions(layout: &Layout<'_>, looks: &[Look]) -> String {
    let mut panels = String::new();
    for group in &layout.groups {
        let panel = cdf::panel(layout, group, looks);
        if !panel.is_empty() {
            panels.push_str(&panel_figure(layout, group, &panel));
        }
    }
    if panels.is_empty() {
        return panels;
    }
    let limit = if layout.has_limits() { " The dotted line is the physical limit." } else { "" };
    let incomplete = if layout.has_incomplete() {
        " A curve that ends in a ring below the top is that of a stack whose other runs did not finish."
    } else {
        ""
    };
    let scales = if layout.groups.len() > 1 { " Scales differ between panels." } else { "" };
    format!(
        "<h3>Every run</h3>\n<p class=\"caption\">Share of runs with at most this {}; dots are medians, {}.\
         {incomplete}{limit}{scales}</p>\n<div class=\"panels\">\n{panels}</div>\n",
        escape(layout.headline.metric.label),
        runs(layout)
    )
}

/// Time series; the one in which even the shortest run is long enough to see something is unfolded.
pub(super) fn over_time(layout: &Layout<'_>, looks: &[Look]) -> String {
    let (figures, left_out) = series::figures(layout, looks);
    if figures.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h3>Inside a run</h3>\n");
    let latest = figures.iter().map(|figure| figure.first_end).fold(0.0, f64::max);
    let opened = figures.iter().position(|figure| figure.first_end >= latest);
    for (index, figure) in figures.iter().enumerate() {
        let (title, caption) = (escape(&figure.title), escape(&figure.caption));
        let open = if Some(index) == opened { " open" } else { "" };
        let _ = writeln!(
            out,
            "<details{open}><summary>{title}<span>{caption}</span></summary>\n<figure>{}</figure></details>",
            figure.svg
        );
    }
    if left_out > 0 {
        let _ = writeln!(out, "<p class=\"caption\">{left_out} more such figures are left out.</p>");
    }
    out
}

/// The other metrics, folded.
pub(super) fn further(layout: &Layout<'_>, looks: &[Look]) -> String {
    let mut out = String::new();
    for column in layout.further.iter().take(MAX_FURTHER_FIGURES) {
        let figure = bars(layout, looks, What::Metric(*column));
        if !figure.is_empty() {
            let (label, doc) = (escape(column.metric.label), escape(column.metric.doc));
            let _ = writeln!(
                out,
                "<details><summary>{label}</summary>\n<p class=\"caption\">{doc}</p>\n{figure}</details>"
            );
        }
    }
    if out.is_empty() { out } else { format!("<h3>More figures</h3>\n{out}") }
}

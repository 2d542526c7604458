//! Results as one page: no network, no script needed, light, dark and on paper.
//!
//! The series axis (stacks) gives colours, every other combination of values a panel. All drawing is text
//! ([`svg`]) on scales ([`axis`]); the same results give the same bytes on every machine.

mod axis;
mod bars;
mod cdf;
mod findings;
mod series;
mod style;
mod svg;
mod table;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::layout::{Group, Layout};
use crate::experiment_result::ExperimentResult;
use crate::metric::Unit;
use crate::statistics::median_ranks;
use bars::{Bars, What};
use style::Look;
use svg::escape;

/// Further metrics that get a figure; the table has them all.
const MAX_FURTHER_FIGURES: usize = 6;

/// One self-contained HTML page about all `experiments`, in their order.
pub fn page(experiments: &[ExperimentResult]) -> String {
    let title = match experiments {
        [one] => format!("{}: {}", one.name, one.title),
        several => format!("{} experiments", several.len()),
    };
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n\
         <svg class=\"defs\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatchline\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs></svg>\n",
        escape(&title),
        style::STYLE
    );
    out.push_str("<header class=\"top\"><div class=\"brand\">Posthaste lab</div>\n");
    if experiments.len() > 1 {
        out.push_str("<nav aria-label=\"Experiments\">");
        for (index, experiment) in experiments.iter().enumerate() {
            let _ = write!(out, "<a href=\"#e{index}\">{}</a>", escape(&experiment.name));
        }
        out.push_str("</nav>\n");
    }
    out.push_str("</header>\n<main>\n");
    for (index, experiment) in experiments.iter().enumerate() {
        out.push_str(&section(index, experiment));
    }
    out.push_str("</main>\n");
    out.push_str(FOOTER);
    let _ = write!(out, "<script>{}</script>\n</body>\n</html>\n", style::SCRIPT);
    out
}

const FOOTER: &str = "<footer><p><b>How to read it.</b> A median is the middle run. Its interval lies between two order statistics and \
    covers the true median in at least 95 % of such experiments, whatever the distribution; it takes six runs or more. Quantiles are those of \
    Hyndman and Fan, definition 2; with fewer than 20 runs p95, with fewer than 100 p99 is the slowest run. Ratios between stacks are taken \
    between runs of equal seed, then their median. A run that met its deadline or failed counts as slower than every other; a mean over such \
    runs does not exist and is not printed. Colours tell stacks apart for readers with colour blindness too, and every curve is named.</p></footer>\n";

fn section(index: usize, experiment: &ExperimentResult) -> String {
    let layout = Layout::new(experiment);
    let looks = style::looks(&layout.series);
    let heading = if index == 0 { "h1" } else { "h2" };
    let mut out = format!(
        "<section id=\"e{index}\">\n<div class=\"name\">{}</div>\n<{heading}>{}</{heading}>\n<p class=\"question\">{}</p>\n",
        escape(&experiment.name),
        escape(&experiment.title),
        escape(&experiment.question)
    );
    out.push_str(&facts(&layout));
    if let Some(note) = &experiment.note {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
    for name in &layout.unknown {
        let _ = writeln!(
            out,
            "<p class=\"note\">There is no metric <code>{}</code>; it is left out.</p>",
            escape(name)
        );
    }
    if experiment.cells.iter().all(|cell| cell.runs.is_empty()) {
        out.push_str("<p class=\"note\">No run has been made yet.</p>\n");
    } else {
        out.push_str(&findings::list(&layout));
        out.push_str(&key(&layout, &looks));
        out.push_str(&first_figure(&layout, &looks));
        out.push_str(&distributions(&layout, &looks));
        out.push_str(&table::scoreboard(&layout, &looks));
        out.push_str(&over_time(&layout, &looks));
        out.push_str(&further_figures(&layout, &looks));
        out.push_str("<h3>All numbers</h3>\n");
        out.push_str(&table::cells(&layout, &looks));
        out.push_str(&table::published(&layout));
        out.push_str(&table::limits(&layout));
    }
    out.push_str(&table::commands(&layout));
    out.push_str("</section>\n");
    out
}

fn facts(layout: &Layout<'_>) -> String {
    let experiment = layout.experiment;
    let runs: usize = experiment.cells.iter().map(|cell| cell.runs.len()).sum();
    let mut out = String::from("<ul class=\"facts\">");
    let _ = write!(
        out,
        "<li><b>{runs}</b> runs: {} cells, {} runs each</li>",
        experiment.cells.len(),
        experiment.seeds
    );
    for axis in &experiment.axes {
        let _ = write!(out, "<li>{}: <b>{}</b></li>", escape(&axis.name), escape(&axis.values.join(", ")));
    }
    if !experiment.source.is_empty() {
        let _ = write!(out, "<li>source: {}</li>", escape(&experiment.source));
    }
    out.push_str("</ul>\n");
    out
}

/// What each look stands for; with the script, switches.
fn key(layout: &Layout<'_>, looks: &[Look]) -> String {
    if layout.series.len() < 2 {
        return String::new();
    }
    let mut out = String::from("<ul class=\"key\">");
    for (series, name) in layout.series.iter().enumerate() {
        let (swatch, name) = (table::swatch(looks[series], series), escape(name));
        let ours = if looks[series].is_ours { " class=\"ours\"" } else { "" };
        let _ = write!(out, "<li data-i=\"{series}\"{ours}>{swatch}<span class=\"label\">{name}</span></li>");
    }
    out.push_str("</ul>\n");
    out
}

/// Runs of a cell, as captions say it.
fn runs(layout: &Layout<'_>) -> String {
    let counts = layout.experiment.cells.iter().map(|cell| cell.runs.len());
    match (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0)) {
        (least, most) if least == most => format!("n = {most}"),
        (least, most) => format!("n = {least} to {most}"),
    }
}

fn panel_title(layout: &Layout<'_>, group: &Group<'_>) -> String {
    let limit = cdf::limit_of(layout, group);
    let limit =
        limit.map(|limit| format!("<span>limit {}</span>", Unit::Seconds.text(limit))).unwrap_or_default();
    format!("<figcaption>{}{limit}</figcaption>", escape(&group.label()))
}

fn bars_figure(layout: &Layout<'_>, looks: &[Look], what: What) -> String {
    let bars = Bars::new(layout, what);
    if !bars.has_values() {
        return String::new();
    }
    let mut out = String::from("<div class=\"panels\">\n");
    for (index, group) in layout.groups.iter().enumerate() {
        let _ = write!(out, "<figure>{}{}</figure>\n", panel_title(layout, group), bars.panel(index, looks));
    }
    out.push_str("</div>\n");
    let whiskers = if layout.experiment.cells.iter().any(|cell| median_ranks(cell.runs.len()).is_some()) {
        "Whiskers are the 95&#8239;% confidence interval of the median, the ring is the 95th percentile"
    } else {
        "The ring is the 95th percentile; for an interval of the median there are too few runs"
    };
    let shape = match what {
        What::ToLimit => {
            "Median completion time as a multiple of the physical limit; bars begin at the limit"
        }
        What::Metric(_) if bars.is_log() => "Medians (dots) on a logarithmic scale",
        What::Metric(_) => "Medians",
    };
    format!(
        "<p class=\"caption\">{shape}. {whiskers}. All panels share one scale; {}.</p>\n{out}",
        runs(layout)
    )
}

/// How far from the limit, or the headline metric itself where there is none.
fn first_figure(layout: &Layout<'_>, looks: &[Look]) -> String {
    if layout.has_limits() {
        let figure = bars_figure(layout, looks, What::ToLimit);
        return format!("<h3>How far from what the path permits</h3>\n{figure}");
    }
    let figure = bars_figure(layout, looks, What::Metric(layout.headline));
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
            let _ = write!(panels, "<figure>{}{panel}</figure>\n", panel_title(layout, group));
        }
    }
    if panels.is_empty() {
        return String::new();
    }
    let limit = if layout.has_limits() { " The dotted line is the physical limit." } else { "" };
    format!(
        "<h3>Every run</h3>\n<p class=\"caption\">Share of runs with at most this {}; dots are medians, {}. A curve that ends in a ring \
         below the top belongs to a stack whose other runs did not finish.{limit} Scales differ between panels.</p>\n\
         <div class=\"panels\">\n{panels}</div>\n",
        escape(layout.headline.metric.label),
        runs(layout)
    )
}

fn over_time(layout: &Layout<'_>, looks: &[Look]) -> String {
    let (figures, left_out) = series::figures(layout, looks);
    if figures.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h3>Inside a run</h3>\n");
    for figure in figures {
        let (title, caption) = (escape(&figure.title), escape(&figure.caption));
        let _ = write!(
            out,
            "<figure><figcaption>{title}<span>{caption}</span></figcaption>{}</figure>\n",
            figure.svg
        );
    }
    if left_out > 0 {
        let _ = writeln!(out, "<p class=\"caption\">{left_out} more such figures are left out.</p>");
    }
    out
}

fn further_figures(layout: &Layout<'_>, looks: &[Look]) -> String {
    let mut out = String::new();
    for column in layout.further.iter().take(MAX_FURTHER_FIGURES) {
        let figure = bars_figure(layout, looks, What::Metric(*column));
        if !figure.is_empty() {
            let (label, doc) = (escape(column.metric.label), escape(column.metric.doc));
            let _ = write!(
                out,
                "<details><summary>{label}</summary>\n<p class=\"caption\">{doc}</p>\n{figure}</details>\n"
            );
        }
    }
    if out.is_empty() { out } else { format!("<h3>More figures</h3>\n{out}") }
}

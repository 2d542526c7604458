//! Results as one page: no network, no script needed, light, dark and on paper.
//!
//! The series axis (stacks) gives colours, every other combination of values a panel. All drawing is text
//! (`svg`) on scales (`axis`); the same results give the same bytes on every machine.

mod axis;
mod bars;
mod cdf;
mod figures;
mod findings;
mod series;
mod style;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod trend;

use std::fmt::Write as _;

use super::layout::{Layout, UNREPEATABLE, UNREPEATABLE_NOTE};
use crate::experiment_result::ExperimentResult;
use style::Look;
pub use svg::escape;

/// One self-contained HTML page about all `experiments`, in their order.
pub fn page(experiments: &[ExperimentResult]) -> String {
    let title = match experiments {
        [one] => format!("{}: {}", one.name, one.title),
        several => format!("{} experiments", several.len()),
    };
    let links: Vec<(String, &str)> = match experiments {
        [_] => Vec::new(),
        several => several
            .iter()
            .enumerate()
            .map(|(index, experiment)| (format!("e{index}"), experiment.name.as_str()))
            .collect(),
    };
    let sections: String =
        experiments.iter().enumerate().map(|(index, experiment)| section(index, experiment)).collect();
    frame(&title, "Posthaste lab", &links, &sections, FOOTER)
}

/// A self-contained page around `sections` (HTML, as `footer` is) in the style of all reports. `links` are the
/// sections' ids with their names; below `title` stands `brand`, both as plain text.
pub fn frame(title: &str, brand: &str, links: &[(String, &str)], sections: &str, footer: &str) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n\
         <svg class=\"defs\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatchline\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs></svg>\n",
        escape(title),
        style::STYLE
    );
    let _ = writeln!(out, "<header class=\"top\"><div class=\"brand\">{}</div>", escape(brand));
    if !links.is_empty() {
        out.push_str("<nav aria-label=\"Experiments\">");
        for (id, name) in links {
            let _ = write!(out, "<a href=\"#{id}\">{}</a>", escape(name));
        }
        out.push_str("</nav>\n");
    }
    let _ = write!(
        out,
        "</header>\n<main>\n{sections}</main>\n{footer}<script>{}</script>\n</body>\n</html>\n",
        style::SCRIPT
    );
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
        if layout.has_unrepeatable() {
            let _ = writeln!(out, "<p class=\"caption dagger\">{UNREPEATABLE} {UNREPEATABLE_NOTE}.</p>");
        }
        out.push_str(&figures::by_condition(&layout, &looks));
        out.push_str(&table::scoreboard(&layout, &looks));
        out.push_str(&figures::over_time(&layout, &looks));
        out.push_str(&figures::further(&layout, &looks));
        out.push_str(&table::published(&layout));
        out.push_str("<h3>All numbers</h3>\n");
        out.push_str(&table::cells(&layout, &looks));
        out.push_str(&table::further(&layout, &looks));
        out.push_str(&table::incomplete(&layout));
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
    for (series, look) in looks.iter().enumerate() {
        let (swatch, name) = (table::swatch(*look, series), escape(&layout.series_label(series)));
        let ours = if look.is_ours { " class=\"ours\"" } else { "" };
        let _ = write!(out, "<li data-i=\"{series}\"{ours}>{swatch}<span class=\"label\">{name}</span></li>");
    }
    out.push_str("</ul>\n");
    out
}

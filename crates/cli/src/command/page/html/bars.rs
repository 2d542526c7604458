//! Medians side by side.

use std::fmt::Write as _;

use posthaste_report::html::escape;
use posthaste_report::statistics::Summary;

use super::look;
use crate::command::page::plan::{PagePlan, PathPlan, Plan};
use crate::command::page::record::Temperature;
use crate::command::page::table::time;
use crate::command::page::tally::{Metric, Tally};

const WIDTH: f64 = 552.0;
const LEFT: f64 = 168.0;
const RIGHT: f64 = 486.0;
const TOP: f64 = 8.0;
const ROW: f64 = 21.0;

/// One path's bars.
pub(in super::super) fn figure(
    plan: &Plan,
    tally: &Tally,
    page: &PagePlan,
    path: &PathPlan,
    temperature: Temperature,
) -> String {
    let summaries: Vec<_> = plan
        .contestants
        .iter()
        .map(|one| tally.cell(&page.name, &path.name, &one.name).summary(temperature, Metric::Load))
        .collect();
    let ends = summaries.iter().flatten().flat_map(|summary| [summary.p50, summary.p95]);
    let longest = ends.filter(|time| time.is_finite()).fold(0.0, f64::max);
    let across = |time: f64| LEFT + (RIGHT - LEFT) * (time / longest.max(1e-9)).min(1.0);
    let height = TOP + ROW * summaries.len() as f64 + 4.0;
    let mut body = String::new();
    for (index, (contestant, summary)) in plan.contestants.iter().zip(&summaries).enumerate() {
        let middle = TOP + ROW * (index as f64 + 0.5);
        let name = escape(&contestant.name);
        let _ = write!(
            body,
            "<g class=\"{}\"><text class=\"name0\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            look(index, &contestant.name),
            LEFT - 8.0,
            middle + 4.0
        );
        bar(&mut body, &name, middle, summary.as_ref(), across);
        body.push_str("</g>");
    }
    format!(
        "<figure><figcaption>{path_name}<span>{}</span></figcaption><svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" \
         aria-label=\"Page load over {path_name}, {}\"><line class=\"axis\" x1=\"{LEFT:.0}\" y1=\"{TOP:.0}\" x2=\"{LEFT:.0}\" y2=\"{:.0}\"/>{body}</svg></figure>\n",
        escape(&path.description),
        temperature.name(),
        height - 4.0,
        path_name = escape(&path.name),
    )
}

/// One bar, or why there is none.
fn bar(body: &mut String, name: &str, middle: f64, summary: Option<&Summary>, across: impl Fn(f64) -> f64) {
    let below = middle + 4.0;
    let Some(summary) = summary else {
        let _ = write!(body, "<text class=\"soft\" x=\"{LEFT:.0}\" y=\"{below:.1}\">no run yet</text>");
        return;
    };
    if !summary.p50.is_finite() {
        let _ = write!(body, "<text class=\"soft\" x=\"{LEFT:.0}\" y=\"{below:.1}\">most runs failed</text>");
        return;
    }
    let _ = write!(
        body,
        "<title>{name}: median {}, p95 {}, {} runs</title>\
         <rect class=\"bar\" x=\"{LEFT:.0}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"1.5\"/>",
        time(summary.p50),
        time(summary.p95),
        summary.n,
        middle - ROW / 2.0 + 4.0,
        across(summary.p50) - LEFT,
        ROW - 8.0,
    );
    if let Some(interval) = summary.median_interval {
        let (low, high) = (across(interval.low), across(interval.high));
        let _ = write!(
            body,
            "<line class=\"whisker\" x1=\"{low:.1}\" y1=\"{middle:.1}\" x2=\"{high:.1}\" y2=\"{middle:.1}\"/>"
        );
    }
    if summary.p95.is_finite() {
        let x = across(summary.p95);
        let _ = write!(body, "<circle class=\"open\" cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"3\"/>");
    }
    let _ = write!(body, "<text x=\"{:.0}\" y=\"{below:.1}\">{}</text>", RIGHT + 8.0, time(summary.p50));
}

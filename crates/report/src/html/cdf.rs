//! Distributions of the headline metric: small multiples, a curve for each stack.

use super::axis::{self, Axis};
use super::style::Look;
use super::svg::{Anchor, PathData, Svg};
use crate::layout::{Group, Layout};
use crate::metric::Unit;
use crate::statistics;

const WIDTH: f64 = 552.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = 352.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 216.0;
/// Where the key beside the plot begins.
const KEY: f64 = 370.0;
const ROW: f64 = 17.0;

/// Steps that a curve is drawn with at most.
const MAX_STEPS: usize = 200;

/// A member's curve and what stands beside it.
struct Curve {
    series: usize,
    name: String,
    n: usize,
    median: f64,
    values: Vec<f64>,
    steps: Vec<(f64, f64)>,
}

/// The panel of a group; empty if no run of it says anything.
pub(super) fn panel(layout: &Layout<'_>, group: &Group<'_>, looks: &[Look]) -> String {
    let mut curves = curves(layout, group);
    if curves.is_empty() {
        return String::new();
    }
    curves.sort_by(|a, b| a.median.total_cmp(&b.median));
    let limit = limit_of(layout, group);
    let unit = layout.headline.metric.unit;
    let values = curves.iter().flat_map(|curve| curve.values.iter().copied()).chain(limit);
    let x = Axis::fitting(values, (LEFT, RIGHT));
    let key_bottom = TOP + ROW * (curves.len() as f64 + 1.0);
    let height = (BOTTOM + 36.0).max(key_bottom);
    let label = format!("Distribution of {} in {}", layout.headline.metric.label, group.label());
    let mut svg = Svg::new(WIDTH, height, &label);
    draw_frame(&mut svg, layout, x, limit);
    for curve in &curves {
        draw_curve(&mut svg, x, unit, curve, looks[curve.series]);
    }
    draw_key(&mut svg, unit, &curves, looks);
    svg.finish()
}

fn curves(layout: &Layout<'_>, group: &Group<'_>) -> Vec<Curve> {
    let members = group.members.iter().filter_map(|member| {
        let values = layout.sample(member.cell).numbers();
        let median = statistics::quantile(&values, 0.5)?;
        let steps = thinned(&statistics::distribution(&values));
        let (series, name, n) = (member.series, member.label(), values.len());
        Some(Curve { series, name, n, median, values, steps })
    });
    members.collect()
}

/// At most [`MAX_STEPS`] of the steps, the first and the last among them.
fn thinned(steps: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if steps.len() <= MAX_STEPS {
        return steps.to_vec();
    }
    (0..MAX_STEPS).map(|index| steps[index * (steps.len() - 1) / (MAX_STEPS - 1)]).collect()
}

/// The least limit of a group's cells, which all have the same path.
pub(super) fn limit_of(layout: &Layout<'_>, group: &Group<'_>) -> Option<f64> {
    let limits = group.members.iter().filter_map(|member| member.cell.limit.as_ref());
    let least = limits.map(|limit| limit.seconds).filter(|limit| limit.is_finite()).reduce(f64::min);
    least.filter(|_| layout.is_completion())
}

fn y(share: f64) -> f64 {
    BOTTOM - share * (BOTTOM - TOP)
}

fn draw_frame(svg: &mut Svg, layout: &Layout<'_>, x: Axis, limit: Option<f64>) {
    let metric = layout.headline.metric;
    for (share, label) in [(0.0, "0"), (0.25, "25"), (0.5, "50"), (0.75, "75"), (0.95, "95"), (1.0, "")] {
        svg.line(if share == 0.0 { "axis" } else { "grid" }, (LEFT, y(share)), (RIGHT, y(share)));
        svg.text("tick", (LEFT - 6.0, y(share) + 3.5), Anchor::End, label);
    }
    svg.text("unit", (0.0, TOP - 5.0), Anchor::Start, "% of runs");
    axis::draw_below(svg, x, metric.unit, (TOP, BOTTOM), 6);
    let scale = if x.is_log() { " (log scale)" } else { "" };
    let unit = x.suffix(metric.unit);
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let title = format!("{}{unit}{scale}", metric.label);
    svg.text("unit", (f64::midpoint(LEFT, RIGHT), BOTTOM + 30.0), Anchor::Middle, &title);
    if let Some(limit) = limit {
        svg.line("limitline", (x.at(limit), TOP - 4.0), (x.at(limit), BOTTOM));
        svg.text("limit", (x.at(limit).max(56.0) + 4.0, TOP - 5.0), Anchor::Start, "limit");
    }
}

fn draw_curve(svg: &mut Svg, x: Axis, unit: Unit, curve: &Curve, look: Look) {
    // Nothing finished: the key says so, and the plot's lower edge is no curve.
    if curve.steps.is_empty() {
        return;
    }
    let tip = format!("{}: median {} of {} runs", curve.name, unit.text(curve.median), curve.n);
    svg.open(&look.classes(curve.series), &tip);
    let mut data = PathData::default();
    for (index, &(value, share)) in curve.steps.iter().enumerate() {
        if index == 0 {
            data.move_to((x.at(value), BOTTOM));
        } else {
            data.horizontal(x.at(value));
        }
        data.vertical(y(share));
    }
    let reached = curve.steps.last().map_or(0.0, |(_, share)| *share);
    if reached < 1.0 {
        // Some never finish: the curve stays below the top, to the plot's edge.
        data.horizontal(RIGHT);
        svg.path("curve", &data);
        svg.circle("open", (RIGHT, y(reached)), 3.2);
    } else {
        svg.path("curve", &data);
    }
    if curve.median.is_finite() {
        svg.circle("dot", (x.at(curve.median), y(0.5)), 3.6);
    }
    svg.close();
}

fn draw_key(svg: &mut Svg, unit: Unit, curves: &[Curve], looks: &[Look]) {
    svg.text("unit", (KEY, TOP + 4.0), Anchor::Start, "in the order of medians");
    let greatest =
        curves.iter().map(|curve| curve.median).filter(|median| median.is_finite()).fold(0.0, f64::max);
    let scale = unit.scale(greatest);
    for (row, curve) in curves.iter().enumerate() {
        let baseline = TOP + ROW * (row as f64 + 1.0) + 6.0;
        let tip = format!("{}, {} runs", curve.name, curve.n);
        svg.open(&looks[curve.series].classes(curve.series), &tip);
        let mut sample = PathData::default();
        sample.move_to((KEY, baseline - 4.0));
        sample.horizontal(KEY + 22.0);
        svg.path("curve", &sample);
        svg.text("own name0", (KEY + 28.0, baseline), Anchor::Start, &shortened(&curve.name, 17));
        let number = scale.number(curve.median);
        let text = if curve.median.is_finite() { format!("{number} {}", scale.suffix) } else { number };
        svg.text("value", (WIDTH, baseline), Anchor::End, &text);
        svg.close();
    }
}

/// At most `length` characters, the last an ellipsis if there were more.
pub(super) fn shortened(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    text.chars().take(length.saturating_sub(1)).chain(['\u{2026}']).collect()
}

//! The headline metric along an axis of numbers (loss, size, delay): medians with their intervals, a line a stack,
//! a panel for each combination of the remaining axes.

use super::axis::{self, Axis};
use super::style::Look;
use super::svg::{Anchor, PathData, Svg};
use crate::layout::Layout;
use crate::metric::{self, Unit};
use crate::statistics::Interval;
use posthaste_units::{ByteCount, Duration, Rate};

const WIDTH: f64 = 552.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 430.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 230.0;
const STEP: f64 = 13.0;

/// Values from which on a line says more than a row of panels.
const LEAST_VALUES: usize = 4;

/// A stack's medians along the axis.
struct Line<'a> {
    series: usize,
    name: &'a str,
    points: Vec<Point>,
}

struct Point {
    x: f64,
    median: f64,
    interval: Option<Interval>,
}

/// The axis with the most values, if these are numbers and enough: its index.
pub(super) fn axis_of(layout: &Layout<'_>) -> Option<usize> {
    let series = metric::series_axis(layout.experiment);
    let axes = layout.experiment.axes.iter().enumerate().filter(|(index, axis)| {
        let are_numbers = axis.values.iter().all(|value| number(value).is_some());
        Some(*index) != series && axis.values.len() >= LEAST_VALUES && are_numbers
    });
    axes.max_by_key(|(index, axis)| (axis.values.len(), usize::MAX - index)).map(|(index, _)| index)
}

/// A number, with a unit or without.
fn number(text: &str) -> Option<f64> {
    let plain = text.trim().trim_end_matches('%').trim();
    let number = plain.parse::<f64>().ok();
    let number = number.or_else(|| text.parse::<Duration>().ok().map(Duration::as_secs_f64));
    let number = number.or_else(|| text.parse::<ByteCount>().ok().map(ByteCount::as_f64));
    let number = number.or_else(|| text.parse::<Rate>().ok().map(|rate| rate.as_bits_per_second() as f64));
    number.filter(|number| number.is_finite())
}

/// The panels, each with its title.
pub(super) fn panels(layout: &Layout<'_>, axis: usize, looks: &[Look]) -> Vec<(String, String)> {
    let name = &layout.experiment.axes[axis].name;
    let mut sets: Vec<(String, Vec<Line<'_>>)> = Vec::new();
    for group in &layout.groups {
        let others: Vec<String> = group
            .conditions
            .iter()
            .filter(|(other, _)| other != name)
            .map(|(other, value)| format!("{other} {value}"))
            .collect();
        let title = if others.is_empty() { format!("by {name}") } else { others.join(", ") };
        let place = sets.iter().position(|(other, _)| *other == title).unwrap_or_else(|| {
            sets.push((title, Vec::new()));
            sets.len() - 1
        });
        let x = group.conditions.iter().find(|(other, _)| other == name).and_then(|(_, value)| number(value));
        for member in &group.members {
            let (Some(x), Some(summary)) = (x, layout.sample(member.cell).summary()) else { continue };
            let point = Point { x, median: summary.p50, interval: summary.median_interval };
            let lines = &mut sets[place].1;
            match lines.iter_mut().find(|line| line.series == member.series) {
                Some(line) => line.points.push(point),
                None => lines.push(Line { series: member.series, name: member.name, points: vec![point] }),
            }
        }
    }
    sets.retain(|(_, lines)| !lines.is_empty());
    let with_panels = sets.into_iter().map(|(title, lines)| {
        let panel = panel(layout, axis, &lines, looks, &title);
        (title, panel)
    });
    with_panels.collect()
}

fn panel(layout: &Layout<'_>, axis: usize, lines: &[Line<'_>], looks: &[Look], title: &str) -> String {
    let named = &layout.experiment.axes[axis];
    let metric = layout.headline.metric;
    let bottom = BOTTOM.max(TOP + STEP * lines.len() as f64);
    let mut svg = Svg::new(WIDTH, bottom + 38.0, &format!("{} along {}, {title}", metric.label, named.name));
    let values = lines.iter().flat_map(|line| &line.points);
    let values = values.flat_map(|point| {
        let ends = point.interval.map_or([point.median; 2], |interval| [interval.low, interval.high]);
        [point.median, ends[0], ends[1]]
    });
    let y = Axis::fitting(values, (bottom, TOP));
    let x = along(&named.values);
    axis::draw_left(&mut svg, y, metric.unit, (LEFT, RIGHT), 5);
    ticks(&mut svg, x, &named.values, bottom);
    let scale = if x.is_log() { " (log scale)" } else { "" };
    svg.text(
        "unit",
        (f64::midpoint(LEFT, RIGHT), bottom + 31.0),
        Anchor::Middle,
        &format!("{}{scale}", named.name),
    );
    let suffix = y.suffix(metric.unit);
    let suffix = if suffix.is_empty() { String::new() } else { format!(", {suffix}") };
    let scale = if y.is_log() { " (log scale)" } else { "" };
    svg.text("unit", (LEFT - 6.0, TOP - 8.0), Anchor::Start, &format!("{}{suffix}{scale}", metric.label));
    for line in lines {
        draw_line(&mut svg, line, looks[line.series], (x, y), metric.unit);
    }
    draw_names(&mut svg, lines, looks, y, bottom);
    svg.finish()
}

/// Equal factors where the values grow by factors and hold no zero.
fn along(values: &[String]) -> Axis {
    let numbers = || values.iter().filter_map(|value| number(value));
    let (low, high) = axis::extent(numbers()).unwrap_or((0.0, 1.0));
    let pixels = (LEFT + 10.0, RIGHT - 10.0);
    if low > 0.0 && high > 20.0 * low {
        Axis::log((low, high), pixels)
    } else {
        Axis::linear((low, high), pixels)
    }
}

/// Ticks are the axis's own values, as written, where there is room.
fn ticks(svg: &mut Svg, x: Axis, values: &[String], bottom: f64) {
    let mut free_from = f64::NEG_INFINITY;
    let mut places: Vec<(f64, &String)> =
        values.iter().filter_map(|value| Some((x.at(number(value)?), value))).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    svg.line("axis", (LEFT, bottom), (RIGHT, bottom));
    for (place, value) in places {
        svg.line("axis", (place, bottom), (place, bottom + 4.0));
        let half = value.chars().count() as f64 * 3.4 + 3.0;
        if place - half >= free_from {
            svg.text("tick", (place, bottom + 16.0), Anchor::Middle, value);
            free_from = place + half;
        }
    }
}

fn draw_line(svg: &mut Svg, line: &Line<'_>, look: Look, (x, y): (Axis, Axis), unit: Unit) {
    svg.open(&look.classes(line.series), line.name);
    let mut points: Vec<&Point> = line.points.iter().collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut data = PathData::default();
    let mut is_down = false;
    for point in &points {
        if point.median.is_finite() {
            let place = (x.at(point.x), y.at(point.median));
            if is_down { data.line_to(place) } else { data.move_to(place) }
        }
        is_down = point.median.is_finite();
    }
    svg.path("curve", &data);
    for point in &points {
        let place = x.at(point.x);
        if let Some(interval) = point.interval {
            let end = |value: f64| if value.is_finite() { y.at(value) } else { TOP };
            svg.line("tail", (place, end(interval.low)), (place, end(interval.high)));
        }
        let tip = format!("{}: median {}", line.name, unit.text(point.median));
        svg.open("point", &tip);
        if point.median.is_finite() {
            svg.circle("dot", (place, y.at(point.median)), 3.4);
        } else {
            // Beyond the deadline: a ring at the edge.
            svg.circle("open", (place, TOP), 3.4);
        }
        svg.close();
    }
    svg.close();
}

/// Names at the right, in the order of the lines' ends, each with a thin line to its end.
fn draw_names(svg: &mut Svg, lines: &[Line<'_>], looks: &[Look], y: Axis, bottom: f64) {
    let end = |line: &Line<'_>| {
        let last = line.points.iter().max_by(|a, b| a.x.total_cmp(&b.x));
        last.map_or(bottom, |point| if point.median.is_finite() { y.at(point.median) } else { TOP })
    };
    let wished: Vec<f64> = lines.iter().map(end).collect();
    for (line, (place, wish)) in lines.iter().zip(spread(&wished, STEP, (TOP, bottom)).iter().zip(&wished)) {
        svg.open(&looks[line.series].classes(line.series), line.name);
        svg.line("tail", (RIGHT - 4.0, *wish), (RIGHT + 14.0, *place));
        svg.text(
            "own name0",
            (RIGHT + 18.0, place + 4.0),
            Anchor::Start,
            &super::cdf::shortened(line.name, 16),
        );
        svg.close();
    }
}

/// Places near the wished ones, in their order, at least `step` apart, and within the range as far as it holds them.
pub(super) fn spread(wished: &[f64], step: f64, (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wished.len()).collect();
    order.sort_by(|a, b| wished[*a].total_cmp(&wished[*b]));
    let mut places = vec![0.0; wished.len()];
    let mut lowest = top;
    for &index in &order {
        places[index] = wished[index].max(lowest);
        lowest = places[index] + step;
    }
    // What was pushed out at the bottom comes up again.
    let mut highest = bottom;
    for &index in order.iter().rev() {
        places[index] = places[index].min(highest);
        highest = places[index] - step;
    }
    places
}

//! Gauges over time: panels one below the other on a shared time axis, a curve for each stack (or each flow).

use super::axis::{self, Axis};
use super::cdf::shortened;
use super::style::{Look, looks};
use super::svg::{Anchor, PathData, Svg};
use super::trend::spread;
use crate::layout::{Group, Layout};
use crate::metric::Unit;
use crate::result::{Gauge, RunResult, Series};
use crate::statistics;

const WIDTH: f64 = 1144.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 1010.0;
const GAP: f64 = 30.0;

/// Points that a curve is drawn with at most.
const MAX_POINTS: usize = 600;
/// Points in all figures of an experiment together, a bound for the page's size; no curve gets fewer than
/// [`LEAST_POINTS`].
const MAX_POINTS_IN_ALL: usize = 200_000;
const LEAST_POINTS: usize = 60;
/// Curves in one figure, figures in one experiment: beyond that nobody can read them.
const MAX_CURVES: usize = 12;
const MAX_FIGURES: usize = 12;
/// Curves above which lines are thinner.
const MANY: usize = 4;
/// Runs whose lengths differ by more than this are drawn over the logarithm of time: on a common linear axis the
/// short ones would be a stroke at the left edge.
const LOG_TIME_FROM: f64 = 6.0;
/// Decades of time before the end that such an axis shows, as a factor.
const LOG_TIME_RANGE: f64 = 2000.0;
/// Curves whose usual values lie further apart than this factor are drawn on a logarithmic scale.
const LOG_VALUES_FROM: f64 = 8.0;
/// Columns that delivery rates are averaged over.
const RATE_COLUMNS: usize = 240;
/// What stacks assume before they have measured a round trip (RFC 9002, section 6.2.2), in seconds: not a reading.
const ASSUMED_RTT: f64 = 0.333;
/// Names beside each other on the right: their distance.
const NAME_STEP: f64 = 13.2;

/// What is drawn of the gauges, from top to bottom.
struct Panel {
    quantity: &'static str,
    title: &'static str,
    unit: Unit,
    /// From the gauge's unit to the panel's.
    factor: f64,
}

const PANELS: [Panel; 7] = [
    Panel { quantity: "delivery", title: "delivery rate", unit: Unit::BitsPerSecond, factor: 1.0 },
    Panel { quantity: "pacing", title: "pacing rate", unit: Unit::BitsPerSecond, factor: 1.0 },
    Panel { quantity: "window", title: "congestion window", unit: Unit::Bytes, factor: 1.0 },
    Panel { quantity: "in_flight", title: "in flight", unit: Unit::Bytes, factor: 1.0 },
    Panel { quantity: "rtt", title: "smoothed RTT", unit: Unit::Milliseconds, factor: 1000.0 },
    Panel { quantity: "queue", title: "queue of the fullest link", unit: Unit::Bytes, factor: 1.0 },
    Panel { quantity: "credit", title: "flow-control credit", unit: Unit::Bytes, factor: 1.0 },
];

/// One run's gauges of one flow.
struct Track<'a> {
    series: usize,
    name: &'a str,
    look: Look,
    seed: u64,
    gauges: &'a Series,
    /// The flow that they are of.
    flow: &'a str,
}

/// A figure with its caption.
pub(super) struct Figure {
    /// When the first of its curves ends, in seconds: where that is late, there is something to see.
    pub(super) first_end: f64,
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) svg: String,
}

/// The figures of an experiment; none without time series. And how many more there would be.
pub(super) fn figures(layout: &Layout<'_>, looks: &[Look]) -> (Vec<Figure>, usize) {
    let mut sets: Vec<(&Group<'_>, String, Vec<Track<'_>>)> = Vec::new();
    for group in &layout.groups {
        let tracks = stacks(group, looks);
        let most_flows =
            group.members.iter().filter_map(|member| run_of(&member.cell.runs)).map(|run| run.flows.len());
        if most_flows.max().unwrap_or(0) > 1 {
            for member in &group.members {
                let title = format!("{}, {}: the flows", group.label(), member.name);
                sets.push((group, title, flows(&member.cell.runs)));
            }
        } else {
            sets.push((group, group.label(), tracks));
        }
    }
    sets.retain(|(_, _, tracks)| !tracks.is_empty());
    let left_out = sets.len().saturating_sub(MAX_FIGURES);
    sets.truncate(MAX_FIGURES);
    let curves: usize = sets.iter().map(|(_, _, tracks)| tracks.len() * PANELS.len()).sum();
    let points = (MAX_POINTS_IN_ALL / curves.max(1)).clamp(LEAST_POINTS, MAX_POINTS);
    let draw = |(group, title, tracks): (&Group<'_>, String, Vec<Track<'_>>)| {
        let rate = group.members.iter().find_map(|member| member.cell.limit.as_ref()?.rate);
        figure(title, &tracks, rate, points)
    };
    (sets.into_iter().map(draw).collect(), left_out)
}

fn run_of(runs: &[RunResult]) -> Option<&RunResult> {
    runs.iter().find(|run| run.series.as_ref().is_some_and(|series| !series.times.is_empty()))
}

/// The first flow of each stack.
fn stacks<'a>(group: &Group<'a>, looks: &[Look]) -> Vec<Track<'a>> {
    let members = group.members.iter().filter_map(|member| {
        let run = run_of(&member.cell.runs)?;
        let (series, name) = (member.series, member.name);
        let flow = run.flows.first().map_or("", |flow| flow.name.as_str());
        Some(Track { series, name, look: looks[series], seed: run.seed, gauges: run.series.as_ref()?, flow })
    });
    members.take(MAX_CURVES).collect()
}

/// Every flow of one run.
fn flows(runs: &[RunResult]) -> Vec<Track<'_>> {
    let Some((run, gauges)) = run_of(runs).and_then(|run| Some((run, run.series.as_ref()?))) else {
        return Vec::new();
    };
    let names: Vec<&str> = run.flows.iter().map(|flow| flow.name.as_str()).collect();
    // Colours of flows are their own: the key of the stacks does not switch them.
    let tracks = names.iter().zip(looks(&names)).enumerate().map(|(index, (name, look))| Track {
        series: 1000 + index,
        name,
        look,
        seed: run.seed,
        gauges,
        flow: name,
    });
    tracks.take(MAX_CURVES).collect()
}

fn figure(title: String, tracks: &[Track<'_>], rate: Option<f64>, points: usize) -> Figure {
    let ends = || tracks.iter().filter_map(|track| track.gauges.times.last()).copied();
    let (first_end, end) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
    let time = time_axis(tracks, first_end, end);
    let height = 76.0_f64.max(NAME_STEP * (tracks.len() as f64 - 1.0) - 3.0);
    let (mut top, mut body, mut notes) = (22.0, Vec::new(), Vec::new());
    for panel in &PANELS {
        let lines: Vec<Line<'_>> =
            tracks.iter().filter_map(|track| line(track, panel, time, points)).collect();
        let is_flat =
            lines.iter().flat_map(|line| &line.points).all(|point| point.1.is_none_or(|v| v <= 0.0));
        if is_flat && !lines.is_empty() {
            notes.push(format!("the {} is zero throughout", panel.title));
        } else if !lines.is_empty() {
            body.push((panel, lines, (top, top + height)));
            top += height + GAP;
        }
    }
    let bottom = (top - GAP).max(22.0);
    let mut svg = Svg::new(WIDTH, bottom + 38.0, &format!("Gauges over time in {title}"));
    svg.open(if tracks.len() > MANY { "many" } else { "" }, "");
    for (panel, lines, place) in &body {
        let untold = tracks.iter().filter(|track| lines.iter().all(|line| !std::ptr::eq(line.track, *track)));
        head(&mut svg, &untold.map(|track| track.name).collect::<Vec<_>>(), place.0);
        notes.extend(draw_panel(&mut svg, panel, lines, time, *place, rate));
    }
    svg.close();
    for tick in time.ticks(Unit::Seconds, 12) {
        svg.text("tick", (tick.at, bottom + 15.0), Anchor::Middle, &tick.label);
    }
    let scale = if time.is_log() { " (log scale)" } else { "" };
    let label = format!("time since the run began, s{scale}");
    svg.text("unit", (f64::midpoint(LEFT, RIGHT), bottom + 31.0), Anchor::Middle, &label);
    let mut seeds: Vec<u64> = tracks.iter().map(|track| track.seed).collect();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let runs = if seeds.len() == 1 { "one run, seed" } else { "one run each, seeds" };
    let notes = if notes.is_empty() { String::new() } else { format!("; {}", notes.join("; ")) };
    let caption = format!("{runs} {}{notes}", seeds.join(", "));
    Figure { first_end, title, caption, svg: svg.finish() }
}

/// From zero to the last end, or over the logarithm of time where ends lie far apart.
fn time_axis(tracks: &[Track<'_>], first_end: f64, end: f64) -> Axis {
    if end > LOG_TIME_FROM * first_end {
        let firsts = tracks.iter().filter_map(|track| track.gauges.times.iter().find(|at| **at > 0.0));
        let first = firsts.copied().fold(f64::INFINITY, f64::min);
        return Axis::log((first.max(end / LOG_TIME_RANGE), end), (LEFT, RIGHT));
    }
    Axis::linear((0.0, end), (LEFT, RIGHT))
}

/// Who has no curve in a panel, at its upper edge.
fn head(svg: &mut Svg, untold: &[&str], top: f64) {
    let text = match untold {
        [] => return,
        few if few.len() < 5 => format!("not told by {}", few.join(", ")),
        many => format!("not told by {} of these", many.len()),
    };
    svg.text("unit", (RIGHT - 150.0, top - 7.0), Anchor::End, &text);
}

/// A track's curve in one panel.
struct Line<'a> {
    track: &'a Track<'a>,
    /// Time and value; `None`: not known.
    points: Vec<(f64, Option<f64>)>,
}

fn line<'a>(track: &'a Track<'a>, panel: &Panel, time: Axis, points: usize) -> Option<Line<'a>> {
    let gauge = gauge_of(track, panel.quantity)?;
    let values = gauge.values.iter().map(|value| value.filter(|v| v.is_finite()));
    let mut pairs: Vec<(f64, Option<f64>)> = track.gauges.times.iter().copied().zip(values).collect();
    if panel.quantity == "rtt" {
        forget_assumed_rtt(&mut pairs);
    }
    for (_, value) in &mut pairs {
        *value = value.map(|value| value * panel.factor);
    }
    if pairs.iter().all(|(_, value)| value.is_none()) {
        return None;
    }
    // Packets leave in bursts of one round trip: only their mean over that is a rate.
    let points = if panel.quantity == "delivery" {
        let smooth = smoothed(&pairs, round_trip_in_samples(track));
        averaged(&smooth, |at| column(time, at, points.min(RATE_COLUMNS)))
    } else {
        thinned(&pairs, |at| column(time, at, points / 2))
    };
    Some(Line { track, points })
}

fn forget_assumed_rtt(pairs: &mut [(f64, Option<f64>)]) {
    let is_assumed = |value: &Option<f64>| value.is_none_or(|seconds| (seconds - ASSUMED_RTT).abs() < 1e-3);
    for pair in pairs.iter_mut().take_while(|pair| is_assumed(&pair.1)) {
        pair.1 = None;
    }
}

/// One of `columns` stretches of the time axis.
fn column(time: Axis, at: f64, columns: usize) -> usize {
    ((time.at(at) - LEFT) / (RIGHT - LEFT) * columns.max(1) as f64) as usize
}

/// The least round trip that the track's sender has seen, in samples; at least one.
fn round_trip_in_samples(track: &Track<'_>) -> usize {
    let least =
        gauge_of(track, "rtt").and_then(|gauge| gauge.values.iter().flatten().copied().reduce(f64::min));
    let times = &track.gauges.times;
    let interval = times.last().copied().unwrap_or(0.0) / times.len().saturating_sub(1).max(1) as f64;
    let samples = least.map_or(1.0, |least| least / interval);
    if samples.is_finite() { (samples.round() as usize).clamp(1, times.len().max(1)) } else { 1 }
}

fn gauge_of<'a>(track: &Track<'a>, quantity: &str) -> Option<&'a Gauge> {
    let mut all = track.gauges.gauges.iter().filter(|gauge| gauge.quantity == quantity);
    if quantity == "queue" {
        let peak = |gauge: &Gauge| gauge.values.iter().flatten().copied().fold(0.0, f64::max);
        return all.max_by(|a, b| peak(a).total_cmp(&peak(b)));
    }
    all.find(|gauge| gauge.of == track.flow)
}

/// Stretches of pairs that share a column.
fn columns(
    pairs: &[(f64, Option<f64>)],
    column: impl Fn(f64) -> usize,
) -> impl Iterator<Item = &[(f64, Option<f64>)]> {
    pairs.chunk_by(move |a, b| column(a.0) == column(b.0))
}

/// Of each column the least and the greatest value, in their order, so that no peak is lost.
pub(super) fn thinned(
    pairs: &[(f64, Option<f64>)],
    column: impl Fn(f64) -> usize,
) -> Vec<(f64, Option<f64>)> {
    let mut kept = Vec::new();
    for chunk in columns(pairs, column) {
        let known = || chunk.iter().enumerate().filter_map(|(index, (_, value))| Some((index, (*value)?)));
        let least = known().min_by(|a, b| a.1.total_cmp(&b.1));
        let greatest = known().max_by(|a, b| a.1.total_cmp(&b.1));
        match (least, greatest) {
            (Some((a, _)), Some((b, _))) => {
                kept.push(chunk[a.min(b)]);
                if a != b {
                    kept.push(chunk[a.max(b)]);
                }
            }
            _ => kept.push(chunk[0]),
        }
    }
    kept
}

/// Each value's mean with those before it, `length` in all.
pub(super) fn smoothed(pairs: &[(f64, Option<f64>)], length: usize) -> Vec<(f64, Option<f64>)> {
    let (mut sum, mut known) = (0.0, 0_usize);
    let means = pairs.iter().enumerate().map(|(index, (at, value))| {
        let leaves = index.checked_sub(length).and_then(|gone| pairs[gone].1);
        sum += value.unwrap_or(0.0) - leaves.unwrap_or(0.0);
        known = known + usize::from(value.is_some()) - usize::from(leaves.is_some());
        (*at, value.filter(|_| known > 0).map(|_| (sum / known as f64).max(0.0)))
    });
    means.collect()
}

/// The mean of each column.
pub(super) fn averaged(
    pairs: &[(f64, Option<f64>)],
    column: impl Fn(f64) -> usize,
) -> Vec<(f64, Option<f64>)> {
    let means = columns(pairs, column).map(|chunk| {
        let known: Vec<f64> = chunk.iter().filter_map(|(_, value)| *value).collect();
        (chunk[chunk.len() / 2].0, statistics::mean(&known))
    });
    means.collect()
}

/// Draws a panel; what of it was cut off.
fn draw_panel(
    svg: &mut Svg,
    panel: &Panel,
    lines: &[Line<'_>],
    time: Axis,
    (top, bottom): (f64, f64),
    rate: Option<f64>,
) -> Option<String> {
    let rate = rate.filter(|_| panel.unit == Unit::BitsPerSecond);
    let (axis, peak) = value_axis(lines, panel.quantity, rate, (bottom, top));
    for tick in time.ticks(Unit::Seconds, 12) {
        svg.line("grid", (tick.at, top), (tick.at, bottom));
    }
    axis::draw_left(svg, axis, panel.unit, (LEFT, RIGHT), 4);
    let suffix = axis.suffix(panel.unit);
    let scale = if axis.is_log() { ", log scale" } else { "" };
    svg.text("head", (LEFT, top - 7.0), Anchor::Start, &format!("{}, {suffix}{scale}", panel.title));
    if let Some(rate) = rate {
        svg.line("limitline", (LEFT, axis.at(rate)), (RIGHT, axis.at(rate)));
        svg.text("limit", (RIGHT, top - 7.0), Anchor::End, &format!("link rate {}", panel.unit.text(rate)));
    }
    for line in lines {
        svg.open(&line.track.look.classes(line.track.series), line.track.name);
        svg.path("curve", &path(&line.points, time, axis));
        if let Some((at, value)) = last(&line.points) {
            svg.circle("dot", (time.at(at), axis.at(value)), 2.8);
        }
        svg.close();
    }
    draw_names(svg, lines, axis, (top, bottom));
    peak.map(|peak| format!("peaks of the {} are cut off, they reach {}", panel.title, panel.unit.text(peak)))
}

fn last(points: &[(f64, Option<f64>)]) -> Option<(f64, f64)> {
    points.iter().rev().find_map(|(at, value)| Some((*at, (*value)?)))
}

/// An axis for all lines, and the peak that it cuts off, if any.
fn value_axis(
    lines: &[Line<'_>],
    quantity: &str,
    rate: Option<f64>,
    pixels: (f64, f64),
) -> (Axis, Option<f64>) {
    let known = |line: &Line<'_>| -> Vec<f64> { line.points.iter().filter_map(|point| point.1).collect() };
    let values: Vec<f64> = lines.iter().flat_map(known).collect();
    let greatest = values.iter().copied().fold(0.0, f64::max);
    if quantity == "rtt" {
        let least = values.iter().copied().fold(greatest, f64::min);
        let room = (greatest - least).max(0.1 * least) * 0.12;
        return (Axis::linear(((least - room).max(0.0), greatest + room), pixels), None);
    }
    let usual = statistics::quantile(&values, 0.95).unwrap_or(greatest).max(rate.unwrap_or(0.0));
    let quantiles = |share: f64| {
        let of_lines = lines.iter().filter_map(|line| {
            let positive: Vec<f64> = known(line).into_iter().filter(|value| *value > 0.0).collect();
            statistics::quantile(&positive, share)
        });
        axis::extent(of_lines.collect::<Vec<_>>().into_iter()).unwrap_or((1.0, 1.0))
    };
    let (low, high) = (quantiles(0.5).0, quantiles(0.95).1);
    // An empty queue is zero, and zero has no logarithm: there the truth is a linear scale.
    if quantity != "queue" && high > LOG_VALUES_FROM * low {
        let ceiling = greatest.min(10.0 * usual.max(high)).max(rate.unwrap_or(0.0));
        let axis = Axis::log((low / 4.0, ceiling * 1.15), pixels);
        return (axis, (greatest > ceiling).then_some(greatest));
    }
    // A burst at the start, or no pacing yet: it would press all else to the ground.
    let sensible = usual * 1.5;
    let is_cut = usual > 0.0 && greatest > 2.0 * sensible && quantity != "queue";
    let high = rate.unwrap_or(0.0).max(if is_cut { sensible } else { greatest });
    (Axis::linear((0.0, high * 1.06), pixels), is_cut.then_some(greatest))
}

fn path(points: &[(f64, Option<f64>)], time: Axis, axis: Axis) -> PathData {
    let mut data = PathData::default();
    let mut is_down = false;
    // On a logarithmic scale nothing has no place: curves begin with the first thing.
    let begun = points.iter().position(|(_, value)| !axis.is_log() || value.is_some_and(|value| value > 0.0));
    for (at, value) in &points[begun.unwrap_or(points.len())..] {
        match value {
            Some(value) if is_down => data.line_to((time.at(*at), axis.at(*value))),
            Some(value) => data.move_to((time.at(*at), axis.at(*value))),
            None => {}
        }
        is_down = value.is_some();
    }
    data
}

/// Names at the right edge, at the height of their curves' ends as far as there is room.
fn draw_names(svg: &mut Svg, lines: &[Line<'_>], axis: Axis, (top, bottom): (f64, f64)) {
    let end = |line: &Line<'_>| last(&line.points).map_or(bottom, |(_, value)| axis.at(value));
    let wished: Vec<f64> = lines.iter().map(end).collect();
    let places = spread(&wished, NAME_STEP, (top, bottom + 4.0));
    for (place, line) in places.iter().zip(lines) {
        svg.open(&line.track.look.classes(line.track.series), "");
        let mut sample = PathData::default();
        sample.move_to((RIGHT + 10.0, *place));
        sample.horizontal(RIGHT + 28.0);
        svg.path("curve", &sample);
        let name = shortened(line.track.name, 15);
        svg.text("own name0", (RIGHT + 33.0, place + 4.0), Anchor::Start, &name);
        svg.close();
    }
}

//! One number a stack with its confidence interval: small multiples on one common scale.

use super::axis::{self, Axis};
use super::cdf::shortened;
use super::style::Look;
use super::svg::{Anchor, PathData, Svg};
use crate::layout::{Group, Layout, Member};
use crate::metric::{Better, Column, Unit};
use crate::statistics::{self, Interval};

const WIDTH: f64 = 552.0;
const LEFT: f64 = 112.0;
const RIGHT: f64 = 470.0;
const TOP: f64 = 14.0;
const ROW: f64 = 21.0;

/// What a row shows.
struct Row {
    /// The median; infinite beyond the deadline.
    median: f64,
    interval: Option<Interval>,
    /// The worse tail: the 95th percentile, or the 5th where more is better.
    tail: f64,
    n: usize,
}

/// A figure's panels, which share its scale.
pub(super) struct Bars<'a> {
    layout: &'a Layout<'a>,
    what: What,
    /// By group, by member.
    rows: Vec<Vec<Option<Row>>>,
    low: f64,
    high: f64,
}

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// Completion time over the physical limit.
    ToLimit,
    /// A metric (its median, whatever statistic the column names).
    Metric(Column),
}

impl What {
    fn unit(self) -> Unit {
        match self {
            Self::ToLimit => Unit::Times,
            Self::Metric(column) => column.metric.unit,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::ToLimit => "completion time / limit",
            Self::Metric(column) => column.metric.label,
        }
    }

    fn is_higher_better(self) -> bool {
        matches!(self, Self::Metric(column) if column.metric.better == Better::Higher)
    }

    /// The worse tail that the ring shows.
    pub(super) fn tail_name(self) -> &'static str {
        if self.is_higher_better() { "5th percentile" } else { "95th percentile" }
    }
}

impl<'a> Bars<'a> {
    pub(super) fn new(layout: &'a Layout<'a>, what: What) -> Self {
        let rows: Vec<Vec<Option<Row>>> = layout
            .groups
            .iter()
            .map(|group| group.members.iter().map(|member| row(layout, what, member)).collect())
            .collect();
        let shown = rows.iter().flatten().flatten();
        let values = shown.flat_map(|row| {
            let ends = row.interval.map_or([row.median; 2], |interval| [interval.low, interval.high]);
            [row.median, row.tail, ends[0], ends[1]]
        });
        let (low, high) = axis::extent(values).unwrap_or((0.0, 1.0));
        Self { layout, what, rows, low, high }
    }

    /// True if there is anything to draw.
    pub(super) fn has_values(&self) -> bool {
        self.rows.iter().flatten().any(Option::is_some)
    }

    fn axis(&self) -> Axis {
        let pixels = (LEFT, RIGHT);
        match self.what {
            // Bars begin at the limit: their length is the time above it, on either kind of scale.
            What::ToLimit if self.high > 6.0 => Axis::log((self.low.min(1.0), self.high * 1.05), pixels),
            What::ToLimit => Axis::linear((self.low.min(1.0), self.high.max(1.5) * 1.02), pixels),
            What::Metric(_) if self.low > 0.0 && self.high > 30.0 * self.low => {
                Axis::log((self.low / 1.2, self.high * 1.05), pixels)
            }
            What::Metric(_) => Axis::linear((self.low.min(0.0), self.high.max(0.0) * 1.02), pixels),
        }
    }

    /// True if the scale is logarithmic.
    pub(super) fn is_log(&self) -> bool {
        self.axis().is_log()
    }

    /// Where bars begin; `None`: there are none, since lengths on a logarithmic scale mean nothing without a natural
    /// origin.
    fn origin(&self) -> Option<f64> {
        match self.what {
            What::ToLimit => Some(1.0),
            What::Metric(_) => (!self.is_log()).then_some(0.0),
        }
    }

    /// The panel of the group at an index.
    pub(super) fn panel(&self, index: usize, looks: &[Look]) -> String {
        let group = &self.layout.groups[index];
        let bottom = TOP + ROW * group.members.len() as f64 + 4.0;
        let label = format!("{} in {}", self.what.label(), group.label());
        let mut svg = Svg::new(WIDTH, bottom + 34.0, &label);
        let x = self.axis();
        axis::draw_below(&mut svg, x, self.what.unit(), (TOP, bottom), 6);
        let scale = if x.is_log() { " (log scale)" } else { "" };
        let suffix = x.suffix(self.what.unit());
        let suffix = if suffix.is_empty() { String::new() } else { format!(", {suffix}") };
        let title = format!("{}{suffix}{scale}", self.what.label());
        svg.text("unit", (f64::midpoint(LEFT, RIGHT), bottom + 29.0), Anchor::Middle, &title);
        self.rows(&mut svg, group, index, looks);
        if matches!(self.what, What::ToLimit) {
            svg.line("limitline", (x.at(1.0), TOP - 4.0), (x.at(1.0), bottom));
            svg.text("limit", (x.at(1.0) + 4.0, TOP - 4.0), Anchor::Start, "limit");
        } else if let Some(origin) = self.origin() {
            svg.line("axis", (x.at(origin), TOP), (x.at(origin), bottom));
        }
        svg.finish()
    }

    fn rows(&self, svg: &mut Svg, group: &Group<'_>, index: usize, looks: &[Look]) {
        let greatest =
            self.rows[index].iter().flatten().map(|row| row.median.abs()).filter(|m| m.is_finite());
        let scale = self.what.unit().scale(greatest.fold(0.0, f64::max));
        for (position, (member, row)) in group.members.iter().zip(&self.rows[index]).enumerate() {
            let middle = TOP + ROW * (position as f64 + 0.5) + 2.0;
            let tip = row.as_ref().map_or_else(|| member.name.to_owned(), |row| self.tip(member, row));
            svg.open(&looks[member.series].classes(member.series), &tip);
            let name = shortened(&member.label(), 17);
            svg.text("own name0", (LEFT - 10.0, middle + 4.0), Anchor::End, &name);
            if let Some(row) = row {
                self.draw_row(svg, middle, row);
                let number = scale.number(row.median);
                let text =
                    if row.median.is_finite() { number + spaced(scale.suffix).as_str() } else { number };
                svg.text("value", (WIDTH, middle + 4.0), Anchor::End, &text);
            } else {
                svg.text("soft", (LEFT + 8.0, middle + 4.0), Anchor::Start, "not told");
            }
            svg.close();
        }
    }

    fn tip(&self, member: &Member<'_>, row: &Row) -> String {
        let unit = self.what.unit();
        let interval = row.interval.map_or_else(
            || "too few runs for an interval".to_owned(),
            |interval| format!("95 % CI {} to {}", unit.text(interval.low), unit.text(interval.high)),
        );
        format!(
            "{}: median {} of {} runs; {interval}; {} {}",
            member.name,
            unit.text(row.median),
            row.n,
            self.what.tail_name(),
            unit.text(row.tail)
        )
    }

    fn draw_row(&self, svg: &mut Svg, middle: f64, row: &Row) {
        let x = self.axis();
        let end = |value: f64| {
            if value.is_finite() {
                x.at(value)
            } else if value > 0.0 {
                RIGHT
            } else {
                LEFT
            }
        };
        if let Some(origin) = self.origin() {
            let class = if row.median.is_finite() { "bar" } else { "far" };
            svg.rect(class, (x.at(origin), middle - 6.5), (end(row.median), middle + 6.5));
        }
        svg.line("tail", (end(row.median), middle), (end(row.tail), middle));
        if row.tail.is_finite() {
            svg.circle("open", (end(row.tail), middle), 2.4);
        } else {
            // An arrow out of the figure: beyond the deadline.
            let (tip, way) = if row.tail > 0.0 { (RIGHT + 7.0, -6.0) } else { (LEFT - 7.0, 6.0) };
            let mut head = PathData::default();
            head.move_to((tip + way, middle - 3.5));
            head.line_to((tip, middle));
            head.line_to((tip + way, middle + 3.5));
            svg.line("tail", (end(row.tail), middle), (tip, middle));
            svg.path("arrow", &head);
        }
        if self.origin().is_none() && row.median.is_finite() {
            svg.circle("dot", (end(row.median), middle), 4.2);
        }
        if let Some(interval) = row.interval.filter(|i| i.low.is_finite() || i.high.is_finite()) {
            let (low, high) = (end(interval.low), end(interval.high));
            svg.line("whisker", (low, middle), (high, middle));
            for place in [low, high] {
                svg.line("whisker", (place, middle - 3.5), (place, middle + 3.5));
            }
        }
    }
}

/// A unit behind a number; the sign of multiplication needs no room.
fn spaced(suffix: &str) -> String {
    if suffix.is_empty() { String::new() } else { format!("\u{2009}{suffix}") }
}

fn row(layout: &Layout<'_>, what: What, member: &Member<'_>) -> Option<Row> {
    let values: Vec<f64> = match what {
        What::Metric(column) => column.metric.sample(layout.experiment, member.cell).numbers(),
        What::ToLimit => {
            let limit = member.cell.limit.as_ref().map(|limit| limit.seconds).filter(|limit| *limit > 0.0)?;
            layout.sample(member.cell).numbers().iter().map(|seconds| seconds / limit).collect()
        }
    };
    let summary = statistics::summarise(&values)?;
    let tail = statistics::quantile(&values, if what.is_higher_better() { 0.05 } else { 0.95 })?;
    Some(Row { median: summary.p50, interval: summary.median_interval, tail, n: summary.n })
}

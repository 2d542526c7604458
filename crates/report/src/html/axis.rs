//! From values to places on the page, and the ticks between.

use super::svg::{Anchor, Svg};
use crate::metric::Unit;

/// A range of values on a range of pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

/// A place with its label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// Ranges wider than this factor get a logarithmic axis.
const LOG_FROM: f64 = 12.0;

impl Axis {
    /// Equal steps from `low` to `high`; a range without extent is given some.
    pub(super) fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + low.abs().max(1.0) };
        Self { low, high, from, to, is_log: false }
    }

    /// Equal factors; `low` must be positive, else the axis is linear.
    pub(super) fn log((low, high): (f64, f64), pixels: (f64, f64)) -> Self {
        if !(low.is_finite() && high.is_finite() && low > 0.0) {
            return Self::linear((low, high), pixels);
        }
        let high = if high > low { high } else { low * 2.0 };
        Self { low, high, from: pixels.0, to: pixels.1, is_log: true }
    }

    /// Logarithmic where the values are positive and span more than a decade, with a little room at both ends.
    pub(super) fn fitting(values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let (low, high) = extent(values).unwrap_or((0.0, 1.0));
        if low > 0.0 && high / low > LOG_FROM {
            return Self::log((low / 1.08, high * 1.08), pixels);
        }
        let room = (high - low) * 0.04;
        let room = if room > 0.0 { room } else { high.abs() * 0.1 };
        // Zero is a natural end of a scale that all but reaches it.
        let low = if low >= 0.0 && low < 0.25 * high { 0.0 } else { low - room };
        Self::linear((low, high + room), pixels)
    }

    pub(super) fn is_log(self) -> bool {
        self.is_log
    }

    /// The place of a value; those beyond an end stand at that end.
    pub(super) fn at(self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.is_log {
            libm::log(value / self.low) / libm::log(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// Ticks of `unit` where they look round, about `wanted` of them.
    pub(super) fn ticks(self, unit: Unit, wanted: usize) -> Vec<Tick> {
        let values = if self.is_log { self.log_values(wanted) } else { self.linear_values(unit, wanted) };
        let greatest = values.iter().copied().fold(0.0, |a: f64, b| a.max(b.abs()));
        let factor = unit.scale(greatest).factor;
        let labels =
            |value: f64| plain(value * factor, &values.iter().map(|v| v * factor).collect::<Vec<_>>());
        values.iter().map(|&value| Tick { at: self.at(value), label: labels(value) }).collect()
    }

    /// The unit's name as it stands at this axis; empty for plain numbers.
    pub(super) fn suffix(self, unit: Unit) -> &'static str {
        unit.scale(self.high).suffix
    }

    fn linear_values(self, unit: Unit, wanted: usize) -> Vec<f64> {
        // Steps are round in the unit that is shown.
        let factor = unit.scale(self.high).factor;
        let (low, high) = (self.low * factor, self.high * factor);
        let step = round_step((high - low) / wanted.max(1) as f64);
        let first = (low / step - 1e-9).ceil();
        let count = ((high - low) / step).floor() as usize + 1;
        let values = (0..count.min(50)).map(|index| (first + index as f64) * step);
        values.filter(|value| *value <= high * (1.0 + 1e-9)).map(|value| value / factor).collect()
    }

    fn log_values(self, wanted: usize) -> Vec<f64> {
        let within = |mantissas: &[f64]| -> Vec<f64> {
            let (first, last) =
                (libm::floor(libm::log10(self.low)) as i32, libm::ceil(libm::log10(self.high)) as i32);
            let decades = (first..=last).map(|exponent| libm::pow(10.0, f64::from(exponent)));
            let values = decades.flat_map(|decade| mantissas.iter().map(move |mantissa| decade * mantissa));
            values.filter(|value| (self.low..=self.high).contains(value)).collect()
        };
        let sets: [&[f64]; 4] =
            [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]];
        let candidates = sets.map(within);
        let fitting = candidates.iter().rev().find(|values| values.len() <= wanted + 1);
        fitting.unwrap_or(&candidates[0]).clone()
    }
}

/// The least and the greatest finite value.
pub(super) fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |range: Option<(f64, f64)>, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// The least of 1, 2, 2.5, 5 times a power of ten that is not below `rough`.
fn round_step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let decade = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.into_iter().find(|step| step * decade >= rough * (1.0 - 1e-9));
    step.unwrap_or(10.0) * decade
}

/// The number with as few digits as tell all ticks exactly (at most four): 0.5, 1.0, 1.5, or 0.3, 1, 3, 10.
fn plain(value: f64, all: &[f64]) -> String {
    let is_exact = |value: f64, digits: usize| {
        let scale = [1.0, 10.0, 100.0, 1e3, 1e4][digits];
        let shown = value * scale;
        (shown - shown.round()).abs() < 1e-6 * shown.abs().max(1.0)
    };
    let spread = extent(all.iter().copied().filter(|value| *value != 0.0)).unwrap_or((1.0, 1.0));
    // Over decades each number has digits of its own; on a common scale all have the same.
    let is_wide = spread.1 / spread.0.abs() > LOG_FROM && spread.0 > 0.0 && spread.0 < 1.0;
    let digits = |values: &[f64]| {
        (0..4).find(|&digits| values.iter().all(|value| is_exact(*value, digits))).unwrap_or(4)
    };
    let digits = if is_wide { digits(&[value]) } else { digits(all) };
    let text = format!("{value:.digits$}");
    text.strip_prefix('-')
        .filter(|rest| rest.chars().all(|c| "0.".contains(c)))
        .map_or(text.clone(), str::to_owned)
}

/// Vertical grid lines with labels below, from `top` to `bottom`.
pub(super) fn draw_below(svg: &mut Svg, axis: Axis, unit: Unit, (top, bottom): (f64, f64), wanted: usize) {
    for tick in axis.ticks(unit, wanted) {
        svg.line("grid", (tick.at, top), (tick.at, bottom));
        svg.text("tick", (tick.at, bottom + 14.0), Anchor::Middle, &tick.label);
    }
}

/// Horizontal grid lines with labels at the left, from `left` to `right`.
pub(super) fn draw_left(svg: &mut Svg, axis: Axis, unit: Unit, (left, right): (f64, f64), wanted: usize) {
    for tick in axis.ticks(unit, wanted) {
        svg.line("grid", (left, tick.at), (right, tick.at));
        svg.text("tick", (left - 6.0, tick.at + 3.5), Anchor::End, &tick.label);
    }
}

//! Units, and numbers with them: digits are fixed by the greatest number of a column, so that its dots align and
//! the same results read the same on every machine.

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Bits a second.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// A part of a whole, 0 to 1, shown in percent.
    Share,
    /// A multiple, shown as `1.9 x`.
    Times,
    /// A number without a unit.
    Index,
}

/// How the numbers of one column are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// A value of one is written as this many.
    pub factor: f64,
    /// What stands behind the number or at the head of the column; empty for plain numbers.
    pub suffix: &'static str,
    /// Digits after the point.
    pub digits: usize,
    unit: Unit,
}

/// What stands for a censored value.
pub(crate) const BEYOND: &str = ">deadline";

impl Unit {
    /// A scale for numbers up to `greatest` (which may be infinite: then the unit's own).
    pub fn scale(self, greatest: f64) -> Scale {
        let magnitude = if greatest.is_finite() { greatest.abs() } else { 0.0 };
        let steps: &[(f64, f64, &'static str)] = match self {
            Self::Seconds => &[(0.0, 1.0, "s")],
            Self::Milliseconds => &[(0.0, 1.0, "ms")],
            Self::BitsPerSecond => &[(0.0, 1e-6, "Mbit/s")],
            Self::Bytes => &[(0.0, 1.0, "B"), (1e4, 1e-3, "kB"), (1e6, 1e-6, "MB")],
            Self::Count | Self::Index => &[(0.0, 1.0, "")],
            Self::Share => &[(0.0, 100.0, "%")],
            Self::Times => &[(0.0, 1.0, "\u{d7}")],
        };
        let mut chosen = steps[0];
        for &step in steps {
            if magnitude >= step.0 {
                chosen = step;
            }
        }
        let (_, factor, suffix) = chosen;
        Scale { factor, suffix, digits: 0, unit: self }.fitted(greatest)
    }

    /// One number with its unit, three digits or so, for sentences.
    pub fn text(self, value: f64) -> String {
        let scale = self.scale(value);
        let digits = match (value * scale.factor).abs() {
            shown if self == Self::Count && is_whole(shown) => 0,
            shown if shown >= 100.0 => 0,
            shown if shown >= 10.0 => 1,
            shown if shown >= 1.0 || self == Self::Times => 2,
            _ => 3,
        };
        let number = Scale { digits, ..scale }.number(value);
        match scale.suffix {
            _ if !value.is_finite() => number,
            "" => number,
            suffix => format!("{number} {suffix}"),
        }
    }

    /// A published figure in this unit; `None` if its unit is none that this one knows.
    pub fn from_printed(self, value: f64, unit: &str) -> Option<f64> {
        let unit = unit.trim().to_ascii_lowercase();
        let table: &[(&str, f64)] = match self {
            Self::Seconds => &[("s", 1.0), ("ms", 1e-3)],
            Self::Milliseconds => &[("ms", 1.0), ("s", 1e3)],
            Self::BitsPerSecond => &[
                ("mbps", 1e6),
                ("mbit/s", 1e6),
                ("kbps", 1e3),
                ("kbit/s", 1e3),
                ("bps", 1.0),
                ("bit/s", 1.0),
                ("mb/s", 8e6),
                ("kb/s", 8e3),
            ],
            Self::Bytes => &[("b", 1.0), ("kb", 1e3), ("mb", 1e6)],
            Self::Count => &[("", 1.0), ("count", 1.0), ("packets", 1.0)],
            Self::Share => &[("pct", 0.01), ("%", 0.01), ("ratio", 1.0), ("pct_reduction", 0.01), ("", 1.0)],
            Self::Times | Self::Index => {
                &[("", 1.0), ("x", 1.0), ("\u{d7}", 1.0), ("ratio", 1.0), ("index", 1.0)]
            }
        };
        table.iter().find(|(name, _)| *name == unit).map(|(_, factor)| value * factor)
    }
}

fn is_whole(value: f64) -> bool {
    value.fract().abs() < 1e-9
}

impl Scale {
    /// The same unit with digits for numbers up to `greatest`, about four that count.
    pub fn fitted(self, greatest: f64) -> Self {
        let shown = if greatest.is_finite() { (greatest * self.factor).abs() } else { 0.0 };
        let digits = match self.unit {
            Unit::Times => 2,
            Unit::Count if is_whole(shown) => 0,
            _ if shown >= 1000.0 => 0,
            _ if shown >= 100.0 => 1,
            _ if shown >= 10.0 => 2,
            _ => 3,
        };
        Self { digits, ..self }
    }

    /// The number alone; never NaN, never a negative zero.
    pub fn number(self, value: f64) -> String {
        if value.is_nan() {
            return "\u{2013}".to_owned();
        }
        if value.is_infinite() {
            return BEYOND.to_owned();
        }
        let text = format!("{:.*}", self.digits, value * self.factor);
        match text.strip_prefix('-') {
            Some(rest) if rest.bytes().all(|byte| byte == b'0' || byte == b'.') => rest.to_owned(),
            _ => text,
        }
    }
}

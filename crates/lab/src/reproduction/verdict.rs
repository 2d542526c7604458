//! Whether a figure of ours is the published one: pure arithmetic.

use serde::Serialize;

/// How far ours may be off, as a part of the published figure.
pub const TOLERANCE: f64 = 1.0 / 3.0;
/// What counts as no effect where none is published: a third of nothing would ask for equal runs.
pub const NO_EFFECT: f64 = 0.05;

/// What came of a published figure, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The same sign, and within a third of it.
    Reproduced,
    /// The same sign, but not within a third.
    SameDirection,
    /// The sign of ours is not sure: zero is within the interval.
    NoEffect,
    /// Something of the setting was chosen so that this figure comes out.
    Fitted,
    /// No sender can do it on the path that is printed.
    CannotHold,
    /// Our runs have nothing that could be set beside it.
    NotMeasured,
    /// Published twice, and judged at its first place.
    Repeated,
    /// Neither within a third nor of the same sign.
    NotReproduced,
}

impl Verdict {
    /// All, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::Reproduced,
        Self::SameDirection,
        Self::NoEffect,
        Self::NotReproduced,
        Self::CannotHold,
        Self::NotMeasured,
        Self::Fitted,
        Self::Repeated,
    ];

    /// For people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::NoEffect => "no effect seen",
            Self::Fitted => "fitted",
            Self::CannotHold => "cannot hold",
            Self::NotMeasured => "cannot be measured so",
            Self::Repeated => "judged above",
            Self::NotReproduced => "not reproduced",
        }
    }

    /// What it means, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Reproduced => {
                "Ours has the same sign and is within a third of the published effect; where a plain value is \
                 published, its ratio to the series that the paper compares with is judged so, or, without one, the \
                 value. Where no effect is published, ours is at most 5 %."
            }
            Self::SameDirection => "Ours has the same sign, but is not within a third.",
            Self::NoEffect => {
                "An effect is published, ours has its sign, and zero is within the 95 % interval of ours, whatever its size."
            }
            Self::Fitted => {
                "Ours is the published figure because something of the setting was chosen so; the note says what. It \
                 shows nothing, and is not counted as reproduced."
            }
            Self::Repeated => {
                "The paper prints the same figure twice: it is judged at the row that the note names."
            }
            Self::NotReproduced => "Neither: the note says what was varied, and what would have to be known.",
            Self::CannotHold => {
                "No sender can do it on the path that is printed, by the paper's own definition of what is measured; the \
                 note has the arithmetic. A ratio of two such values is judged as a ratio."
            }
            Self::NotMeasured => "Our runs have nothing comparable; the note has the reason.",
        }
    }
}

/// A published figure: a number, or all between two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least.
    pub low: f64,
    /// The greatest; infinite for "at least".
    pub high: f64,
}

impl Range {
    /// A number (`31`) or a range of them (`18..24`).
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let (low, high) = match text.split_once("..") {
            Some((low, high)) => (number(low)?, number(high)?),
            None => (number(text)?, number(text)?),
        };
        (low <= high).then_some(Self { low, high })
    }

    /// The same in another unit.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { low: change(self.low), high: change(self.high) }
    }

    /// True if nothing but zero is in it.
    pub fn is_zero(self) -> bool {
        self.low == 0.0 && self.high == 0.0
    }

    /// True if `value` lies in it or within [`TOLERANCE`] of its nearer end.
    pub fn nearly_contains(self, value: f64) -> bool {
        // A border is within: 40 is within a third of 30, whatever binary makes of a third.
        let slack = |end: f64| end.abs() * (TOLERANCE + 1e-9);
        let above = value >= self.low - slack(self.low);
        above && (self.high.is_infinite() || value <= self.high + slack(self.high))
    }

    /// The number that says its sign.
    fn middle(self) -> f64 {
        if self.high.is_finite() { f64::midpoint(self.low, self.high) } else { self.low }
    }
}

/// The verdict on an effect: a reduction, a gain, a correlation, whose sign matters.
pub fn of_effect(ours: f64, published: Range) -> Verdict {
    if published.is_zero() {
        return if ours.abs() <= NO_EFFECT { Verdict::Reproduced } else { Verdict::NotReproduced };
    }
    if published.nearly_contains(ours) {
        Verdict::Reproduced
    } else if ours * published.middle() > 0.0 {
        Verdict::SameDirection
    } else {
        Verdict::NotReproduced
    }
}

/// The verdict on an effect of ours that lies between `low` and `high` with the confidence of intervals.
pub fn of_sure_effect(verdict: Verdict, low: f64, high: f64, published: Range) -> Verdict {
    let has_sign = matches!(verdict, Verdict::Reproduced | Verdict::SameDirection) && !published.is_zero();
    if has_sign && low <= 0.0 && high >= 0.0 { Verdict::NoEffect } else { verdict }
}

/// The verdict on a plain value, which has no direction.
pub fn of_value(ours: f64, published: Range) -> Verdict {
    if published.nearly_contains(ours) { Verdict::Reproduced } else { Verdict::NotReproduced }
}

/// The verdict on something said in words, of whose `total` comparisons `held` are as said.
pub fn of_claims(held: usize, total: usize) -> Verdict {
    if held == total {
        Verdict::Reproduced
    } else if held * 2 > total {
        Verdict::SameDirection
    } else {
        Verdict::NotReproduced
    }
}

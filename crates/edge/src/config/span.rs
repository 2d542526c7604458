//! Times in the form `10s`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A time from a millisecond to ten years, written with its unit: `500ms`, `10s`, `5m`, `12h`, `180d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

/// From the greatest to the smallest, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

const MAX: u64 = 3650 * 86_400_000;

impl Span {
    pub(crate) const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub(crate) const fn from_millis(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
    }

    /// As the standard library has it.
    pub const fn duration(self) -> Duration {
        self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit.trim_start())?;
        let milliseconds = number.parse::<u64>().ok()?.checked_mul(factor)?;
        (1..=MAX).contains(&milliseconds).then(|| Self(Duration::from_millis(milliseconds)))
    }
}

impl From<Duration> for Span {
    /// To whole milliseconds.
    fn from(time: Duration) -> Self {
        Self(Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(MAX).clamp(1, MAX)))
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.0.as_millis() as u64;
        let whole = UNITS.into_iter().find(|(_, factor)| all.is_multiple_of(*factor));
        let (unit, factor) = whole.unwrap_or(("ms", 1));
        write!(f, "{}{unit}", all / factor)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format!("`{text}` is not a time such as 500ms, 10s, 5m, 12h or 180d"))
        })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for text in ["500ms", "10s", "5m", "12h", "180d", "1ms"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Span::parse("120 s").unwrap().to_string(), "2m");
        for text in ["", "10", "s", "0s", "-1s", "1.5s", "1y", "99999999999999999999s", "3651d"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }
}

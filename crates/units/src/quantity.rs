//! Byte counts and rates.
//!
//! The type is called `ByteCount` because the data path uses `bytes::Bytes` everywhere.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

use crate::Duration;

/// A number of bytes. Arithmetic saturates at both ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteCount(u64);

/// A rate in bytes a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl ByteCount {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// The largest count.
    pub const MAX: Self = Self(u64::MAX);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count as a real, for policies whose paper works in reals.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The count nearest to `count`; negative and NaN give zero.
    pub fn from_f64(count: f64) -> Self {
        Self((count + 0.5) as u64)
    }

    /// Returns true if the count is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self * numerator / denominator`, exact in 128 bits and saturating; a zero denominator gives [`Self::MAX`].
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        Self(Duration::from_nanos(self.0).mul_ratio(numerator, denominator).as_nanos())
    }
}

impl Rate {
    /// Zero bits per second.
    pub const ZERO: Self = Self(0);
    /// The largest rate.
    pub const MAX: Self = Self(u64::MAX);

    /// `rate` bytes a second.
    pub const fn from_bytes_per_second(rate: u64) -> Self {
        Self(rate)
    }

    /// `rate` bits a second, rounded down to whole bytes a second.
    pub const fn from_bits_per_second(rate: u64) -> Self {
        Self(rate / 8)
    }

    /// `bytes` every `interval`; a zero interval gives [`Rate::MAX`].
    pub const fn from_transfer(bytes: ByteCount, interval: Duration) -> Self {
        Self(bytes.mul_ratio(1_000_000_000, interval.as_nanos()).get())
    }

    /// Bytes a second.
    pub const fn as_bytes_per_second(self) -> u64 {
        self.0
    }

    /// Bits a second, saturating.
    pub const fn as_bits_per_second(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// Time that `bytes` take at this rate, rounded up; [`Duration::MAX`] at rate zero.
    pub const fn time_for(self, bytes: ByteCount) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let wide = (bytes.0 as u128 * 1_000_000_000).div_ceil(self.0 as u128);
        if wide > u64::MAX as u128 { Duration::MAX } else { Duration::from_nanos(wide as u64) }
    }

    /// Bytes that pass in `interval`, rounded down.
    pub const fn bytes_in(self, interval: Duration) -> ByteCount {
        ByteCount(self.0).mul_ratio(interval.as_nanos(), 1_000_000_000)
    }

    /// `self * numerator / denominator`, exact in 128 bits and saturating.
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        Self(ByteCount(self.0).mul_ratio(numerator, denominator).get())
    }
}

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    /// Saturates at zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for ByteCount {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for ByteCount {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for ByteCount {
    type Output = Self;
    /// Division by zero gives [`ByteCount::MAX`].
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

impl From<usize> for ByteCount {
    fn from(count: usize) -> Self {
        Self(count as u64)
    }
}

impl fmt::Debug for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for ByteCount {
    /// Decimal multiples: `1.5 MB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, &["B", "kB", "MB", "GB", "TB"])
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B/s", self.0)
    }
}

impl fmt::Display for Rate {
    /// Decimal multiples of bits a second: `12.5 Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.as_bits_per_second(), &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
    }
}

fn scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[&str]) -> fmt::Result {
    let mut real = value as f64;
    let mut names = units.iter();
    let mut unit = names.next().copied().unwrap_or_default();
    for name in names {
        if real < 1000.0 {
            break;
        }
        real /= 1000.0;
        unit = name;
    }
    let digits = usize::from(real < 100.0 && value >= 1000) + usize::from(real < 10.0 && value >= 1000);
    write!(f, "{real:.digits$} {unit}")
}

/// Why a text is not a byte count or a rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseQuantityError {
    text: String,
    valid: &'static str,
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not valid here: write a number and a unit of {}", self.text, self.valid)
    }
}

impl std::error::Error for ParseQuantityError {}

/// Splits `text` into its number and its unit, and multiplies.
pub(crate) fn parse(
    text: &str,
    units: &[(&str, f64)],
    valid: &'static str,
) -> Result<f64, ParseQuantityError> {
    let error = || ParseQuantityError { text: text.to_owned(), valid };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let number: f64 = number.trim().parse().map_err(|_| error())?;
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
    let value = number * factor;
    if value.is_finite() && (0.0..1.8e19).contains(&value) { Ok(value) } else { Err(error()) }
}

impl FromStr for ByteCount {
    type Err = ParseQuantityError;

    /// Reads `16`, `16B`, `64kB`, `1MB`, `1GB` (decimal) and `64KiB`, `1MiB`, `1GiB` (binary), in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let units = [
            ("", 1.0),
            ("b", 1.0),
            ("kb", 1e3),
            ("mb", 1e6),
            ("gb", 1e9),
            ("kib", 1024.0),
            ("mib", 1_048_576.0),
            ("gib", 1_073_741_824.0),
        ];
        parse(text, &units, "B, kB, MB, GB, KiB, MiB, GiB").map(Self::from_f64)
    }
}

impl FromStr for Rate {
    type Err = ParseQuantityError;

    /// Reads `800bit`, `500kbit`, `10mbit`, `1gbit` (with or without `/s`), in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim().trim_end_matches("/s");
        let units = [("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
        parse(trimmed, &units, "bit, kbit, Mbit, Gbit (a second)").map(|bits| Self((bits / 8.0 + 0.5) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_are_inverse() {
        let rate = Rate::from_bits_per_second(10_000_000);
        assert_eq!(rate.time_for(ByteCount::new(1250)), Duration::from_millis(1));
        assert_eq!(rate.bytes_in(Duration::from_millis(1)), ByteCount::new(1250));
        assert_eq!(Rate::from_transfer(ByteCount::new(1250), Duration::from_millis(1)), rate);
        assert_eq!(Rate::ZERO.time_for(ByteCount::new(1)), Duration::MAX);
        assert_eq!(Rate::from_transfer(ByteCount::new(1), Duration::ZERO), Rate::MAX);
    }

    #[test]
    fn quantities_are_read_and_shown_in_the_units_people_write() {
        assert_eq!("1MB".parse(), Ok(ByteCount::new(1_000_000)));
        assert_eq!("64 KiB".parse(), Ok(ByteCount::new(65_536)));
        assert_eq!("1.5mbit".parse(), Ok(Rate::from_bits_per_second(1_500_000)));
        assert_eq!("10 Mbit/s".parse(), Ok(Rate::from_bits_per_second(10_000_000)));
        assert_eq!(ByteCount::new(1_500_000).to_string(), "1.50 MB");
        assert_eq!(ByteCount::new(999).to_string(), "999 B");
        assert_eq!(Rate::from_bits_per_second(12_500_000).to_string(), "12.5 Mbit/s");
    }

    #[test]
    fn nonsense_quantities_are_refused_with_the_valid_units() {
        for text in ["", "MB", "-1MB", "1e400MB", "10 furlongs", "nan"] {
            let error = text.parse::<ByteCount>().expect_err(text);
            assert!(error.to_string().contains("KiB"), "{error}");
        }
        assert!("10".parse::<Rate>().is_err(), "a rate without a unit is ambiguous");
    }
}

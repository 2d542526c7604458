//! Text form of quantities in files and on command lines: `38ms`, `10mbit`, `1MB`; also through serde.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quantity::parse;
use crate::{ByteCount, Duration, ParseQuantityError, Rate};

impl FromStr for Duration {
    type Err = ParseQuantityError;

    /// Reads `20ns`, `5us`, `38ms`, `1.5s`, `2min`, in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)];
        parse(text, &units, "ns, us, ms, s, min").map(Self::from_secs_f64)
    }
}

/// Reads a quantity from a text with a unit; bare numbers are refused, since they hide their unit.
struct Quantity<T> {
    example: &'static str,
    kind: PhantomData<T>,
}

impl<T: FromStr<Err = ParseQuantityError>> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text with a unit, such as {}", self.example)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Quantity { example: "\"38ms\"", kind: PhantomData })
    }
}

impl<'de> Deserialize<'de> for ByteCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Quantity { example: "\"1MB\"", kind: PhantomData })
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Quantity { example: "\"10mbit\"", kind: PhantomData })
    }
}

// What is written is exact and can be read back, which `Display` with its three digits cannot.

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}ns", self.as_nanos()))
    }
}

impl Serialize for ByteCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}B", self.get()))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}bit", self.as_bits_per_second()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!("38ms".parse(), Ok(Duration::from_millis(38)));
        assert_eq!("1.5 s".parse(), Ok(Duration::from_millis(1500)));
        assert_eq!("0.09ms".parse(), Ok(Duration::from_micros(90)));
        assert_eq!("2min".parse(), Ok(Duration::from_secs(120)));
        let error = "38".parse::<Duration>().expect_err("no unit");
        assert!(error.to_string().contains("ms"), "{error}");
    }

    #[test]
    fn what_is_written_is_read_back_exactly() {
        let (span, bytes) = (Duration::from_nanos(1_234_567_891), ByteCount::new(1_234_567));
        let rate = Rate::from_bytes_per_second(123_457);
        let json = serde_json::to_string(&(span, bytes, rate)).expect("quantities are serialisable");
        assert_eq!(
            serde_json::from_str::<(Duration, ByteCount, Rate)>(&json).expect("read back"),
            (span, bytes, rate)
        );
        assert!(serde_json::from_str::<Duration>("38").is_err(), "a bare number hides its unit");
    }
}

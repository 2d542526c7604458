//! Values of a path's table that quantities alone do not cover.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{ByteCount, Duration, Rate};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A full IP packet: no queue that is sized by the path is smaller, or a slow path could not carry one.
const FULL_PACKET: ByteCount = ByteCount::new(1500);

/// Size of a queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueSize {
    /// Bytes.
    Bytes(ByteCount),
    /// Multiples of mean rate x rtt, 1500 bytes at least.
    Bdp(f64),
    /// Time that a full queue takes to drain at the mean rate.
    Time(Duration),
}

impl QueueSize {
    /// In bytes, on a path with this rate and round trip.
    pub fn bytes(self, rate: Rate, rtt: Duration) -> ByteCount {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Bdp(factor) => ByteCount::from_f64(rate.bytes_in(rtt).as_f64() * factor).max(FULL_PACKET),
            Self::Time(time) => rate.bytes_in(time),
        }
    }
}

/// Why a text is not a queue's size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a queue's size: write \"1bdp\" (times rate x rtt), \"64kB\" or \"100ms\"")]
pub struct ParseQueueError(String);

impl FromStr for QueueSize {
    type Err = ParseQueueError;

    /// Reads `1bdp`, `64kB` and `100ms`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseQueueError(text.to_owned());
        let lower = text.trim().to_ascii_lowercase();
        if let Some(factor) = lower.strip_suffix("bdp") {
            let factor: f64 = factor.trim().parse().map_err(|_| error())?;
            return if (0.0..=1e6).contains(&factor) { Ok(Self::Bdp(factor)) } else { Err(error()) };
        }
        if let Ok(bytes) = lower.parse() {
            return Ok(Self::Bytes(bytes));
        }
        lower.parse().map(Self::Time).map_err(|_| error())
    }
}

impl fmt::Display for QueueSize {
    /// As [`FromStr`] reads it, exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{}B", bytes.get()),
            Self::Bdp(factor) => write!(f, "{factor}bdp"),
            Self::Time(time) => write!(f, "{}ns", time.as_nanos()),
        }
    }
}

impl<'de> Deserialize<'de> for QueueSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = QueueSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a queue's size such as \"1bdp\", \"64kB\" or \"100ms\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<QueueSize, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for QueueSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A probability: `"2%"` or a number from 0 to 1, which is what it is written as.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Probability(pub(crate) f64);

impl Probability {
    fn new<E: Error>(value: f64, shown: impl fmt::Display) -> Result<Self, E> {
        if (0.0..=1.0).contains(&value) { Ok(Self(value)) } else { Err(Self::refuse(shown)) }
    }

    fn refuse<E: Error>(shown: impl fmt::Display) -> E {
        E::custom(format_args!("`{shown}` is not a probability: write \"2%\" or a number from 0 to 1"))
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Probability;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability: \"2%\" or a number from 0 to 1")
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Probability, E> {
                Probability::new(value, value)
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Probability, E> {
                Probability::new(value as f64, value)
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Probability, E> {
                Probability::new(value as f64, value)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Probability, E> {
                let (number, whole) = match text.trim().strip_suffix('%') {
                    Some(number) => (number.trim_end(), 100.0),
                    None => (text.trim(), 1.0),
                };
                let number: f64 = number.parse().map_err(|_| Probability::refuse(text))?;
                Probability::new(number / whole, text)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

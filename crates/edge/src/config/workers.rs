//! How many threads serve.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What to write in the place of something else.
const CHOICES: &str = "from 1 to 1024, or `auto`";

const MOST: u16 = 1024;

/// How many threads serve, each with sockets, connections and connections to upstreams of its own: 1 to 1024, or `auto`
/// for one per core. More than one needs Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// One per core that the process may use.
    Auto,
    /// This many.
    Count(NonZeroU16),
}

impl Default for Workers {
    fn default() -> Self {
        Self::Count(NonZeroU16::MIN)
    }
}

impl Workers {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The number; with [`Self::Auto`], one if the system does not tell its cores.
    pub fn count(self) -> NonZeroU16 {
        match self {
            Self::Count(count) => count,
            Self::Auto => {
                let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                NonZeroU16::new(cores.min(usize::from(MOST)) as u16).unwrap_or(NonZeroU16::MIN)
            }
        }
    }

    fn of(number: u64) -> Option<Self> {
        let number = u16::try_from(number).ok().filter(|number| *number <= MOST)?;
        NonZeroU16::new(number).map(Self::Count)
    }
}

impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().ok().and_then(Self::of).ok_or_else(|| format!("must be {CHOICES}"))
    }
}

impl Serialize for Workers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Count(count) => serializer.serialize_u16(count.get()),
        }
    }
}

impl<'de> Deserialize<'de> for Workers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Choice)
    }
}

/// Reads a number or the word.
struct Choice;

impl Visitor<'_> for Choice {
    type Value = Workers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number ")?;
        f.write_str(CHOICES)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Workers, E> {
        let workers = u64::try_from(number).ok().and_then(Workers::of);
        workers.ok_or_else(|| E::custom(format!("workers {number}: must be {CHOICES}")))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Workers, E> {
        Workers::of(number).ok_or_else(|| E::custom(format!("workers {number}: must be {CHOICES}")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Workers, E> {
        text.parse().map_err(|reason| E::custom(format!("workers \"{text}\": {reason}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_the_word_and_nothing_else() {
        for (text, workers) in [("1", Workers::default()), ("auto", Workers::Auto)] {
            assert_eq!(text.parse(), Ok(workers));
        }
        assert!("1024".parse::<Workers>().is_ok() && Workers::Auto.count().get() >= 1);
        for text in ["0", "1025", "-1", "", "all", "65537"] {
            assert_eq!(
                text.parse::<Workers>(),
                Err("must be from 1 to 1024, or `auto`".to_owned()),
                "{text}"
            );
        }
    }
}

//! Where in a recording a run begins.

use std::fmt;

use posthaste_units::{Duration, Rng};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Recordings are at most so long: a month, as in [`crate::Trace`].
const LONGEST: Duration = Duration::from_secs(2_592_000);

/// Sets the draws apart from those of links and stacks, which begin with the same seed.
const PURPOSE: u64 = 0x7472_6163_6573;

/// Where in a recorded rate, and in the rhythm of handovers, a path's clock begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TraceStart {
    /// At a place that follows from the run's seed, the same for both directions: runs with different seeds are then
    /// different samples of the recording.
    #[default]
    Seed,
    /// At this time of the recording, in every run.
    At(Duration),
}

impl TraceStart {
    /// The place for a run with this seed.
    pub(crate) fn place(self, seed: u64) -> Duration {
        match self {
            Self::At(place) => place,
            Self::Seed => {
                let share = Rng::from_test_seed(seed ^ PURPOSE).unit_f64();
                Duration::from_nanos((LONGEST.as_nanos() as f64 * share) as u64)
            }
        }
    }

    /// The place where the seed is unknown: the recording's beginning.
    pub(crate) fn place_without_seed(self) -> Duration {
        match self {
            Self::At(place) => place,
            Self::Seed => Duration::ZERO,
        }
    }
}

impl fmt::Display for TraceStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed => f.write_str("seed"),
            Self::At(place) => write!(f, "{}ns", place.as_nanos()),
        }
    }
}

impl Serialize for TraceStart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceStart {
    /// Reads `seed` or a time.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "seed" {
            return Ok(Self::Seed);
        }
        let place: Duration = text.parse().map_err(|error| {
            D::Error::custom(format_args!(
                "trace-start: `seed` or a time in the recording is needed: {error}"
            ))
        })?;
        if place > LONGEST {
            return Err(D::Error::custom("trace-start: no recording is longer than a month"));
        }
        Ok(Self::At(place))
    }
}

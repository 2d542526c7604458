//! Parts of the controller that a profile can turn off, one at a time: what each is worth is an experiment's question
//! (`mo-ablation`), and a profile that leaves one out is no recommendation.

use std::fmt::{self, Display};

use serde::{Deserialize, Deserializer};

/// A part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The measured rate as startup's bound and pace.
    Ceiling,
    /// The test of a crowded link, which ends startup.
    Crowded,
    /// The early probe where startup has ended below what trains have shown.
    EarlyProbe,
    /// Probes beyond 1.25 of the rate, and every 10 rounds on a free path.
    Cascade,
    /// Probes that go on while only a bound holds them back.
    LongProbe,
    /// Steps of the delay, which are the medium's.
    Steps,
    /// Single losses that count as chance.
    Chance,
    /// In startup the greatest of the chunks as the path's own loss.
    Greatest,
    /// Room in the window for acks in lumps.
    Lumps,
    /// The belief in a rate that fell.
    Fall,
    /// The rest for the least RTT.
    Rest,
    /// The doubt about losses while the least RTT may be that of a full queue.
    Room,
    /// The shadow's fall to what arrives where a third is lost.
    Overrun,
    /// The longer route that a drain test can find.
    Route,
    /// Acks behind a wait that count as one in startup.
    Stalls,
    /// The end of a shadow where others prove to be none.
    Revision,
    /// Packets in a row that an outage has lost.
    Outage,
    /// The doubt about a fall of the rate whose queue falls by less than was drained.
    Drained,
}

/// The parts that are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Without(u32);

impl Without {
    /// True if `part` is off.
    pub fn has(self, part: Part) -> bool {
        self.0 & (1 << part as u16) != 0
    }

    /// True if nothing is off.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Part> for Without {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        Self(parts.into_iter().fold(0, |bits, part| bits | 1 << part as u16))
    }
}

impl<'de> Deserialize<'de> for Without {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Part>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of its parts", self.0.count_ones())
    }
}

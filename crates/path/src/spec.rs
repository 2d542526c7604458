//! Paths as people describe them: both directions at once, in text, by name or in TOML.

use posthaste_units::{ByteCount, Duration, Rate};
use serde::{Deserialize, Deserializer};

use crate::config::{Bottleneck, PathConfig};

/// Both directions of a path. In TOML it is a name (`"average"`) or a table, which may begin from a name with
/// `base = "average"`.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    /// Two-way propagation delay; each direction has half of it.
    pub rtt: Duration,
    /// Rate from server to client.
    pub rate: Option<Rate>,
    /// Rate from client to server; that of the other direction unless given.
    pub up_rate: Option<Rate>,
    /// Independent loss from server to client, a probability.
    pub loss: f64,
    /// The same from client to server; that of the other direction unless given.
    pub up_loss: Option<f64>,
    /// Size of the bottleneck's queue.
    pub queue: QueueSize,
}

/// Size of a queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueSize {
    /// Bytes.
    Bytes(ByteCount),
    /// Multiples of rate x rtt.
    Bdp(f64),
    /// Time that a full queue takes to drain.
    Time(Duration),
}

/// The names of the paths that come with Posthaste.
const NAMES: [&str; 3] = ["good", "average", "bad"];

impl PathSpec {
    /// The path with this name (SCHEMES: the paths of `hs-simple`).
    pub fn named(name: &str) -> Option<Self> {
        let (rtt, loss) = match name {
            "good" => (38, 0.01),
            "average" => (50, 0.02),
            "bad" => (188, 0.08),
            _ => return None,
        };
        Some(Self {
            rtt: Duration::from_millis(rtt),
            rate: Some(Rate::from_bits_per_second(100_000_000)),
            up_rate: None,
            loss,
            up_loss: None,
            queue: QueueSize::Bdp(1.0),
        })
    }

    /// The names that [`Self::named`] knows.
    pub const fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// The direction from server to client.
    pub fn down(&self) -> PathConfig {
        self.direction(self.rate, self.loss)
    }

    /// The direction from client to server.
    pub fn up(&self) -> PathConfig {
        self.direction(self.up_rate.or(self.rate), self.up_loss.unwrap_or(self.loss))
    }

    fn direction(&self, rate: Option<Rate>, loss: f64) -> PathConfig {
        let bottleneck = rate.map(|rate| {
            let queue = match self.queue {
                QueueSize::Bytes(bytes) => bytes,
                QueueSize::Bdp(factor) => ByteCount::from_f64(rate.bytes_in(self.rtt).as_f64() * factor),
                QueueSize::Time(time) => rate.bytes_in(time),
            };
            Bottleneck { rate, queue }
        });
        PathConfig { delay: self.rtt / 2, loss, bottleneck, ..PathConfig::default() }
    }
}

impl<'de> Deserialize<'de> for PathSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "there is no path `{name}`; there are {}",
                NAMES.join(", ")
            ))
        })
    }
}

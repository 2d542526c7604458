//! A race: the report that `posthaste race --json` prints and that campaigns read. Times are in seconds, and count from
//! the client's first packet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All that is printed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Race {
    /// `posthaste race` of this version.
    pub version: String,
    /// The command that repeats it.
    pub command: String,
    /// What was raced over.
    pub path: Path,
    /// What each run did: `file`, `requests` or `video`.
    pub workload: String,
    /// Its settings, as they were written.
    pub settings: BTreeMap<String, String>,
    /// Bytes of the object, of each answer or of each chunk.
    pub object_bytes: u64,
    /// Runs of each profile that were asked for.
    pub runs: u64,
    /// Runs at a time.
    pub parallel: usize,
    /// It was ended early.
    pub was_interrupted: bool,
    /// The physical limit of the workload's first figure.
    pub limit: Limit,
    /// The profile that others are set against.
    pub baseline: String,
    /// Of all relays.
    pub lateness: Lateness,
    /// Packets that the system lost, not the path.
    pub missed: u64,
    /// In the order of the command line.
    pub profiles: Vec<Racer>,
}

/// A path.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Path {
    /// As it was named.
    pub name: String,
    /// For people.
    pub description: String,
    /// Propagation there and back.
    pub rtt: f64,
    /// Mean of the direction from server to client, null if it is unlimited.
    pub bits_per_second: Option<u64>,
    /// From server to client.
    pub loss: f64,
}

/// The least time that the path permits.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// The time.
    pub seconds: f64,
    /// What it is made of, for people.
    pub terms: String,
}

/// Seconds that packets left the relays after the model's time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lateness {
    /// Packets counted.
    pub packets: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

/// The figures of a profile: null where nothing, or too little, has completed. Those of times are of the workload's first
/// figure: the time to the last byte of a file, the median latency of a run's requests, the startup of a video.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Racer {
    /// As it was named.
    pub profile: String,
    /// True if the times were computed in virtual time, not measured.
    pub model: bool,
    /// Runs that came to their end.
    pub completed: usize,
    /// Runs that did not.
    pub failed: usize,
    /// Median of all runs.
    pub median: Option<f64>,
    /// 95th percentile of all runs.
    pub p95: Option<f64>,
    /// The fastest run.
    pub fastest: Option<f64>,
    /// Of the runs that completed.
    pub mean: Option<f64>,
    /// Of the runs that completed.
    pub standard_deviation: Option<f64>,
    /// Median over the physical limit.
    pub ratio_to_limit: Option<f64>,
    /// Against the baseline; null for the baseline itself.
    pub saving: Option<Saving>,
    /// What the table shows, by the names of the lab's metrics, in seconds, shares (0 to 1) and bits a second.
    pub figures: BTreeMap<String, Option<f64>>,
    /// In the order of rounds.
    pub runs: Vec<Run>,
}

/// Share of the baseline's median that is saved, and its 95 % confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Saving {
    /// The share.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// One run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Counted from 1.
    pub round: u64,
    /// Of the path.
    pub seed: u64,
    /// To the last byte; null if it failed.
    pub seconds: Option<f64>,
    /// To the end of the handshake.
    pub connect: Option<f64>,
    /// To the first byte of content.
    pub first_byte: Option<f64>,
    /// Bytes of content that arrived.
    pub bytes: u64,
    /// Seconds from when the application wanted it to the last byte, of each request or chunk that ended; empty for files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<f64>,
    /// Seconds for which playback of a video stood still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalled: Option<f64>,
    /// Why it failed.
    pub failure: Option<String>,
    /// From server to client.
    pub down: Direction,
    /// From client to server.
    pub up: Direction,
    /// Of its relay.
    pub lateness: Lateness,
    /// Packets that the system lost.
    pub missed: u64,
}

/// Packets on one direction of the emulated path.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Direction {
    /// That arrived at it.
    pub offered: u64,
    /// That left it.
    pub delivered: u64,
    /// Bytes of these.
    pub delivered_bytes: u64,
    /// Lost by the medium.
    pub lost: u64,
    /// Dropped by the queue.
    pub dropped: u64,
}

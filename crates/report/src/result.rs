//! What one run has shown: plain numbers, the same for every stack, nothing of wall-clock time.

use posthaste_path::PathStats;
use serde::{Deserialize, Serialize};

use crate::counters::Counters;

/// One run of one cell with one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The run's seed.
    pub seed: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Virtual seconds from start to end.
    pub virtual_seconds: f64,
    /// Least possible completion time of the first flow in seconds, where it is another than the cell's: the run began at
    /// a place of its own in a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Hash over every packet that left a host, and when: equal for equal runs; 16 hexadecimal digits.
    pub trace_hash: String,
    /// Packets that left a host.
    pub packets: u64,
    /// The flows, in the experiment's order.
    pub flows: Vec<FlowResult>,
    /// The links, in the topology's order.
    pub links: Vec<LinkResult>,
    /// Time series, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every flow that the run waits for has what it wanted.
    Completed,
    /// The virtual deadline came first.
    Deadline,
    /// A flow can never finish, and why.
    Failed(String),
}

/// One application over one or more connections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Its name in the experiment.
    pub name: String,
    /// The stack's name.
    pub stack: String,
    /// True if the run did not wait for it.
    pub is_background: bool,
    /// Seconds from its start (first packet of the handshake) to the last byte read.
    pub completion: Option<f64>,
    /// Seconds from its start to the end of the client's first handshake.
    pub connect: Option<f64>,
    /// Seconds from its start to the first byte of the first response.
    pub first_byte: Option<f64>,
    /// Body bytes that the client's application has read.
    pub bytes: u64,
    /// Body bits a second from its start to its completion (or to the run's end).
    pub goodput: f64,
    /// Each exchange that has ended.
    pub exchanges: Vec<ExchangeResult>,
    /// From server to client.
    pub down: DirectionResult,
    /// From client to server.
    pub up: DirectionResult,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Seconds that playback stood still (video only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_seconds: Option<f64>,
}

/// One request and its response; seconds from the flow's start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangeResult {
    /// Index of the object in its workload.
    pub object: usize,
    /// When the application wanted it.
    pub requested: f64,
    /// When the first byte of the response was read.
    pub first_byte: f64,
    /// When the last byte was read.
    pub finished: f64,
    /// Body bytes.
    pub bytes: u64,
}

/// What one direction of a flow has carried, counted by the world on IP packets, all connections together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionResult {
    /// IP packets sent.
    pub packets_sent: u64,
    /// Bytes of them.
    pub bytes_sent: u64,
    /// IP packets that arrived, copies included.
    pub packets_received: u64,
    /// The same without the copies that links have made.
    #[serde(default)]
    pub originals_received: u64,
    /// Packets that links have lost or dropped: neither arrived nor still under way when the run ended.
    #[serde(default)]
    pub packets_lost: u64,
    /// Bytes of those that arrived.
    pub bytes_received: u64,
    /// Mean one-way delay of packets that arrived, in milliseconds.
    pub delay_mean_ms: f64,
    /// Its 95th percentile.
    pub delay_p95_ms: f64,
    /// Its maximum.
    pub delay_max_ms: f64,
    /// Mean delay above the least seen in this direction, in milliseconds: time in queues (and jitter).
    pub queueing_mean_ms: f64,
    /// Its 95th percentile.
    #[serde(default)]
    pub queueing_p95_ms: f64,
    /// What the sending stack has counted.
    pub counters: Counters,
    /// Seconds during which flow control alone kept data back, where the stack tells.
    pub blocked_seconds: Option<f64>,
    /// Mean over time of the sender's congestion window in bytes, where the stack tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_mean_bytes: Option<f64>,
    /// Mean over time of its congestion window over its smoothed round-trip time, in bits a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_rate: Option<f64>,
    /// Seconds from its first packet to its last.
    #[serde(default)]
    pub sending_seconds: f64,
    /// The first moves of the streams' limits that it has granted to the other end, where the stack tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credit_updates: Vec<CreditUpdate>,
    /// When the largest stream window that it has granted first was 128 and 512 KiB, in seconds as [`CreditUpdate::at`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_reached: Option<[Option<f64>; 2]>,
}

/// Moves of the limits of all streams within half a round trip, as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CreditUpdate {
    /// Seconds since the run began.
    pub at: f64,
    /// The streams' windows together then, in bytes.
    pub windows: f64,
    /// Bytes by which their limits have moved together.
    pub advance: f64,
}

/// One link direction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Its name.
    pub name: String,
    /// Packets handed to it.
    pub offered: u64,
    /// Packets that it delivered, copies included.
    pub delivered: u64,
    /// Bytes that it delivered.
    pub delivered_bytes: u64,
    /// Packets that the medium lost.
    pub lost: u64,
    /// Packets that its queue dropped.
    pub dropped: u64,
    /// Packets that its queue marked (ECN).
    pub marked: u64,
    /// Most bytes that waited in its queue.
    pub peak_queue_bytes: u64,
}

impl LinkResult {
    /// What the counts of a path's direction amount to.
    pub fn of(name: String, stats: &PathStats) -> Self {
        Self {
            name,
            offered: stats.offered,
            delivered: stats.delivered,
            delivered_bytes: stats.delivered_bytes,
            lost: stats.lost,
            dropped: stats.overflowed + stats.managed,
            marked: stats.marked,
            peak_queue_bytes: stats.peak_queue_bytes.get(),
        }
    }
}

/// Gauges over time: column by column, all of the length of `times`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Seconds since the run began.
    pub times: Vec<f64>,
    /// One gauge each.
    pub gauges: Vec<Gauge>,
}

/// One quantity over time; `None` where it is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    /// The flow's name, or the link's.
    pub of: String,
    /// `window`, `in_flight`, `credit`, `queue` (bytes), `pacing`, `delivery` (bits a second), `rtt` (seconds).
    pub quantity: String,
    /// The values.
    pub values: Vec<Option<f64>>,
}

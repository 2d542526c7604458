//! Paths as people describe them: both directions at once, in text, by name or in TOML.

mod named;
mod scalar;
mod start;
mod summary;
mod table;

use posthaste_units::{ByteCount, Duration, Rate};

use crate::aggregation::Aggregation;
use crate::config::{Bottleneck, ConfigError, Outage, PathConfig, Reordering};
use crate::handover::Handover;
use crate::jitter::Jitter;
use crate::loss::GilbertElliott;
use crate::loss_periods::LossPeriods;
use crate::pauses::Pauses;
use crate::queue::Discipline;
use crate::radio_frames::RadioFrames;
use crate::rate::RateModel;

pub use scalar::QueueSize;
pub use start::TraceStart;
pub use table::{SpecError, inline_traces};

/// Both directions of a path.
///
/// In TOML it is a name (`"average"`) or a table. Every key may be left out; a table without any is a perfect wire.
///
/// | key | value | default |
/// |---|---|---|
/// | `base` | a name: what the other keys change | a perfect wire |
/// | `rtt` | two-way propagation delay, half of it each way: `"50ms"` | 0 |
/// | `rate` | from server to client: `"100mbit"` | infinite |
/// | `up-rate` | from client to server | as `rate` |
/// | `rate-std` | standard deviation of `rate`: `"5mbit"` | none |
/// | `up-rate-std` | that of `up-rate` | the same share as of `rate` |
/// | `rate-interval` | how long each drawn rate holds: `"100ms"` | 100 ms |
/// | `trace` | instead of `rate`: a capacity trace's text, in one of the formats of [`crate::Trace`] | none |
/// | `up-trace` | instead of `up-rate`: the same from client to server | as `trace` |
/// | `trace-file`, `up-trace-file` | the same from a file; see [`inline_traces`] | none |
/// | `trace-start` | where in the recordings (and in the rhythm of handovers) a run begins: `"seed"`, a place that follows from the run's seed, or a time, `"0s"` ([`TraceStart`]) | `"seed"` |
/// | `loss` | probability, each way: `"2%"` or `0.02` | 0 |
/// | `up-loss` | from client to server | as `loss` |
/// | `burst` | mean length of a burst of losses, in packets: `4`; losses are independent without it | none |
/// | `burst-time` | instead of `burst`: mean length of a burst of losses in time: `"20ms"` ([`LossPeriods`]) | none |
/// | `jitter` | `{ distribution = "normal"`, `"pareto"` or `"wifi"`, `std = "3.5ms"`, `interval = "100ms"`, `reorders = false }`; `std` is that of the RTT, each direction has `1 / sqrt(2)` of it; a draw holds for `interval`, `"0ms"` is one packet ([`Jitter`] says why that lifts the mean); it is 100 ms unless given, 0 where `reorders` is true | none |
/// | `reorder` | `{ probability = "10%", correlation = "25%", delay = "5ms" }`, each way, as [`Reordering`] | none |
/// | `duplicate`, `corrupt` | probabilities, each way | 0 |
/// | `outage` | `{ start = "3s", length = "5s" }`: nothing gets through either way, counted from the path's beginning | none |
/// | `aggregate` | `{ packets = 64, time = "4ms" }`: what leaves each bottleneck together ([`Aggregation`]) | one packet |
/// | `tti` | each radio link sends in blocks of this time: `"1ms"` ([`RadioFrames`]) | none |
/// | `harq` | `{ probability = "10%", delay = "8ms" }`: blocks that come again, and how much later; needs `tti` | none |
/// | `handover` | `{ interval = "15s", delay = "50ms", gap = "60ms" }`: another route each `interval`, which adds up to `delay` to the RTT, and loses everything for `gap` ([`Handover`]) | none |
/// | `batch` | the client takes packets in at multiples of this time only: `"2ms"` | at once |
/// | `pauses` | `{ every = "200ms", mean = "40ms", packet = "25us" }`: the client does other things in between, and takes in what has come once it is back, each packet in so long ([`Pauses`]) | none |
/// | `queue` | `"1bdp"` (times mean rate x `rtt`, one full packet at least), `"64kB"` or `"100ms"` (at the mean rate) | `"1bdp"` |
/// | `discipline` | `"drop-tail"` or `"codel"` | `"drop-tail"` |
/// | `codel-target`, `codel-interval` | its parameters | 5 ms, 100 ms |
/// | `ecn` | `true`: `CoDel` marks instead of dropping where a packet is ECN-capable | `false` |
/// | `mark-above` | drop-tail marks ECN-capable packets above so many waiting bytes: `"30kB"` | none |
/// | `header` | added to each packet's length where rate and queue are charged: `"28B"` | 0 |
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    /// Two-way propagation delay; each direction has half of it.
    pub rtt: Duration,
    /// From server to client; `None` is infinitely fast.
    pub rate: Option<RateModel>,
    /// From client to server; that of the other direction unless given.
    pub up_rate: Option<RateModel>,
    /// Where in recordings a run begins.
    pub trace_start: TraceStart,
    /// Share of packets lost from server to client.
    pub loss: f64,
    /// The same from client to server; that of the other direction unless given.
    pub up_loss: Option<f64>,
    /// Mean length of a burst of losses in packets, 1 or more; losses are independent unless given.
    pub burst: Option<f64>,
    /// Mean length of a burst of losses in time, instead of `burst`.
    pub burst_time: Option<Duration>,
    /// How each direction's delay varies.
    pub jitter: Option<Jitter>,
    /// Which packets each direction holds back.
    pub reordering: Reordering,
    /// Probability, in each direction, that a packet arrives twice.
    pub duplication: f64,
    /// Probability, in each direction, that a bit of a packet is flipped.
    pub corruption: f64,
    /// When nothing gets through either way.
    pub outage: Option<Outage>,
    /// How packets leave each bottleneck together.
    pub aggregation: Option<Aggregation>,
    /// How each radio link frames what it sends.
    pub frames: Option<RadioFrames>,
    /// Routes that change at fixed times; the delay is that of one direction.
    pub handover: Option<Handover>,
    /// The client takes packets in at multiples of this time; zero: at once.
    pub batch: Duration,
    /// When the client takes nothing in; default never.
    pub pauses: Option<Pauses>,
    /// Size of each bottleneck's queue.
    pub queue: QueueSize,
    /// What each queue does about senders that fill it.
    pub discipline: Discipline,
    /// Bytes added to every packet's length where rate and queue are charged.
    pub header: ByteCount,
}

impl Default for PathSpec {
    /// A perfect wire.
    fn default() -> Self {
        Self {
            rtt: Duration::ZERO,
            rate: None,
            up_rate: None,
            trace_start: TraceStart::Seed,
            loss: 0.0,
            up_loss: None,
            burst: None,
            burst_time: None,
            jitter: None,
            reordering: Reordering::default(),
            duplication: 0.0,
            corruption: 0.0,
            outage: None,
            aggregation: None,
            frames: None,
            handover: None,
            batch: Duration::ZERO,
            pauses: None,
            queue: QueueSize::Bdp(1.0),
            discipline: Discipline::default(),
            header: ByteCount::ZERO,
        }
    }
}

impl PathSpec {
    /// The path with this name.
    pub fn named(name: &str) -> Option<Self> {
        named::find(name).map(named::Named::spec)
    }

    /// The names that [`Self::named`] knows.
    pub const fn names() -> &'static [&'static str] {
        &named::NAMES
    }

    /// What the path with this name stands for, and where its figures come from.
    pub fn describe(name: &str) -> Option<&'static str> {
        named::find(name).map(|named| named.description)
    }

    /// The path as a run with this seed meets it: where recordings begin is settled.
    #[must_use]
    pub fn started(&self, seed: u64) -> Self {
        Self { trace_start: TraceStart::At(self.trace_start.place(seed)), ..self.clone() }
    }

    /// Where recordings begin; at their beginning if that is left to a seed ([`Self::started`]).
    pub fn start(&self) -> Duration {
        self.trace_start.place_without_seed()
    }

    /// True if runs with different seeds begin at different places of a recording or a rhythm.
    pub fn begins_anywhere(&self) -> bool {
        let rates = [&self.rate, &self.up_rate];
        let is_recorded = rates.into_iter().flatten().any(RateModel::is_recorded);
        self.trace_start == TraceStart::Seed && (is_recorded || self.handover.is_some())
    }

    /// Checks every value.
    ///
    /// # Errors
    /// Names the first value out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.burst.is_some() && self.burst_time.is_some() {
            return Err(ConfigError::new("burst-time: it stands instead of burst"));
        }
        if let Some(burst) = self.burst {
            for loss in [self.loss, self.up_loss.unwrap_or(self.loss)] {
                GilbertElliott::from_mean(loss, burst)?;
            }
        }
        self.down().validate()?;
        self.up().validate()
    }

    /// The direction from server to client. A value out of range shows when it is used.
    pub fn down(&self) -> PathConfig {
        PathConfig { batch: self.batch, pauses: self.pauses, ..self.direction(self.rate.as_ref(), self.loss) }
    }

    /// The direction from client to server. A value out of range shows when it is used.
    pub fn up(&self) -> PathConfig {
        self.direction(self.up_rate.as_ref().or(self.rate.as_ref()), self.up_loss.unwrap_or(self.loss))
    }

    /// The mean rate from server to client; `None` is infinitely fast.
    pub fn down_rate(&self) -> Option<Rate> {
        self.rate.as_ref().map(RateModel::mean)
    }

    /// The mean rate from client to server; `None` is infinitely fast.
    pub fn up_rate(&self) -> Option<Rate> {
        self.up_rate.as_ref().or(self.rate.as_ref()).map(RateModel::mean)
    }

    /// The share of packets that the medium loses from server to client, in the long run.
    pub fn down_loss(&self) -> f64 {
        self.loss
    }

    /// The share of packets that the medium loses from client to server, in the long run.
    pub fn up_loss(&self) -> f64 {
        self.up_loss.unwrap_or(self.loss)
    }

    fn direction(&self, rate: Option<&RateModel>, loss: f64) -> PathConfig {
        let bottleneck = rate.map(|rate| Bottleneck {
            queue: self.queue.bytes(rate.mean(), self.rtt),
            rate: rate.clone(),
            discipline: self.discipline,
        });
        let burst_loss = self.burst.and_then(|burst| GilbertElliott::from_mean(loss, burst).ok());
        let loss_periods = self.burst_time.map(|mean| LossPeriods { share: loss, mean });
        PathConfig {
            delay: self.rtt / 2,
            jitter: self.jitter,
            loss: if burst_loss.is_some() || loss_periods.is_some() { 0.0 } else { loss },
            burst_loss,
            loss_periods,
            reordering: self.reordering,
            duplication: self.duplication,
            outage: self.outage,
            corruption: self.corruption,
            bottleneck,
            start: self.start(),
            aggregation: self.aggregation,
            frames: self.frames,
            handover: self.handover,
            header: self.header,
            ..PathConfig::default()
        }
    }

    /// One line for people: `100 Mbit/s, RTT 50 ms, loss 2 %, queue 625 kB drop-tail`.
    pub fn summary(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests;

//! A path's TOML: the keys as they are written, and what they mean together.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{ByteCount, Duration, Rate};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::aggregation::Aggregation;
use crate::config::{Outage, Reordering};
use crate::handover::Handover;
use crate::jitter::{DEFAULT_JITTER_INTERVAL, Distribution, Jitter};
use crate::pauses::Pauses;
use crate::queue::{CoDel, Discipline, DropTail};
use crate::radio_frames::RadioFrames;
use crate::rate::{DEFAULT_RATE_INTERVAL, NormalRate, RateModel};
use crate::spec::named::{per_direction, per_round_trip};
use crate::spec::scalar::{Probability, QueueSize};
use crate::spec::start::TraceStart;
use crate::spec::{PathSpec, named};
use crate::trace::Trace;

/// Why a text describes no path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The line of a TOML text, counted from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for SpecError {}

/// A path's table as it is written; see [`PathSpec`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PathTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    up_rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_std: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    up_rate_std: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_interval: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    up_trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    up_trace_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_start: Option<TraceStart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<Probability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    up_loss: Option<Probability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst_time: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<JitterTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reorder: Option<ReorderTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate: Option<Probability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    corrupt: Option<Probability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<OutageTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate: Option<AggregateTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tti: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    harq: Option<HarqTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handover: Option<HandoverTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pauses: Option<Pauses>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueueSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discipline: Option<DisciplineName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codel_target: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    codel_interval: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ecn: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark_above: Option<ByteCount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<ByteCount>,
}

/// The value of `jitter`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct JitterTable {
    #[serde(default)]
    distribution: Distribution,
    std: Duration,
    #[serde(default)]
    interval: Option<Duration>,
    #[serde(default)]
    reorders: bool,
}

/// The value of `reorder`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ReorderTable {
    probability: Probability,
    #[serde(default = "no_correlation")]
    correlation: Probability,
    delay: Duration,
}

/// The value of `outage`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutageTable {
    start: Duration,
    length: Duration,
}

/// The value of `aggregate`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AggregateTable {
    packets: usize,
    time: Duration,
}

impl Default for AggregateTable {
    fn default() -> Self {
        let Aggregation { packets, time } = Aggregation::default();
        Self { packets, time }
    }
}

/// The value of `harq`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HarqTable {
    probability: Probability,
    delay: Duration,
}

/// The value of `handover`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HandoverTable {
    interval: Duration,
    /// Of the round trip.
    #[serde(default)]
    delay: Duration,
    #[serde(default)]
    gap: Duration,
}

fn no_correlation() -> Probability {
    Probability(0.0)
}

/// The value of `discipline`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum DisciplineName {
    #[serde(rename = "drop-tail")]
    DropTail,
    #[serde(rename = "codel")]
    CoDel,
}

/// What is wrong with the keys of a table taken together: the key to show, and why.
type Fault = (&'static str, String);

fn fault(key: &'static str, why: impl Into<String>) -> Fault {
    (key, why.into())
}

impl PathTable {
    /// The path that this table describes.
    fn resolve(self) -> Result<PathSpec, Fault> {
        let mut spec = match &self.base {
            None => PathSpec::default(),
            Some(name) => PathSpec::named(name).ok_or_else(|| fault("base", unknown_name(name)))?,
        };
        self.resolve_rates(&mut spec)?;
        spec.discipline = self.discipline(spec.discipline)?;
        let probability = |given: Option<Probability>, base| given.map_or(base, |given| given.0);
        spec.rtt = self.rtt.unwrap_or(spec.rtt);
        spec.loss = probability(self.loss, spec.loss);
        spec.up_loss = self.up_loss.map(|loss| loss.0).or(spec.up_loss);
        spec.trace_start = self.trace_start.unwrap_or(spec.trace_start);
        if self.burst.is_some() != self.burst_time.is_some() {
            // One kind of bursts takes the place of the base's.
            (spec.burst, spec.burst_time) = (self.burst, self.burst_time);
        } else if self.burst.is_some() {
            return Err(fault("burst-time", "burst-time: it stands instead of burst"));
        }
        spec.duplication = probability(self.duplicate, spec.duplication);
        spec.corruption = probability(self.corrupt, spec.corruption);
        let outage = self.outage.map(|OutageTable { start, length }| Outage { start, length });
        spec.outage = outage.or(spec.outage);
        self.resolve_radio(&mut spec)?;
        spec.queue = self.queue.unwrap_or(spec.queue);
        spec.header = self.header.unwrap_or(spec.header);
        if let Some(jitter) = self.jitter {
            // A draw for each packet keeps the mean only where packets may overtake each other.
            let interval = if jitter.reorders { Duration::ZERO } else { DEFAULT_JITTER_INTERVAL };
            spec.jitter = Some(Jitter {
                distribution: jitter.distribution,
                deviation: per_direction(jitter.std),
                interval: jitter.interval.unwrap_or(interval),
                may_reorder: jitter.reorders,
            });
        }
        if let Some(reorder) = self.reorder {
            spec.reordering = Reordering {
                probability: reorder.probability.0,
                correlation: reorder.correlation.0,
                extra_delay: reorder.delay,
            };
        }
        spec.validate().map_err(|error| {
            let message = error.to_string();
            fault(self.key_of(&message), message)
        })?;
        Ok(spec)
    }

    /// What radio links and their receivers do with time.
    fn resolve_radio(&self, spec: &mut PathSpec) -> Result<(), Fault> {
        if let Some(AggregateTable { packets, time }) = self.aggregate {
            spec.aggregation = Some(Aggregation { packets, time });
        }
        let no_harq = RadioFrames { interval: Duration::ZERO, failure: 0.0, repeat: Duration::ZERO };
        if let Some(interval) = self.tti {
            spec.frames = Some(RadioFrames { interval, ..spec.frames.unwrap_or(no_harq) });
        }
        if let Some(HarqTable { probability, delay }) = self.harq {
            let frames = spec.frames.ok_or_else(|| fault("harq", "harq: it needs tti"))?;
            spec.frames = Some(RadioFrames { failure: probability.0, repeat: delay, ..frames });
        }
        if let Some(HandoverTable { interval, delay, gap }) = self.handover {
            spec.handover = Some(Handover { interval, delay: delay / 2, gap });
        }
        spec.batch = self.batch.unwrap_or(spec.batch);
        spec.pauses = self.pauses.or(spec.pauses);
        Ok(())
    }

    /// The key that a failed validation is about.
    fn key_of(&self, message: &str) -> &'static str {
        let is_given: [(&str, &'static str); 10] = [
            ("reorder", "reorder"),
            ("burst-time", "burst-time"),
            ("burst", "burst"),
            ("CoDel", "codel-target"),
            ("bottleneck", "rate"),
            ("aggregate", "aggregate"),
            ("tti", "tti"),
            ("harq", "harq"),
            ("handover", "handover"),
            ("pauses", "pauses"),
        ];
        let key =
            is_given.into_iter().find(|(begin, _)| message.starts_with(begin)).map_or("", |(_, key)| key);
        match key {
            "codel-target" if self.codel_target.is_none() => "codel-interval",
            "rate" if self.rate_std.is_some() => "rate-std",
            key => key,
        }
    }

    fn resolve_rates(&self, spec: &mut PathSpec) -> Result<(), Fault> {
        if self.trace_file.is_some() {
            return Err(fault("trace-file", "no files can be read here: give the text as trace"));
        }
        if self.up_trace_file.is_some() {
            return Err(fault("up-trace-file", "no files can be read here: give the text as up-trace"));
        }
        let down = Given {
            keys: ["trace", "rate", "rate-std"],
            trace: self.trace.as_deref(),
            rate: self.rate,
            std: self.rate_std,
            interval: self.rate_interval,
        };
        spec.rate = down.model(spec.rate.as_ref())?;
        let up = Given {
            keys: ["up-trace", "up-rate", "up-rate-std"],
            trace: self.up_trace.as_deref(),
            rate: self.up_rate,
            std: self.up_rate_std,
            interval: self.rate_interval,
        };
        if up.trace.is_some() || up.rate.is_some() || up.std.is_some() || spec.up_rate.is_some() {
            // An uplink without a deviation of its own varies by the same share as the downlink.
            let like = match (&spec.rate, up.rate.or(spec.up_rate())) {
                (Some(RateModel::Normal(down)), Some(mean))
                    if spec.up_rate.is_none() || up.rate.is_some() =>
                {
                    let (up, down_mean) = (mean.as_bytes_per_second(), down.mean.as_bytes_per_second());
                    let deviation = down.deviation.mul_ratio(up, down_mean);
                    Some(RateModel::Normal(NormalRate { mean, deviation, interval: down.interval }))
                }
                _ => spec.up_rate.clone(),
            };
            spec.up_rate = up.model(like.as_ref())?;
        }
        Ok(())
    }

    fn discipline(&self, base: Discipline) -> Result<Discipline, Fault> {
        let is_codel = match (self.discipline, base) {
            (Some(name), _) => name == DisciplineName::CoDel,
            (None, base) => matches!(base, Discipline::CoDel(_)),
        };
        if is_codel {
            if self.mark_above.is_some() {
                return Err(fault(
                    "mark-above",
                    "mark-above: only drop-tail marks so; CoDel marks with ecn = true",
                ));
            }
            let default = if let Discipline::CoDel(codel) = base { codel } else { CoDel::default() };
            return Ok(Discipline::CoDel(CoDel {
                target: self.codel_target.unwrap_or(default.target),
                interval: self.codel_interval.unwrap_or(default.interval),
                ecn: self.ecn.unwrap_or(default.ecn),
            }));
        }
        let only_codel = [
            ("codel-target", self.codel_target.is_some()),
            ("codel-interval", self.codel_interval.is_some()),
        ];
        if let Some((key, _)) = only_codel.into_iter().find(|(_, is_given)| *is_given) {
            return Err(fault(key, format!("{key}: it needs discipline = \"codel\"")));
        }
        let default = if let Discipline::DropTail(drop_tail) = base { drop_tail.mark_above } else { None };
        let mark_above = self.mark_above.or(default);
        if self.ecn.is_some_and(|ecn| ecn != mark_above.is_some()) {
            return Err(fault(
                "ecn",
                "ecn: a drop-tail queue marks if mark-above says from how many bytes on",
            ));
        }
        Ok(Discipline::DropTail(DropTail { mark_above }))
    }
}

/// What a table says of one direction's rate.
struct Given<'a> {
    /// Of trace, rate and deviation.
    keys: [&'static str; 3],
    trace: Option<&'a str>,
    rate: Option<Rate>,
    std: Option<Rate>,
    interval: Option<Duration>,
}

impl Given<'_> {
    /// The rate, where the base has `base`.
    fn model(&self, base: Option<&RateModel>) -> Result<Option<RateModel>, Fault> {
        let [trace_key, rate_key, std_key] = self.keys;
        if let Some(text) = self.trace {
            if self.rate.is_some() || self.std.is_some() {
                return Err(fault(
                    trace_key,
                    format!("{trace_key}: it stands instead of {rate_key} and {std_key}"),
                ));
            }
            let trace = Trace::parse(text).map_err(|error| fault(trace_key, error.to_string()))?;
            return Ok(Some(trace.into()));
        }
        let base_normal = if let Some(RateModel::Normal(normal)) = base { Some(normal) } else { None };
        let mean = match (self.rate, base) {
            (Some(rate), _) => rate,
            (None, Some(RateModel::Constant(rate))) => *rate,
            (None, Some(RateModel::Normal(normal))) => normal.mean,
            (None, _) if self.std.is_some() => {
                return Err(fault(std_key, format!("{std_key}: it needs {rate_key} too")));
            }
            (None, base) => return Ok(base.cloned()),
        };
        let deviation = self.std.or(base_normal.map(|normal| normal.deviation)).unwrap_or(Rate::ZERO);
        if deviation == Rate::ZERO {
            return Ok(Some(RateModel::Constant(mean)));
        }
        let interval = self.interval.or(base_normal.map(|normal| normal.interval));
        let interval = interval.unwrap_or(DEFAULT_RATE_INTERVAL);
        Ok(Some(RateModel::Normal(NormalRate { mean, deviation, interval })))
    }
}

fn unknown_name(name: &str) -> String {
    format!("there is no path `{name}`; there are {}", named::NAMES.join(", "))
}

impl PathSpec {
    /// Reads a table, such as a file holds it.
    ///
    /// # Errors
    /// Names the line, what is wrong there, and the valid choices.
    pub fn from_toml(text: &str) -> Result<Self, SpecError> {
        let table: PathTable = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| line_of(text, span.start));
            SpecError { line, message: error.message().to_owned() }
        })?;
        table.resolve().map_err(|(key, message)| {
            let parsed = toml::de::DeTable::parse(text).ok();
            let place =
                parsed.as_ref().and_then(|table| table.get_ref().keys().find(|name| name.get_ref() == key));
            SpecError { line: place.map(|name| line_of(text, name.span().start)), message }
        })
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

/// Replaces each key `trace-file` (and `up-trace-file`) anywhere in `value` by `trace` (`up-trace`) with what `read`
/// gives for the file's name: this crate reads no files.
///
/// # Errors
/// Those of `read`, and a name that is not a text.
pub fn inline_traces<E: From<SpecError>>(
    value: &mut toml::Value,
    read: &mut dyn FnMut(&str) -> Result<String, E>,
) -> Result<(), E> {
    match value {
        toml::Value::Array(values) => values.iter_mut().try_for_each(|value| inline_traces(value, read)),
        toml::Value::Table(table) => {
            for (file_key, key) in [("trace-file", "trace"), ("up-trace-file", "up-trace")] {
                let Some(name) = table.remove(file_key) else { continue };
                let Some(name) = name.as_str() else {
                    let message = format!("{file_key}: a file's name is needed");
                    return Err(SpecError { line: None, message }.into());
                };
                table.insert(key.to_owned(), toml::Value::String(read(name)?));
            }
            table.iter_mut().try_for_each(|(_, value)| inline_traces(value, read))
        }
        _ => Ok(()),
    }
}

impl FromStr for PathSpec {
    type Err = SpecError;

    /// Reads a name.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::named(name).ok_or_else(|| SpecError { line: None, message: unknown_name(name) })
    }
}

impl<'de> Deserialize<'de> for PathSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = PathSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a path: a name ({}) or a table", named::NAMES.join(", "))
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<PathSpec, E> {
                name.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PathSpec, A::Error> {
                let table = PathTable::deserialize(MapAccessDeserializer::new(map))?;
                table.resolve().map_err(|(_, message)| serde::de::Error::custom(message))
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

impl Serialize for PathSpec {
    /// Writes a table without a base, which reads back as the same path.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PathTable::from(self).serialize(serializer)
    }
}

/// A rate as its keys have it: trace, mean, deviation, interval.
type RateKeys = (Option<String>, Option<Rate>, Option<Rate>, Option<Duration>);

fn rate_keys(model: Option<&RateModel>) -> RateKeys {
    match model {
        None => (None, None, None, None),
        Some(RateModel::Constant(rate)) => (None, Some(*rate), Some(Rate::ZERO), None),
        Some(RateModel::Normal(normal)) => {
            (None, Some(normal.mean), Some(normal.deviation), Some(normal.interval))
        }
        Some(RateModel::Opportunities(trace)) => (Some(trace.to_text()), None, None, None),
        Some(RateModel::Steps(trace)) => (Some(trace.to_text()), None, None, None),
    }
}

impl From<&PathSpec> for PathTable {
    fn from(spec: &PathSpec) -> Self {
        let (trace, rate, rate_std, rate_interval) = rate_keys(spec.rate.as_ref());
        let (up_trace, up_rate, up_rate_std, up_interval) = rate_keys(spec.up_rate.as_ref());
        let (discipline, codel, mark_above) = match spec.discipline {
            Discipline::DropTail(drop_tail) => (DisciplineName::DropTail, None, drop_tail.mark_above),
            Discipline::CoDel(codel) => (DisciplineName::CoDel, Some(codel), None),
        };
        let jitter = spec.jitter.map(|jitter| JitterTable {
            distribution: jitter.distribution,
            std: per_round_trip(jitter.deviation),
            interval: Some(jitter.interval),
            reorders: jitter.may_reorder,
        });
        let reorder = ReorderTable {
            probability: Probability(spec.reordering.probability),
            correlation: Probability(spec.reordering.correlation),
            delay: spec.reordering.extra_delay,
        };
        Self {
            base: None,
            rtt: Some(spec.rtt),
            rate,
            up_rate,
            rate_std,
            up_rate_std,
            rate_interval: rate_interval.or(up_interval),
            trace,
            up_trace,
            trace_file: None,
            up_trace_file: None,
            trace_start: Some(spec.trace_start),
            loss: Some(Probability(spec.loss)),
            up_loss: spec.up_loss.map(Probability),
            burst: spec.burst,
            burst_time: spec.burst_time,
            jitter,
            reorder: (spec.reordering != Reordering::default()).then_some(reorder),
            outage: spec.outage.map(|Outage { start, length }| OutageTable { start, length }),
            aggregate: spec.aggregation.map(|Aggregation { packets, time }| AggregateTable { packets, time }),
            tti: spec.frames.map(|frames| frames.interval),
            harq: spec
                .frames
                .map(|frames| HarqTable { probability: Probability(frames.failure), delay: frames.repeat }),
            handover: spec.handover.map(|Handover { interval, delay, gap }| HandoverTable {
                interval,
                delay: delay * 2,
                gap,
            }),
            batch: Some(spec.batch),
            pauses: spec.pauses,
            duplicate: Some(Probability(spec.duplication)),
            corrupt: Some(Probability(spec.corruption)),
            queue: Some(spec.queue),
            discipline: Some(discipline),
            codel_target: codel.map(|codel| codel.target),
            codel_interval: codel.map(|codel| codel.interval),
            ecn: codel.map(|codel| codel.ecn),
            mark_above,
            header: Some(spec.header),
        }
    }
}

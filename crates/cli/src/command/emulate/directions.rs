//! The two directions of a path, as the command line describes them.

use posthaste_path::{Bottleneck, Distribution, PathConfig, PathSpec, inline_traces};
use posthaste_units::{ByteCount, Duration};
use toml::{Table, Value};

use crate::args::Emulate;
use crate::exit::Failure;
use crate::path_choice;

/// The path when neither path nor direction is given.
const DEFAULT_PATH: &str = "average";

/// The keys of a direction, which mean what they mean in a path file; what has keys of its own there is written flat.
const KEYS: [&str; 27] = [
    "rate",
    "rate-std",
    "rate-interval",
    "trace-file",
    "trace-start",
    "loss",
    "burst",
    "burst-time",
    "duplicate",
    "corrupt",
    "tti",
    "batch",
    "queue",
    "discipline",
    "codel-target",
    "codel-interval",
    "ecn",
    "mark-above",
    "header",
    "delay",
    "jitter",
    "jitter-distribution",
    "jitter-interval",
    "jitter-reorders",
    "reorder",
    "reorder-delay",
    "reorder-correlation",
];

/// Keys without which others of their table mean nothing: table, key there, what it is called here and an example.
const NEEDED: [(&str, &str, &str); 3] = [
    ("jitter", "std", "jitter, such as jitter=5ms"),
    ("reorder", "probability", "reorder, such as reorder=1%"),
    ("reorder", "delay", "reorder-delay, such as reorder-delay=5ms"),
];

/// Both directions, checked.
#[derive(Debug)]
pub(super) struct Directions {
    /// One line for people.
    pub(super) summary: String,
    pub(super) down: PathConfig,
    pub(super) up: PathConfig,
}

/// What a direction would have to hold at once, and does not: more is dropped.
fn excess(name: &str, direction: &PathConfig) -> Option<String> {
    let Bottleneck { rate, queue, .. } = direction.bottleneck.as_ref()?;
    let under_way = rate.mean().bytes_in(direction.delay);
    let (full, most) = (*queue + under_way, direction.capacity);
    (full > most).then(|| {
        format!(
            "the path {name} holds {most} at most, which is less than its queue ({queue}) and what is under way to its \
             other end ({under_way}): packets beyond are dropped, and counted as `overflowed`. A queue of {} fits",
            ByteCount::new(most.get().saturating_sub(under_way.get())),
        )
    })
}

impl Directions {
    /// What will be other than described.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        [excess("down", &self.down), excess("up", &self.up)].into_iter().flatten()
    }

    pub(super) fn new(args: &Emulate) -> Result<Self, Failure> {
        let is_described = !args.down.is_empty() || !args.up.is_empty();
        let base = match &args.path {
            Some(name) => path_choice::find(name)?,
            None if is_described => PathSpec::default(),
            None => path_choice::find(DEFAULT_PATH)?,
        };
        let down = changed(&base, "--down", &args.down)?;
        let up = changed(&turned(&base), "--up", &args.up)?;
        // The queue's size may be given in round trips, and only both directions together make one.
        let round_trip = down.rtt / 2 + up.rtt / 2;
        let name = args.path.as_deref().or((!is_described).then_some(DEFAULT_PATH));
        let shown = if is_described {
            format!("down {}; up {}", one_way(&down, round_trip), one_way(&up, round_trip))
        } else {
            base.summary()
        };
        let summary = name.map_or_else(|| shown.clone(), |name| format!("{name} ({shown})"));
        Ok(Self { summary, down: config(&down, round_trip)?, up: config(&up, round_trip)? })
    }
}

/// The path of `--and`.
pub(super) fn of_path(name: &str) -> Result<Directions, Failure> {
    let base = path_choice::find(name)?;
    let summary = format!("{name} ({})", base.summary());
    Ok(Directions { summary, down: config(&base, base.rtt)?, up: config(&turned(&base), base.rtt)? })
}

/// The path as seen from its other end.
fn turned(path: &PathSpec) -> PathSpec {
    let mut turned = path.clone();
    turned.rate = path.up_rate.clone().or_else(|| path.rate.clone());
    turned.loss = path.up_loss();
    // Only the near end takes packets in by batches.
    turned.batch = Duration::ZERO;
    (turned.up_rate, turned.up_loss) = (None, None);
    turned
}

/// A path whose direction down is `base`'s with changes. Its other direction means nothing.
fn changed(base: &PathSpec, option: &str, changes: &[String]) -> Result<PathSpec, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("{option}: {error}"));
    let mut one_way = base.clone();
    (one_way.up_rate, one_way.up_loss) = (None, None);
    if changes.is_empty() {
        return Ok(one_way);
    }
    let mut table = Table::try_from(&one_way).map_err(|error| wrong(&error))?;
    for change in changes {
        let (key, value) = change.split_once('=').ok_or_else(|| {
            wrong(&format_args!("`{change}` is not KEY=VALUE; an example: rate=20mbit,delay=25ms"))
        })?;
        let (key, value) = (key.trim(), value.trim());
        if !KEYS.contains(&key) {
            return Err(wrong(&format_args!("there is no key `{key}`; there are: {}", KEYS.join(", ")))
                .hint("a path file has more, such as outage: --path ./mine.toml; docs/guide/emulate.md explains all keys"));
        }
        change_table(&mut table, key, value).map_err(|error| wrong(&error))?;
    }
    for (name, key, needed) in NEEDED {
        if table.get(name).is_some_and(|value| value.get(key).is_none()) {
            return Err(wrong(&format_args!("what is said of {name} needs {needed}")));
        }
    }
    let mut value = Value::Table(table);
    inline_traces(&mut value, &mut |file| {
        std::fs::read_to_string(file).map_err(|error| wrong(&format_args!("cannot read {file}: {error}")))
    })?;
    let text = toml::to_string(&value).map_err(|error| wrong(&error))?;
    // Its line is one of this text, which nobody sees.
    PathSpec::from_toml(&text).map_err(|error| wrong(&error.message))
}

fn change_table(table: &mut Table, key: &str, value: &str) -> Result<(), String> {
    // A rate takes the place of another, however that was given.
    let replaced: &[&str] = match key {
        "rate" => &["trace", "rate-std", "rate-interval"],
        "trace-file" => &["rate", "rate-std", "rate-interval", "trace"],
        "burst" => &["burst-time"],
        "burst-time" => &["burst"],
        "discipline" => &["codel-target", "codel-interval", "ecn", "mark-above"],
        _ => &[],
    };
    for other in replaced {
        table.remove(*other);
    }
    let text = || Value::String(value.to_owned());
    let (part, key, value) = match key {
        "delay" => (None, "rtt", nanos(time(key, value)?.as_nanos().saturating_mul(2))),
        "burst" => {
            let burst = value.parse().map_err(|_| format!("burst: `{value}` is not a number"))?;
            (None, key, Value::Float(burst))
        }
        "ecn" => (None, key, switch(key, value)?),
        // A path file has the round trip's.
        "jitter" => {
            let deviation = time(key, value)?.as_secs_f64() * std::f64::consts::SQRT_2;
            (Some("jitter"), "std", nanos(Duration::from_secs_f64(deviation).as_nanos()))
        }
        "jitter-distribution" => (Some("jitter"), "distribution", text()),
        "jitter-interval" => (Some("jitter"), "interval", nanos(time(key, value)?.as_nanos())),
        "jitter-reorders" => (Some("jitter"), "reorders", switch(key, value)?),
        "reorder" => (Some("reorder"), "probability", text()),
        "reorder-delay" => (Some("reorder"), "delay", nanos(time(key, value)?.as_nanos())),
        "reorder-correlation" => (Some("reorder"), "correlation", text()),
        _ => (None, key, text()),
    };
    let table = match part {
        Some(name) => table.entry(name).or_insert_with(|| Value::Table(Table::new())).as_table_mut(),
        None => Some(table),
    };
    if let Some(table) = table {
        table.insert(key.to_owned(), value);
    }
    Ok(())
}

fn nanos(nanos: u64) -> Value {
    Value::String(format!("{nanos}ns"))
}

fn time(key: &str, value: &str) -> Result<Duration, String> {
    value.parse().map_err(|error| format!("{key}: {error}"))
}

fn switch(key: &str, value: &str) -> Result<Value, String> {
    value.parse().map(Value::Boolean).map_err(|_| format!("{key}: `{value}` is neither true nor false"))
}

/// The direction's settings, with the queue that the whole round trip asks for.
fn config(direction: &PathSpec, round_trip: Duration) -> Result<PathConfig, Failure> {
    let mut config = direction.down();
    if let (Some(Bottleneck { queue, .. }), Some(rate)) = (&mut config.bottleneck, direction.down_rate()) {
        *queue = direction.queue.bytes(rate, round_trip);
    }
    config.validate().map_err(Failure::usage)?;
    Ok(config)
}

/// One direction for people.
fn one_way(direction: &PathSpec, round_trip: Duration) -> String {
    let delay = direction.rtt / 2;
    let shown = PathSpec { rtt: round_trip, jitter: None, ..direction.clone() }.summary();
    let jitter = direction.jitter.map_or(String::new(), |jitter| {
        let shape = match jitter.distribution {
            Distribution::Normal => "normal",
            Distribution::Pareto => "Pareto",
            Distribution::Wifi => "Wi-Fi",
        };
        format!(" (std {} ms, {shape})", jitter.deviation.as_millis_f64())
    });
    format!("{shown}, {} ms of it this way{jitter}", delay.as_millis_f64())
}

#[cfg(test)]
mod tests;

//! The two directions of a path, as the command line describes them.

use posthaste_path::{Bottleneck, PathConfig, PathSpec, inline_traces};
use posthaste_units::Duration;
use toml::{Table, Value};

use crate::args::Emulate;
use crate::exit::Failure;
use crate::path_choice;

/// The path when neither path nor direction is given.
const DEFAULT_PATH: &str = "average";

/// The keys of a direction, which mean what they mean in a path file.
const KEYS: [&str; 16] = [
    "rate",
    "rate-std",
    "rate-interval",
    "trace-file",
    "loss",
    "burst",
    "duplicate",
    "corrupt",
    "queue",
    "discipline",
    "codel-target",
    "codel-interval",
    "ecn",
    "mark-above",
    "header",
    "delay",
];

/// Both directions, checked.
#[derive(Debug)]
pub(super) struct Directions {
    /// One line for people.
    pub(super) summary: String,
    pub(super) down: PathConfig,
    pub(super) up: PathConfig,
}

impl Directions {
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
            return Err(wrong(&format_args!("there is no key `{key}`; there are: {}", KEYS.join(", "))));
        }
        change_table(&mut table, key, value).map_err(|error| wrong(&error))?;
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
        "discipline" => &["codel-target", "codel-interval", "ecn", "mark-above"],
        _ => &[],
    };
    for other in replaced {
        table.remove(*other);
    }
    if key == "delay" {
        let delay: Duration = value.parse().map_err(|error| format!("delay: {error}"))?;
        table.insert("rtt".to_owned(), Value::String(format!("{}ns", delay.as_nanos().saturating_mul(2))));
        return Ok(());
    }
    let value = match key {
        "burst" => {
            value.parse().map(Value::Float).map_err(|_| format!("burst: `{value}` is not a number"))?
        }
        "ecn" => value
            .parse()
            .map(Value::Boolean)
            .map_err(|_| format!("ecn: `{value}` is neither true nor false"))?,
        _ => Value::String(value.to_owned()),
    };
    table.insert(key.to_owned(), value);
    Ok(())
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
    let shown = PathSpec { rtt: round_trip, ..direction.clone() }.summary();
    format!("{shown}, {} ms of it this way", delay.as_millis_f64())
}

#[cfg(test)]
#[path = "directions_tests.rs"]
mod tests;

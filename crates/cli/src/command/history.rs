//! `posthaste history`: what a server has learnt of its clients' paths.

use std::cmp::Reverse;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use posthaste_endpoint::HistoryStore;
use posthaste_policy::history::{PathKey, PathRecord};
use serde::Serialize;

use crate::args::{History, HistoryCommand, HistoryFile};
use crate::exit::Failure;
use crate::kept::{history_failure, history_file};
use crate::{printer, state_directory};

pub(crate) fn run(args: &History) -> Result<ExitCode, Failure> {
    match &args.command {
        HistoryCommand::Show(file) => show(file),
        HistoryCommand::Clear(file) => clear(file),
    }
}

/// One path for programs.
#[derive(Debug, Serialize)]
struct Known {
    path: String,
    window_bytes: u64,
    min_rtt_seconds: f64,
    /// The share of packets that the path lost where no queue stood, 0 to 1; none if it is not known.
    loss: Option<f64>,
    /// How many packets that share is of.
    loss_packets: u32,
    samples: u64,
    age_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Shown {
    file: String,
    paths: Vec<Known>,
}

#[derive(Debug, Serialize)]
struct Cleared {
    file: String,
    forgotten: usize,
}

fn show(args: &HistoryFile) -> Result<ExitCode, Failure> {
    let file = file(args)?;
    let rows = HistoryStore::read(&file).map_err(|error| history_failure(&error))?;
    let paths = known(&rows, SystemTime::now());
    let printed = if args.json {
        printer::json(&Shown { file: file.display().to_string(), paths })
    } else {
        printer::line(describe(&file, &paths).trim_end())
    };
    done(printed)
}

fn clear(args: &HistoryFile) -> Result<ExitCode, Failure> {
    let file = file(args)?;
    let forgotten = HistoryStore::clear(&file).map_err(|error| history_failure(&error))?;
    let printed = if args.json {
        printer::json(&Cleared { file: file.display().to_string(), forgotten })
    } else {
        printer::line(format_args!("{forgotten} paths forgotten in {}", file.display()))
    };
    done(printed)
}

fn file(args: &HistoryFile) -> Result<std::path::PathBuf, Failure> {
    let state = match &args.state {
        Some(state) => state.clone(),
        None => state_directory::default()?,
    };
    Ok(history_file(&state))
}

fn done(printed: std::io::Result<()>) -> Result<ExitCode, Failure> {
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The rows, the latest first.
fn known(rows: &[(PathKey, PathRecord)], now: SystemTime) -> Vec<Known> {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|(key, record)| (Reverse(record.measured_at()), *key));
    let row = |(key, record): &(PathKey, PathRecord)| Known {
        path: key.to_string(),
        window_bytes: record.window().get(),
        min_rtt_seconds: record.min_rtt().as_secs_f64(),
        loss: (record.loss().settled() > 0).then(|| record.loss().share()),
        loss_packets: record.loss().settled(),
        samples: record.samples(),
        age_seconds: now.saturating_sub(Duration::from(record.measured_at())).as_secs_f64(),
    };
    rows.into_iter().map(row).collect()
}

fn describe(file: &Path, paths: &[Known]) -> String {
    if paths.is_empty() {
        return format!(
            "Nothing is known in {}.\nA server learns with a profile that makes use of it: posthaste serve DIR --profile \
             history",
            file.display()
        );
    }
    let width = paths.iter().map(|known| known.path.len()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "\x1b[1m{:width$}  {:>10}  {:>10}  {:>7}  {:>7}  age\x1b[0m\n",
        "path", "window", "least RTT", "loss", "samples"
    );
    for known in paths {
        let _ = writeln!(
            text,
            "{:width$}  {:>10}  {:>10}  {:>7}  {:>7}  {}",
            known.path,
            format!("{:.1} kB", known.window_bytes as f64 / 1e3),
            printer::duration(Duration::from_secs_f64(known.min_rtt_seconds)),
            known.loss.map_or_else(|| "-".to_owned(), |loss| format!("{:.1} %", loss * 100.0)),
            known.samples,
            age(known.age_seconds),
        );
    }
    text
}

/// An age in the unit that people would choose.
fn age(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        120.0..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use posthaste_policy::history::{Average, Scope};
    use posthaste_policy::sample::{PathHistory, PathLoss};
    use posthaste_units::{ByteCount, Duration as UnitsDuration};

    use super::*;

    fn row(address: &str, loss: PathLoss) -> (PathKey, PathRecord) {
        let sample = PathHistory {
            window: ByteCount::new(250_000),
            min_rtt: UnitsDuration::from_millis(38),
            age: UnitsDuration::ZERO,
            continues: false,
            loss,
        };
        let key = PathKey::of(Scope::Address, address.parse().unwrap());
        let measured_at = UnitsDuration::from_secs(1_000);
        (key, PathRecord::after(None, Average::Latest, measured_at, &sample))
    }

    #[test]
    fn the_loss_of_a_path_is_shown_if_it_is_known() {
        let rows = [row("192.0.2.1", PathLoss::new(2_000, 30)), row("192.0.2.2", PathLoss::UNKNOWN)];
        let paths = known(&rows, SystemTime::UNIX_EPOCH + Duration::from_secs(1_060));
        let shown = describe(Path::new("history.redb"), &paths);
        let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["192.0.2.1/32", "250.0", "kB", "38.0", "ms", "1.5", "%", "1", "60", "s"]);
        assert_eq!(lines[2], ["192.0.2.2/32", "250.0", "kB", "38.0", "ms", "-", "1", "60", "s"]);
        let objects = serde_json::to_value(&paths).unwrap();
        assert_eq!((&objects[0]["loss"], &objects[0]["loss_packets"]), (&0.015.into(), &2_000.into()));
        assert_eq!((&objects[1]["loss"], &objects[1]["loss_packets"]), (&serde_json::Value::Null, &0.into()));
    }

    #[test]
    fn ages_are_in_units_that_fit() {
        let ages = [0.4, 119.0, 120.0, 7199.0, 7200.0, 90_000.0].map(age);
        assert_eq!(ages, ["0 s", "119 s", "2 min", "120 min", "2 h", "25 h"]);
    }
}

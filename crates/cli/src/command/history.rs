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
        "\x1b[1m{:width$}  {:>10}  {:>10}  {:>7}  age\x1b[0m\n",
        "path", "window", "least RTT", "samples"
    );
    for known in paths {
        let _ = writeln!(
            text,
            "{:width$}  {:>10}  {:>10}  {:>7}  {}",
            known.path,
            format!("{:.1} kB", known.window_bytes as f64 / 1e3),
            printer::duration(Duration::from_secs_f64(known.min_rtt_seconds)),
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
    use super::*;

    #[test]
    fn ages_are_in_units_that_fit() {
        let ages = [0.4, 119.0, 120.0, 7199.0, 7200.0, 90_000.0].map(age);
        assert_eq!(ages, ["0 s", "119 s", "2 min", "120 min", "2 h", "25 h"]);
    }
}

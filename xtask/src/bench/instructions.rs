//! Instructions that a piece of work takes, which hardly depend on the machine's mood.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::instructions_of;
use crate::Result;
use crate::median;
use crate::workspace::{cargo, run as run_command, target};

/// By how much a count may grow over what is recorded. A gain of as much is said, because the next change could take it back
/// unseen.
const MOST_GROWTH: f64 = 0.03;

/// What is counted: the work of `crates/http/examples/work.rs`, its name in the table, and two counts of items. The
/// difference of the two runs, divided, has no part of the start.
const KINDS: [Kind; 7] = [
    Kind { work: "bulk", text: "1 MB on one stream", counts: [2, 12] },
    Kind { work: "requests-1", text: "100 B and 1 kB over QUIC, 1 at once", counts: [100, 1_100] },
    Kind { work: "requests-10", text: "100 B and 1 kB over QUIC, 10 at once", counts: [500, 4_500] },
    Kind { work: "requests-100", text: "100 B and 1 kB over QUIC, 100 at once", counts: [500, 4_500] },
    Kind { work: "http-10", text: "1 kB over HTTP/3, 10 at once", counts: [500, 4_500] },
    Kind { work: "http-100", text: "1 kB over HTTP/3, 100 at once", counts: [500, 4_500] },
    Kind { work: "handshakes", text: "handshake and a request over QUIC", counts: [2, 42] },
];

/// Of `cargo xtask bench instructions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Both ends in one process and thread, over loopback; what the kernel does is not counted. Needs valgrind. Counts of one
build differ by one or two percent, because handshakes draw random keys and the kernel decides how many datagrams come
at once; `requests-1` differs by five. `--other` takes an earlier build of the example `work` and prints ratios:

  cargo build --release --package posthaste-http --example work
  cp target/release/examples/work /tmp/before    (then make the change)
  cargo xtask bench instructions --other /tmp/before

`--within` takes counts that `--json` has written, counts the works that are in it, and fails if one has grown by more than
3 %. CI does so with .ci/instructions.json; a change that is meant to be, or another compiler, writes it anew:

  cargo xtask bench instructions --work bulk --work requests-100 --work http-100 --work handshakes \\
    --json .ci/instructions.json"
)]
pub(crate) struct Arguments {
    /// Another build of the example `work` of posthaste-http
    #[arg(long, value_name = "PROGRAM")]
    other: Option<PathBuf>,
    /// Count only this work (repeatable): bulk, requests-1, http-10 ...
    #[arg(long = "work", value_name = "NAME", value_parser = KINDS.map(|kind| kind.work))]
    works: Vec<String>,
    /// Counts of each, of which the median is taken
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Also write the counts here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Counts that have been recorded, over which these may be by 3 %
    #[arg(long, value_name = "FILE", conflicts_with_all = ["works", "other", "json"])]
    within: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
struct Kind {
    work: &'static str,
    text: &'static str,
    counts: [u64; 2],
}

/// Instructions for each item of a work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    work: String,
    instructions: f64,
    /// Of the other build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<f64>,
}

/// Counts all and prints the table. False if a count is not [within](Arguments::within) what it may be.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let recorded: Option<Vec<Row>> = match &arguments.within {
        Some(path) => Some(serde_json::from_slice(&std::fs::read(path)?)?),
        None => None,
    };
    eprintln!("building");
    let example = ["build", "--quiet", "--release", "--package", "posthaste-http", "--example", "work"];
    run_command(cargo().args(example))?;
    let own = target().join("release/examples/work");
    let chosen = |kind: &Kind| match &recorded {
        Some(rows) => rows.iter().any(|row| row.work == kind.work),
        None => arguments.works.is_empty() || arguments.works.iter().any(|name| name == kind.work),
    };
    let mut rows = Vec::new();
    println!("{:<38}{:>14}{:>14}{:>8}", "instructions for each", "this build", "other", "ratio");
    for kind in KINDS.into_iter().filter(chosen) {
        let other =
            arguments.other.as_deref().map(|other| kind.median(other, arguments.rounds)).transpose()?;
        let instructions = kind.median(&own, arguments.rounds)?;
        let [of_other, ratio] = match other {
            Some(other) => [format!("{other:.0}"), format!("{:.3}", instructions / other)],
            None => [String::new(), String::new()],
        };
        println!("{:<38}{instructions:>14.0}{of_other:>14}{ratio:>8}", kind.text);
        rows.push(Row { work: kind.work.to_owned(), instructions, other });
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n")?;
    }
    let changes: Vec<Change> = recorded.iter().flatten().filter_map(|row| change(row, &rows)).collect();
    for Change { text, .. } in &changes {
        println!("{text}");
    }
    Ok(changes.iter().all(|change| !change.is_fault))
}

/// What differs from the record.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    is_fault: bool,
    text: String,
}

fn change(recorded: &Row, counted: &[Row]) -> Option<Change> {
    let Some(now) = counted.iter().find(|other| other.work == recorded.work) else {
        return Some(Change { is_fault: true, text: format!("{}: no such work", recorded.work) });
    };
    let ratio = now.instructions / recorded.instructions;
    let (is_fault, what) = match ratio {
        _ if ratio > 1.0 + MOST_GROWTH => (true, "more than recorded"),
        _ if ratio < 1.0 - MOST_GROWTH => (false, "less than recorded: write the record anew"),
        _ if ratio.is_nan() => (true, "cannot be compared"),
        _ => return None,
    };
    let text = format!("{}: {ratio:.3} of {:.0} instructions, {what}", recorded.work, recorded.instructions);
    Some(Change { is_fault, text })
}

impl Kind {
    fn median(&self, program: &Path, rounds: u32) -> Result<f64> {
        let counts: Vec<f64> = (0..rounds).map(|_| self.count(program)).collect::<Result<_>>()?;
        Ok(median(counts))
    }

    /// Instructions for each item, without those of the start.
    fn count(&self, program: &Path) -> Result<f64> {
        let [few, many] = self.counts;
        let count = |items: u64| instructions_of(program, &[self.work, &items.to_string()]);
        Ok((count(many)? as f64 - count(few)? as f64) / (many - few) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(work: &str, instructions: f64) -> Row {
        Row { work: work.to_owned(), instructions, other: None }
    }

    #[test]
    fn growth_by_more_than_three_percent_is_a_fault_and_a_gain_is_told() {
        let of = |counted: f64| change(&row("bulk", 1000.0), &[row("bulk", counted)]);
        assert_eq!((of(1029.0), of(971.0)), (None, None));
        let (growth, gain) = (of(1031.0).unwrap(), of(969.0).unwrap());
        assert!(growth.is_fault && growth.text.contains("more than recorded"));
        assert!(!gain.is_fault && gain.text.contains("write the record anew"));
        assert!(of(f64::NAN).unwrap().is_fault);
        let missing = change(&row("handshakes", 100.0), &[row("bulk", 1000.0)]).unwrap();
        assert!(missing.is_fault && missing.text == "handshakes: no such work");
    }
}

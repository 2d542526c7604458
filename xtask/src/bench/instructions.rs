//! Instructions that a piece of work takes, which hardly depend on the machine's mood.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::instructions_of;
use crate::Result;
use crate::median;
use crate::workspace::{cargo, run as run_command, target};

/// What is counted: the work of `crates/http/examples/work.rs`, its name in the table, and two counts of items. The
/// difference of the two runs, divided, has no part of the start.
const KINDS: [Kind; 7] = [
    Kind { work: "bulk", text: "1 MB on one stream", counts: [2, 12] },
    Kind { work: "requests-1", text: "100 B and 1 kB over QUIC, 1 at once", counts: [100, 1_100] },
    Kind { work: "requests-10", text: "the same, 10 at once", counts: [500, 4_500] },
    Kind { work: "requests-100", text: "the same, 100 at once", counts: [500, 4_500] },
    Kind { work: "http-10", text: "1 kB over HTTP/3, 10 at once", counts: [500, 4_500] },
    Kind { work: "http-100", text: "the same, 100 at once", counts: [500, 4_500] },
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
  cargo xtask bench instructions --other /tmp/before"
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
}

#[derive(Debug, Clone, Copy)]
struct Kind {
    work: &'static str,
    text: &'static str,
    counts: [u64; 2],
}

/// Instructions for each item of a work.
#[derive(Debug, Serialize)]
struct Row {
    work: &'static str,
    instructions: f64,
    /// Of the other build.
    other: Option<f64>,
}

/// Counts all and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    eprintln!("building");
    let example = ["build", "--quiet", "--release", "--package", "posthaste-http", "--example", "work"];
    run_command(cargo().args(example))?;
    let own = target().join("release/examples/work");
    let chosen =
        |kind: &Kind| arguments.works.is_empty() || arguments.works.iter().any(|name| name == kind.work);
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
        rows.push(Row { work: kind.work, instructions, other });
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&rows)?)?;
    }
    Ok(true)
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

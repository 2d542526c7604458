//! What junk and handshakes cost: CPU time of the stacks alone, in memory, without sockets.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::Serialize;

use super::median;
use crate::Result;
use crate::process::children_cpu;
use crate::workspace::{cargo, run as run_command, target};

/// Kinds of junk.
const JUNK: [&str; 4] = ["random", "one-byte", "jumbo", "forged"];

/// Of `cargo xtask bench junk` and `bench handshakes`.
#[derive(Debug, Args)]
#[command(
    after_help = "The stacks without sockets, in one thread, interleaved; medians over the rounds. What the program
itself costs (copying the datagrams) is measured beside each and taken off. Junk arrives every 10 microseconds at a server
with one live connection: 1,200 random bytes, one byte, 65,507 bytes, and 1,200 bytes with that connection's ID.
Handshakes are full ones (Ed25519, X25519); CPU time is both ends' together."
)]
pub(crate) struct Arguments {
    /// Stacks, by the lab's names (repeatable)
    #[arg(long = "stack", value_name = "NAME", default_values = ["cubic", "quinn:cubic", "noq:cubic"])]
    stacks: Vec<String>,
    /// Datagrams or handshakes in one measured process; default 200,000 (jumbo: a tenth) or 2,000
    #[arg(long)]
    count: Option<u64>,
    /// Rounds over all stacks
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Also write the results here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One stack and one kind of work.
#[derive(Debug, Serialize)]
struct Sample {
    stack: String,
    work: &'static str,
    count: u64,
    /// Medians over rounds of CPU microseconds for each datagram or handshake.
    cpu_micros: f64,
}

/// CPU microseconds of each kind of junk datagram.
pub(crate) fn junk(arguments: &Arguments) -> Result<bool> {
    measure(arguments, &JUNK)
}

/// CPU microseconds of a handshake.
pub(crate) fn handshakes(arguments: &Arguments) -> Result<bool> {
    measure(arguments, &["handshake"])
}

fn default_count(work: &str) -> u64 {
    match work {
        "handshake" => 2_000,
        "jumbo" => 20_000,
        _ => 200_000,
    }
}

fn measure(arguments: &Arguments, works: &[&'static str]) -> Result<bool> {
    eprintln!("building");
    run_command(cargo().args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "posthaste-lab",
        "--example",
        "cost",
    ]))?;
    let program = target().join("release/examples/cost");
    let mut samples = Vec::new();
    println!("{:<12}{:<16}{:>20}{:>20}", "work", "stack", "CPU us each", "each CPU second");
    for &work in works {
        let count = arguments.count.unwrap_or_else(|| default_count(work)).max(2);
        let mut micros: Vec<Vec<f64>> = vec![Vec::new(); arguments.stacks.len()];
        for round in 0..arguments.rounds {
            eprintln!("{work}: round {} of {}", round + 1, arguments.rounds);
            let own = cost(&program, "none", work, count)?;
            for (stack, micros) in arguments.stacks.iter().zip(&mut micros) {
                micros.push((cost(&program, stack, work, count)? - own).max(0.0));
            }
        }
        for (stack, micros) in arguments.stacks.iter().zip(micros) {
            let cpu_micros = median(micros);
            println!("{work:<12}{stack:<16}{cpu_micros:>20.3}{:>20.0}", 1e6 / cpu_micros);
            samples.push(Sample { stack: stack.clone(), work, count, cpu_micros });
        }
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(true)
}

/// CPU microseconds for each of `count`, the process's start aside.
fn cost(program: &Path, stack: &str, work: &str, count: u64) -> Result<f64> {
    let all = seconds(program, stack, work, count)?;
    let start = seconds(program, stack, work, 1)?;
    Ok((all - start) * 1e6 / (count - 1) as f64)
}

fn seconds(program: &Path, stack: &str, work: &str, count: u64) -> Result<f64> {
    let before = children_cpu()?;
    let output = Command::new(program).args([stack, work, &count.to_string()]).output()?;
    let cpu = children_cpu()?.saturating_sub(before).as_secs_f64();
    if !output.status.success() {
        return Err(format!("{stack}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(cpu)
}

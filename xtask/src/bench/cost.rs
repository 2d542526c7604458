//! What junk and handshakes cost a server: CPU time of the stacks alone, in memory, without sockets.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::Serialize;

use crate::Result;
use crate::median;
use crate::workspace::{cargo, run as run_command, target};

/// Kinds of junk.
const JUNK: [&str; 4] = ["random", "one-byte", "jumbo", "forged"];

/// Kinds of handshakes.
const HANDSHAKES: [&str; 3] = ["full", "resumed", "early"];

/// Of `cargo xtask bench junk` and `bench handshakes`.
#[derive(Debug, Args)]
#[command(
    after_help = "The stacks without sockets, in one thread, interleaved; medians over the rounds, ratios to the first stack.

Junk arrives every 10 microseconds at a server with one live connection: 1,200 random bytes, one byte, 65,507 bytes, and
1,200 bytes with that connection's ID. What the program itself costs (copying the datagrams) is measured and taken off.

Handshakes are full ones, resumed ones, and resumed ones with early data (0-RTT); in each the client sends a request of
100 bytes. Same certificate (Ed25519), key exchange (X25519), cipher (AES-128-GCM) and TLS library for all stacks; the
server gives each client a ticket. Only the server's CPU time counts: all between taking in a flight and having its
answers. Making the endpoint is not counted."
)]
pub(crate) struct Arguments {
    /// Stacks, by the lab's names (repeatable)
    #[arg(long = "stack", value_name = "NAME", default_values = ["quinn:cubic", "cubic", "noq:cubic"])]
    stacks: Vec<String>,
    /// Datagrams or handshakes in one measured process; default 200,000 (jumbo: a tenth) or 2,000
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Median over rounds of the server's CPU microseconds for each datagram or handshake.
    cpu_micros: f64,
    /// Median over rounds of the ratio to the first stack in the same round.
    ratio: f64,
    /// How many of them a second of CPU time is enough for.
    each_cpu_second: f64,
    /// All rounds.
    rounds: Vec<f64>,
}

/// CPU microseconds of each kind of junk datagram.
pub(crate) fn junk(arguments: &Arguments) -> Result<bool> {
    measure(arguments, &JUNK)
}

/// CPU microseconds of each kind of handshake.
pub(crate) fn handshakes(arguments: &Arguments) -> Result<bool> {
    measure(arguments, &HANDSHAKES)
}

fn default_count(work: &str) -> u64 {
    match work {
        "jumbo" => 20_000,
        work if JUNK.contains(&work) => 200_000,
        _ => 2_000,
    }
}

fn measure(arguments: &Arguments, works: &[&'static str]) -> Result<bool> {
    build()?;
    let program = target().join("dist/examples/cost");
    let mut samples = Vec::new();
    println!("{:<12}{:<16}{:>12}{:>10}{:>20}", "work", "stack", "CPU us each", "ratio", "each CPU second");
    for &work in works {
        for sample in rounds(arguments, &program, work)? {
            println!(
                "{work:<12}{:<16}{:>12.3}{:>10.2}{:>20.0}",
                sample.stack, sample.cpu_micros, sample.ratio, sample.each_cpu_second
            );
            samples.push(sample);
        }
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(true)
}

/// Builds the program with the stacks.
pub(super) fn build() -> Result<()> {
    eprintln!("building");
    let example =
        ["build", "--quiet", "--profile", "dist", "--package", "posthaste-lab", "--example", "cost"];
    run_command(cargo().args(example))
}

/// All stacks at one kind of work, in turn.
fn rounds(arguments: &Arguments, program: &Path, work: &'static str) -> Result<Vec<Sample>> {
    let count = arguments.count.unwrap_or_else(|| default_count(work));
    let mut micros: Vec<Vec<f64>> = vec![Vec::new(); arguments.stacks.len()];
    for round in 0..arguments.rounds {
        eprintln!("{work}: round {} of {}", round + 1, arguments.rounds);
        let own = if JUNK.contains(&work) { cost(program, "none", work, count)? } else { 0.0 };
        for (stack, micros) in arguments.stacks.iter().zip(&mut micros) {
            micros.push((cost(program, stack, work, count)? - own).max(0.0));
        }
    }
    let samples = arguments.stacks.iter().zip(&micros).map(|(stack, own)| {
        let cpu_micros = median(own.iter().copied());
        let ratio = median(own.iter().zip(&micros[0]).map(|(own, base)| own / base));
        let each_cpu_second = 1e6 / cpu_micros;
        Sample { stack: stack.clone(), work, count, cpu_micros, ratio, each_cpu_second, rounds: own.clone() }
    });
    Ok(samples.collect())
}

/// CPU microseconds for each of `count`, as the program says.
fn cost(program: &Path, stack: &str, work: &str, count: u64) -> Result<f64> {
    let output = Command::new(program).args([stack, work, &count.to_string()]).output()?;
    if !output.status.success() {
        return Err(format!("{stack}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let nanos: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(nanos / 1e3 / count as f64)
}

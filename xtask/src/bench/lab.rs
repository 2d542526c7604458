//! The lab itself: CPU time and instructions of a simulated transfer.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::instructions_of;
use crate::Result;
use crate::median;
use crate::process::children_cpu;
use crate::workspace::{cargo, run as run_command, target};

/// Of `cargo xtask bench lab`.
#[derive(Debug, Args)]
#[command(
    after_help = "One flow over 100 Mbit/s and 50 ms without loss, in virtual time, both ends in one thread.
The stacks are interleaved; figures are medians over the rounds. A process of one tiny transfer is measured beside
each and taken off, so that start-up does not count."
)]
pub(crate) struct Arguments {
    /// Stacks, by the lab's names (repeatable)
    #[arg(long = "stack", value_name = "NAME", default_values = ["cubic", "noq:cubic", "quinn:cubic", "tcp:cubic"])]
    stacks: Vec<String>,
    /// Bytes of a transfer
    #[arg(long, default_value_t = 10_000_000)]
    bytes: u64,
    /// Transfers in one measured process
    #[arg(long, default_value_t = 20)]
    repetitions: u64,
    /// Rounds over all stacks
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Also count instructions for each simulated MB, with valgrind's callgrind (slow)
    #[arg(long)]
    instructions: bool,
    /// Also write the results here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What the measured program prints.
#[derive(Debug, Deserialize)]
struct Report {
    packets: u64,
    virtual_seconds: f64,
}

/// One stack.
#[derive(Debug, Serialize)]
struct Sample {
    stack: String,
    bytes: u64,
    /// IP packets of one transfer, both directions.
    packets: u64,
    /// Virtual seconds of one transfer.
    virtual_seconds: f64,
    /// CPU milliseconds of one transfer, median over rounds.
    cpu_ms: f64,
    packets_per_cpu_second: f64,
    virtual_seconds_per_cpu_second: f64,
    /// Instructions for each simulated MB (10^6 bytes).
    instructions_per_megabyte: Option<f64>,
}

/// Measures all stacks and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.rounds == 0 || arguments.repetitions == 0 || arguments.bytes == 0 {
        return Err("--rounds, --repetitions and --bytes: at least 1 is needed".into());
    }
    eprintln!("building");
    run_command(cargo().args([
        "build",
        "--quiet",
        "--profile",
        "dist",
        "--package",
        "posthaste-lab",
        "--example",
        "speed",
    ]))?;
    let program = target().join("dist/examples/speed");
    let mut cpu: Vec<Vec<f64>> = vec![Vec::new(); arguments.stacks.len()];
    let mut reports = Vec::new();
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        reports.clear();
        for (stack, times) in arguments.stacks.iter().zip(&mut cpu) {
            let (idle, _) = measure(&program, stack, 1, 1)?;
            let (busy, report) = measure(&program, stack, arguments.bytes, arguments.repetitions)?;
            times.push((busy - idle).max(0.0) / arguments.repetitions as f64);
            reports.push(report);
        }
    }
    let mut samples = Vec::new();
    println!(
        "{:<16}{:>10}{:>12}{:>14}{:>20}{:>24}",
        "stack", "packets", "CPU ms", "packets/CPU s", "virtual s/CPU s", "M instructions per MB"
    );
    for ((stack, times), report) in arguments.stacks.iter().zip(cpu).zip(reports) {
        let sample = sample(arguments, &program, stack, median(times), &report)?;
        let instructions =
            sample.instructions_per_megabyte.map_or("-".to_owned(), |count| format!("{:.2}", count / 1e6));
        println!(
            "{:<16}{:>10}{:>12.1}{:>14.0}{:>20.1}{:>24}",
            sample.stack,
            sample.packets,
            sample.cpu_ms,
            sample.packets_per_cpu_second,
            sample.virtual_seconds_per_cpu_second,
            instructions
        );
        samples.push(sample);
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(true)
}

fn sample(arguments: &Arguments, program: &Path, stack: &str, cpu: f64, report: &Report) -> Result<Sample> {
    let instructions =
        arguments.instructions.then(|| instructions(program, stack, arguments.bytes)).transpose()?;
    Ok(Sample {
        stack: stack.to_owned(),
        bytes: arguments.bytes,
        packets: report.packets,
        virtual_seconds: report.virtual_seconds,
        cpu_ms: cpu * 1e3,
        packets_per_cpu_second: report.packets as f64 / cpu,
        virtual_seconds_per_cpu_second: report.virtual_seconds / cpu,
        instructions_per_megabyte: instructions.map(|count| count / (arguments.bytes as f64 / 1e6)),
    })
}

/// CPU seconds of one process, and what it printed.
fn measure(program: &Path, stack: &str, bytes: u64, repetitions: u64) -> Result<(f64, Report)> {
    let before = children_cpu()?;
    let output =
        Command::new(program).args([stack, &bytes.to_string(), &repetitions.to_string()]).output()?;
    let cpu = children_cpu()?.saturating_sub(before).as_secs_f64();
    if !output.status.success() {
        return Err(format!("{stack}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok((cpu, serde_json::from_slice(&output.stdout)?))
}

/// Instructions of one transfer: of a process with two, less those of a process with one.
fn instructions(program: &Path, stack: &str, bytes: u64) -> Result<f64> {
    let count =
        |repetitions: u64| instructions_of(program, &[stack, &bytes.to_string(), &repetitions.to_string()]);
    Ok((count(2)? - count(1)?) as f64)
}

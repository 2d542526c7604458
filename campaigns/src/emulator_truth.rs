//! `cargo campaigns emulator-truth`: the emulator against its own model, and the lab's TCP against the kernel's.
//!
//! Each cell is a path and an object. The kernel's TCP carries the object through `posthaste emulate`, with flights
//! as long as those of TLS and HTTP in front of it; the lab's model of TCP carries it over the same path in virtual
//! time. After that, UDP datagrams in lockstep measure the emulator's round trip. Where ping and iperf3 are
//! installed, they say in a second table what they find on the same paths.

mod cells;
mod ends;
mod kernel;

use std::path::PathBuf;

use clap::Args;
use posthaste_lab::peers::Stack;
use posthaste_report::markdown::head;
use posthaste_units::Duration;

use crate::Result;
use crate::cells::{Cell, chosen};
use crate::median;
use crate::workspace::{build_posthaste, program};
use cells::CELLS;
use kernel::{Emulator, Measured, Players};

pub(crate) use ends::{End, play};

/// What the kernel may be away from the lab.
const TOLERANCE: f64 = 0.1;

/// Virtual runs for each of a witness, whose packets meet fates of their own: ping's come first, and iperf3 has a second
/// connection.
const VIRTUAL_RUNS_PER_WITNESS: u64 = 5;

/// A UDP payload with which the lab's IP packets have 1500 bytes.
const DATAGRAM: u16 = 1472;

/// After so long a run in the lab has failed.
const DEADLINE: Duration = Duration::from_secs(300);

/// Of the table.
const COLUMNS: [&str; 12] = [
    "cell",
    "round trip, median - model",
    "lab CUBIC, median s (runs)",
    "kernel CUBIC, median s (runs)",
    "kernel / lab - 1",
    "within 10 %",
    "lab BBR, median s (runs)",
    "kernel BBR, median s (runs)",
    "kernel / lab - 1",
    "within 10 %",
    "void runs",
    "lateness, p99 of the worst run",
];

/// Of the table by ping and iperf3.
const WITNESS_COLUMNS: [&str; 6] = [
    "cell",
    "ping, median - model",
    "iperf3 CUBIC, median s (runs)",
    "/ lab without its flights - 1",
    "iperf3 BBR, median s (runs)",
    "void runs",
];

/// Of `cargo campaigns emulator-truth`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints a table in Markdown. A cell passes if the kernel's median completion times with CUBIC and with BBR are
within 10 % of the lab's over paths with the same seeds, which lose the same packets. Void runs, those in which the emulator was late or interfaces dropped packets, are made again with another
seed. The second table is by ping and iperf3, where they are installed (apt-get install iputils-ping iperf3), and is
not judged.
Exit code: 0 if every cell passes, 1 if one does not or could not be measured."
)]
pub(crate) struct Arguments {
    /// Cells to measure, all unless given (repeatable)
    #[arg(long = "cell", value_name = "NAME")]
    cells: Vec<String>,
    /// The two quickest cells, printed and not judged: a busy machine is nobody's mistake
    #[arg(long, conflicts_with = "cells")]
    short: bool,
    /// The `posthaste` to use, instead of a release build of this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Measures cell by cell and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let is_quick = |cell: &Cell| CELLS[..2].iter().any(|quick| quick.name == cell.name);
    let cells = chosen(&CELLS, &arguments.cells, arguments.short, is_quick)?;
    let program = program(arguments.program.as_deref(), build_posthaste)?;
    let emulator = Emulator::new(program)?;
    if let Some(reason) = emulator.obstacle()? {
        println!("skipped: {reason}");
        return Ok(arguments.short);
    }
    print!("{}", head(&COLUMNS));
    let mut all_agree = true;
    let mut witnesses = Vec::new();
    let has_witnesses = Emulator::has_witnesses();
    for cell in cells {
        eprintln!("{}", cell.name);
        let cubic = emulator.measure(cell, "cubic", Players::Ours)?;
        let bbr = emulator.measure(cell, "bbr", Players::Ours)?;
        let lab_times =
            |stack: &Stack, seeds: Vec<u64>| cell.virtual_times(stack, seeds, (DEADLINE, DATAGRAM));
        let stacks = [lab_stack("cubic")?, lab_stack("bbr")?];
        let lab = [lab_times(&stacks[0], cubic.seeds.clone())?, lab_times(&stacks[1], bbr.seeds.clone())?];
        let (row, agrees) = row(cell, &lab, &cubic, &bbr)?;
        println!("{row}");
        all_agree &= agrees;
        if has_witnesses {
            let cubic = emulator.measure(cell, "cubic", Players::Witnesses)?;
            let bbr = emulator.measure(cell, "bbr", Players::Witnesses)?;
            let lab = lab_times(&stacks[0], (1..=cell.runs * VIRTUAL_RUNS_PER_WITNESS).collect())?;
            witnesses.push(witness_row(cell, &lab, &cubic, &bbr)?);
        }
    }
    if has_witnesses {
        println!("\n{}{}", head(&WITNESS_COLUMNS), witnesses.join("\n"));
    } else {
        println!("\nno second table: ping or iperf3 is missing (apt-get install iputils-ping iperf3)");
    }
    Ok(all_agree || arguments.short)
}

fn median_of(times: &[f64]) -> f64 {
    median(times.iter().copied())
}

/// A figure of `times`; a dash where every run was void, for a median of nothing is no figure.
fn shown(times: &[f64], figure: impl FnOnce(f64) -> String) -> String {
    if times.is_empty() { "-".to_owned() } else { figure(median_of(times)) }
}

/// Of one controller: the lab's median, the kernel's, how far apart they are and whether that will do.
fn compared(cell: &Cell, lab: &[f64], kernel: &Measured) -> (String, bool) {
    let error = median_of(&kernel.seconds) / median_of(lab) - 1.0;
    let is_measured = kernel.seconds.len() as u64 >= cell.runs;
    let agrees = is_measured && error.abs() <= TOLERANCE;
    let verdict = match (is_measured, agrees) {
        (false, _) => "not measured: the machine is too busy",
        (true, true) => "yes",
        (true, false) => "**no**",
    };
    let text = format!(
        "{} ({}) | {} ({}) | {} | {verdict}",
        shown(lab, seconds),
        lab.len(),
        shown(&kernel.seconds, seconds),
        kernel.seconds.len(),
        shown(&kernel.seconds, |_| format!("{:+.1} %", error * 100.0)),
    );
    (text, agrees)
}

fn row(cell: &Cell, lab: &[Vec<f64>; 2], cubic: &Measured, bbr: &Measured) -> Result<(String, bool)> {
    let [(of_cubic, cubic_agrees), (of_bbr, bbr_agrees)] =
        [compared(cell, &lab[0], cubic), compared(cell, &lab[1], bbr)];
    let round_trip = cell.path()?.rtt.as_secs_f64();
    let text = format!(
        "| {} | {} | {of_cubic} | {of_bbr} | {} | {:.2} ms |",
        cell.name,
        shown(&cubic.round_trips, |found| format!("{:+.3} ms", (found - round_trip) * 1e3)),
        cubic.void + bbr.void,
        cubic.lateness.max(bbr.lateness) * 1e3,
    );
    Ok((text, cubic_agrees && bbr_agrees))
}

/// Round trips before the first byte of content, which iperf3 does not count: TCP's, TLS's, and the request's.
const ROUND_TRIPS_BEFORE: f64 = 3.0;

fn seconds(median: f64) -> String {
    format!("{median:.4}")
}

fn witness_row(cell: &Cell, lab: &[f64], cubic: &Measured, bbr: &Measured) -> Result<String> {
    let round_trip = cell.path()?.rtt.as_secs_f64();
    let expected = median_of(lab) - ROUND_TRIPS_BEFORE * round_trip;
    Ok(format!(
        "| {} | {} | {} ({}) | {} | {} ({}) | {} |",
        cell.name,
        shown(&cubic.round_trips, |found| format!("{:+.3} ms", (found - round_trip) * 1e3)),
        shown(&cubic.seconds, seconds),
        cubic.seconds.len(),
        shown(&cubic.seconds, |found| format!("{:+.1} %", (found / expected - 1.0) * 100.0)),
        shown(&bbr.seconds, seconds),
        bbr.seconds.len(),
        cubic.void + bbr.void,
    ))
}

/// The lab's model of the kernel's TCP with this controller, behind TLS and HTTP/1.1.
fn lab_stack(controller: &str) -> Result<Stack> {
    Ok(format!("tcp:{controller}/h1").parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_measured_has_no_figures() {
        let cell = &CELLS[0];
        let measured = |seconds: &[f64], void| Measured {
            seconds: seconds.to_vec(),
            seeds: (1..=seconds.len() as u64).collect(),
            round_trips: seconds.iter().map(|_| 0.0201).collect(),
            void,
            lateness: 1e-4,
        };
        let (row, agrees) = row(cell, &[vec![], vec![]], &measured(&[], 15), &measured(&[], 15)).unwrap();
        assert!(!agrees && row.contains("not measured"), "{row}");
        assert!(row.contains("| - | - (0) | - (0) | - |") && !row.contains("0.0000"), "{row}");
        let times = [2.0; 5];
        let lab = [times.to_vec(), times.to_vec()];
        let (row, agrees) = super::row(cell, &lab, &measured(&times, 0), &measured(&[], 15)).unwrap();
        assert!(!agrees, "BBR was not measured: {row}");
        assert!(
            row.contains("| +0.100 ms | 2.0000 (5) | 2.0000 (5) | +0.0 % | yes | 2.0000 (5) | - (0) | - |"),
            "{row}"
        );
        let (row, agrees) = super::row(cell, &lab, &measured(&times, 0), &measured(&[2.3; 5], 0)).unwrap();
        assert!(!agrees && row.contains("| 2.3000 (5) | +15.0 % | **no** |"), "{row}");
        let (row, agrees) = super::row(cell, &lab, &measured(&times, 0), &measured(&times, 0)).unwrap();
        assert!(agrees, "{row}");
        let row = witness_row(cell, &times, &measured(&[], 15), &measured(&[], 15)).unwrap();
        assert!(row.ends_with("| - | - (0) | - | - (0) | 30 |"), "{row}");
    }
}

//! `cargo campaigns virtual-real`: how far the lab's virtual time is from real time.
//!
//! Each cell is run twice: in the lab, and with real sockets and threads over the relay (`posthaste race --bare`). Both
//! take the same path description, the same transport, and the same requests and responses on plain streams, so what
//! differs is what the lab leaves out: scheduling, system calls, timers that fire late.

mod cells;
mod compare;
mod real;

use clap::Args;
use posthaste_lab::peers::Stack;
use posthaste_report::markdown::head;

use crate::Result;
use crate::cells::chosen;
use crate::workspace::build_posthaste;
use cells::CELLS;
use compare::Comparison;

/// Of `cargo campaigns virtual-real`.
#[derive(Debug, Args)]
#[command(
    after_help = "Prints a table in Markdown. A cell passes if real completion times are within 5 % of virtual ones, as the
geometric mean of the ratios seed by seed. Real runs in which packets left the relay late (99th percentile over 1 ms) or the system
lost packets are void and are made again with another seed: they show the machine's load and nothing else.
Exit code: 0 if every cell passes, 1 if one does not or could not be measured."
)]
pub(crate) struct Arguments {
    /// Cells to compare, all unless given (repeatable)
    #[arg(long = "cell", value_name = "NAME")]
    cells: Vec<String>,
    /// The profile at both ends
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    profile: String,
    /// The two quick cells, printed and not judged: a busy machine is nobody's mistake
    #[arg(long, conflicts_with = "cells")]
    short: bool,
    /// Give the real runs real-time priority, with `chrt`: needs privileges, and other programs void fewer runs
    #[arg(long)]
    real_time: bool,
}

/// Compares cell by cell and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let stack: Stack = arguments.profile.parse()?;
    let cells = chosen(&CELLS, &arguments.cells, arguments.short, cells::is_quick)?;
    let real_time = real::RealTime {
        program: build_posthaste()?,
        profile: arguments.profile.clone(),
        has_priority: arguments.real_time,
    };
    print!("{}", head(&Comparison::COLUMNS));
    let mut all_agree = true;
    for cell in cells {
        eprintln!("{}", cell.name);
        let real = real_time.measure(cell)?;
        let seeds = real.runs.iter().map(|run| run.seed);
        let virtual_times = cell.virtual_times(&stack, seeds, (real::TIMEOUT, real::DATAGRAM))?;
        let comparison = Comparison::new(cell, &virtual_times, &real);
        println!("{}", comparison.row());
        all_agree &= comparison.agrees();
    }
    Ok(all_agree || arguments.short)
}

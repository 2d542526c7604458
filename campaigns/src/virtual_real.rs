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
use posthaste_lab::run::run as run_in_lab;
use posthaste_lab::spec::{FlowSpec, NetworkSpec, RunSpec, WorkloadSpec};
use posthaste_units::Duration;

use crate::Result;
use crate::workspace::build_posthaste;
use cells::{CELLS, Cell};
use compare::Comparison;
use real::RealRun;

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
    let cells = chosen(arguments)?;
    let race = real::Race {
        program: build_posthaste()?,
        profile: arguments.profile.clone(),
        has_priority: arguments.real_time,
    };
    println!("{}", Comparison::HEADER);
    let mut all_agree = true;
    for cell in cells {
        eprintln!("{}", cell.name);
        let real = race.measure(cell)?;
        let virtual_times = virtual_times(cell, &stack, &real.runs)?;
        let comparison = Comparison::new(cell, &virtual_times, &real);
        println!("{}", comparison.row());
        all_agree &= comparison.agrees();
    }
    Ok(all_agree || arguments.short)
}

fn chosen(arguments: &Arguments) -> Result<Vec<&'static Cell>> {
    if let Some(unknown) = arguments.cells.iter().find(|name| CELLS.iter().all(|cell| cell.name != **name)) {
        let names: Vec<&str> = CELLS.iter().map(|cell| cell.name).collect();
        return Err(format!("no cell {unknown:?}; there are: {}", names.join(", ")).into());
    }
    let is_wanted = |cell: &&Cell| {
        if arguments.short {
            cell.is_quick()
        } else {
            arguments.cells.is_empty() || arguments.cells.iter().any(|name| name == cell.name)
        }
    };
    Ok(CELLS.iter().filter(is_wanted).collect())
}

/// Completion times in the lab with the seeds of the real runs, in seconds; infinite where a run did not complete.
fn virtual_times(cell: &Cell, stack: &Stack, runs: &[RealRun]) -> Result<Vec<f64>> {
    let spec = RunSpec {
        network: NetworkSpec::Simple { path: cell.path()? },
        flows: vec![FlowSpec {
            name: cell.name.to_owned(),
            stack: stack.clone(),
            workload: WorkloadSpec::Bulk { object: cell.object()?, read_rate: None },
            start: Duration::ZERO,
            background: false,
            count: 1,
            warm_up: None,
        }],
        deadline: real::TIMEOUT,
        datagram: real::DATAGRAM,
        series: None,
    };
    runs.iter()
        .map(|run| {
            let result = run_in_lab(&spec, run.seed, None)?;
            Ok(result.flows.first().and_then(|flow| flow.completion).unwrap_or(f64::INFINITY))
        })
        .collect()
}

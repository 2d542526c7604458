//! `cargo xtask kernel-fairness`: what a Posthaste profile and the kernel's TCP leave each other at one bottleneck.
//!
//! One download by `posthaste get` from `posthaste serve`, and so many by the kernel's TCP, all through one
//! `posthaste emulate`. Harm is measured against the same bottleneck with one more kernel CUBIC flow in Posthaste's
//! place. Nothing is judged: what comes out is published.

mod cells;
mod ends;
mod journal;
mod meeting;
mod page;
mod standing;

use std::path::{Path, PathBuf};

use clap::Args;
use posthaste_policy::Profile;
use posthaste_policy::profile::selection::{DEFAULT_MIN_RATE, expand};

use crate::Result;
use crate::emulated;
use crate::workspace::{build_posthaste, build_posthaste_debug, target};
use cells::{Axes, Cell, Rival, grid};
use journal::Journal;
use meeting::{Conditions, Ground};
use standing::Standing;

pub(crate) use ends::{End, play};

/// Seconds that a run takes beyond those that it measures.
const STARTING: f64 = 1.5;

/// Of `cargo xtask kernel-fairness`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each cell is a bottleneck that one download by Posthaste shares with downloads by the kernel's TCP. All begin
at once; the warm-up is not counted. What is counted is what programs read.

Cells that the journal has are not run again, so an interrupted grid goes on where it was; --fresh begins anew. With
--plan it only says what it would run and how long that takes. Void runs, in which the emulator was late or interfaces
dropped packets, are made again with another seed, three times in all; a cell without a valid run is left out, and said.

Every profile, beside one kernel CUBIC and one kernel BBR flow:
  cargo xtask kernel-fairness --profiles all --compact --plan
  cargo xtask kernel-fairness --profiles all --compact --markdown docs/kernel-fairness-profiles.md
With `all`, profiles with a guaranteed part are promised 1 Mbit/s. Both ends have the profile, so what only a receiver
or a group decides is part of it; there is one connection.

share: Posthaste's part of all goodput, as a multiple of its fair part. Jain: the index over all flows, 1 if all are
equal. harm: what a kernel flow loses, as part of what it has beside one more kernel CUBIC flow; below zero it gains."
)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct Arguments {
    /// Profiles, as `posthaste profiles` names them (quicming@1mbit for one with a guaranteed rate); `all` are all of
    /// them, `all-server` those that a server alone can use
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "standard,cubic")]
    profiles: Vec<String>,
    /// The kernel's controllers
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "cubic,bbr")]
    rivals: Vec<Rival>,
    /// Numbers of kernel flows
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',', default_value = "1,2,4")]
    flows: Vec<usize>,
    /// One bottleneck instead of a grid: 30 Mbit/s, a queue of 1 BDP, one kernel flow. For many profiles
    #[arg(long, conflicts_with_all = ["flows", "rates", "buffers", "short"])]
    compact: bool,
    /// Rates, in Mbit/s
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_value = "10,30,100")]
    rates: Vec<f64>,
    /// Queues, in bandwidth-delay products
    #[arg(long, value_name = "BDP,...", value_delimiter = ',', default_value = "0.25,1,4")]
    buffers: Vec<f64>,
    /// Two-way propagation delay, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 40.0)]
    rtt: f64,
    /// Seconds before anything is counted
    #[arg(long, default_value_t = 5.0)]
    warm_up: f64,
    /// Seconds counted
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Valid runs of each cell
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    repeats: u64,
    /// One bottleneck, for some seconds, with a development build; what is wrong with the machine is nobody's mistake
    #[arg(long)]
    short: bool,
    /// Say what would be run, and how long that takes
    #[arg(long)]
    plan: bool,
    /// Where results are kept from run to run [default: kernel-fairness.jsonl in cargo's target folder]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Forget what the journal has
    #[arg(long)]
    fresh: bool,
    /// The `posthaste` to use, instead of a build of this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Also write the cells here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write a page in Markdown, such as docs/kernel-fairness.md
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Runs what is missing and prints all.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let conditions = conditions(arguments)?;
    check_profiles(arguments)?;
    let cells = cells(arguments);
    let mut journal = journal(arguments)?;
    let missing = |journal: &Journal, cell: &Cell| {
        let has = journal.of(cell, &conditions).count() as u64;
        arguments.repeats.saturating_sub(has)
    };
    let runs: u64 = cells.iter().map(|cell| missing(&journal, cell)).sum();
    let minutes = runs as f64 * (conditions.warm_up + conditions.seconds + STARTING) / 60.0;
    eprintln!("{} cells, {runs} runs to go: about {minutes:.0} minutes, if none is void", cells.len());
    if arguments.plan {
        for cell in &cells {
            println!("{cell}: {} to go", missing(&journal, cell));
        }
        return Ok(true);
    }
    let mut void = 0;
    if runs > 0 {
        let build = if arguments.short { build_posthaste_debug } else { build_posthaste };
        let program = arguments.program.clone().map_or_else(build, Ok)?.canonicalize()?;
        if let Some(reason) = emulated::obstacle(&program)? {
            println!("skipped: {reason}");
            return Ok(arguments.short);
        }
        let ground = Ground::new(program, conditions.clone())?;
        for (index, cell) in cells.iter().enumerate() {
            for _ in 0..missing(&journal, cell) {
                eprintln!("{} of {}: {cell}", index + 1, cells.len());
                void += ground.hold(cell, &mut journal)?;
            }
        }
    }
    let standings = standing::all(&cells, &journal, &conditions);
    println!("{}", page::table(&standings));
    println!("void runs: {void}");
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&standings)?)?;
    }
    if let Some(path) = &arguments.markdown {
        std::fs::write(path, page::page(&standings, &conditions, &command(arguments))?)?;
    }
    let expected = cells.iter().filter(|cell| cell.baseline() != **cell).count();
    for_missing(&cells, &standings);
    Ok(arguments.short || standings.len() == expected)
}

/// What wrote a page.
fn command(arguments: &Arguments) -> String {
    let mut command = "cargo xtask kernel-fairness".to_owned();
    if arguments.profiles != ["standard", "cubic"] {
        command = format!("{command} --profiles {}", arguments.profiles.join(","));
    }
    if arguments.compact {
        command.push_str(" --compact");
    }
    let file = arguments.markdown.iter().map(|file| format!(" --markdown {}", file.display()));
    command + &file.collect::<String>()
}

/// Tells which cells have no figures.
fn for_missing(cells: &[Cell], standings: &[Standing]) {
    for cell in cells.iter().filter(|cell| cell.baseline() != **cell) {
        if standings.iter().all(|standing| standing.cell != *cell) {
            println!("not measured, every run of it or of its baseline was void: {cell}");
        }
    }
}

fn conditions(arguments: &Arguments) -> Result<Conditions> {
    let is_fine = |values: &[f64]| values.iter().all(|value| value.is_finite() && *value > 0.0);
    if !is_fine(&arguments.rates) || !is_fine(&arguments.buffers) || !is_fine(&[arguments.rtt]) {
        return Err("--rates, --buffers and --rtt must be above zero".into());
    }
    if arguments.flows.contains(&0) {
        return Err("--flows: without a flow of the kernel there is nobody to be fair to".into());
    }
    let (warm_up, seconds) =
        if arguments.short { (1.5, 4.0) } else { (arguments.warm_up, arguments.seconds) };
    if !(0.0..=600.0).contains(&warm_up) || !(0.1..=3_600.0).contains(&seconds) {
        return Err("--warm-up is at most 600 seconds, --seconds from 0.1 to 3600".into());
    }
    Ok(Conditions { rtt: arguments.rtt, warm_up, seconds })
}

/// A name that is none must not be found out by the first run that needs it. Files are left to `posthaste`.
fn check_profiles(arguments: &Arguments) -> Result<()> {
    let is_file =
        |name: &&String| Path::new(name.as_str()).extension().is_some_and(|extension| extension == "toml");
    for name in expand(&arguments.profiles, Some(DEFAULT_MIN_RATE)).iter().filter(|name| !is_file(name)) {
        Profile::named(name)?.check_complete()?;
    }
    Ok(())
}

fn cells(arguments: &Arguments) -> Vec<Cell> {
    let profiles = expand(&arguments.profiles, Some(DEFAULT_MIN_RATE));
    let axes = if arguments.short {
        Axes {
            profiles: &profiles[..1],
            rivals: &[Rival::Cubic],
            flows: &[1],
            megabits: &[20.0],
            buffers: &[1.0],
        }
    } else if arguments.compact {
        Axes {
            profiles: &profiles,
            rivals: &arguments.rivals,
            flows: &[1],
            megabits: &[30.0],
            buffers: &[1.0],
        }
    } else {
        Axes {
            profiles: &profiles,
            rivals: &arguments.rivals,
            flows: &arguments.flows,
            megabits: &arguments.rates,
            buffers: &arguments.buffers,
        }
    };
    grid(&axes)
}

fn journal(arguments: &Arguments) -> Result<Journal> {
    if arguments.short && arguments.journal.is_none() {
        return Ok(Journal::in_memory());
    }
    let path = arguments.journal.clone().unwrap_or_else(|| target().join("kernel-fairness.jsonl"));
    if arguments.fresh && path.exists() {
        std::fs::remove_file(&path)?;
    }
    Journal::open(path)
}

#[cfg(test)]
#[path = "kernel_fairness/arguments_tests.rs"]
mod tests;

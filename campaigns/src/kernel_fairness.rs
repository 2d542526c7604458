//! `cargo campaigns kernel-fairness`: what a Posthaste profile and the kernel's TCP leave each other at one bottleneck.
//!
//! One download by `posthaste get` from `posthaste serve`, and so many by the kernel's TCP, all through one
//! `posthaste emulate`. Harm is measured against the same bottleneck with one more kernel CUBIC flow in Posthaste's
//! place. Nothing is judged: what comes out is published.

mod cells;
mod ends;
mod journal;
mod origin;
mod page;
mod run;
mod summary;

use std::path::PathBuf;

use clap::{Args, FromArgMatches};
use posthaste_schemes::selection::expand;

use crate::Result;
use crate::emulated;
use crate::workspace::{build_posthaste, build_posthaste_debug, target};
use cells::{Axes, Cell, Rival, grid};
use journal::Journal;
use origin::Build;
use run::{Conditions, Ground};
use summary::Summary;

pub(crate) use ends::{End, play};

/// Seconds that a run takes beyond those that it measures.
const STARTING: f64 = 1.5;

/// Of `cargo campaigns kernel-fairness`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each cell is a bottleneck that one download by Posthaste shares with downloads by the kernel's TCP. All begin
at once; the warm-up is not counted. What is counted is what programs read.

Cells that the journal has are not run again, so an interrupted grid goes on where it was; --fresh begins anew. Runs of
another build, or of another text of a profile's file, go on counting: it says how many, and the page of how many builds
its runs are. With
--plan it only says what it would run and how long that takes. Void runs, in which the emulator was late or interfaces
dropped packets, are made again with another seed, three times in all; a cell without a valid run is left out, and said.

Every profile, next to one kernel CUBIC and one kernel BBR flow:
  cargo campaigns kernel-fairness --profiles all --compact --plan
  cargo campaigns kernel-fairness --profiles all --compact --markdown docs/results/kernel-fairness-profiles.md
With `all`, profiles with a guaranteed part are promised 1 Mbit/s. Both ends have the profile, so what only a receiver
or a group decides is part of it; there is one connection.

share: Posthaste's part of all goodput, as a multiple of its fair part. Jain: the index over all flows, 1 if all are
equal. harm: what a kernel flow loses, as part of what it has next to one more kernel CUBIC flow; below zero it gains."
)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct Arguments {
    /// Profiles, as `posthaste profiles` names them (`quicming@min_rate=1mbit` for one with a guaranteed rate); `all` are all of
    /// them, `all-server` those that a server alone can use
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "mobile,cubic")]
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
    /// Also write a page in Markdown, such as docs/results/kernel-fairness.md
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
    let program = program(arguments, runs)?;
    let build = program.as_ref().map(|program| Build::of(program, &cells)).transpose()?;
    let kept = journal.of_all(&cells, &conditions);
    if let Some(warning) = build.as_ref().and_then(|build| build.warning(&kept)) {
        eprintln!("{warning}");
    }
    let mut void = 0;
    if let (1.., Some(program), Some(build)) = (runs, program, build) {
        if let Some(reason) = emulated::obstacle(&program)? {
            println!("skipped: {reason}");
            return Ok(arguments.short);
        }
        let ground = Ground::new(program, conditions.clone(), build)?;
        for (index, cell) in cells.iter().enumerate() {
            for _ in 0..missing(&journal, cell) {
                eprintln!("{} of {}: {cell}", index + 1, cells.len());
                void += ground.hold(cell, &mut journal)?;
            }
        }
    } else {
        eprintln!("nothing is left to run: all figures are the journal's; --fresh begins anew");
    }
    let summaries = summary::all(&cells, &journal, &conditions);
    let origins = origin::describe(&journal.of_all(&cells, &conditions));
    let not_measured = not_measured(&cells, &summaries);
    println!("{}", page::table(&summaries));
    println!("void runs: {void}\n{origins}");
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&summaries)?)?;
    }
    if let Some(path) = &arguments.markdown {
        let about = page::About { command: &command(arguments)?, conditions: &conditions, origins: &origins };
        std::fs::write(path, page::page(&summaries, &about, &not_measured)?)?;
    }
    for cell in &not_measured {
        println!("not measured, every run of it or of its baseline was void: {cell}");
    }
    Ok(arguments.short || not_measured.is_empty())
}

/// The `posthaste` to use. If nothing is to be run, nothing is built for it either: then it is the one of the last build,
/// if there is one, and only says whose runs the journal has.
fn program(arguments: &Arguments, runs: u64) -> Result<Option<PathBuf>> {
    let build = if arguments.short { build_posthaste_debug } else { build_posthaste };
    let last = || target().join(if arguments.short { "debug/posthaste" } else { "release/posthaste" });
    let program = match (&arguments.program, runs) {
        (Some(program), _) => program.clone(),
        (None, 1..) => build()?,
        (None, 0) if last().exists() => last(),
        (None, 0) => return Ok(None),
    };
    let named = |error| format!("{}: {error}", program.display());
    Ok(Some(program.canonicalize().map_err(named)?))
}

/// What wrote a page: all that differs from what is meant without it, but for where results are kept.
fn command(arguments: &Arguments) -> Result<String> {
    let parser = Arguments::augment_args(clap::Command::new("kernel-fairness"));
    let defaults = Arguments::from_arg_matches(&parser.try_get_matches_from(["kernel-fairness"])?)?;
    let mut command = "cargo campaigns kernel-fairness".to_owned();
    let mut add = |option: &str, value: String, default: String| {
        if value != default {
            command = format!("{command} --{option} {value}");
        }
    };
    let mut option =
        |name: &str, value: fn(&Arguments) -> String| add(name, value(arguments), value(&defaults));
    option("profiles", |arguments| arguments.profiles.join(","));
    option("rivals", |arguments| {
        listed(&arguments.rivals.iter().map(|rival| rival.name()).collect::<Vec<_>>())
    });
    option("flows", |arguments| listed(&arguments.flows));
    option("rates", |arguments| listed(&arguments.rates));
    option("buffers", |arguments| listed(&arguments.buffers));
    option("rtt", |arguments| arguments.rtt.to_string());
    option("warm-up", |arguments| arguments.warm_up.to_string());
    option("seconds", |arguments| arguments.seconds.to_string());
    option("repeats", |arguments| arguments.repeats.to_string());
    for (switch, is_given) in [(" --compact", arguments.compact), (" --short", arguments.short)] {
        command.push_str(if is_given { switch } else { "" });
    }
    let file = arguments.markdown.iter().map(|file| format!(" --markdown {}", file.display()));
    Ok(command + &file.collect::<String>())
}

/// As a command line has them.
fn listed<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// The cells that have no figures.
fn not_measured<'a>(cells: &'a [Cell], summaries: &[Summary]) -> Vec<&'a Cell> {
    let wanted = cells.iter().filter(|cell| cell.baseline() != **cell);
    wanted.filter(|cell| summaries.iter().all(|summary| summary.cell != **cell)).collect()
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

/// What is no profile must not be found out by the first run that needs it.
fn check_profiles(arguments: &Arguments) -> Result<()> {
    for name in &expand(&arguments.profiles) {
        posthaste_schemes::find(name)?;
    }
    Ok(())
}

fn cells(arguments: &Arguments) -> Vec<Cell> {
    let profiles = expand(&arguments.profiles);
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
        return Journal::open(None);
    }
    let path = arguments.journal.clone().unwrap_or_else(|| target().join("kernel-fairness.jsonl"));
    if arguments.fresh && path.exists() {
        std::fs::remove_file(&path)?;
    }
    Journal::open(Some(&path))
}

#[cfg(test)]
mod tests;

//! `posthaste lab`.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Subcommand;
use posthaste_lab::experiment::{CellFilter, MAX_SEEDS};
use posthaste_units::Duration;

/// Threads that make sense.
const MAX_JOBS: usize = 1024;

/// Measure stacks over emulated paths in virtual time: the real transport, beside rivals and TCP.
///
/// An experiment is a grid of cells (paths, objects, stacks); each cell is run with many seeds. Nothing of it depends
/// on the machine's speed: the same seed gives the same packets, bit for bit.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste lab list                                    the experiments
  posthaste lab describe hs-simple                      what one asks, its grid, what others have published
  posthaste lab run smoke                               the smallest, in seconds
  posthaste lab run hs-simple --seeds 5 --html hs.html  a page to look at, with fewer runs
  posthaste lab run ./mine.toml                         an experiment of your own
  posthaste lab run paper --quick                       every published figure beside ours, in short

Each command explains itself: posthaste lab run --help")]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    List(LabList),
    Describe(LabDescribe),
    Run(LabRun),
}

/// List the experiments.
#[derive(Debug, clap::Args)]
pub(crate) struct LabList {
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what an experiment asks, its grid, how large it is, and what others have published about it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste lab describe hs-simple
  posthaste lab describe ./mine.toml   an experiment of your own: its faults have a line
  posthaste lab describe paper         what becomes of the published figures, and what is run for that")]
pub(crate) struct LabDescribe {
    /// An experiment's name, or a TOML file
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Run experiments and print what came of them.
///
/// Results are kept while it runs. After Ctrl-C, or when a report could not be written, the same command goes on
/// where it ended. A run that does not finish ends at its virtual deadline and is reported as such.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste lab run hs-simple                                      all of it
  posthaste lab run hs-simple --html page.html --json all.json     reports for people and programs
  posthaste lab run hs-simple --cells path=good,stack=cubic        some cells: values of one axis are alternatives
  posthaste lab run hs-simple --cells path=bad --seeds 7..8 --qlog traces --series 10ms
                                                                   one seed, looked at closely
  posthaste lab run paper --markdown all.md --html all.html        all published figures beside ours, judged
  posthaste lab run paper --quick                                  the same with a run or two a cell

The output does not depend on --jobs. Each cell of the reports names the command that repeats it alone.
Results are kept in $XDG_STATE_HOME/posthaste/lab or the like, for this build of the program; old ones are deleted.
Exit code: 0 when all runs came to an end, their deadline included; 1 if a run failed or a report could not be
written; 2 if it is used wrongly; 130 after Ctrl-C.")]
pub(crate) struct LabRun {
    /// Experiments: names, or TOML files; `paper` alone is all that the published figures are judged by
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,

    /// Seeds of each cell: how many (0..N), or which, the last left out [default: as the experiment says]
    #[arg(long, value_name = "N|A..B")]
    pub(crate) seeds: Option<Seeds>,

    /// Runs at a time [default: one a processor]
    #[arg(long, value_name = "COUNT", value_parser = jobs)]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Run these cells only; may be given more than once
    #[arg(long, value_name = "AXIS=VALUE,...")]
    pub(crate) cells: Vec<CellFilter>,

    /// Record window, rate, RTT and queue this often, in the first run of each cell
    #[arg(long, value_name = "INTERVAL", value_parser = interval)]
    pub(crate) series: Option<Duration>,

    /// Write all results to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a self-contained page to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the published figures beside ours to this file (`paper` only)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// As few runs as show that everything works (`paper` only)
    #[arg(long, conflicts_with = "seeds")]
    pub(crate) quick: bool,

    /// Write qlog traces of our connections into this folder, a folder for each run; every run is made again
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Use no results of earlier commands
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Neither progress nor tables, only what went wrong
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Some seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("`{text}` is no seed"));
        let range = match text.split_once("..") {
            Some((first, end)) => number(first)?..number(end)?,
            None => 0..text.trim().parse().map_err(|_| "write how many, or first..end".to_owned())?,
        };
        match range.end.checked_sub(range.start) {
            Some(count) if (1..=MAX_SEEDS).contains(&count) => Ok(Self(range)),
            _ => Err(format!("from 1 to {MAX_SEEDS} seeds are possible")),
        }
    }
}

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let count = text.parse().ok().and_then(NonZeroUsize::new).filter(|count| count.get() <= MAX_JOBS);
    count.ok_or_else(|| format!("from 1 to {MAX_JOBS} are possible"))
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval: Duration =
        text.parse().map_err(|error: posthaste_units::ParseQuantityError| error.to_string())?;
    if (Duration::from_millis(1)..=Duration::from_secs(60)).contains(&interval) {
        Ok(interval)
    } else {
        Err("must be from 1ms to 60s".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_count_or_a_range() {
        assert_eq!("50".parse(), Ok(Seeds(0..50)));
        assert_eq!("7..8".parse(), Ok(Seeds(7..8)));
        for text in ["", "0", "x", "-1", "5..5", "6..5", "..5", "1..", "0..10001", "99999999999999999999"] {
            assert!(text.parse::<Seeds>().is_err(), "{text}");
        }
    }

    #[test]
    fn jobs_and_intervals_have_bounds() {
        assert_eq!(jobs("2").unwrap().get(), 2);
        assert_eq!(interval("10ms"), Ok(Duration::from_millis(10)));
        for text in ["", "0", "-1", "1025", "two"] {
            assert!(jobs(text).is_err(), "{text}");
        }
        for text in ["", "10", "0ms", "1us", "61s"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}

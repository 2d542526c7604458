//! `posthaste lab`.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Subcommand;
use posthaste_lab::experiment::{CellFilter, MAX_SEEDS};
use posthaste_lab::sweep::Shard;
use posthaste_units::Duration;

/// Upper bound of `--jobs`.
const MAX_JOBS: usize = 1024;

/// Measure stacks over emulated paths in virtual time: this transport, quinn, noq and a model of TCP.
///
/// An experiment is a grid of cells (paths, objects, stacks); each cell runs with many seeds. Results do not depend on
/// the machine's speed: the same seed gives the same packets, bit for bit.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste lab list                                    list the experiments
  posthaste lab describe hs-simple                      its question, grid and published results
  posthaste lab run smoke                               the smallest experiment, in seconds
  posthaste lab run hs-simple --seeds 5 --html hs.html  fewer runs, with an HTML page
  posthaste lab run ./mine.toml                         your own experiment
  posthaste lab run paper --quick                       compare with every published figure, with few runs
  posthaste lab run hs-simple --shard 0/4 --journal 0.jsonl
                                                        a quarter of it, for one of four machines
  posthaste lab merge ?.jsonl                           what the four machines have run, as one report

For help on one command: posthaste lab run --help")]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    List(LabList),
    Describe(LabDescribe),
    Run(LabRun),
    Items(LabItems),
    Merge(LabMerge),
}

/// List the experiments.
#[derive(Debug, clap::Args)]
pub(crate) struct LabList {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Describe an experiment: its question, grid, size and published results.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste lab describe hs-simple
  posthaste lab describe ./mine.toml   your own experiment; errors name the line
  posthaste lab describe paper         the published figures and the experiments behind their reproduction")]
pub(crate) struct LabDescribe {
    /// Name of an experiment, or a TOML file
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// Run experiments and print the results.
///
/// Results are saved during the run. After Ctrl-C, or if a report could not be written, the same command continues
/// from there. A run that does not finish ends at its virtual deadline and is reported as unfinished.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste lab run hs-simple                                      the whole experiment
  posthaste lab run hs-simple --html page.html --json all.json     an HTML page and JSON
  posthaste lab run hs-simple --cells path=good,stack=cubic        some cells; repeat an axis for alternatives
  posthaste lab run hs-simple --cells path=bad --seeds 7..8 --qlog traces --series 10ms
                                                                   one seed in detail
  posthaste lab run paper --markdown all.md --html all.html        compare with all published figures
  posthaste lab run paper --quick                                  the same with one or two runs per cell

The output does not depend on --jobs. Each cell of a report names the command that repeats it.
Results are saved in $XDG_STATE_HOME/posthaste/lab or equivalent, per build of the program; old ones are deleted.
Exit code: 0 if all runs ended, at their deadline or before; 1 if a run failed or a report could not be written; 2 for a
usage error; 130 after Ctrl-C.")]
pub(crate) struct LabRun {
    /// Experiments: names, or TOML files; `paper` runs everything that the published figures are compared with
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,

    /// Seeds of each cell: a count N, or a range without its end [default: set by the experiment]
    #[arg(long, value_name = "N|A..B")]
    pub(crate) seeds: Option<Seeds>,

    /// Number of simultaneous runs [default: one per CPU]
    #[arg(long, value_name = "COUNT", value_parser = jobs)]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Run only these cells; may be repeated
    #[arg(long, value_name = "AXIS=VALUE,...")]
    pub(crate) cells: Vec<CellFilter>,

    /// Interval for recording window, rate, RTT and queue in the first run of each cell
    #[arg(long, value_name = "INTERVAL", value_parser = interval)]
    pub(crate) series: Option<Duration>,

    /// Write all results as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a self-contained HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the comparison with the published figures to this file (`paper` only)
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// Make only enough runs to show that everything works (`paper` only)
    #[arg(long, conflicts_with = "seeds")]
    pub(crate) quick: bool,

    /// Write qlog traces of Posthaste's connections to this directory, one folder per run; repeats saved runs
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Ignore saved results
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Make only the runs whose index leaves I when divided by N, as one of N machines (needs --journal)
    #[arg(long, value_name = "I/N", requires = "journal")]
    pub(crate) shard: Option<Shard>,

    /// Save results in this file, for `posthaste lab merge`; a second command continues it
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    /// Print only errors, no progress and no tables
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// List the runs of an experiment, with the index by which --shard shares them out.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste lab items smoke                     all of its runs
  posthaste lab items smoke --shard 1/4 --json  those of one machine out of four, for programs")]
pub(crate) struct LabItems {
    /// Name of an experiment, or a TOML file
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Seeds of each cell: a count N, or a range without its end [default: set by the experiment]
    #[arg(long, value_name = "N|A..B")]
    pub(crate) seeds: Option<Seeds>,

    /// List only these cells; may be repeated
    #[arg(long, value_name = "AXIS=VALUE,...")]
    pub(crate) cells: Vec<CellFilter>,

    /// List only the runs of this shard
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Report what several machines have run, as `posthaste lab run` reports what one has.
///
/// All files must be of the same build, experiment, cells and seeds, and together have all runs; runs that are in
/// several files must be equal.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example, on two machines with the same program, and then on one of them:
  posthaste lab run hs-simple --shard 0/2 --journal 0.jsonl
  posthaste lab run hs-simple --shard 1/2 --journal 1.jsonl
  posthaste lab merge 0.jsonl 1.jsonl --json all.json

The report is, byte for byte, what `posthaste lab run hs-simple --json all.json` writes.
Exit code: 0 if all runs ended; 1 if runs are missing or failed, or a report could not be written; 2 for files that do not
belong together.")]
pub(crate) struct LabMerge {
    /// Files of `posthaste lab run --shard I/N --journal FILE`
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Write all results as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a self-contained HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Print only errors and no tables
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// A range of seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("`{text}` is not a seed"));
        let range = match text.split_once("..") {
            Some((first, end)) => number(first)?..number(end)?,
            None => 0..text.trim().parse().map_err(|_| "expected a count or FIRST..END".to_owned())?,
        };
        match range.end.checked_sub(range.start) {
            Some(count) if (1..=MAX_SEEDS).contains(&count) => Ok(Self(range)),
            _ => Err(format!("must be from 1 to {MAX_SEEDS} seeds")),
        }
    }
}

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    let count = text.parse().ok().and_then(NonZeroUsize::new).filter(|count| count.get() <= MAX_JOBS);
    count.ok_or_else(|| format!("must be from 1 to {MAX_JOBS}"))
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

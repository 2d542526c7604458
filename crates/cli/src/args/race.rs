//! `posthaste race`.

use std::path::PathBuf;
use std::time::Duration;

use posthaste_units::{ByteCount, ParseQuantityError};

use super::report_output::ReportOutput;
use super::seconds;

/// Race profiles: real downloads over emulated mobile paths.
///
/// Each profile gets an HTTP/3 server on loopback. Each run downloads an object over a new connection, through a relay
/// that makes loopback as slow and lossy as the path, and compares every byte. No privileges and no network are needed.
///
/// In each round every profile runs over a path with the same seed, in rotating order. Client and server use the same
/// profile: `mobile` has its code over the ends of streams, and `mobile@code=false` is what a browser gets. A server
/// whose profile uses a history remembers earlier rounds. The result is a table: median, 95th percentile, ratio to the
/// physical limit, and the saving against the baseline with its 95 % confidence interval. The page race.html shows the
/// same with figures.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste race                                    1 MB over an LTE trace and over random loss
  posthaste race --path bad --object 100kB          round trip 188 ms, 8 % loss
  posthaste race --path my.toml --profiles cubic,mine.toml --runs 50
  posthaste race --profiles all --runs 5            every profile, at both ends
  posthaste race --json --no-html > race.json       output for programs

A path file changes a named path, or describes a whole path:
  base = \"average\"
  loss = 0.01

Ctrl-C ends the race and shows the results so far.
Times are real time on this machine, from the client's first packet to the last byte of the body. The lateness of the
emulated path is measured and shown. On a busy machine the results are not valid, and the report warns about it.
Stacks of the lab such as tcp:cubic are models: their runs are computed in virtual time over the same paths.
With --json stdout is one JSON object per path: times in seconds, `null` where nothing was measured.
Exit code: 0 if every run finished, 1 if some did not, 2 for a usage error, 130 after Ctrl-C.")]
pub(crate) struct Race {
    /// Paths, separated by commas: names, or TOML files [names: good, average, bad, lte, wifi, lte-trace, wifi-trace,
    /// lte-tti, wifi-aggregated, wifi-jitter, thin-uplink, 5g-trace, starlink]
    #[arg(long, value_name = "NAME|FILE,...", value_delimiter = ',', default_values = DEFAULT_PATHS)]
    pub(crate) path: Vec<String>,

    /// Size of the downloaded object, such as 100kB or 10MB
    #[arg(long, value_name = "SIZE", default_value = "1MB", value_parser = object_size)]
    pub(crate) object: ByteCount,

    /// Profiles to compare, separated by commas: names from `posthaste profiles`, or TOML files, with parameters if
    /// needed (quicming@min_rate=1mbit). `all` means every profile, `all-server` those that work without support from
    /// the client. Stacks of `posthaste lab`, such as tcp:cubic, are computed
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values = DEFAULT_RACERS)]
    pub(crate) profiles: Vec<String>,

    /// Downloads per profile
    #[arg(long, value_name = "COUNT", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) runs: u64,

    /// Seed of the path in the first round; each later round uses the next
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Use plain QUIC streams with the lab's request and response instead of HTTP/3, to compare with virtual time
    #[arg(long, hide = true)]
    pub(crate) bare: bool,

    /// Profile that the savings are measured against
    /// [default: standard if it takes part, else the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,

    /// Number of simultaneous downloads, each over its own path; more need more CPU
    /// [default: as many as this CPU can run undisturbed, at most 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) parallel: Option<u16>,

    /// Seconds until a download counts as failed
    /// [default: 10 times the expected time, at least 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// File for the HTML page
    #[arg(long, value_name = "FILE", default_value = "race.html")]
    pub(crate) html: PathBuf,

    #[command(flatten)]
    pub(crate) output: ReportOutput,

    /// Write a qlog trace of each connection to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

/// Profiles of a race without `--profiles`.
const DEFAULT_RACERS: [&str; 5] = ["mobile", "cubic", "standard", "tcp:cubic", "tcp:bbr"];

/// Paths of a race without `--path`: a recorded LTE link, and a path with random loss.
const DEFAULT_PATHS: [&str; 2] = ["lte-trace", "average"];

/// Parses a size from one byte to a gigabyte; the object is kept in memory.
fn object_size(text: &str) -> Result<ByteCount, String> {
    let size: ByteCount = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    if (1..=1_000_000_000).contains(&size.get()) {
        Ok(size)
    } else {
        Err("must be from 1B to 1GB".to_owned())
    }
}

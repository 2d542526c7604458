//! `posthaste race`.

use std::path::PathBuf;
use std::time::Duration;

use posthaste_units::{ByteCount, ParseQuantityError};

use super::report_output::ReportOutput;
use super::seconds;
use super::workload::Workload;

/// Race profiles: real downloads over emulated mobile paths.
///
/// Each profile gets an HTTP/3 server on loopback. Each run is a new connection, through a relay that makes loopback as
/// slow and lossy as the path. It downloads one object, or makes one request after another, or plays a video, and
/// compares every byte. No privileges and no network are needed.
///
/// In each round every profile runs over a path with the same seed, in rotating order. Client and server use the same
/// profile: `mobile` has its code over the ends of streams, and `mobile@code=false` is what a browser gets. A server
/// whose profile uses a history remembers earlier rounds. The result is a table: the figures of the workload, the ratio to
/// the physical limit, and the saving against the baseline with its 95 % confidence interval. The page race.html shows
/// the same with figures.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste race                                    1 MB over an LTE trace and over random loss
  posthaste race --path bad --object 100kB          round trip 188 ms, 8 % loss
  posthaste race --path my.toml --profiles cubic,mine.toml --runs 50
  posthaste race --profiles all --runs 5            every profile, at both ends
  posthaste race --workload requests --path lte     20 requests for 20 kB, one after another
  posthaste race --workload video@rate=8mbit,chunks=20 --runs 5
  posthaste race --json --no-html > race.json       output for programs

A path file changes a named path, or describes a whole path:
  base = \"average\"
  loss = 0.01

Workloads, with their settings and defaults, as in the experiments of `posthaste lab`:
  file      object=1MB
            time to the last byte: median and 95th percentile of all runs
  requests  count=20,object=20kB,think=0s
            one request after another, with a pause (think) in between; latency: median and 95th
            percentile of a run's requests, of which the table has the median of all runs
  video     rate=4mbit,chunk=2s,chunks=10,buffer=6s
            a player of one bit rate, which asks for a chunk while its buffer has room; startup:
            until the first chunk is there; stalled: time that playback stood still (mean), and
            its share of the time from startup to the last byte; chunk rate: while chunks came

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

    /// What each run does: file, requests or video, with settings if needed (requests@count=50,object=2kB)
    #[arg(long, value_name = "NAME[@KEY=VALUE,...]", default_value = "file")]
    pub(crate) workload: Workload,

    /// Size of the downloaded object, such as 100kB or 10MB [default: 1MB; requests: 20kB]
    #[arg(long, value_name = "SIZE", value_parser = object_size)]
    pub(crate) object: Option<ByteCount>,

    /// Profiles to compare, separated by commas: names from `posthaste profiles`, or TOML files, with parameters if
    /// needed (quicming@min_rate=1mbit). `all` means every profile, `all-server` those that work without support from
    /// the client. Stacks of `posthaste lab`, such as tcp:cubic, are computed
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values = DEFAULT_RACERS)]
    pub(crate) profiles: Vec<String>,

    /// Runs per profile
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

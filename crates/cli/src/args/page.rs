//! `posthaste page`.

use std::path::PathBuf;
use std::time::Duration;

use super::seconds;
use crate::command::page::Protocol;

/// Load web pages in a real browser over an emulated path, again and again.
///
/// Without a URL it makes one of its own pages, and for each run starts a server, an emulated path in network
/// namespaces of its own, and Chromium behind it. Each run is a cold visit (a new profile) and a warm one (new
/// connections that may go on from the sessions of the first, nothing from the cache). In each round all servers meet
/// a path with the same seed, in an order that rotates.
///
/// The protocol of every response is checked: a run in which something came by another than its server is there for
/// has failed. A run in which the emulator was late is void and made again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste page                                       our profiles, page gr-page, path average
  posthaste page --page news --path bad,lte-trace --runs 20
  posthaste page --profiles all-server                 every profile that does something without its client
  posthaste page --rivals rivals.toml                  beside servers that the file says how to start
  posthaste page https://localhost:4433/ --spki HASH   a server of your own on this machine, on 0.0.0.0 (root)
  posthaste page https://example.org/ --path none --protocols h3,h2     as the network is

A file of rivals has a [[rival]] for each: name, protocol (h3, h2, h1) and command. The shell runs the command for each
run at the far end of the path, in an empty namespace. It must serve the folder $POSTHASTE_SITE on the ports
$POSTHASTE_PORTS (of all addresses) with $POSTHASTE_CERT and $POSTHASTE_KEY, and may write to $POSTHASTE_SCRATCH.
`cargo xtask page-rivals` makes one with nginx, quiche and quic-go.

With --journal every run is kept in a file as soon as it is made; the same command goes on where it was stopped.
Runs in it that another build of posthaste has made, or another text of a path or profile, count with a warning.
Load is the end of the load event, FCP and LCP the first and largest contentful paint, all from the navigation's start.
Needs Linux, Chromium, and for a path what `posthaste emulate` needs. Ctrl-C ends it and shows what there is.
Exit code: 0 if every run has loaded the page, 1 if some did not, 2 if it is used wrongly, 130 after Ctrl-C.")]
pub(crate) struct Page {
    /// Pages of servers that run already, instead of our own
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,

    /// Our own pages, separated by commas: gr-page (100 requests to 3 hosts, 1311 kB), news (59, 2 MB, four deep)
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "gr-page",
        conflicts_with = "urls"
    )]
    pub(crate) page: Vec<String>,

    /// Profiles of `posthaste serve`: names of `posthaste profiles` (`quicming@min_rate=1mbit` for one with a guaranteed
    /// rate), or TOML files; `all-server` are those that a server alone can use, for Chromium has none of them
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "standard,cubic",
        conflicts_with = "urls"
    )]
    pub(crate) profiles: Vec<String>,

    /// Other servers of the same pages
    #[arg(long, value_name = "FILE", conflicts_with = "urls")]
    pub(crate) rivals: Option<PathBuf>,

    /// Only these servers, by the names of the table
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// What pages of URLs must come by
    #[arg(long, value_name = "PROTOCOL,...", value_delimiter = ',', default_value = "h3", requires = "urls")]
    pub(crate) protocols: Vec<Protocol>,

    /// Paths, separated by commas: names or TOML files; none is the network as it is, for URLs only
    /// [names: good, average, bad, lte, wifi, lte-trace, wifi-trace]
    #[arg(long, value_name = "NAME|FILE,...", value_delimiter = ',', default_value = "average")]
    pub(crate) path: Vec<String>,

    /// Runs of each server on each path
    #[arg(long, value_name = "COUNT", default_value = "5", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) runs: u64,

    /// Seed of the first round's paths; each later round takes the next
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Downloads by iperf3 (kernel TCP, CUBIC) beside each run, through the same bottleneck, two seconds ahead
    #[arg(long, value_name = "COUNT", default_value = "0", value_parser = clap::value_parser!(u16).range(..=64))]
    pub(crate) background: u16,

    /// Leave the warm visits out
    #[arg(long)]
    pub(crate) cold_only: bool,

    /// The browser: Chromium by name, or the program
    #[arg(long, value_name = "NAME|FILE", default_value = "chromium")]
    pub(crate) browser: String,

    /// SHA-256 of a public key in base64 whose certificates are to be trusted, as `posthaste serve` prints it
    #[arg(long, value_name = "HASH")]
    pub(crate) spki: Vec<String>,

    /// Runs at a time; more need more of the processor, and disturb each other
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) parallel: u16,

    /// Seconds after which a visit has failed
    #[arg(long, value_name = "SECONDS", default_value = "90", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// Keep every run in this file, and go on with what is in it
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    /// Where the report is written
    #[arg(long, value_name = "FILE", default_value = "page.html")]
    pub(crate) html: PathBuf,

    /// Write no report
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,

    /// Print JSON for programs instead of a table for people
    #[arg(long)]
    pub(crate) json: bool,

    /// Write qlog traces of `posthaste serve` into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Write the browser's own network traces into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) net_log: Option<PathBuf>,
}

/// What runs behind the path.
#[derive(Debug, clap::Args)]
pub(crate) struct PageVisit {
    /// What is to be done, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) order: PathBuf,
}

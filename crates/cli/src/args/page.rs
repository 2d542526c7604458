//! `posthaste page`.

use std::path::PathBuf;
use std::time::Duration;

use super::report_output::ReportOutput;
use super::seconds;
use crate::command::page::Protocol;

/// Measure page loads in Chromium or Firefox over an emulated path.
///
/// Without a URL it builds a test page. Each run starts a server, an emulated path in its own network namespaces, and
/// a browser behind it. Each run is a cold visit (new browser profile) and a warm visit (new connections that may resume
/// sessions, with an empty cache). In each round all servers get a path with the same seed, in rotating order.
///
/// The protocol of every response is checked; a response over another protocol fails the run. A run in which the
/// emulator was late is void and is repeated.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste page                                       mobile and cubic, page gr-page, path average
  posthaste page --page news --path bad,lte-trace --runs 20
  posthaste page --profiles all-server                 every profile that works without client support
  posthaste page --browser firefox --runs 3            the same in Firefox
  posthaste page --rivals rivals.toml                  compare with other servers, started as the file says
  posthaste page https://localhost:4433/ --spki HASH   your own server on this machine, on 0.0.0.0 (root)
  posthaste page https://example.org/ --path none --protocols h3,h2     over the real network

A file of rivals has one [[rival]] per server: name, protocol (h3, h2, h1) and command. For each run a shell runs the
command at the far end of the path, in an empty namespace. The command must serve the directory $POSTHASTE_SITE on the
ports $POSTHASTE_PORTS of all addresses, with $POSTHASTE_CERT and $POSTHASTE_KEY. It may write to $POSTHASTE_SCRATCH.
`cargo campaigns page-rivals` writes such a file with nginx, quiche and quic-go.

With --journal each run is saved to a file when it ends, and the same command continues from there. Saved runs from
another build of posthaste, or with a changed path or profile, are used with a warning.
Load is the end of the load event, FCP and LCP the first and largest contentful paint, all from the start of navigation.
Needs Linux, a browser, and for a path the same as `posthaste emulate`. Ctrl-C ends it and shows the results so far.
Exit code: 0 if every run loaded the page, 1 if some did not, 2 for a usage error, 130 after Ctrl-C.")]
pub(crate) struct Page {
    /// Pages of running servers, instead of the built-in pages
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,

    /// Built-in pages, separated by commas: gr-page (100 requests to 3 hosts, 1311 kB), news (59, 2 MB, four deep)
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "gr-page",
        conflicts_with = "urls"
    )]
    pub(crate) page: Vec<String>,

    /// Profiles of `posthaste serve`: names from `posthaste profiles` (`quicming@min_rate=1mbit` for one with a
    /// guaranteed rate), or TOML files. `all-server` means every profile that works without client support, since
    /// browsers have none
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "mobile,cubic",
        conflicts_with = "urls"
    )]
    pub(crate) profiles: Vec<String>,

    /// File of other servers for the same pages
    #[arg(long, value_name = "FILE", conflicts_with = "urls")]
    pub(crate) rivals: Option<PathBuf>,

    /// Run only these servers, named as in the table
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    /// Required protocols of the URLs
    #[arg(long, value_name = "PROTOCOL,...", value_delimiter = ',', default_value = "h3", requires = "urls")]
    pub(crate) protocols: Vec<Protocol>,

    /// Paths, separated by commas: names or TOML files; `none` is the real network, for URLs only
    /// [names: good, average, bad, lte, wifi, lte-trace, wifi-trace, lte-tti,
    /// wifi-aggregated, wifi-jitter, thin-uplink, 5g-trace, starlink]
    #[arg(long, value_name = "NAME|FILE,...", value_delimiter = ',', default_value = "average")]
    pub(crate) path: Vec<String>,

    /// Runs per server and path
    #[arg(long, value_name = "COUNT", default_value = "5", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) runs: u64,

    /// Seed of the paths in the first round; each later round uses the next
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Background iperf3 downloads (kernel TCP, CUBIC) over the same path, started two seconds before each run
    #[arg(long, value_name = "COUNT", default_value = "0", value_parser = clap::value_parser!(u16).range(..=64))]
    pub(crate) background: u16,

    /// Skip the warm visits
    #[arg(long)]
    pub(crate) cold_only: bool,

    /// Browser: `chromium`, `firefox`, or the file of such a program
    #[arg(long, value_name = "NAME|FILE", default_value = "chromium")]
    pub(crate) browser: String,

    /// Trust certificates with this public key: SHA-256 in base64, as printed by `posthaste serve`
    #[arg(long, value_name = "HASH")]
    pub(crate) spki: Vec<String>,

    /// Number of simultaneous runs; more need more CPU and disturb each other
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) parallel: u16,

    /// Seconds until a visit counts as failed
    #[arg(long, value_name = "SECONDS", default_value = "90", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// Save every run in this file, and continue from its contents
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    /// File for the HTML report
    #[arg(long, value_name = "FILE", default_value = "page.html")]
    pub(crate) html: PathBuf,

    #[command(flatten)]
    pub(crate) output: ReportOutput,

    /// Write qlog traces of `posthaste serve` to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Write the browser's network traces to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) net_log: Option<PathBuf>,
}

/// Arguments of the hidden command that gives `edge prove` a way from the far end of a path to servers outside of it.
#[derive(Debug, clap::Args)]
pub(crate) struct PageRelay {
    /// Congestion control of all connections towards the browser
    #[arg(long, value_name = "NAME")]
    pub(crate) tcp: String,

    /// TCP port whose connections go to --site
    #[arg(long, requires = "site")]
    pub(crate) site_port: Option<u16>,

    /// Unix socket through which the site is reached, or TCP port on this side
    #[arg(long, value_name = "FILE|PORT")]
    pub(crate) site: Option<PathBuf>,

    /// TCP port whose connections go to the socket of --others, with the name from their TLS handshake
    #[arg(long)]
    pub(crate) others_port: u16,

    /// Unix socket through which all other hosts are reached
    #[arg(long, value_name = "FILE")]
    pub(crate) others: PathBuf,
}

/// Arguments of the hidden command that runs behind the path.
#[derive(Debug, clap::Args)]
pub(crate) struct PageVisit {
    /// Instructions, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) order: PathBuf,
}

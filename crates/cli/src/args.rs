//! The command line.
#![expect(clippy::doc_markdown, reason = "these comments are the help's text")]

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use posthaste_units::{ByteCount, ParseQuantityError};

mod emulate;
mod history;
mod lab;
mod page;

pub(crate) use emulate::{Device, Emulate, EmulateInside, Meter};
pub(crate) use history::{History, HistoryCommand, HistoryFile, HistoryPlace};
pub(crate) use lab::{Lab, LabCommand, LabList, LabRun};
pub(crate) use page::{Page, PageVisit};

/// Fast HTTP/3 over poor networks, on a QUIC transport with replaceable policies.
#[derive(Debug, Parser)]
#[command(
    name = "posthaste",
    version,
    about,
    after_help = "\
Examples:
  posthaste race                           race profiles over an emulated path (about a minute)
  posthaste serve ./public                 serve ./public on https://127.0.0.1:4433/
  posthaste get https://host/file -o file  fetch one file, with progress
  posthaste profiles                       list the profiles and what each is for
  posthaste lab run smoke                  measure stacks over emulated paths in virtual time
  posthaste emulate --path lte -- bash     open a shell behind an emulated path
  posthaste page --path lte                load web pages in a browser over an emulated path

Environment:
  RUST_LOG       log filter for stderr, for example RUST_LOG=posthaste_transport=debug
  SSLKEYLOGFILE  append TLS secrets to this file, for Wireshark

For help on one command: posthaste serve --help"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Race(Race),
    Serve(Serve),
    Get(Get),
    Profiles(Profiles),
    History(History),
    Lab(Lab),
    Emulate(Emulate),
    #[command(hide = true)]
    EmulateInside(EmulateInside),
    Page(Page),
    #[command(hide = true)]
    PageVisit(PageVisit),
}

/// Race profiles: real downloads over emulated mobile paths.
///
/// Each profile gets an HTTP/3 server on loopback. Each run downloads an object over a new connection, through a relay
/// that makes loopback as slow and lossy as the path, and compares every byte. No privileges and no network are needed.
///
/// In each round every profile runs over a path with the same seed, in rotating order. Client and server use the same
/// profile. A server whose profile uses a history remembers earlier rounds. The result is a table: median, 95th
/// percentile, ratio to the physical limit, and the saving against the baseline with its 95 % confidence interval. The
/// page race.html shows the same with figures.
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

    /// Do not write a page
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a qlog trace of each connection to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

/// Profiles of a race without `--profiles`.
const DEFAULT_RACERS: [&str; 5] = ["mobile", "cubic", "standard", "tcp:cubic", "tcp:bbr"];

/// Paths of a race without `--path`: a recorded LTE link, and a path with random loss.
const DEFAULT_PATHS: [&str; 2] = ["lte-trace", "average"];

/// Serve the files of a directory over HTTP/3.
///
/// Without --cert and --key, it creates a certificate for localhost, 127.0.0.1 and ::1 and reuses it later. It prints
/// the URL, commands ready to paste, and one line per request: time, client, method, path, status, bytes, duration.
///
/// The first Ctrl-C (or SIGTERM) refuses new requests and lets those in progress finish; the second ends at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste serve ./public
  posthaste serve ./public --listing --listen 127.0.0.1:0   any free port
  posthaste serve . --listen '[::1]:4433'
  posthaste serve /srv/www --listen 0.0.0.0:443 --cert fullchain.pem --key privkey.pem
  posthaste serve . --profile cubic-iw32 --qlog ./traces
  posthaste serve . --profile quicming@min_rate=1mbit       on a network that guarantees this rate
  posthaste serve . --profile history                       returning clients resume near their previous rate

Only files inside DIR are served: no `..`, no symbolic links that lead outside, no devices, no names that begin with a
dot. The server's own secrets (--state, --qlog, --key) may not be among them.
With --json stdout is one JSON object per line: `listening`, one `request` each, and finally `stopped`.
Logs and errors go to stderr. Exit code: 0 when stopped, 1 if it cannot run, 2 for a usage error.")]
pub(crate) struct Serve {
    /// Directory to serve
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Address and UDP port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4433")]
    pub(crate) listen: SocketAddr,

    /// Certificate chain in PEM, the server's own certificate first
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// List the contents of directories without index.html
    #[arg(long)]
    pub(crate) listing: bool,

    /// Also serve files and directories whose names begin with a dot (.git, .env); /.well-known is always served
    #[arg(long)]
    pub(crate) hidden: bool,

    /// Profile, the bundle of policies to use: a name from `posthaste profiles`, or a TOML file; parameters may follow
    /// (NAME@key=value,...)
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) profile: String,

    /// Directory for state kept between runs: certificate, secret, sessions, history
    /// [default: $XDG_STATE_HOME/posthaste or equivalent]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Where to keep path histories, for profiles that use them (history, history-paper)
    /// [default: store with such a profile, else none]
    #[arg(long, value_name = "WHERE")]
    pub(crate) history: Option<HistoryPlace>,

    /// When to make new clients prove their address first (Retry), which costs them a round trip
    #[arg(long, value_name = "WHEN", default_value = "under-load")]
    pub(crate) retry: Retry,

    /// Accept only this cipher [default: the best that both support]
    #[arg(long, value_name = "NAME")]
    pub(crate) cipher: Option<Cipher>,

    /// Limit on received data that is not yet read, over all clients; also allows one connection per 32 KiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory_budget)]
    pub(crate) receive_budget: ByteCount,

    /// Limit on sent data that is not yet acknowledged, over all clients, in addition to 64 KiB per connection
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory_budget)]
    pub(crate) send_budget: ByteCount,

    /// Write a qlog trace of each connection to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Seconds without a sign of life after which a connection is given up; the lesser of both ends' values holds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) idle_timeout: Duration,

    /// Seconds for requests in progress to finish after the first Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) grace: Duration,

    /// Print JSON lines instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Largest UDP payload to send
    #[arg(long, value_name = "BYTES", hide = true, value_parser = clap::value_parser!(u16).range(1200..=65_527))]
    pub(crate) max_datagram_size: Option<u16>,

    /// Packets sent with one key at most; the key is updated at half of them
    #[arg(long, value_name = "PACKETS", hide = true, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) key_limit: Option<u64>,
}

/// When a server sends a Retry. Clients with a token from an earlier connection need none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Retry {
    /// To every client without a token
    Always,
    /// Only while more than 1,024 handshakes are in progress
    UnderLoad,
    /// Never
    Never,
}

/// A cipher of TLS 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cipher {
    /// TLS_AES_128_GCM_SHA256
    Aes128,
    /// TLS_AES_256_GCM_SHA384
    Aes256,
    /// TLS_CHACHA20_POLY1305_SHA256, the fastest on CPUs without AES instructions
    Chacha20,
}

impl From<Cipher> for posthaste_endpoint::tls::Cipher {
    fn from(cipher: Cipher) -> Self {
        match cipher {
            Cipher::Aes128 => Self::Aes128Gcm,
            Cipher::Aes256 => Self::Aes256Gcm,
            Cipher::Chacha20 => Self::ChaCha20Poly1305,
        }
    }
}

/// A version of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QuicVersion {
    /// RFC 9000, supported by every server
    #[value(name = "1")]
    One,
    /// RFC 9369: the same protocol with other constants, for networks that interfere with version 1
    #[value(name = "2")]
    Two,
}

/// Fetch files over HTTP/3.
///
/// All URLs of one server share a connection and are fetched in parallel. A file appears under its name only when it is
/// complete: a failed or interrupted transfer leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste get https://host/file                       to stdout
  posthaste get https://host/file -o file               to a file, with progress on a terminal
  posthaste get https://host/a https://host/b -O ./in   to ./in/a and ./in/b
  posthaste get --ca cert.pem https://127.0.0.1:4433/   from a server with a private certificate
  posthaste get --json https://host/file                measure only: bodies are counted and discarded
  posthaste get --connections 3 https://host/big -o big one file in parts, over three connections

--json prints one object at the end. Each URL has its status, bytes, and the seconds from request to first byte and to
the end. Each connection has its handshake time, round-trip times, packets sent and lost, and the final congestion
window. Without -o or -O, --json discards the bodies.

--connections fetches each file in byte ranges over several connections, if the server coordinates them as one sender
(profiles mquic-*); together they then take the share of one connection. A connection that finishes takes half of
another's remaining range; if a connection fails, the others fetch its range. It needs -o or -O, because parts arrive
out of order. Files below 512 KiB, and servers without ranges, validators or groups, get one connection; a note gives
the reason. --ungrouped uses several connections with any server: each then takes the share of one download.
Exit code: 0 if everything arrived with a 2xx status, 1 if something did not, 2 for a usage error.")]
pub(crate) struct Get {
    /// URLs to fetch, https only
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    /// Write to this file (`-` is stdout); for a single URL
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with = "output_directory")]
    pub(crate) output: Option<PathBuf>,

    /// Write into this directory; each file is named after the last part of its URL's path
    #[arg(short = 'O', long, value_name = "DIR")]
    pub(crate) output_directory: Option<PathBuf>,

    /// Profile, the bundle of policies to use: a name from `posthaste profiles`, or a TOML file; parameters may follow
    /// (NAME@key=value,...)
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) profile: String,

    /// Trust the certificates in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<PathBuf>,

    /// Accept any certificate: an attacker on the path can then read and change everything
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Print measurements as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,

    /// Directory for address tokens, which speed up the next run [default: nothing is kept]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Write a qlog trace of each connection to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// QUIC version of the first packet; servers without this version cannot be reached
    #[arg(long, value_name = "VERSION", default_value = "1")]
    pub(crate) quic_version: QuicVersion,

    /// Accept only this cipher [default: the best that both support]
    #[arg(long, value_name = "NAME")]
    pub(crate) cipher: Option<Cipher>,

    /// Fetch everything N times over fresh connections; later rounds resume earlier sessions (0-RTT). Only the last
    /// round's bodies are written
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeat: u16,

    /// Connections per file, 1 to 16 (see below)
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) connections: u16,

    /// Use several connections even if the server does not coordinate them
    #[arg(long, requires = "connections")]
    pub(crate) ungrouped: bool,

    /// Number of simultaneous transfers
    #[arg(long, value_name = "COUNT", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) parallel: u16,

    /// Seconds without progress until a transfer is abandoned
    /// [default: 10 to connect, 30 while waiting for a response or its next bytes]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Redirects to follow at most
    #[arg(long, value_name = "COUNT", default_value = "10")]
    pub(crate) max_redirects: usize,

    /// Largest UDP payload to send
    #[arg(long, value_name = "BYTES", hide = true, value_parser = clap::value_parser!(u16).range(1200..=65_527))]
    pub(crate) max_datagram_size: Option<u16>,

    /// Packets sent with one key at most; the key is updated at half of them
    #[arg(long, value_name = "PACKETS", hide = true, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) key_limit: Option<u64>,

    /// Move to another socket once, after this many bytes of bodies
    #[arg(long, value_name = "BYTES", hide = true)]
    pub(crate) move_after: Option<u64>,

    /// Close the second connection once, after this many bytes of bodies
    #[arg(long, value_name = "BYTES", hide = true)]
    pub(crate) drop_after: Option<u64>,

    /// Local address of that socket
    #[arg(long, value_name = "ADDRESS", hide = true, requires = "move_after", default_value = "0.0.0.0")]
    pub(crate) move_to: IpAddr,
}

/// List the profiles, or show the policies and constants of one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste profiles              the profiles, and what each is for
  posthaste profiles cubic        its policies: claims, benefits and limits
  posthaste profiles ./mine.toml  the same for your own profile")]
pub(crate) struct Profiles {
    /// Name of a profile, or a TOML file
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a size from one byte to a gigabyte; the object is kept in memory.
fn object_size(text: &str) -> Result<ByteCount, String> {
    let size: ByteCount = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    if (1..=1_000_000_000).contains(&size.get()) {
        Ok(size)
    } else {
        Err("must be from 1B to 1GB".to_owned())
    }
}

/// Parses a size from a mebibyte to a tebibyte.
fn memory_budget(text: &str) -> Result<ByteCount, String> {
    let size: ByteCount = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    if (1 << 20..=1 << 40).contains(&size.get()) {
        Ok(size)
    } else {
        Err("must be from 1MiB to 1TiB".to_owned())
    }
}

/// Parses a time from a millisecond to a day.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.001..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be from 0.001 to 86400 seconds".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn seconds_have_bounds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "x", "-1", "0", "NaN", "inf", "1e99"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}

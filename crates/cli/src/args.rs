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

/// Fast HTTP/3 over poor paths, on a QUIC transport whose decisions about speed are replaceable.
#[derive(Debug, Parser)]
#[command(
    name = "posthaste",
    version,
    about,
    after_help = "\
Examples:
  posthaste race                           the profiles against each other, over an emulated path: about a minute
  posthaste serve ./public                 files of ./public on https://127.0.0.1:4433/
  posthaste get https://host/file -o file  fetch one file, with progress
  posthaste profiles                       what decides about speed, and which to choose
  posthaste lab run smoke                  measure stacks over emulated paths in virtual time
  posthaste emulate --path lte -- bash     a shell behind an emulated path
  posthaste page --path lte                web pages in Chromium, over such a path

Environment:
  RUST_LOG       what is logged on stderr, for example RUST_LOG=posthaste_transport=debug
  SSLKEYLOGFILE  file that the connections' secrets are appended to, for Wireshark

Each command explains itself: posthaste serve --help"
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

/// Race profiles against each other: real downloads over emulated mobile paths.
///
/// For each profile it starts an HTTP/3 server on loopback and fetches an object from it again and again, each time
/// over a new connection, through a relay that makes loopback as slow and lossy as the path. Every byte is
/// compared. It needs no privileges and touches no network.
///
/// In each round all profiles meet a path with the same seed, in an order that rotates. Both ends have the profile, and a
/// server whose profile makes use of a history remembers earlier rounds. It ends with a table: median,
/// 95th percentile, how many times the physical limit that is, and what is saved against the baseline with its 95 %
/// confidence interval. The page race.html shows the same with figures.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste race                                    1 MB over an LTE trace and over random loss
  posthaste race --path bad --object 100kB          188 ms and 8 % loss
  posthaste race --path my.toml --profiles cubic,mine.toml --runs 50
  posthaste race --profiles all --runs 5            every profile, with clients that have it too
  posthaste race --json --no-html > race.json       for programs

A path file says what differs from a named path, or all of it:
  base = \"average\"
  loss = 0.01

Ctrl-C ends the race and shows what was measured until then.
Times are real time on this machine, from the client's first packet to the last byte of the body. How late packets
left the emulated path is measured and shown: a busy machine makes a race worthless, and it says so.
Stacks of the lab such as tcp:cubic are models: their runs are computed in virtual time, over the same paths.
With --json stdout is one JSON object per path: times in seconds, a `null` where nothing was measured.
Exit code: 0 if every run finished, 1 if some did not, 2 if it is used wrongly, 130 after Ctrl-C.")]
pub(crate) struct Race {
    /// Paths, separated by commas: names, or TOML files [names: good, average, bad, lte, wifi, lte-trace, wifi-trace]
    #[arg(long, value_name = "NAME|FILE,...", value_delimiter = ',', default_values = DEFAULT_PATHS)]
    pub(crate) path: Vec<String>,

    /// Size of the object that is fetched, such as 100kB or 10MB
    #[arg(long, value_name = "SIZE", default_value = "1MB", value_parser = object_size)]
    pub(crate) object: ByteCount,

    /// What to compare, separated by commas: names of `posthaste profiles`, or TOML files, each with parameters if
    /// need be (quicming@min_rate=1mbit); `all` are all of them, `all-server` those that a server alone can use;
    /// stacks of `posthaste lab`, such as tcp:cubic, are computed
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_values = DEFAULT_RACERS)]
    pub(crate) profiles: Vec<String>,

    /// Downloads of each profile
    #[arg(long, value_name = "COUNT", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) runs: u64,

    /// Seed of the first round's path; each later round takes the next
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Plain QUIC streams with the lab's request and response instead of HTTP/3: what virtual time is checked with
    #[arg(long, hide = true)]
    pub(crate) bare: bool,

    /// The profile that savings are counted against
    /// [default: standard if it takes part, else the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,

    /// Downloads at a time, each over a path of its own; more need more of the processor
    /// [default: what the processor carries unnoticed, up to 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) parallel: Option<u16>,

    /// Seconds after which a download has failed
    /// [default: 10 times what is expected, at least 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Where the page is written
    #[arg(long, value_name = "FILE", default_value = "race.html")]
    pub(crate) html: PathBuf,

    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,

    /// Print JSON for programs instead of a table for people
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a qlog trace of each connection into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

/// Who races unless told otherwise, the most interesting first.
const DEFAULT_RACERS: [&str; 4] = ["bbr", "cubic", "standard", "tcp:cubic"];

/// Where, unless told otherwise: a recorded LTE link, and a path that loses packets at random.
const DEFAULT_PATHS: [&str; 2] = ["lte-trace", "average"];

/// Serve the files below a directory over HTTP/3.
///
/// Without --cert and --key it makes a certificate for localhost, 127.0.0.1 and ::1, and keeps it for the next time.
/// It prints the URL and commands that are ready to paste; then one line a request: time, client, method, path,
/// status, bytes, duration.
///
/// The first Ctrl-C (or SIGTERM) stops taking requests and lets those in progress finish; the second ends at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste serve ./public
  posthaste serve ./public --listing --listen 127.0.0.1:0   any free port
  posthaste serve . --listen '[::1]:4433'
  posthaste serve /srv/www --listen 0.0.0.0:443 --cert fullchain.pem --key privkey.pem
  posthaste serve . --profile cubic-iw32 --qlog ./traces
  posthaste serve . --profile quicming@min_rate=1mbit       on a network that guarantees this rate
  posthaste serve . --profile history                       who comes back starts at speed

Nothing outside DIR can be reached: no `..`, no links that lead out, no devices.
With --json stdout is one JSON object a line: `listening`, then `request` for each, at last `stopped`.
Logs and errors go to stderr. Exit code: 0 when stopped, 1 if it cannot run, 2 if it is used wrongly.")]
pub(crate) struct Serve {
    /// The directory to serve
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Address and UDP port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4433")]
    pub(crate) listen: SocketAddr,

    /// Certificate chain, PEM, the server's own first
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// The certificate's private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// Show a listing for directories that have no index.html
    #[arg(long)]
    pub(crate) listing: bool,

    /// What decides about speed: a name of `posthaste profiles`, or a TOML file; parameters may follow
    /// (NAME@key=value,...)
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) profile: String,

    /// Folder for what is kept between runs: certificate, secret, sessions, history
    /// [default: $XDG_STATE_HOME/posthaste or the like]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Where to keep what is learnt of clients' paths, for profiles that make use of it (history, history-paper)
    /// [default: store with such a profile, else none]
    #[arg(long, value_name = "WHERE")]
    pub(crate) history: Option<HistoryPlace>,

    /// When a new client must show first that it receives at its address, which costs it a round trip
    #[arg(long, value_name = "WHEN", default_value = "under-load")]
    pub(crate) retry: Retry,

    /// Agree on this cipher with clients, or refuse them [default: what both like best]
    #[arg(long, value_name = "NAME")]
    pub(crate) cipher: Option<Cipher>,

    /// What all clients together may send without its having been read; bounds connections too, at one for each 32 KiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = receive_budget)]
    pub(crate) receive_budget: ByteCount,

    /// Write a qlog trace of each connection into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Seconds that requests in progress get to finish after the first Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) grace: Duration,

    /// Print JSON lines for programs instead of text for people
    #[arg(long)]
    pub(crate) json: bool,

    /// Size of the largest UDP payloads sent
    #[arg(long, value_name = "BYTES", hide = true, value_parser = clap::value_parser!(u16).range(1200..=65_527))]
    pub(crate) max_datagram_size: Option<u16>,

    /// Packets that may be sent with one key, which is updated at half of it
    #[arg(long, value_name = "PACKETS", hide = true, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) key_limit: Option<u64>,
}

/// When a server sends a Retry. Clients that bring a token of an earlier connection are spared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Retry {
    /// To every client that brings no token
    Always,
    /// Only while more than 1,024 handshakes are in progress
    UnderLoad,
    /// To none
    Never,
}

/// A cipher of TLS 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cipher {
    /// TLS_AES_128_GCM_SHA256
    Aes128,
    /// TLS_AES_256_GCM_SHA384
    Aes256,
    /// TLS_CHACHA20_POLY1305_SHA256, the fastest where the processor has no instructions for AES
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
    /// RFC 9000, which every server speaks
    #[value(name = "1")]
    One,
    /// RFC 9369: the same under other numbers and keys, for networks that meddle with version 1
    #[value(name = "2")]
    Two,
}

/// Fetch files over HTTP/3.
///
/// All URLs of one server share one connection and are fetched in parallel. A file appears under its name only when
/// it is whole: a transfer that fails or is interrupted leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste get https://host/file                       to stdout
  posthaste get https://host/file -o file               to a file, with progress on a terminal
  posthaste get https://host/a https://host/b -O ./in   as ./in/a and ./in/b
  posthaste get --ca cert.pem https://127.0.0.1:4433/   a server with a certificate of its own
  posthaste get --json https://host/file                measure only: the bytes are counted and dropped
  posthaste get --connections 3 https://host/big -o big one file over three connections, in parts

--json prints to stdout, when all is over: for each URL its status, bytes and times in seconds since it was
asked for (first byte, total); for each connection the handshake's time, round-trip times, packets sent and lost,
and the congestion window at the end. Without -o or -O the bodies are then dropped.

--connections fetches each file in byte ranges over several connections, if its server coordinates them as one sender
(profiles mquic-*), so that they take no more of the path than one. A connection that is done takes half of what
another has left; what one that is lost had to bring, the others do. It needs -o or -O: parts come in no order. Files
below 512 KiB get one connection, and so do servers without ranges, validators or groups: a note then says why.
--ungrouped makes them at any server: they then take the share of so many downloads, from others too.
Exit code: 0 if everything arrived with a 2xx status, 1 if something did not, 2 if it is used wrongly.")]
pub(crate) struct Get {
    /// What to fetch, https only
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    /// Write to this file (`-` is stdout); for one URL
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with = "output_directory")]
    pub(crate) output: Option<PathBuf>,

    /// Write into this folder, each file under the last part of its URL's path
    #[arg(short = 'O', long, value_name = "DIR")]
    pub(crate) output_directory: Option<PathBuf>,

    /// What decides about speed: a name of `posthaste profiles`, or a TOML file; parameters may follow
    /// (NAME@key=value,...)
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) profile: String,

    /// Trust the certificates of this PEM file, instead of those that the system trusts
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<PathBuf>,

    /// Accept any certificate: whoever is on the path can read and change everything
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Print what was measured as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,

    /// Folder for what servers gave that speeds up the next run: address tokens [default: nothing is kept]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Write a qlog trace of each connection into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// The version of QUIC to begin with; a server that does not speak it cannot be reached
    #[arg(long, value_name = "VERSION", default_value = "1")]
    pub(crate) quic_version: QuicVersion,

    /// Agree on this cipher with the server, or fail [default: what both like best]
    #[arg(long, value_name = "NAME")]
    pub(crate) cipher: Option<Cipher>,

    /// Fetch everything so many times, each time over new connections: the later ones go on from the sessions of the
    /// earlier and ask with their first packets (0-RTT). What is written is what the last time brought
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeat: u16,

    /// Fetch each file over so many connections of its server, 1 to 16 (see below)
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) connections: u16,

    /// Use several connections also where the server does not coordinate them
    #[arg(long, requires = "connections")]
    pub(crate) ungrouped: bool,

    /// Transfers at a time
    #[arg(long, value_name = "COUNT", default_value = "64", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) parallel: u16,

    /// Give up when nothing happens for so many seconds
    /// [default: 10 to connect, 30 for a response to begin or to go on]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Redirects that are followed
    #[arg(long, value_name = "COUNT", default_value = "10")]
    pub(crate) max_redirects: usize,

    /// Size of the largest UDP payloads sent
    #[arg(long, value_name = "BYTES", hide = true, value_parser = clap::value_parser!(u16).range(1200..=65_527))]
    pub(crate) max_datagram_size: Option<u16>,

    /// Packets that may be sent with one key, which is updated at half of it
    #[arg(long, value_name = "PACKETS", hide = true, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) key_limit: Option<u64>,

    /// Move to another socket once, when so many bytes of bodies have arrived
    #[arg(long, value_name = "BYTES", hide = true)]
    pub(crate) move_after: Option<u64>,

    /// Close the second connection once, when so many bytes of bodies have arrived
    #[arg(long, value_name = "BYTES", hide = true)]
    pub(crate) drop_after: Option<u64>,

    /// Local address of that socket
    #[arg(long, value_name = "ADDRESS", hide = true, requires = "move_after", default_value = "0.0.0.0")]
    pub(crate) move_to: IpAddr,
}

/// Show what decides about speed: the profiles, or the policies and constants of one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste profiles              the profiles, and what each is for
  posthaste profiles cubic        its policies: what they claim, when they help and when they break
  posthaste profiles ./mine.toml  the same of a profile of your own")]
pub(crate) struct Profiles {
    /// A profile's name, or a TOML file
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// A size from one byte to a gigabyte: the object is kept in memory.
fn object_size(text: &str) -> Result<ByteCount, String> {
    let size: ByteCount = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    if (1..=1_000_000_000).contains(&size.get()) {
        Ok(size)
    } else {
        Err("must be from 1B to 1GB".to_owned())
    }
}

/// A size from a mebibyte to a tebibyte.
fn receive_budget(text: &str) -> Result<ByteCount, String> {
    let size: ByteCount = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    if (1 << 20..=1 << 40).contains(&size.get()) {
        Ok(size)
    } else {
        Err("must be from 1MiB to 1TiB".to_owned())
    }
}

/// A time from a millisecond to a day.
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

//! `posthaste get`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use http::Method;
use posthaste_units::{ParseQuantityError, Rate};

use super::{Cipher, seconds};

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

/// How many connections a file is fetched over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connections {
    /// As many as make it faster.
    Auto,
    /// What the user says.
    Fixed(u16),
}

impl Connections {
    /// The most that there may be.
    pub(crate) fn most(self) -> usize {
        match self {
            Self::Auto => posthaste_http::client::MAX_CONNECTIONS,
            Self::Fixed(count) => usize::from(count),
        }
    }
}

fn connections(text: &str) -> Result<Connections, String> {
    if text == "auto" {
        return Ok(Connections::Auto);
    }
    let count = text.parse().ok().filter(|count| (1..=16).contains(count));
    count.map(Connections::Fixed).ok_or_else(|| "must be from 1 to 16, or `auto`".to_owned())
}

/// The rate that the client's network guarantees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuaranteedRate {
    /// The speed of the network interface.
    Interface,
    /// What the user says.
    Given(Rate),
}

fn guaranteed_rate(text: &str) -> Result<GuaranteedRate, String> {
    if text == "auto" {
        return Ok(GuaranteedRate::Interface);
    }
    super::guaranteed_rate(text).map(GuaranteedRate::Given).map_err(|error| format!("{error}, or `auto`"))
}

/// What the user knows of the link by which data arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathHint {
    /// Its rate.
    pub(crate) rate: Rate,
    /// Round-trip time of the path.
    pub(crate) round_trip: Option<Duration>,
}

/// Longest round-trip time of a hint.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(60);

fn path_hint(text: &str) -> Result<PathHint, String> {
    let (rate, round_trip) =
        text.split_once(',').map_or((text, None), |(rate, round_trip)| (rate, Some(round_trip)));
    let rate: Rate = rate.trim().parse().map_err(|error: ParseQuantityError| error.to_string())?;
    if !(10_000..=100_000_000_000).contains(&rate.as_bits_per_second()) {
        return Err("the rate must be from 10kbit to 100Gbit".to_owned());
    }
    let parse = |text: &str| -> Result<Duration, String> {
        let time: posthaste_units::Duration =
            text.trim().parse().map_err(|error: ParseQuantityError| error.to_string())?;
        let time = Duration::from(time);
        let is_right = !time.is_zero() && time <= MAX_ROUND_TRIP;
        if is_right {
            Ok(time)
        } else {
            Err("the round-trip time must be above 0 and at most 60s".to_owned())
        }
    };
    Ok(PathHint { rate, round_trip: round_trip.map(parse).transpose()? })
}

/// A method whose requests carry a file.
fn method(text: &str) -> Result<Method, String> {
    let known = [Method::PUT, Method::POST, Method::PATCH];
    let method = known.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text));
    method.ok_or_else(|| "must be PUT, POST or PATCH".to_owned())
}

/// Fetch files over HTTP/3, or send one.
///
/// All URLs of one server share a connection and are fetched in parallel. A file appears under its name only when it is
/// complete: a failed or interrupted transfer leaves nothing behind, unless --continue keeps it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste get https://host/file                       to stdout
  posthaste get https://host/file -o file               to a file, with progress on a terminal
  posthaste get https://host/a https://host/b -O ./in   to ./in/a and ./in/b
  posthaste get --ca cert.pem https://127.0.0.1:4433/   from a server with a private certificate
  posthaste get --json https://host/file                measure only: bodies are counted and discarded
  posthaste get --upload file https://host/in/file      send a file (PUT), the answer to stdout
  posthaste get --path-hint 200mbit,600ms https://host/ over a link of a known rate
  posthaste get --connections 3 https://host/big -o big one file in parts, over three connections

--json prints one object at the end. Each URL has its status, bytes, and the seconds from request to first byte and to
the end. Each connection has its handshake time, round-trip times, packets sent and lost, and the final congestion
window. Without -o or -O, --json discards the bodies.

--connections fetches each file in byte ranges over several connections, if the server coordinates them as one sender
(profiles mquic-*); together they then take the share of one connection. A connection that finishes takes half of
another's remaining range; if a connection fails, the others fetch its range. It needs -o or -O, because parts arrive
out of order. `auto` begins with one connection and doubles their number, up to 8, while that makes the file arrive
faster by 30 % and enough of it is left. For an hour, later files of the same server begin with the number that was
worth it for their size, with --state DIR also in later runs. Files below 512 KiB, and servers without ranges,
validators or groups, get one connection; a note gives the reason. --ungrouped uses several connections with any server:
each then takes the share of one download.

--upload reads the file as the server takes it. The upload is complete if the server answers with a 2xx status and has
taken all of it; an answer with an error ends it at once, and redirects are not followed. With a profile that uses a
history (mobile@history=true), uploads start near the rate that the path to the server had: with --repeat, or with
--state DIR also in later runs. --json has the bytes sent in `uploaded_bytes`.
Exit code: 0 if everything arrived with a 2xx status, 1 if something did not, 2 for a usage error.")]
#[expect(clippy::struct_excessive_bools, reason = "independent options, each of which is on or off")]
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

    /// Send this file (`-` is stdin) to the URL; the answer goes where a fetched file would
    #[arg(long, value_name = "FILE", conflicts_with_all = ["connections", "resume", "fallback"])]
    pub(crate) upload: Option<PathBuf>,

    /// Method of the upload: PUT, POST or PATCH
    #[arg(long, value_name = "METHOD", default_value = "PUT", value_parser = method, requires = "upload")]
    pub(crate) method: Method,

    /// Keep incomplete files, and continue those of earlier runs; a file that has changed is fetched anew
    #[arg(long = "continue", conflicts_with_all = ["connections", "repeat"])]
    pub(crate) resume: bool,

    /// Profile, the bundle of policies to use: a name from `posthaste profiles`, or a TOML file; parameters may follow
    /// (NAME@key=value,...)
    #[arg(long, value_name = "NAME", default_value = "mobile")]
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

    /// Fetch over TCP (HTTP/2 or HTTP/1.1) where HTTP/3 does not answer within 250 ms or cannot be had; --json says which
    #[arg(long, conflicts_with_all = ["connections", "resume"])]
    pub(crate) fallback: bool,

    /// Directory for address tokens, which speed up the next run, and for what uploads and `--connections auto` have
    /// learnt of their paths [default: nothing is kept]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// State this rate, which the network guarantees (10 kbit/s to 100 Gbit/s), to servers that permit it; `auto` takes
    /// the speed of the network interface [default: nothing is stated]
    #[arg(long, value_name = "RATE", value_parser = guaranteed_rate)]
    pub(crate) guaranteed_rate: Option<GuaranteedRate>,

    /// Rate of the link by which data arrive, and the path's round-trip time (measured unless given): receive windows
    /// start at what the link carries in two round trips instead of finding it out, 64 MiB at most
    #[arg(long, value_name = "RATE[,RTT]", value_parser = path_hint)]
    pub(crate) path_hint: Option<PathHint>,

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

    /// Connections per file, 1 to 16, or `auto` for as many as make it faster (see below)
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = connections)]
    pub(crate) connections: Connections,

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_rate_and_perhaps_a_round_trip_time() {
        let rate = Rate::from_bits_per_second(200_000_000);
        assert_eq!(path_hint("200mbit"), Ok(PathHint { rate, round_trip: None }));
        let round_trip = Some(Duration::from_millis(600));
        assert_eq!(path_hint("200mbit, 600ms"), Ok(PathHint { rate, round_trip }));
        for (text, expected) in [
            ("0bit", "from 10kbit"),
            ("1000gbit", "from 10kbit"),
            ("fast", ""),
            ("200mbit,0ms", "above 0"),
            ("200mbit,61s", "at most 60s"),
            ("200mbit,", ""),
            (",600ms", ""),
        ] {
            let error = path_hint(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn only_methods_with_a_body_send_a_file() {
        assert_eq!(method("post"), Ok(Method::POST));
        assert!(method("GET").is_err_and(|error| error.contains("PUT, POST or PATCH")));
    }
}

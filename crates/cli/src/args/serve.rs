//! `posthaste serve`.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use posthaste_units::{ByteCount, ParseQuantityError, Rate};

use super::{HistoryPlace, seconds};

/// Serve the files of a directory over HTTP/3.
///
/// Without --cert and --key, it creates a certificate for localhost, 127.0.0.1 and ::1 and reuses it later. It prints
/// the URL, commands ready to paste, and one line per request: time, client, method, path, status, bytes, duration.
///
/// The first Ctrl-C (or SIGTERM) refuses new requests and lets those in progress finish; the second cuts them off and
/// tells their clients; the third ends at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste serve ./public
  posthaste serve ./public --listing --listen 127.0.0.1:0   any free port
  posthaste serve . --listen '[::1]:4433'
  posthaste serve /srv/www --listen 0.0.0.0:443 --cert fullchain.pem --key privkey.pem
  posthaste serve . --profile cubic-iw32 --qlog ./traces
  posthaste serve . --profile quicming@min_rate=1mbit       on a network that guarantees this rate
  posthaste serve . --profile quicming --guaranteed-rate-max 5mbit  where clients know what is guaranteed
  posthaste serve . --workers auto                          on all cores
  posthaste serve . --profile history                       returning clients resume near their previous rate

Only files inside DIR are served: no `..`, no symbolic links that lead outside, no devices, no names that begin with a
dot. The server's own secrets (--state, --qlog, --key) may not be among them.
With --json stdout is one JSON object per line: `listening`, one `request` each, and finally `stopped`. With
--no-access-log there is no `request`. Logs and errors go to stderr.
Exit code: 0 when stopped, 1 if it cannot run, 2 for a usage error.")]
#[expect(clippy::struct_excessive_bools, reason = "independent options, each of which is on or off")]
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
    #[arg(long, value_name = "NAME", default_value = "mobile@history=true")]
    pub(crate) profile: String,

    /// Grant clients the guaranteed rate that they state, up to this one for all connections of a client's address, with
    /// a profile that has one (quicming) [default: what clients state is ignored]
    #[arg(long, value_name = "RATE", value_parser = super::guaranteed_rate)]
    pub(crate) guaranteed_rate_max: Option<Rate>,

    /// Directory for state kept between runs: certificate, secret, sessions, history
    /// [default: $XDG_STATE_HOME/posthaste or equivalent]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Where to keep path histories, for profiles that use them (mobile@history=true, history, history-paper)
    /// [default: store with --state, else memory]
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

    /// Threads that serve, each with connections of its own: a number, or `auto` for one per core. More than one needs Linux
    #[arg(long, value_name = "N", default_value = "1", value_parser = workers)]
    pub(crate) workers: NonZeroU16,

    /// Print no line per request
    #[arg(long)]
    pub(crate) no_access_log: bool,

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

/// Parses a number of threads from 1 to 1,024, or `auto`.
fn workers(text: &str) -> Result<NonZeroU16, String> {
    if text == "auto" {
        let cores = std::thread::available_parallelism();
        let cores =
            cores.map_err(|error| format!("the number of cores is unknown ({error}): give a number"))?;
        return Ok(u16::try_from(cores.get()).ok().and_then(NonZeroU16::new).unwrap_or(NonZeroU16::MIN));
    }
    let number = text.parse().ok().filter(|number: &NonZeroU16| number.get() <= 1024);
    number.ok_or_else(|| "must be from 1 to 1024, or `auto`".to_owned())
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

//! `posthaste edge`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use posthaste_edge::{TlsVersion, Workers};

#[cfg(feature = "page")]
use super::EdgeProve;
use super::seconds;

/// Serve an existing site over HTTP/3: next to its server, or as the whole front of an application.
///
/// With --beside, the site's server keeps TCP port 443 and everything else; this command takes UDP port 443 only, and has
/// each request answered by that server. If it stops, browsers go on over TCP. With --to, it takes TCP and UDP port 443
/// (HTTP/1.1, HTTP/2 and HTTP/3), and the requests go to an application that has no TLS of its own; requests to port 80
/// are redirected. With --files, the files below a directory answer. All need the site's
/// certificate; without --cert, one for --domain comes from Let's Encrypt and is renewed (--acme). Several sites, routes and
/// rules for fields are for a file: --config.
///
/// It prints what makes browsers come: one line for the server's configuration, and a DNS record.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  posthaste edge --beside https://127.0.0.1 --domain example.org \\
      --cert /etc/letsencrypt/live/example.org/fullchain.pem --key /etc/letsencrypt/live/example.org/privkey.pem
  posthaste edge --to http://127.0.0.1:3000 --cert fullchain.pem --key privkey.pem
  posthaste edge --to http://127.0.0.1:3000 --domain example.org     with a certificate from Let's Encrypt
  posthaste edge --to http://127.0.0.1:3000 --cert cert.pem --key key.pem --listen 127.0.0.1:4433   without privileges
  posthaste edge --to http://127.0.0.1:3000 --cert cert.pem --key key.pem --print-config > edge.toml
  posthaste edge check edge.toml
  posthaste edge --config edge.toml
  posthaste edge status --admin 127.0.0.1:9443
  posthaste edge doctor example.org                                  what visitors meet, from outside
  posthaste edge prove https://example.org/                          what visitors on phones gain, measured in a browser

The upstream speaks HTTP/1.1, over TLS 1.2 or 1.3 if its URL is https. With --beside it is asked for the name in the request and
must have a certificate for it; with --to, for the name in the URL. Requests for names that the certificate does not cover get 421.
The upstream learns the client's address from X-Forwarded-For; what clients say in X-Forwarded-* and Forwarded is dropped.
Early data (0-RTT): GET, HEAD and OPTIONS go to the upstream with `Early-Data: 1`, other methods get 425.

SIGHUP reads the file of --config and all certificates again; connections and requests in progress go on, and a file with
errors changes nothing. Certificate files are also looked at every few seconds, and used when they have changed.

Responses over TCP say in `Alt-Svc` that HTTP/3 is on the same port.

With --json stdout is one JSON object per line: `listening`, one `request` each, and finally `stopped`. With
--no-access-log there is no `request`. Logs and errors go to stderr.
Exit code: 0 when stopped, 1 if it cannot run, 2 for a usage error or a fault in the file."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub(crate) struct Edge {
    #[command(subcommand)]
    pub(crate) command: Option<EdgeCommand>,

    /// The server of the same site, which keeps TCP port 443
    #[arg(long = "beside", value_name = "URL", required_unless_present_any = ["to", "files", "config", "print_schema"], conflicts_with_all = ["to", "files", "config"], requires = "cert")]
    pub(crate) neighbour: Option<String>,

    /// The application behind this server
    #[arg(long, value_name = "URL", conflicts_with_all = ["files", "config"])]
    pub(crate) to: Option<String>,

    /// A directory whose files are served
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub(crate) files: Option<String>,

    /// Read everything from this file in TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print the file that says what these options say, and exit
    #[arg(long)]
    pub(crate) print_config: bool,

    /// Print the JSON Schema of the file for editors, and exit
    #[arg(long, exclusive = true)]
    pub(crate) print_schema: bool,

    /// Address and port to listen on, UDP with --beside, TCP and UDP without; `[::]:443` is IPv6 and IPv4, port 0 picks a free
    /// one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:443", conflicts_with = "config")]
    pub(crate) listen: SocketAddr,

    /// Address and TCP port from which plain HTTP is redirected to https; if --listen has port 443, the
    /// default is port 80 of the same address
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["neighbour", "config"])]
    pub(crate) redirect: Option<SocketAddr>,

    /// Address and TCP port for operators, without TLS: a dashboard for browsers at /, /metrics for Prometheus, /status,
    /// /healthz, /readyz
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "config")]
    pub(crate) admin: Option<SocketAddr>,

    /// Let --admin have an address that other machines reach; they need no password
    #[arg(long, requires = "admin", conflicts_with = "config")]
    pub(crate) admin_public: bool,

    /// Certificate chain in PEM, the site's own certificate first; without it, --domain is certified as with --acme
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["acme", "config", "domain", "print_schema"],
        conflicts_with = "config",
        requires = "key"
    )]
    pub(crate) cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", conflicts_with = "config", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// Get the certificate for --domain from Let's Encrypt, whose terms of service you accept by this, and keep it and the
    /// account's key in this directory; TCP port 443 must be reachable. Without --cert, this is what happens, and the default
    /// is $STATE_DIRECTORY, /var/lib/posthaste for root, else posthaste in $XDG_STATE_HOME or ~/.local/state
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "neighbour", "config"], requires = "domain")]
    pub(crate) acme: Option<PathBuf>,

    /// Directory of another authority (RFC 8555)
    #[arg(long, value_name = "URL", requires = "acme")]
    pub(crate) acme_directory: Option<String>,

    /// Certificates in PEM to trust in that authority's server, instead of the system's
    #[arg(long, value_name = "FILE", requires = "acme_directory")]
    pub(crate) acme_ca: Option<PathBuf>,

    /// The site's name, for its certificate and the lines to copy
    #[arg(long, value_name = "NAME", default_value = "example.org", conflicts_with = "config")]
    pub(crate) domain: String,

    /// Certificates in PEM to trust in an https upstream, instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub(crate) ca: Option<PathBuf>,

    /// Codings to compress responses by, the best first; `off` for none
    #[arg(
        long,
        value_name = "LIST",
        default_value = "zstd,br,gzip",
        value_delimiter = ',',
        conflicts_with = "config"
    )]
    pub(crate) compress: Vec<String>,

    /// Answer with app.js.br, .zst or .gz for app.js where it exists and the client accepts it
    #[arg(long, requires = "files", conflicts_with = "config")]
    pub(crate) precompressed: bool,

    /// Profile, the bundle of policies to use: a name from `posthaste profiles`, or a TOML file; parameters may follow
    /// (NAME@key=value,...)
    #[arg(long, value_name = "NAME", default_value = "mobile@history=true", conflicts_with = "config")]
    pub(crate) profile: String,

    /// Seconds for requests in progress to finish after the first Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds, conflicts_with = "config")]
    pub(crate) grace: Duration,

    /// Directory for what outlives the process: secret, TLS sessions (0-RTT), path histories; without it, clients begin anew
    /// after a restart
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub(crate) state: Option<PathBuf>,

    /// The oldest version of TLS that clients over TCP may use: 1.2 or 1.3. HTTP/3 always has 1.3
    #[arg(long, value_name = "VERSION", default_value = "1.2", conflicts_with = "config")]
    pub(crate) tls_min: TlsVersion,

    /// Threads that serve, each with sockets and connections of its own: a number, or `auto` for one per core. More than one
    /// needs Linux
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "config")]
    pub(crate) workers: Workers,

    /// Print no line per request
    #[arg(long)]
    pub(crate) no_access_log: bool,

    /// Print JSON lines instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EdgeCommand {
    Check(EdgeCheck),
    Status(EdgeStatus),
    Doctor(EdgeDoctor),
    #[cfg(feature = "page")]
    Prove(Box<EdgeProve>),
    /// A command that was not compiled.
    #[cfg(not(feature = "page"))]
    #[command(hide = true)]
    Prove(NotBuilt),
}

/// Whatever arguments there are.
#[cfg(not(feature = "page"))]
#[derive(Debug, clap::Args)]
pub(crate) struct NotBuilt {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<std::ffi::OsString>,
}

/// Examine a site from outside, as its visitors meet it: addresses, certificate, HTTP/2, Alt-Svc, UDP, HTTP/3.
///
/// Each check is one line; where something is wrong, the next line says what to do. The page is asked for over TCP and over
/// HTTP/3, without following redirects, and the answers are compared. Run it on a machine outside the site's network, so
/// that firewalls are on the way.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste edge doctor example.org
  posthaste edge doctor example.org --path /logo.png   a file that is the same at each visit
  posthaste edge doctor localhost --port 4433 --ca cert.pem

A certificate that is not trusted is a failed check; the other checks go on, and send nothing secret.
The HTTPS record is not checked: the system's resolver gives addresses only.
Exit code: 0 if no check failed (warnings count as well), 1 if one did, 2 for a usage error.")]
pub(crate) struct EdgeDoctor {
    /// Name or address of the site
    #[arg(value_name = "HOST")]
    pub(crate) host: String,

    /// Port, TCP and UDP
    #[arg(long, value_name = "PORT", default_value = "443", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,

    /// Path of the page to ask for
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(crate) path: String,

    /// Trust the certificates in this PEM file instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// Seconds for each step; all checks together take at most some ten times as long
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show how a running edge is: requests and the share of HTTP/3, round-trip times and loss, reloads, certificates.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The edge must run with --admin ADDRESS:PORT, or with `admin = \"ADDRESS:PORT\"` in [edge] of its file.
Exit code: 0 if it answers, 1 if not.")]
pub(crate) struct EdgeStatus {
    /// Where it listens for operators
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9443")]
    pub(crate) admin: SocketAddr,

    /// List open HTTP/3 connections instead: the slowest hundred
    #[arg(long)]
    pub(crate) connections: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check a configuration file without serving: what it says, certificates, the port, the upstreams.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 if all is well, 1 if something around the file is not (a certificate that ends soon, a port in use, an
upstream that does not answer), 2 for a fault in the file. Warnings for a port in use are expected while the edge runs.")]
pub(crate) struct EdgeCheck {
    /// The file
    #[arg(value_name = "FILE", default_value = "edge.toml")]
    pub(crate) file: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

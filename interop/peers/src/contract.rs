//! The command line and the output lines that all peers share.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::bulk::UDP_PAYLOAD;

/// Errors end the program with a message; nothing here is handled.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What a peer can be asked to do.
#[derive(Debug, Parser)]
#[command(about = "A third-party QUIC peer for interop and bench; see interop/README.md")]
pub enum Mode {
    /// Fetch every URL over one HTTP/3 connection
    Client(ClientArgs),
    /// Serve a directory over HTTP/3
    Server(ServerArgs),
    /// Send bytes over one raw QUIC stream to whoever asks
    BulkServer(BulkServerArgs),
    /// Fetch bytes over one raw QUIC stream
    BulkClient(BulkClientArgs),
    /// Answer every request of 100 bytes with 1,000 bytes, each pair on a stream of its own
    RequestServer(BulkServerArgs),
    /// Make such requests, some at once
    RequestClient(RequestClientArgs),
    /// Connect to a request server again and again, with two requests each time
    HandshakeClient(HandshakeClientArgs),
    /// Hold idle raw QUIC connections until stdin ends
    IdleClient(IdleClientArgs),
    /// Send back every DATAGRAM frame's message
    DatagramServer(DatagramServerArgs),
    /// Send messages in DATAGRAM frames, and wait until all have come back
    DatagramClient(DatagramClientArgs),
}

/// Of `client`.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    /// Trusted root, PEM
    #[arg(long)]
    pub ca: PathBuf,
    /// Requests in flight at once
    #[arg(long, default_value_t = 1)]
    pub parallel: usize,
    /// Bodies go here, named by the last segment of their URL
    #[arg(long)]
    pub output_dir: PathBuf,
    /// The version of QUIC to begin with
    #[arg(long, default_value_t = 1)]
    pub quic_version: u32,
    /// Fetch everything again over a second connection, with the first one's session
    #[arg(long)]
    pub again: Option<Again>,
    /// Update the keys in the midst of the first large body
    #[arg(long)]
    pub update_keys: bool,
    /// Move to another socket when so many bytes have arrived
    #[arg(long)]
    pub move_after: Option<usize>,
    /// Local address of that socket
    #[arg(long, default_value = "127.0.0.1")]
    pub move_to: IpAddr,
    /// `https://HOST:PORT/PATH`, all of one origin
    #[arg(required = true)]
    pub urls: Vec<String>,
}

/// What the second connection does with the first one's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Again {
    /// Its handshake goes on from it
    Resumed,
    /// Its requests leave with the first packets
    Early,
}

impl ClientArgs {
    /// Connections to make, one after the other.
    pub fn connections(&self) -> usize {
        if self.again.is_some() { 2 } else { 1 }
    }
}

/// Of `server`.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// UDP address; port 0 takes a free one
    #[arg(long)]
    pub listen: SocketAddr,
    /// Certificate chain, PEM
    #[arg(long)]
    pub cert: PathBuf,
    /// Private key, PEM
    #[arg(long)]
    pub key: PathBuf,
    /// Directory to serve
    #[arg(long)]
    pub root: PathBuf,
    /// Send a Retry to every new client
    #[arg(long)]
    pub retry: bool,
    /// Update the keys in the midst of a large body
    #[arg(long)]
    pub update_keys: bool,
}

/// Of `bulk-server` and `request-server`.
#[derive(Debug, Args)]
pub struct BulkServerArgs {
    /// UDP address; port 0 takes a free one
    #[arg(long)]
    pub listen: SocketAddr,
    /// Certificate chain, PEM
    #[arg(long)]
    pub cert: PathBuf,
    /// Private key, PEM
    #[arg(long)]
    pub key: PathBuf,
    /// Take early data (0-RTT)
    #[arg(long)]
    pub early: bool,
    /// What benches vary
    #[command(flatten)]
    pub form: Form,
}

/// What benches vary of both ends of a raw connection.
#[derive(Debug, Clone, Copy, Args)]
pub struct Form {
    /// Bytes of the largest UDP payload
    #[arg(long, default_value_t = UDP_PAYLOAD)]
    pub udp_payload: u16,
    /// Run in the future of `block_on` itself, not in a task
    #[arg(long)]
    pub block_on: bool,
}

impl Form {
    /// Runs a mode: in a task, because the runtime polls the future of `block_on` itself less often, unless just that is to be
    /// measured.
    ///
    /// # Errors
    /// Those of `mode`.
    pub async fn run(self, mode: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
        if self.block_on { mode.await } else { tokio::spawn(mode).await? }
    }
}

/// Of `bulk-client`.
#[derive(Debug, Args)]
pub struct BulkClientArgs {
    /// The server's UDP address
    #[arg(long)]
    pub connect: SocketAddr,
    /// Trusted root, PEM
    #[arg(long)]
    pub ca: PathBuf,
    /// Bytes to ask for on each stream
    #[arg(long)]
    pub bytes: u64,
    /// Streams on each connection, all at once
    #[arg(long, default_value_t = 1)]
    pub streams: u64,
    /// Connections
    #[arg(long, default_value_t = 1)]
    pub connections: u64,
    /// What benches vary
    #[command(flatten)]
    pub form: Form,
}

/// Of `request-client`.
#[derive(Debug, Args)]
pub struct RequestClientArgs {
    /// The server's UDP address
    #[arg(long)]
    pub connect: SocketAddr,
    /// Trusted root, PEM
    #[arg(long)]
    pub ca: PathBuf,
    /// Requests to make
    #[arg(long)]
    pub requests: u64,
    /// Requests in flight at once
    #[arg(long, default_value_t = 1)]
    pub in_flight: u64,
    /// Connections, which the requests use in turn
    #[arg(long, default_value_t = 1)]
    pub connections: u64,
    /// What benches vary
    #[command(flatten)]
    pub form: Form,
}

/// Of `handshake-client`.
#[derive(Debug, Args)]
pub struct HandshakeClientArgs {
    /// The server's UDP address
    #[arg(long)]
    pub connect: SocketAddr,
    /// Trusted root, PEM
    #[arg(long)]
    pub ca: PathBuf,
    /// Connections to make
    #[arg(long)]
    pub count: u64,
    /// Connections that are made at once
    #[arg(long, default_value_t = 1)]
    pub in_flight: u64,
    /// What becomes of sessions: every handshake is a full one without it
    #[arg(long)]
    pub again: Option<Again>,
}

/// Of `idle-client`.
#[derive(Debug, Args)]
pub struct IdleClientArgs {
    /// The server's UDP address
    #[arg(long)]
    pub connect: SocketAddr,
    /// Trusted root, PEM
    #[arg(long)]
    pub ca: PathBuf,
    /// Connections to hold
    #[arg(long)]
    pub connections: usize,
}

/// Of `datagram-server`.
#[derive(Debug, Args)]
pub struct DatagramServerArgs {
    /// UDP address; port 0 takes a free one
    #[arg(long)]
    pub listen: SocketAddr,
    /// Certificate chain, PEM
    #[arg(long)]
    pub cert: PathBuf,
    /// Private key, PEM
    #[arg(long)]
    pub key: PathBuf,
    /// Traces and profile of Posthaste
    #[command(flatten)]
    pub ours: Ours,
}

/// Of `datagram-client`.
#[derive(Debug, Args)]
pub struct DatagramClientArgs {
    /// The server's UDP address
    #[arg(long)]
    pub connect: SocketAddr,
    /// Trusted root, PEM
    #[arg(long)]
    pub ca: PathBuf,
    /// Messages to send
    #[arg(long)]
    pub messages: u64,
    /// Traces and profile of Posthaste
    #[command(flatten)]
    pub ours: Ours,
}

/// What only Posthaste is told, where it takes part as a peer.
#[derive(Debug, Args)]
pub struct Ours {
    /// Write qlog traces to this directory
    #[arg(long)]
    pub qlog: Option<PathBuf>,
    /// The profile's name
    #[arg(long)]
    pub profile: Option<String>,
}

/// One fetched URL, printed as a line of JSON.
#[derive(Debug, Serialize)]
pub struct Fetched {
    url: String,
    protocol: &'static str,
    status: u16,
    bytes: u64,
    sha256: String,
    /// Equal for URLs that shared a connection.
    connection: String,
}

impl Fetched {
    /// Stores `body` in `directory` and describes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn store(directory: &Path, url: &str, status: u16, connection: &str, body: &[u8]) -> Result<Self> {
        let name = url.rsplit('/').next().unwrap_or_default();
        std::fs::write(directory.join(name), body)?;
        let mut sha256 = String::new();
        for byte in Sha256::digest(body) {
            write!(sha256, "{byte:02x}")?;
        }
        let (url, connection) = (url.to_owned(), connection.to_owned());
        Ok(Self { url, protocol: "h3", status, bytes: body.len() as u64, sha256, connection })
    }

    /// Prints the line.
    ///
    /// # Errors
    /// Stdout is gone, or the status is not 200.
    pub fn report(&self) -> Result<()> {
        print_json(self)?;
        if self.status == 200 { Ok(()) } else { Err(format!("{}: status {}", self.url, self.status).into()) }
    }
}

/// Prints one line of JSON.
///
/// # Errors
/// Stdout is gone.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print_line(&serde_json::to_string(value)?)
}

/// Tells the harness that `address` takes connections.
///
/// # Errors
/// Stdout is gone.
pub fn print_ready(address: SocketAddr) -> Result<()> {
    print_line(&format!("READY {address}"))
}

/// Prints one line for the harness.
///
/// # Errors
/// Stdout is gone.
pub fn print_line(line: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// An `https` URL with an explicit port, cut into what a request needs.
#[derive(Debug, Clone)]
pub struct Target {
    /// Host name, for TLS; an IPv6 address without its brackets.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// Path and query, from the slash on.
    pub path: String,
}

impl Target {
    /// Cuts `url`.
    ///
    /// # Errors
    /// It is not `https://HOST:PORT/...`.
    pub fn parse(url: &str) -> Result<Self> {
        let wrong = || format!("{url}: https://HOST:PORT/PATH is needed");
        let rest = url.strip_prefix("https://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_at(rest.find('/').ok_or_else(wrong)?);
        let (host, port) = authority.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Self { host: host.to_owned(), port: port.parse()?, path: path.to_owned() })
    }

    /// `HOST:PORT`.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The host's address; of a name the IPv4 address: the suite's servers listen on one family only.
    ///
    /// # Errors
    /// The host has none.
    pub fn address(&self) -> Result<SocketAddr> {
        use std::net::ToSocketAddrs as _;
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok((address, self.port).into());
        }
        let mut addresses = (self.host.as_str(), self.port).to_socket_addrs()?;
        addresses.find(SocketAddr::is_ipv4).ok_or_else(|| format!("{}: no IPv4 address", self.host).into())
    }
}

/// Any port of the unspecified address of `remote`'s family.
pub fn any_towards(remote: SocketAddr) -> SocketAddr {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    (any, 0).into()
}

/// The file that a request path names below `root`, read whole: the suite's files are small.
pub fn read_served(root: &Path, request_path: &str) -> Option<Vec<u8>> {
    let relative = request_path.strip_prefix('/')?;
    // Peers serve a test directory to test clients; a plain name is all that they need.
    let plain = !relative.is_empty() && !relative.contains(['/', '\\']) && relative != "..";
    if plain { std::fs::read(root.join(relative)).ok() } else { None }
}

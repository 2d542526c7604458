//! The site that is proved: checked, reached once, and the shell commands of both far ends.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Uri;
use posthaste_endpoint::tls;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;

use super::super::protocol::Protocol;
use super::super::relay::control_by;
use super::super::target::{Contestant, Front, Origin, absolute};
use super::bridge::Bridge;
use crate::args::EdgeProve;
use crate::command::get::fallback::tls_config;
use crate::exit::Failure;
use crate::printer::shell_quote;
use crate::{identity, trust};

/// Names of both sides. The second begins as all of ours do.
pub(super) const AS_IT_IS: &str = "as it is";
pub(super) const EDGE: &str = "posthaste edge";

/// The name that stands for addresses: certificates and HTTP/3 want one, and every development server knows this one.
const LOCALHOST: &str = "localhost";

/// The far end's port for other hosts, the second if the first is taken. Two above, an edge may be behind the relay.
const OTHERS: [u16; 2] = [4430, 4434];

/// Time to connect, and for the TLS handshake.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections whose fastest tells how far the site is.
const TRIES: usize = 3;

/// A site that answers.
#[derive(Debug)]
pub(super) struct Site {
    /// What the browser loads: always https.
    pub(super) url: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// The site has TLS of its own.
    pub(super) is_https: bool,
    pub(super) address: SocketAddr,
    /// How it comes without the edge.
    pub(super) protocol: Protocol,
    /// Its public key, for browsers that do not know whom `--ca` trusts.
    pub(super) spki: Option<String>,
    /// Time to connect from this machine.
    pub(super) distance: Duration,
    /// Congestion control of TCP towards the browser.
    pub(super) controller: String,
    ca: Option<PathBuf>,
    profile: String,
}

impl Site {
    /// Reads the arguments and asks the site.
    pub(super) fn reach(args: &EdgeProve) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::usage(format!("`{}` is not the URL of a page: {why}", args.url)).hint(
                "for example `posthaste edge prove http://127.0.0.1:3000/` or `... https://example.org/`",
            )
        };
        let uri: Uri = args.url.parse().map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it must begin with http:// or https://")),
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let named =
            authority.ok_or_else(|| wrong("it must have a host, and no user"))?.host().to_ascii_lowercase();
        let bare = named.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_address = bare.parse::<IpAddr>().is_ok();
        if is_https && is_address {
            return Err(wrong("browsers send no name to an address")
                .hint(format!("give the name in the site's certificate, and --resolve NAME={named}")));
        }
        let asked_port = uri.port_u16();
        let real_port = asked_port.unwrap_or(if is_https { 443 } else { 80 });
        let port = asked_port.unwrap_or(443);
        let host = if is_address { LOCALHOST.to_owned() } else { bare.clone() };
        let place = if port == 443 { host.clone() } else { format!("{host}:{port}") };
        let url = format!("https://{place}{}", uri.path_and_query().map_or("/", |path| path.as_str()));
        let (address, distance) = connect(args, &bare, real_port)?;
        check_controller(&args.tcp)?;
        let ca = args.ca.as_deref().map(absolute).transpose()?;
        let profile = if crate::profile::is_file(&args.profile) {
            absolute(Path::new(&args.profile))?.display().to_string()
        } else {
            args.profile.clone()
        };
        let site = Self {
            url,
            host,
            port,
            is_https,
            address,
            protocol: Protocol::H2,
            spki: None,
            distance,
            controller: args.tcp.clone(),
            ca,
            profile,
        };
        if is_https { site.with_handshake() } else { Ok(site) }
    }

    /// Learns the version of HTTP and the key from a TLS handshake, whose certificate must be trusted.
    fn with_handshake(mut self) -> Result<Self, Failure> {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::runtime(format!("the TLS handshake with {} at {} fails: {why}", self.host, self.address)).hint(
                "the certificate must be for this name; name the authority with --ca FILE if the system does not know it",
            )
        };
        let verifier = trust::in_file_or_system(self.ca.as_deref())?;
        let mut config = tls_config(tls::crypto_provider(), verifier).map_err(|error| failed(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from(self.host.clone()).map_err(|error| failed(&error))?;
        let mut client = ClientConnection::new(Arc::new(config), name).map_err(|error| failed(&error))?;
        let mut stream =
            TcpStream::connect_timeout(&self.address, PATIENCE).map_err(|error| failed(&error))?;
        for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
            set(&stream, Some(PATIENCE)).map_err(|error| failed(&error))?;
        }
        while client.is_handshaking() {
            client.complete_io(&mut stream).map_err(|error| failed(&error))?;
        }
        let leaf = client
            .peer_certificates()
            .and_then(<[_]>::first)
            .ok_or_else(|| failed(&"no certificate came"))?;
        let parsed = ParsedCertificate::try_from(leaf).map_err(|error| failed(&error))?;
        let spki = identity::sha256(&parsed.subject_public_key_info()).map_err(|error| failed(&error))?;
        let protocol = if client.alpn_protocol() == Some(b"h2") { Protocol::H2 } else { Protocol::H1 };
        (self.spki, self.protocol) = (Some(spki), protocol);
        Ok(self)
    }

    /// Both sides, as it is first.
    pub(super) fn contestants(&self, bridge: &Bridge, posthaste: &Path) -> Vec<Contestant> {
        let program = quoted(posthaste);
        let contestant = |name: &str, protocol, command: String, relayed: Vec<u16>| Contestant {
            name: name.to_owned(),
            protocol,
            origin: Origin::Front(Front {
                url: self.url.clone(),
                command: format!("{command} wait"),
                relayed,
                others: self.others(),
            }),
        };
        let others = self.others();
        let (as_it_is, edge, inner) = if self.is_https {
            let relay = self.relay(&program, bridge, Some(&quoted(&bridge.site)));
            let edge = self.edge(&program, bridge, self.port);
            (relay.clone(), format!("{relay} {edge}"), self.port)
        } else {
            let inner = others + 2;
            let relay = self.relay(&program, bridge, Some(&inner.to_string()));
            let alone = self.relay(&program, bridge, None);
            (
                format!("{relay} {}", self.edge(&program, bridge, inner)),
                format!("{alone} {}", self.edge(&program, bridge, self.port)),
                inner,
            )
        };
        vec![
            contestant(AS_IT_IS, self.protocol, as_it_is, vec![inner, others]),
            contestant(EDGE, Protocol::H3, edge, vec![self.port, others]),
        ]
    }

    /// The far end's port for other hosts.
    fn others(&self) -> u16 {
        let is_taken = self.port == OTHERS[0] || self.port == OTHERS[0] + 2;
        if is_taken { OTHERS[1] } else { OTHERS[0] }
    }

    /// Starts the far end's TCP; the site's port is in it if it leads somewhere.
    fn relay(&self, program: &str, bridge: &Bridge, site: Option<&str>) -> String {
        let (others, socket) = (self.others(), quoted(&bridge.others));
        let site = site.map(|site| format!(" --site-port {} --site {site}", self.port)).unwrap_or_default();
        let tcp = shell_quote(&self.controller);
        format!(
            "{program} page-relay --tcp {tcp} --others-port {others} --others {socket}{site} >/dev/null &"
        )
    }

    /// Starts the edge on this port.
    fn edge(&self, program: &str, bridge: &Bridge, port: u16) -> String {
        let way = if self.is_https {
            let ca = self.ca.as_deref().map(|ca| format!(" --ca {}", quoted(ca))).unwrap_or_default();
            format!("--beside https://127.0.0.1:{port}{ca}")
        } else {
            format!("--to {}", shell_quote(&format!("unix:{}", bridge.site.display())))
        };
        let (host, profile) = (shell_quote(&self.host), shell_quote(&self.profile));
        format!(
            "{program} edge {way} --domain {host} --listen 0.0.0.0:{port} --cert \"$POSTHASTE_CERT\" --key \"$POSTHASTE_KEY\" \
             --profile {profile} --no-access-log --json >/dev/null &"
        )
    }
}

fn quoted(path: &Path) -> String {
    shell_quote(&path.to_string_lossy())
}

/// Finds out whether the kernel has it.
fn check_controller(name: &str) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| {
        let place = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let available = std::fs::read_to_string(place).unwrap_or_default();
        Failure::usage(format!("--tcp: this kernel does not give `{name}`: {error}"))
            .hint(format!("it has: {}; `modprobe tcp_{name}` may add it", available.trim()))
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
    control_by(&listener, name).map_err(|error| failed(&error))
}

/// The first address of the site that accepts a connection, and how long that takes at least.
fn connect(args: &EdgeProve, host: &str, port: u16) -> Result<(SocketAddr, Duration), Failure> {
    use std::net::ToSocketAddrs;

    let pin = args.resolve.iter().find(|pin| pin.host == host);
    let addresses: Vec<SocketAddr> = match pin {
        Some(pin) => vec![SocketAddr::new(pin.address, pin.port.unwrap_or(port))],
        None => (host, port)
            .to_socket_addrs()
            .map_err(|error| {
                Failure::runtime(format!("no address of {host} is known here: {error}"))
                    .hint(format!("name one with --resolve {host}=ADDRESS"))
            })?
            .collect(),
    };
    let mut reasons = Vec::new();
    for &address in &addresses {
        let times: Result<Vec<Duration>, _> = (0..TRIES).map(|_| time_to_connect(address)).collect();
        match times.map(|times| times.into_iter().min()) {
            Ok(fastest) => return Ok((address, fastest.unwrap_or_default())),
            Err(error) => reasons.push(format!("{address}: {error}")),
        }
    }
    Err(Failure::runtime(format!("{} does not answer: {}", args.url, reasons.join(", ")))
        .hint(format!("start the site's server, or say where it is: --resolve {host}=ADDRESS[:PORT]")))
}

fn time_to_connect(address: SocketAddr) -> std::io::Result<Duration> {
    let began = Instant::now();
    TcpStream::connect_timeout(&address, PATIENCE)?;
    Ok(began.elapsed())
}

//! The sockets: UDP for HTTP/3, TCP for HTTP/1.1 and HTTP/2 on the same port, and redirects from port 80.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use posthaste_edge::{ACME_TLS, Config, Edge, Limits, Metrics};
use posthaste_endpoint::{Endpoint, ServerConfig};
use posthaste_http::{Ended, Serve};
use posthaste_tcp::{TcpOptions, plain, redirection};
use tokio::net::TcpListener;

use super::systemd::Passed;
use super::{limits, systemd};
use crate::command::running::{Terms, cannot_listen, cannot_listen_over, over_quic};
use crate::exit::Failure;

/// How long browsers may remember that HTTP/3 is on the same port.
const ALT_SVC: Duration = Duration::from_secs(24 * 60 * 60);

/// Ports to try where any free one will do: it must be free for TCP and UDP.
const TRIES: usize = 32;

/// The ports for `https` and `http`.
const HTTPS: u16 = 443;
const HTTP: u16 = 80;

/// What listens over TCP.
pub(super) struct Front {
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    redirect: Option<TcpListener>,
}

/// Listens over UDP, and over TCP on the same port unless a neighbour does so.
pub(super) async fn listen(
    config: &Config,
    edge: &Edge,
    quic: &ServerConfig,
    passed: Passed,
) -> Result<(Endpoint, Option<Front>), Failure> {
    if !passed.is_empty() {
        return on_passed(config, edge, quic, passed);
    }
    let listen = config.edge.listen;
    let udp = |address| Endpoint::server(address, quic.clone());
    if config.has_neighbour() {
        let endpoint = udp(listen).map_err(|error| cannot_listen(listen, &error))?;
        return Ok((endpoint, None));
    }
    let mut left = if listen.port() == 0 { TRIES } else { 1 };
    loop {
        let no_tcp = |error: &_| cannot_listen_over("TCP", listen, error);
        let listener = TcpListener::bind(listen).await.map_err(|error| no_tcp(&error))?;
        let address = listener.local_addr().map_err(|error| no_tcp(&error))?;
        left -= 1;
        match udp(address) {
            Ok(endpoint) => {
                let tls = tls(config, edge)?;
                let redirect = listen_for_redirects(config).await?;
                return Ok((endpoint, Some(Front { listener, tls, redirect })));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && left > 0 => {}
            Err(error) => return Err(cannot_listen(address, &error)),
        }
    }
}

/// On the sockets of a service manager: UDP, TCP on the same port, and perhaps another one for redirects.
fn on_passed(
    config: &Config,
    edge: &Edge,
    quic: &ServerConfig,
    passed: Passed,
) -> Result<(Endpoint, Option<Front>), Failure> {
    let missing = |what: &str, line: &str| {
        Failure::usage(format!("the service manager passes no {what}"))
            .hint(format!("{line} in the .socket unit"))
    };
    let udp = passed.udp.ok_or_else(|| missing("UDP socket", "ListenDatagram=443"))?;
    let unusable =
        |error: std::io::Error| Failure::runtime(format!("a passed socket cannot be used: {error}"));
    let endpoint = Endpoint::server_on(udp, quic.clone()).map_err(unusable)?;
    if config.has_neighbour() {
        return Ok((endpoint, None));
    }
    let port = endpoint.local_addr().map_err(unusable)?.port();
    let (mut listener, mut redirect) = (None, None);
    for tcp in passed.tcp {
        tcp.set_nonblocking(true).map_err(unusable)?;
        let tcp = TcpListener::from_std(tcp).map_err(unusable)?;
        let is_main = tcp.local_addr().map_err(unusable)?.port() == port;
        *(if is_main { &mut listener } else { &mut redirect }) = Some(tcp);
    }
    let listener = listener.ok_or_else(|| missing("TCP socket on the UDP port", "ListenStream=443"))?;
    let tls = tls(config, edge)?;
    Ok((endpoint, Some(Front { listener, tls, redirect })))
}

/// TLS over TCP: HTTP/2 and HTTP/1.1, and the questions of an authority.
fn tls(config: &Config, edge: &Edge) -> Result<Arc<rustls::ServerConfig>, Failure> {
    let mut protocols = posthaste_tcp::ALPN.to_vec();
    protocols.extend(config.edge.acme.iter().map(|_| ACME_TLS));
    super::tls(edge, &protocols)
}

/// Port 80, unless something else is asked for. It may belong to somebody else; the site is served without it.
async fn listen_for_redirects(config: &Config) -> Result<Option<TcpListener>, Failure> {
    if let Some(address) = config.edge.redirect {
        let listener = TcpListener::bind(address).await;
        return listener.map(Some).map_err(|error| cannot_listen_over("TCP", address, &error));
    }
    if config.edge.listen.port() != HTTPS {
        return Ok(None);
    }
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, HTTP));
    let listener = TcpListener::bind(address).await;
    Ok(listener.inspect_err(|error| tracing::warn!(%address, %error, "no redirects from http")).ok())
}

impl Front {
    /// Where requests without TLS are sent on to `https`.
    pub(super) fn redirect_address(&self) -> Option<SocketAddr> {
        self.redirect.as_ref()?.local_addr().ok()
    }
}

/// Runs both sides on the same terms, until both have ended.
pub(super) fn run(
    quic: Serve,
    front: Option<Front>,
    (edge, limits): (Edge, &Limits),
    mut terms: Terms,
    metrics: Option<Metrics>,
) -> impl Future<Output = Ended> + Send + use<> {
    let mut options = limits::over_quic(limits);
    if let Some(metrics) = &metrics {
        terms.access_log = Some(metrics.counting(terms.access_log));
        options.connection_log = Some(metrics.connections());
    }
    // Whoever asks is told before the servers stop: they may have nothing to wait for.
    let stopping = move |()| {
        systemd::stopping();
        metrics.iter().for_each(Metrics::on_draining);
    };
    terms.stop = terms.stop.map(stopping).boxed().shared();
    let quic = over_quic(quic, options, terms.clone());
    let options = limits::over_tcp(limits);
    async move {
        let over_tcp = async {
            match front {
                Some(front) => over_tcp(front, edge, options, terms).await,
                None => Ended::default(),
            }
        };
        let (over_tcp, over_quic) = tokio::join!(over_tcp, quic.run());
        over_tcp + over_quic
    }
}

async fn over_tcp(front: Front, edge: Edge, options: TcpOptions, terms: Terms) -> Ended {
    let Terms { grace, access_log, stop, cut } = terms;
    let port = front.listener.local_addr().map_or(HTTPS, |address| address.port());
    let challenges = edge.resolver().challenges().clone();
    let answer = move |request: &_| challenges.answer(request).unwrap_or_else(|| redirection(request, port));
    let redirects = front.redirect.map(|listener| tokio::spawn(plain(listener, answer)));
    let alt_svc = Some(ALT_SVC);
    let options = TcpOptions { grace, access_log, alt_svc, ..options };
    let server = posthaste_tcp::serve(front.listener, front.tls, edge);
    let ended = server.options(options).until(stop).cut(cut).run().await;
    if let Some(redirects) = redirects {
        redirects.abort();
    }
    ended
}

//! The site over HTTP/3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use posthaste_endpoint::{ClientConfig, ConnectionError, EarlyData, Endpoint, tls};
use posthaste_http::{ALPN, Client, ClientOptions, ConnectionReport};
use tokio::time::{Instant, sleep, timeout};

use super::Subject;
use super::addresses::{Reached, Unreached, unbound};
use super::certificate::Observer;
use super::finding::Finding;
use super::over_tcp::{Visit, length, read};
use super::versions;
use crate::exit::Failure;
use crate::{profile, trust};

/// Time for the search for the datagram size after an answer.
const SEARCH: Duration = Duration::from_secs(1);

/// How often to look at it.
const LOOK: Duration = Duration::from_millis(20);

/// What QUIC is spoken with.
pub(super) struct Quic {
    config: ClientConfig,
    /// What a server name in a handshake looks like.
    name: String,
    timeout: Duration,
}

/// What came back, and over which connection.
struct Answer {
    status: http::StatusCode,
    bytes: u64,
    is_whole: bool,
    connection: ConnectionReport,
}

impl Quic {
    pub(super) fn new(subject: &Subject, observer: &Arc<Observer>) -> Result<Self, Failure> {
        let transport = profile::transport(profile::complete("mobile")?, None, None)?;
        let config = tls::client_config_using(tls::crypto_provider(), Arc::clone(observer) as _, &[ALPN])
            .map_err(|error| trust::unusable(&error))?;
        let config = ClientConfig::new(tls::client_with_early_data(&config), transport);
        Ok(Self { config, name: subject.host.clone(), timeout: subject.timeout })
    }

    /// Shakes hands with all addresses at once.
    pub(super) async fn handshakes(&self, addresses: &[SocketAddr]) -> Vec<Reached> {
        let shake = |address: &SocketAddr| {
            let address = *address;
            async move { Reached { address, outcome: self.handshake(address).await } }
        };
        join_all(addresses.iter().map(shake)).await
    }

    async fn handshake(&self, address: SocketAddr) -> Result<Duration, Unreached> {
        let endpoint = Endpoint::client(unbound(address)).map_err(|error| Unreached::of(&error))?;
        let started = Instant::now();
        match timeout(self.timeout, endpoint.connect(&self.config, address, &self.name)).await {
            Ok(Ok(connection)) => {
                let time = started.elapsed();
                connection.close(0x100, b"");
                Ok(time)
            }
            Ok(Err(ConnectionError::UnusableAddress { .. })) => Err(Unreached::NoRoute),
            Ok(Err(error)) => Err(Unreached::Refused(error.to_string())),
            Err(_) => Err(Unreached::Silent),
        }
    }

    /// Asks for the resource twice, over two connections, the second of which is that of somebody who comes back.
    pub(super) async fn visits(&self, subject: &Subject, over_tcp: Option<&Visit>) -> Vec<Finding> {
        let mut options = ClientOptions::new(self.config.clone());
        options.connect_timeout = self.timeout;
        options.first_byte_timeout = self.timeout;
        options.idle_timeout = self.timeout;
        options.max_redirects = 0;
        let client = Client::new(options);
        let first = visit(&client, subject).await;
        let mut findings = vec![compared(&first, over_tcp)];
        if first.is_ok() {
            findings.push(datagram_size(&client).await);
            client.hang_up();
            let again = visit(&client, subject).await;
            findings.push(resumed(&again));
            findings.push(early(&again));
        }
        client.close().await;
        findings
    }
}

/// One GET, with as much of its body as is needed to compare its length.
async fn visit(client: &Client, subject: &Subject) -> Result<Answer, String> {
    let uri = subject.uri().ok_or("the URL is not valid")?;
    let response = client.get(&uri).await.map_err(|error| error.to_string())?;
    let (status, index) = (response.status(), response.connection().index);
    let (bytes, is_whole) = read(response.into(), subject.timeout).await?;
    // What became of early data is known by now.
    let connection = client.connections().into_iter().find(|it| it.index == index);
    let connection = connection.ok_or("the connection is not known")?;
    Ok(Answer { status, bytes, is_whole, connection })
}

/// Whether a handshake is possible with any address.
pub(super) async fn reachable(
    subject: &Subject,
    handshakes: &[Reached],
    addresses: &[SocketAddr],
) -> Finding {
    const CHECK: &str = "udp";
    let port = subject.port;
    if handshakes.iter().any(|it| it.outcome.is_ok()) {
        return Finding::ok(CHECK, format!("QUIC handshake on UDP port {port}"));
    }
    let reasons: Vec<_> =
        handshakes.iter().filter_map(|it| it.outcome.as_ref().err()).map(ToString::to_string).collect();
    let reasons = reasons.join(", ");
    if versions::any_answers(addresses, subject.timeout).await {
        let detail = format!("a QUIC server answers on UDP port {port}, but the handshake fails: {reasons}");
        return Finding::failed(
            CHECK,
            detail,
            "see its log; does it speak h3, and has it a certificate for this name?",
        );
    }
    let detail = format!("UDP port {port} does not answer: {reasons}");
    let next = format!(
        "start `posthaste edge`; open UDP port {port} in the firewall, the provider's rules and the router; publish \
         {port}/udp of a container as well as {port}/tcp"
    );
    Finding::failed(CHECK, detail, next)
}

/// Whether HTTP/3 brings what TCP brings.
fn compared(answer: &Result<Answer, String>, over_tcp: Option<&Visit>) -> Finding {
    const CHECK: &str = "http3";
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            return Finding::failed(
                CHECK,
                format!("no answer over HTTP/3: {error}"),
                "see the log of the edge",
            );
        }
    };
    let detail = format!("{}, {}", answer.status, length(answer.bytes, answer.is_whole));
    let Some(tcp) = over_tcp else { return Finding::ok(CHECK, detail) };
    let differs = format!("{detail}; over TCP {}, {}", tcp.status, length(tcp.bytes, tcp.is_whole));
    if answer.status != tcp.status {
        let next = match answer.status.as_u16() {
            421 => "the edge does not know this name, or its certificate does not cover it: add the site",
            502 | 504 => "the edge does not reach its upstream: `posthaste edge check` says why",
            _ => "let both servers have the same site, routes and upstream",
        };
        return Finding::failed(CHECK, differs, next);
    }
    if (answer.bytes, answer.is_whole) != (tcp.bytes, tcp.is_whole) {
        let next = "if the page is not made anew for each visit, the two servers show different content; try --path \
                    with a file that does not change";
        return Finding::warning(CHECK, differs, next);
    }
    Finding::ok(CHECK, format!("{detail}, as over TCP"))
}

fn resumed(answer: &Result<Answer, String>) -> Finding {
    const CHECK: &str = "resumption";
    match answer {
        Ok(answer) if answer.connection.is_resumed => {
            Finding::ok(CHECK, "the second connection went on from the first")
        }
        Ok(_) => {
            let next =
                "several servers behind one address must share sessions; each visit needs a full handshake";
            Finding::warning(CHECK, "the second connection needed a full handshake", next)
        }
        Err(error) => {
            let detail = format!("the second connection failed: {error}");
            Finding::failed(CHECK, detail, "see the log of the edge")
        }
    }
}

fn early(answer: &Result<Answer, String>) -> Finding {
    const CHECK: &str = "early-data";
    let early = answer.as_ref().ok().and_then(|answer| answer.connection.early_data);
    match early {
        Some(EarlyData::Accepted) => {
            Finding::ok(CHECK, "taken (0-RTT): visitors who come back save a round trip")
        }
        Some(EarlyData::Rejected) => {
            Finding::ok(CHECK, "refused; requests are sent again, as the RFC permits")
        }
        Some(EarlyData::None) => Finding::ok(CHECK, "not offered by the server"),
        None => Finding::skipped(CHECK, "not checked"),
    }
}

/// The size of datagrams that the path carries towards the server, as far as it is found in [`SEARCH`].
async fn datagram_size(client: &Client) -> Finding {
    let sizes = || client.connections().last().map(|it| it.stats.max_datagram_size);
    let (first, until) = (sizes(), Instant::now() + SEARCH);
    while sizes() == first && Instant::now() < until {
        sleep(LOOK).await;
    }
    let connection = client.connections().pop();
    let detail = connection.map(|it| {
        let stats = it.stats;
        format!(
            "datagrams of {} bytes arrive, {} of {} packets lost",
            stats.max_datagram_size, stats.packets_lost, stats.packets_sent
        )
    });
    Finding::ok("path", detail.unwrap_or_default())
}

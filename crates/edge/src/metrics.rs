//! Figures for operators: for Prometheus, and as one object.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use clients::Clients;
use connections::Connections;
use page::Page;
use posthaste_endpoint::{Endpoint, EndpointStats, SocketStats};
use posthaste_http::ConnectionLog;
use posthaste_service::{AccessLog, AccessRecord};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use requests::Requests;

use crate::edge::Edge;

mod clients;
mod connections;
mod page;
mod requests;
mod status;
mod upstreams;

pub use connections::{ConnectionStatus, LiveConnections};
pub use status::{
    CertificateStatus, DiscoveryStatus, Http3Status, MedianTimes, ReloadStatus, RequestsStatus, SiteStatus,
    Status, TimesStatus, UpstreamStatus,
};
pub(crate) use upstreams::Upstreams;

/// The media type of [`Metrics::text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Connections that [`Metrics::live_connections`] lists at most.
const LISTED: usize = 100;

/// Counts what an edge does. Clones count together.
#[derive(Debug, Clone)]
pub struct Metrics {
    counted: Arc<Counted>,
    registry: Arc<Registry>,
}

/// What an edge is, for those who read its figures.
#[derive(Debug, Clone)]
pub struct About {
    /// The program's version.
    pub version: String,
    /// The profile's name.
    pub profile: String,
    /// When it began.
    pub began: SystemTime,
}

#[derive(Debug)]
struct Counted {
    about: About,
    edge: Edge,
    endpoints: Vec<Endpoint>,
    requests: Requests,
    connections: Connections,
    clients: Clients,
    reloads: Mutex<Reloads>,
    certificate_failures: AtomicU64,
    is_draining: AtomicBool,
}

/// Reloads since the beginning.
#[derive(Debug, Clone, Default)]
struct Reloads {
    loaded: u64,
    refused: u64,
    last: Option<(SystemTime, Option<String>)>,
    last_loaded: Option<SystemTime>,
}

impl Metrics {
    /// Figures of an edge with these HTTP/3 endpoints, one per worker: sums over all of them.
    pub fn new(about: About, edge: Edge, endpoints: Vec<Endpoint>) -> Self {
        let counted = Arc::new(Counted {
            about,
            edge,
            endpoints,
            requests: Requests::default(),
            connections: Connections::default(),
            clients: Clients::default(),
            reloads: Mutex::default(),
            certificate_failures: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
        });
        let mut registry = Registry::with_prefix("edge");
        registry.register_collector(Box::new(Arc::clone(&counted)));
        Self { counted, registry: Arc::new(registry) }
    }

    /// An access log that counts each request and passes it on.
    pub fn counting(&self, next: Option<Arc<dyn AccessLog>>) -> Arc<dyn AccessLog> {
        Arc::new(Counting { counted: Arc::clone(&self.counted), next })
    }

    /// What the HTTP/3 server of this worker tells of its connections.
    pub fn connections(&self, worker: usize) -> Arc<dyn ConnectionLog> {
        Arc::new(OfWorker { counted: Arc::clone(&self.counted), worker })
    }

    /// A reload has succeeded, or was refused for this reason.
    pub fn on_reload(&self, at: SystemTime, refused: Option<String>) {
        let mut reloads = self.counted.reloads.lock().unwrap_or_else(PoisonError::into_inner);
        match refused {
            None => {
                reloads.loaded += 1;
                reloads.last_loaded = Some(at);
            }
            Some(_) => reloads.refused += 1,
        }
        reloads.last = Some((at, refused));
    }

    /// New certificate files could not be used, or an authority gave no certificate.
    pub fn on_bad_certificate(&self) {
        self.counted.certificate_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// No further connections are taken.
    pub fn on_draining(&self) {
        self.counted.is_draining.store(true, Ordering::Relaxed);
    }

    /// False once no further connections are taken.
    pub fn is_ready(&self) -> bool {
        !self.counted.is_draining.load(Ordering::Relaxed)
    }

    /// All figures in the text format of `OpenMetrics`, of type [`MEDIA_TYPE`].
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// The most important figures.
    pub fn status(&self, now: SystemTime) -> Status {
        self.counted.status(now)
    }

    /// The open HTTP/3 connections with the greatest round-trip times, at most a hundred.
    pub fn live_connections(&self) -> LiveConnections {
        self.counted.connections.live(LISTED)
    }
}

/// Seconds since 1970.
fn unix(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl Counted {
    fn reloads(&self) -> Reloads {
        self.reloads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write_life(&self, page: &mut Page<'_>) -> fmt::Result {
        let about = &self.about;
        let labels = [("version", about.version.as_str()), ("profile", about.profile.as_str())];
        page.gauge("build", "What runs; always 1", &[(&labels, 1.0)])?;
        page.time("start", "When it began, in Unix time", &[(&[], unix(about.began))])?;
        let draining = f64::from(u8::from(self.is_draining.load(Ordering::Relaxed)));
        page.gauge("draining", "1 once no further connections are taken", &[(&[], draining)])?;
        let reloads = self.reloads();
        let counts: [(page::Labels<'_>, u64); 2] =
            [(&[("result", "loaded")], reloads.loaded), (&[("result", "refused")], reloads.refused)];
        page.counter("reloads", "Reloads of the configuration", &counts)?;
        let is_good = reloads.last.as_ref().is_none_or(|(_, refused)| refused.is_none());
        let is_good = f64::from(u8::from(is_good));
        page.gauge("last_reload_successful", "0 if the last reload was refused", &[(&[], is_good)])?;
        let loaded = unix(reloads.last_loaded.unwrap_or(about.began));
        page.time("last_load", "When the configuration in use was loaded, in Unix time", &[(&[], loaded)])
    }

    fn write_discovery(&self, page: &mut Page<'_>) -> fmt::Result {
        let DiscoveryStatus { offered, taken } = self.clients.discovery();
        page.counter("h3_offered", "Clients that were told of HTTP/3 over TCP", &[(&[], offered)])?;
        page.counter("h3_taken", "Of these, clients that have come over HTTP/3", &[(&[], taken)])
    }

    fn write_certificates(&self, page: &mut Page<'_>) -> fmt::Result {
        let failures = self.certificate_failures.load(Ordering::Relaxed);
        let help = "New certificate files that could not be used";
        page.counter("certificate_failures", help, &[(&[], failures)])?;
        let states = self.edge.resolver().states();
        let ends: Vec<_> =
            states.iter().map(|it| ([("chain", it.chain.display().to_string())], unix(it.ends))).collect();
        let ends: Vec<_> = ends.iter().map(|([(key, file)], at)| ([(*key, file.as_str())], *at)).collect();
        let ends: Vec<_> = ends.iter().map(|(labels, at)| (&labels[..] as page::Labels<'_>, *at)).collect();
        page.time("certificate_not_after", "When a certificate ends, in Unix time", &ends)
    }

    fn write_endpoint(&self, page: &mut Page<'_>) -> fmt::Result {
        let sum = |get: fn(&EndpointStats) -> u64| self.endpoints.iter().map(|it| get(&it.stats())).sum();
        let udp =
            |get: fn(&SocketStats) -> u64| self.endpoints.iter().map(|it| get(&it.socket_stats())).sum();
        for (name, help, value) in [
            ("quic_accepted", "Handshakes begun", sum(|it| it.accepted)),
            (
                "quic_refused",
                "Initial packets dropped: too small, or too many handshakes",
                sum(|it| it.refused),
            ),
            ("quic_evicted", "Handshakes given up for newer ones", sum(|it| it.evicted)),
            ("quic_retries", "Retry packets sent", sum(|it| it.retries_sent)),
            ("quic_invalid_tokens", "Initial packets with an invalid token", sum(|it| it.invalid_tokens)),
            (
                "quic_validated_by_token",
                "Handshakes begun with a good token",
                sum(|it| it.validated_by_token),
            ),
            ("quic_stateless_resets", "Stateless resets sent", sum(|it| it.resets_sent)),
            (
                "quic_version_negotiations",
                "Version negotiations sent",
                sum(|it| it.version_negotiations_sent),
            ),
            (
                "quic_misplaced",
                "Datagrams that another worker's socket got, and passed on",
                sum(|it| it.misplaced),
            ),
            (
                "quic_misplaced_lost",
                "Of these, datagrams that were lost because the other worker had too many to read",
                udp(|it| it.passing_on_failed),
            ),
            ("quic_malformed", "Datagrams whose header could not be parsed", sum(|it| it.malformed)),
            ("quic_unroutable", "Datagrams for no connection", sum(|it| it.unroutable)),
            ("udp_send_errors", "Sends that the system refused", udp(|it| it.send_errors)),
            ("udp_sends_blocked", "Sends that waited for room in the socket", udp(|it| it.sends_blocked)),
            ("udp_receive_errors", "Errors in the place of a reception", udp(|it| it.receive_errors)),
            ("udp_replacements", "Sockets that took the place of a broken one", udp(|it| it.replacements)),
        ] {
            page.counter(name, help, &[(&[], value)])?;
        }
        Ok(())
    }
}

impl Collector for Counted {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        self.write_life(&mut page)?;
        self.requests.write(&mut page)?;
        self.write_discovery(&mut page)?;
        self.edge.upstreams().write(&mut page, self.edge.upstream_states())?;
        self.connections.write(&mut page)?;
        self.write_endpoint(&mut page)?;
        self.write_certificates(&mut page)
    }
}

/// Connections of one worker.
struct OfWorker {
    counted: Arc<Counted>,
    worker: usize,
}

impl ConnectionLog for OfWorker {
    fn opened(&self, connection: &posthaste_endpoint::Connection) {
        self.counted.connections.opened(self.worker, connection);
    }

    fn closed(&self, connection: &posthaste_endpoint::Connection) {
        self.counted.connections.closed(self.worker, connection);
    }
}

/// See [`Metrics::counting`].
struct Counting {
    counted: Arc<Counted>,
    next: Option<Arc<dyn AccessLog>>,
}

impl AccessLog for Counting {
    fn record(&self, record: &AccessRecord<'_>) {
        self.counted.requests.record(record);
        self.counted.clients.record(record);
        if let Some(next) = &self.next {
            next.record(record);
        }
    }
}

//! The most important figures as one object.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use posthaste_proxy::UpstreamHealth;
use posthaste_service::Protocol;
use serde::{Deserialize, Serialize};

use super::clients::{Both, SIZES};
use super::requests::{CLASSES, Sums};
use super::{Counted, unix, upstreams};

/// How an edge is. Counters begin with the process, times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The profile's name.
    pub profile: String,
    /// When it began.
    pub began: f64,
    /// Seconds since then.
    pub uptime: f64,
    /// No further connections are taken.
    pub draining: bool,
    /// Reloads of the configuration.
    pub reload: ReloadStatus,
    /// Requests that are over.
    pub requests: RequestsStatus,
    /// The same by site; those of no site are not here.
    pub sites: BTreeMap<String, SiteStatus>,
    /// HTTP/3 connections.
    pub http3: Http3Status,
    /// Whether clients that are told of HTTP/3 come over it.
    pub discovery: DiscoveryStatus,
    /// Upstreams of the configuration in use.
    pub upstreams: Vec<UpstreamStatus>,
    /// Times of whole responses, by size.
    pub times: Vec<TimesStatus>,
    /// The certificates in use.
    pub certificates: Vec<CertificateStatus>,
}

/// Reloads of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReloadStatus {
    /// Those that succeeded.
    pub loaded: u64,
    /// Those that were refused.
    pub refused: u64,
    /// When the last one was; `null` before the first.
    pub last: Option<f64>,
    /// Why the last one was refused, if it was.
    pub error: Option<String>,
}

/// Requests that are over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestsStatus {
    /// All of them.
    pub all: u64,
    /// By version of HTTP: `h1`, `h2`, `h3`.
    pub by_protocol: BTreeMap<String, u64>,
    /// By class of status: `2xx` and so on, `none` without a response.
    pub by_status: BTreeMap<String, u64>,
    /// The part of HTTP/3, 0 to 1; `null` before the first request.
    pub http3_share: Option<f64>,
    /// Given up by the client, or failed.
    pub incomplete: u64,
    /// Bytes of response bodies.
    pub response_bytes: u64,
}

/// Requests of one site.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteStatus {
    /// Requests that are over.
    pub requests: u64,
    /// Of these over HTTP/3.
    pub http3: u64,
    /// With a status of 500 or more.
    pub server_errors: u64,
    /// Bytes of response bodies.
    pub response_bytes: u64,
}

/// HTTP/3 connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Http3Status {
    /// Those that are open.
    pub open: usize,
    /// Since the beginning.
    pub connections: u64,
    /// Of these, those that went on from an earlier session.
    pub resumed: u64,
    /// Of these, those whose early data (0-RTT) were read.
    pub early_data: u64,
    /// Median of the open connections' smoothed round-trip times, in seconds; `null` without one.
    pub rtt_median: Option<f64>,
    /// Their 95th percentile.
    pub rtt_p95: Option<f64>,
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// Of these, packets that were declared lost.
    pub packets_lost: u64,
    /// UDP payload sent, in bytes.
    pub sent_bytes: u64,
    /// UDP payload received, in bytes.
    pub received_bytes: u64,
}

/// How many clients (IPv4 addresses or IPv6 networks of 64 bits) were told of HTTP/3, and came. The last few thousand clients
/// are remembered; one that was forgotten counts anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveryStatus {
    /// Clients that were told over TCP, by `Alt-Svc`.
    pub offered: u64,
    /// Of these, clients that have come over HTTP/3.
    pub taken: u64,
}

/// An upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamStatus {
    /// Its URL.
    pub url: String,
    /// `well`; `left out` for a while after connections have failed; `down` by health checks.
    pub health: String,
    /// Requests that it works on.
    pub open: usize,
    /// Connections to it, idle ones included.
    pub connections: u64,
    /// Requests that it did not answer whole, since the start.
    pub failures: u64,
}

/// Times of whole, successful responses of a size. Over HTTP/3 a response ends when the client has acknowledged it; over TCP
/// when the kernel has its last byte, which is before the client has it: by up to the size of the socket's buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimesStatus {
    /// Least number of bytes of the body.
    pub from: u64,
    /// All responses over TCP.
    pub tcp: MedianTimes,
    /// All responses over HTTP/3.
    pub http3: MedianTimes,
    /// Over TCP, of clients that came over both.
    pub tcp_of_both: MedianTimes,
    /// Over HTTP/3, of clients that came over both.
    pub http3_of_both: MedianTimes,
}

/// Medians, in seconds, within 7 %; `null` without a response.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MedianTimes {
    /// How many responses.
    pub count: u64,
    /// From the request to the response's head.
    pub first_byte: Option<f64>,
    /// To the response's end.
    pub whole: Option<f64>,
}

/// A certificate in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertificateStatus {
    /// The chain's file.
    pub chain: String,
    /// The names that it is good for.
    pub names: Vec<String>,
    /// When it ends.
    pub ends: f64,
    /// What is to be said of its end, if anything.
    pub warning: Option<String>,
}

impl Counted {
    pub(super) fn status(&self, now: SystemTime) -> Status {
        let reloads = self.reloads();
        let (last, error) = reloads.last.map_or((None, None), |(at, refused)| (Some(unix(at)), refused));
        let (requests, sites) = self.requests_status();
        let certificates = self.edge.resolver().states().into_iter().map(|state| CertificateStatus {
            warning: state.warning(now),
            chain: state.chain.display().to_string(),
            ends: unix(state.ends),
            names: state.names,
        });
        Status {
            version: self.about.version.clone(),
            profile: self.about.profile.clone(),
            began: unix(self.about.began),
            uptime: now.duration_since(self.about.began).unwrap_or_default().as_secs_f64(),
            draining: self.is_draining.load(Ordering::Relaxed),
            reload: ReloadStatus { loaded: reloads.loaded, refused: reloads.refused, last, error },
            requests,
            sites,
            http3: self.http3_status(),
            discovery: self.clients.discovery(),
            upstreams: self.upstreams_status(),
            times: self.times_status(),
            certificates: certificates.collect(),
        }
    }

    fn requests_status(&self) -> (RequestsStatus, BTreeMap<String, SiteStatus>) {
        let (mut all, mut by_protocol, mut sites) = (Sums::default(), BTreeMap::new(), BTreeMap::new());
        for ((site, protocol), sums) in self.requests.sums() {
            all.add(&sums);
            *by_protocol.entry(protocol.name().to_owned()).or_insert(0) += sums.all();
            let Some(site) = site else { continue };
            let site: &mut SiteStatus = sites.entry(site.to_string()).or_default();
            site.requests += sums.all();
            site.http3 += if protocol == Protocol::Http3 { sums.all() } else { 0 };
            site.server_errors += sums.by_class[4];
            site.response_bytes += sums.bytes;
        }
        let http3 = by_protocol.get(Protocol::Http3.name()).copied().unwrap_or(0);
        let by_status = CLASSES.iter().zip(all.by_class).filter(|(_, number)| *number > 0);
        let requests = RequestsStatus {
            all: all.all(),
            by_protocol,
            by_status: by_status.map(|(class, number)| ((*class).to_owned(), number)).collect(),
            http3_share: (all.all() > 0).then(|| http3 as f64 / all.all() as f64),
            incomplete: all.incomplete,
            response_bytes: all.bytes,
        };
        (requests, sites)
    }

    fn upstreams_status(&self) -> Vec<UpstreamStatus> {
        let all = self.edge.upstreams().now(self.edge.upstream_states());
        let status = |now: upstreams::Now| UpstreamStatus {
            health: match now.state.health {
                UpstreamHealth::Well => "well",
                UpstreamHealth::LeftOut => "left out",
                _ => "down",
            }
            .to_owned(),
            url: now.state.url,
            open: now.state.open,
            connections: now.connections,
            failures: now.failures,
        };
        all.into_iter().map(status).collect()
    }

    fn times_status(&self) -> Vec<TimesStatus> {
        let (all, both) = self.clients.times();
        let times = |(class, from): (usize, u64)| TimesStatus {
            from,
            tcp: medians(&all.over_tcp[class]),
            http3: medians(&all.over_http3[class]),
            tcp_of_both: medians(&both.over_tcp[class]),
            http3_of_both: medians(&both.over_http3[class]),
        };
        [0].into_iter().chain(SIZES).enumerate().map(times).collect()
    }

    fn http3_status(&self) -> Http3Status {
        let now = self.connections.now();
        let quantile = |share: f64| {
            let last = now.round_trips.len().checked_sub(1)?;
            now.round_trips.get((last as f64 * share).round() as usize).copied()
        };
        Http3Status {
            open: now.open,
            connections: now.totals.connections,
            resumed: now.totals.resumed,
            early_data: now.totals.early,
            rtt_median: quantile(0.5),
            rtt_p95: quantile(0.95),
            packets_sent: now.totals.packets_sent,
            packets_lost: now.totals.packets_lost,
            sent_bytes: now.totals.sent_bytes,
            received_bytes: now.totals.received_bytes,
        }
    }
}

fn medians(both: &Both) -> MedianTimes {
    let (first_byte, whole) = (both.first_byte.median(), both.whole.median());
    MedianTimes { count: both.whole.count(), first_byte, whole }
}

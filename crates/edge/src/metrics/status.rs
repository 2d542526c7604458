//! The most important figures as one object.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use posthaste_service::Protocol;
use serde::{Deserialize, Serialize};

use super::requests::{CLASSES, Sums};
use super::{Counted, unix};

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
        let certificates = self.resolver.states().into_iter().map(|state| CertificateStatus {
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
            rtt_median: quantile(0.5),
            rtt_p95: quantile(0.95),
            packets_sent: now.totals.packets_sent,
            packets_lost: now.totals.packets_lost,
            sent_bytes: now.totals.sent_bytes,
            received_bytes: now.totals.received_bytes,
        }
    }
}

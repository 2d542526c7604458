//! What was measured, for programs. Times are in seconds.

use std::time::Duration;

use posthaste_endpoint::EarlyData;
use posthaste_http::ConnectionReport;
use posthaste_http::client::{Download, Response, SplitReport};
use serde::Serialize;

use super::fallback::TcpResponse;
use super::output::Destination;

/// One URL and what became of it.
#[derive(Debug)]
pub(super) struct Transfer {
    url: String,
    file: Option<String>,
    final_url: Option<String>,
    status: Option<u16>,
    pub(super) bytes: u64,
    /// With `--upload`: what was sent of the file.
    pub(super) uploaded: Option<u64>,
    first_byte: Option<Duration>,
    pub(super) total: Duration,
    connection: Option<ConnectionReport>,
    /// What it came by, as ALPN calls it.
    protocol: &'static str,
    /// With `--connections`.
    pub(super) split: Option<SplitReport>,
    pub(super) error: Option<String>,
}

impl Transfer {
    pub(super) fn new(url: &str, destination: &Destination) -> Self {
        let file = match destination {
            Destination::File(path) => Some(path.display().to_string()),
            Destination::Stdout | Destination::Nowhere => None,
        };
        Self {
            url: url.to_owned(),
            file,
            final_url: None,
            status: None,
            bytes: 0,
            uploaded: None,
            first_byte: None,
            total: Duration::ZERO,
            connection: None,
            protocol: "h3",
            split: None,
            error: None,
        }
    }

    /// The response has begun.
    pub(super) fn begin(&mut self, response: &Response) {
        self.final_url = Some(response.uri().to_string());
        self.status = Some(response.status().as_u16());
        self.first_byte = Some(response.first_byte());
        self.connection = Some(response.connection());
    }

    /// The same over TCP.
    pub(super) fn begin_over_tcp(&mut self, response: &TcpResponse) {
        self.final_url = Some(response.uri.to_string());
        self.status = Some(response.head.status.as_u16());
        self.first_byte = Some(response.first_byte);
        self.protocol = response.protocol();
    }

    /// The same of a download that may be in parts; `connection` is its first.
    pub(super) fn begin_in_parts(&mut self, download: &Download, connection: Option<ConnectionReport>) {
        self.final_url = Some(download.uri().to_string());
        self.status = Some(download.status().as_u16());
        self.first_byte = Some(download.first_byte());
        self.connection = connection;
    }
}

/// The longest of the transfers, which went on together.
pub(super) fn longest(transfers: &[Transfer]) -> Duration {
    transfers.iter().map(|transfer| transfer.total).max().unwrap_or_default()
}

/// All that `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    profile: String,
    transfers: Vec<TransferReport>,
    connections: Vec<Connection>,
}

#[derive(Debug, Serialize)]
struct TransferReport {
    url: String,
    /// Where redirects led; null without a response.
    final_url: Option<String>,
    ok: bool,
    error: Option<String>,
    status: Option<u16>,
    protocol: Option<&'static str>,
    file: Option<String>,
    bytes: u64,
    /// With `--upload`: bytes of the file that were sent; null otherwise.
    uploaded_bytes: Option<u64>,
    /// Of the upload, if there is one.
    bytes_per_second: f64,
    times: Times,
    /// Which of `connections` carried it, or began to; null over TCP, and if a thousand connections were made since.
    connection: Option<usize>,
    /// With `--connections`: over which it came, and how.
    split: Option<Split>,
}

/// A file that was to come over several connections.
#[derive(Debug, Serialize)]
struct Split {
    connections: Vec<Share>,
    /// Why one connection had to do; null if several were used.
    single: Option<String>,
    /// The server treats them as one sender.
    grouped: bool,
    /// Requests for ranges.
    ranges: u64,
    /// How many of them took over what another connection had been asked for.
    steals: u64,
    /// Bytes that came though another connection had been asked for them.
    surplus_bytes: u64,
    /// Connections that others had to stand in for.
    lost_connections: u64,
}

/// What one of `connections` brought.
#[derive(Debug, Serialize)]
struct Share {
    connection: Option<usize>,
    bytes: u64,
}

fn split(report: &SplitReport, connections: &[ConnectionReport]) -> Split {
    let share = |&(index, bytes): &(usize, u64)| Share { connection: place(connections, index), bytes };
    Split {
        connections: report.connections.iter().map(share).collect(),
        single: report.single.map(|reason| reason.to_string()),
        grouped: report.is_grouped,
        ranges: report.ranges,
        steals: report.steals,
        surplus_bytes: report.surplus,
        lost_connections: report.lost,
    }
}

/// Seconds. `first_byte` and `total` count from the moment that the URL was asked for, name resolution and
/// handshake included; a connection that was there already has its handshake behind it.
#[derive(Debug, Serialize)]
struct Times {
    handshake: Option<f64>,
    first_byte: Option<f64>,
    total: f64,
}

#[derive(Debug, Serialize)]
struct Connection {
    origin: String,
    remote: String,
    protocol: &'static str,
    resolution: f64,
    handshake: Option<f64>,
    /// The handshake went on from an earlier connection's session.
    resumed: bool,
    /// `accepted` or `rejected`; null if nothing was sent before the handshake was complete.
    early_data: Option<&'static str>,
    rtt: RoundTrip,
    packets: Packets,
    bytes_sent: u64,
    bytes_received: u64,
    congestion_window: u64,
    congestion_phase: String,
    pacing_bytes_per_second: Option<u64>,
    probe_timeouts: u64,
}

/// Seconds.
#[derive(Debug, Serialize)]
struct RoundTrip {
    smoothed: f64,
    minimum: f64,
    latest: f64,
    variance: f64,
}

/// `lost` are packets that this end sent; what the server lost it alone knows.
#[derive(Debug, Serialize)]
struct Packets {
    sent: u64,
    received: u64,
    lost: u64,
    spuriously_lost: u64,
    loss_ratio: f64,
}

impl Report {
    pub(super) fn new(profile: &str, transfers: &[Transfer], connections: &[ConnectionReport]) -> Self {
        Self {
            profile: profile.to_owned(),
            transfers: transfers.iter().map(|it| transfer(it, connections)).collect(),
            connections: connections.iter().map(connection).collect(),
        }
    }
}

/// Where the connection with this index is in the list; `None` if it is over, and too many were made since.
fn place(connections: &[ConnectionReport], index: usize) -> Option<usize> {
    connections.iter().position(|connection| connection.index == index)
}

fn transfer(transfer: &Transfer, connections: &[ConnectionReport]) -> TransferReport {
    let total = transfer.total.as_secs_f64();
    let seconds = |duration: Duration| duration.as_secs_f64();
    let connection = transfer.connection.as_ref();
    let moved = transfer.uploaded.unwrap_or(transfer.bytes);
    let split = transfer.split.as_ref().map(|report| split(report, connections));
    TransferReport {
        url: transfer.url.clone(),
        final_url: transfer.final_url.clone(),
        ok: transfer.error.is_none(),
        error: transfer.error.clone(),
        status: transfer.status,
        protocol: transfer.status.map(|_| transfer.protocol),
        file: transfer.file.clone().filter(|_| transfer.error.is_none()),
        bytes: transfer.bytes,
        uploaded_bytes: transfer.uploaded,
        bytes_per_second: if total > 0.0 { moved as f64 / total } else { 0.0 },
        times: Times {
            handshake: connection.and_then(|connection| connection.handshake).map(seconds),
            first_byte: transfer.first_byte.map(seconds),
            total,
        },
        connection: connection.and_then(|connection| place(connections, connection.index)),
        split,
    }
}

fn connection(report: &ConnectionReport) -> Connection {
    let stats = &report.stats;
    Connection {
        origin: report.origin.to_string(),
        remote: report.remote.to_string(),
        protocol: "h3",
        resolution: report.resolution.as_secs_f64(),
        handshake: report.handshake.map(|handshake| handshake.as_secs_f64()),
        resumed: report.is_resumed,
        early_data: match report.early_data {
            Some(EarlyData::Accepted) => Some("accepted"),
            Some(EarlyData::Rejected) => Some("rejected"),
            Some(EarlyData::None) | None => None,
        },
        rtt: RoundTrip {
            smoothed: stats.rtt.smoothed.as_secs_f64(),
            minimum: stats.rtt.min.as_secs_f64(),
            latest: stats.rtt.latest.as_secs_f64(),
            variance: stats.rtt.variance.as_secs_f64(),
        },
        packets: Packets {
            sent: stats.packets_sent,
            received: stats.packets_received,
            lost: stats.packets_lost,
            spuriously_lost: stats.packets_spuriously_lost,
            loss_ratio: if stats.packets_sent > 0 {
                stats.packets_lost as f64 / stats.packets_sent as f64
            } else {
                0.0
            },
        },
        bytes_sent: stats.sent.bytes.get(),
        bytes_received: stats.received.bytes.get(),
        congestion_window: stats.congestion.window.get(),
        congestion_phase: format!("{:?}", stats.congestion.phase),
        pacing_bytes_per_second: stats.pacing_rate.map(posthaste_units::Rate::as_bytes_per_second),
        probe_timeouts: stats.probe_timeouts,
    }
}

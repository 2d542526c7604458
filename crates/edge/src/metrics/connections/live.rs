//! Open connections one by one, for operators on the machine: addresses are in no other figure.

use std::net::SocketAddr;

use posthaste_endpoint::{Connection, ConnectionStats, Rate};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Open HTTP/3 connections: the slowest of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveConnections {
    /// How many are open.
    pub open: usize,
    /// Those with the greatest smoothed round-trip times, the greatest first.
    pub slowest: Vec<ConnectionStatus>,
}

/// An open HTTP/3 connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionStatus {
    /// The client's address and port.
    pub address: SocketAddr,
    /// The worker that serves it, from 0.
    pub worker: usize,
    /// Seconds since its handshake.
    pub age: f64,
    /// Smoothed round-trip time in seconds; `null` before it is measured.
    pub rtt: Option<f64>,
    /// Share of packets that was declared lost, 0 to 1.
    pub loss: f64,
    /// What pacing and window let out, in bits per second; `null` before there is a round-trip time.
    pub rate: Option<u64>,
    /// Size of datagrams, in bytes of UDP payload.
    pub datagram_size: usize,
    /// Requests so far.
    pub requests: u64,
    /// UDP payload sent, in bytes.
    pub sent_bytes: u64,
}

/// A connection while it is open.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) connection: Connection,
    pub(super) since: Instant,
}

impl ConnectionStatus {
    fn of(worker: usize, live: &Live, now: Instant) -> Self {
        let stats = live.connection.stats();
        Self {
            address: live.connection.remote_address(),
            worker,
            age: now.saturating_duration_since(live.since).as_secs_f64(),
            rtt: stats.rtt.is_measured.then(|| super::seconds(stats.rtt.smoothed.into())),
            loss: super::share_lost(&stats),
            rate: stats.rtt.is_measured.then(|| rate(&stats).as_bits_per_second()),
            datagram_size: stats.max_datagram_size,
            requests: stats.streams.accepted,
            sent_bytes: stats.sent.bytes.get(),
        }
    }
}

/// A window per round trip, and no more than the pacer lets out.
fn rate(stats: &ConnectionStats) -> Rate {
    let by_window = Rate::from_transfer(stats.congestion.window, stats.rtt.smoothed);
    stats.pacing_rate.map_or(by_window, |by_pacer| by_window.min(by_pacer))
}

/// The slowest of these connections and their workers, at most `most`.
pub(super) fn slowest(open: &[(usize, Live)], now: Instant, most: usize) -> LiveConnections {
    let number = open.len();
    let mut all: Vec<_> =
        open.iter().map(|(worker, live)| ConnectionStatus::of(*worker, live, now)).collect();
    all.sort_by(|one, other| other.rtt.unwrap_or(0.0).total_cmp(&one.rtt.unwrap_or(0.0)));
    all.truncate(most);
    LiveConnections { open: number, slowest: all }
}

//! HTTP/3 connections: sums over those that are over and those that are open, by address family, and a list of open ones.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, PoisonError};

use posthaste_endpoint::{Connection, ConnectionHandle, ConnectionStats, EarlyData, EcnState};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;
use tokio::time::Instant;

use self::live::Live;
use super::page::{Labels, Page};

mod live;
mod waits;

pub use live::{ConnectionStatus, LiveConnections};
use waits::Waits;

/// Bounds of ranges of round-trip times, in seconds.
const ROUND_TRIPS: [f64; 12] = [0.001, 0.005, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.25, 0.5, 1.0, 3.0];

/// Of the share of packets that was lost.
const SHARES: [f64; 9] = [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3];

/// Of congestion windows, in bytes.
const WINDOWS: [f64; 9] = [5e3, 15e3, 5e4, 1.5e5, 5e5, 1.5e6, 5e6, 1.5e7, 5e7];

/// Of datagrams, in bytes of UDP payload: at the sizes that common links and tunnels leave.
const DATAGRAMS: [f64; 8] = [1200.0, 1232.0, 1280.0, 1350.0, 1400.0, 1452.0, 1472.0, 9000.0];

/// What validation of ECN has come to.
const ECN: [&str; 3] = ["validated", "failed", "unknown"];

/// IPv4 and IPv6.
const FAMILIES: [Labels<'static>; 2] = [&[("family", "ipv4")], &[("family", "ipv6")]];

/// The connections of an HTTP/3 server.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<[Family; 2]>);

/// Connections of one address family.
#[derive(Debug)]
struct Family {
    /// By worker: each counts its connections for itself.
    open: BTreeMap<(usize, ConnectionHandle), Live>,
    /// Over those that are over.
    over: Totals,
    smoothed: Histogram,
    least: Histogram,
    lost: Histogram,
    window: Histogram,
    datagram: Histogram,
    /// As [`ECN`] has them.
    ecn: [u64; ECN.len()],
}

impl Default for Family {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            over: Totals::default(),
            smoothed: Histogram::new(ROUND_TRIPS),
            least: Histogram::new(ROUND_TRIPS),
            lost: Histogram::new(SHARES),
            window: Histogram::new(WINDOWS),
            datagram: Histogram::new(DATAGRAMS),
            ecn: [0; ECN.len()],
        }
    }
}

/// Sums over connections.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) connections: u64,
    pub(super) resumed: u64,
    /// With requests that were read before the handshake was complete.
    pub(super) early: u64,
    early_refused: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) packets_sent: u64,
    pub(super) packets_lost: u64,
    spuriously_lost: u64,
    copied: u64,
    probe_timeouts: u64,
    moves: u64,
    black_holes: u64,
    marked: u64,
    jumps: u64,
    jumps_undone: u64,
    waits: Waits,
}

impl Totals {
    fn of(connection: &Connection, stats: &ConnectionStats) -> Self {
        Self {
            connections: 1,
            resumed: u64::from(connection.is_resumed()),
            early: u64::from(connection.early_data() == Some(EarlyData::Accepted)),
            early_refused: u64::from(connection.early_data() == Some(EarlyData::Rejected)),
            sent_bytes: stats.sent.bytes.get(),
            received_bytes: stats.received.bytes.get(),
            packets_sent: stats.packets_sent,
            packets_lost: stats.packets_lost,
            spuriously_lost: stats.packets_spuriously_lost,
            copied: stats.packets_copied,
            probe_timeouts: stats.probe_timeouts,
            moves: stats.moves,
            black_holes: stats.black_holes,
            marked: stats.packets_marked,
            jumps: stats.jumps.taken,
            jumps_undone: stats.jumps.undone,
            waits: Waits::of(&stats.waited),
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.resumed += other.resumed;
        self.early += other.early;
        self.early_refused += other.early_refused;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.packets_sent += other.packets_sent;
        self.packets_lost += other.packets_lost;
        self.spuriously_lost += other.spuriously_lost;
        self.copied += other.copied;
        self.probe_timeouts += other.probe_timeouts;
        self.moves += other.moves;
        self.black_holes += other.black_holes;
        self.marked += other.marked;
        self.jumps += other.jumps;
        self.jumps_undone += other.jumps_undone;
        self.waits += other.waits;
    }
}

/// What is known of all connections, and of the open ones now.
#[derive(Debug, Clone, Default)]
pub(super) struct Now {
    pub(super) totals: Totals,
    /// Smoothed round-trip times of open connections, in seconds, ascending.
    pub(super) round_trips: Vec<f64>,
    pub(super) open: usize,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, [Family; 2]> {
        // Sums are whole after each call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn opened(&self, worker: usize, connection: &Connection) {
        let family = index(connection.remote_address());
        let live = Live { connection: connection.clone(), since: Instant::now() };
        self.lock()[family].open.insert((worker, connection.id()), live);
    }

    pub(super) fn closed(&self, worker: usize, connection: &Connection) {
        // It may have moved to an address of the other family.
        for family in &mut *self.lock() {
            family.on_closed(worker, connection);
        }
    }

    pub(super) fn now(&self) -> Now {
        let families = self.lock();
        let mut now = Now::default();
        for family in &*families {
            let (totals, round_trips) = family.now();
            now.open += family.open.len();
            now.round_trips.extend(round_trips);
            now.totals += totals;
        }
        now.round_trips.sort_by(f64::total_cmp);
        now
    }

    /// The slowest open connections, at most `most`.
    pub(super) fn live(&self, most: usize) -> LiveConnections {
        let now = Instant::now();
        let open: Vec<_> = {
            let families = self.lock();
            let all = families.iter().flat_map(|family| &family.open);
            all.map(|(key, live)| (key.0, live.clone())).collect()
        };
        live::slowest(&open, now, most)
    }

    pub(super) fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let families = self.lock();
        let totals = families.each_ref().map(|family| family.now().0);
        let of = |get: fn(&Totals) -> u64| [(FAMILIES[0], get(&totals[0])), (FAMILIES[1], get(&totals[1]))];
        let open = [0, 1].map(|index| (FAMILIES[index], families[index].open.len() as f64));
        page.gauge("http3_connections_open", "HTTP/3 connections that are open", &open)?;
        page.counter("http3_connections", "HTTP/3 connections", &of(|it| it.connections))?;
        page.counter(
            "http3_resumed",
            "HTTP/3 connections that went on from an earlier session",
            &of(|it| it.resumed),
        )?;
        let help = "HTTP/3 connections whose early data (0-RTT) were read";
        page.counter("http3_early_data", help, &of(|it| it.early))?;
        let help = "HTTP/3 connections whose early data (0-RTT) were not read";
        page.counter("http3_early_data_refused", help, &of(|it| it.early_refused))?;
        page.bytes("quic_sent", "UDP payload sent on connections", &of(|it| it.sent_bytes))?;
        page.bytes("quic_received", "UDP payload received on connections", &of(|it| it.received_bytes))?;
        page.counter("quic_packets_sent", "QUIC packets sent", &of(|it| it.packets_sent))?;
        page.counter("quic_packets_lost", "QUIC packets declared lost", &of(|it| it.packets_lost))?;
        let help = "QUIC packets declared lost that had arrived";
        page.counter("quic_packets_spuriously_lost", help, &of(|it| it.spuriously_lost))?;
        let help = "QUIC packets sent again before they were known to be lost";
        page.counter("quic_packets_copied", help, &of(|it| it.copied))?;
        page.counter("quic_probe_timeouts", "Probe timeouts", &of(|it| it.probe_timeouts))?;
        page.counter("quic_moves", "Moves of connections to another network path", &of(|it| it.moves))?;
        let help = "Times that a path ceased to carry datagrams of the usual size";
        page.counter("quic_black_holes", help, &of(|it| it.black_holes))?;
        let help = "QUIC packets that clients reported as marked by congestion (ECN-CE)";
        page.counter("quic_packets_marked", help, &of(|it| it.marked))?;
        let help = "Increases of the window to what a path's history or a measurement showed";
        page.counter("quic_jumps", help, &of(|it| it.jumps))?;
        page.counter("quic_jumps_undone", "Of these, those that met congestion", &of(|it| it.jumps_undone))?;
        waits::write(page, totals.each_ref().map(|it| &it.waits))?;
        write_ecn(page, &families)?;
        let each = |get: fn(&Family) -> &Histogram| {
            [(FAMILIES[0], get(&families[0])), (FAMILIES[1], get(&families[1]))]
        };
        let seconds = Some(&Unit::Seconds);
        let help = "Smoothed round-trip time at a connection's end";
        page.histogram(("quic_smoothed_rtt", help, seconds), &each(|it| &it.smoothed))?;
        let help = "Least round-trip time of a connection";
        page.histogram(("quic_least_rtt", help, seconds), &each(|it| &it.least))?;
        let help = "Share of a connection's packets that was declared lost";
        page.histogram(("quic_loss", help, Some(&Unit::Ratios)), &each(|it| &it.lost))?;
        let help = "Congestion window at a connection's end";
        page.histogram(("quic_window", help, Some(&Unit::Bytes)), &each(|it| &it.window))?;
        let help = "Size of datagrams that a connection reached";
        page.histogram(("quic_datagram", help, Some(&Unit::Bytes)), &each(|it| &it.datagram))
    }
}

/// The part of a connection's packets that was declared lost.
fn share_lost(stats: &ConnectionStats) -> f64 {
    stats.packets_lost as f64 / stats.packets_sent.max(1) as f64
}

fn write_ecn(page: &mut Page<'_>, families: &[Family; 2]) -> fmt::Result {
    let mut labels = Vec::new();
    for (family, own) in families.iter().zip(FAMILIES) {
        for (state, number) in ECN.iter().zip(family.ecn) {
            labels.push(([own[0], ("state", *state)], number));
        }
    }
    let values: Vec<_> = labels.iter().map(|(own, number)| (&own[..] as Labels<'_>, *number)).collect();
    page.counter("quic_ecn", "Connections that are over, by what validation of ECN came to", &values)
}

impl Family {
    fn now(&self) -> (Totals, Vec<f64>) {
        let mut totals = self.over;
        let mut round_trips = Vec::new();
        for Live { connection, .. } in self.open.values() {
            let stats = connection.stats();
            totals += Totals::of(connection, &stats);
            if stats.rtt.is_measured {
                round_trips.push(seconds(stats.rtt.smoothed.into()));
            }
        }
        (totals, round_trips)
    }

    fn on_closed(&mut self, worker: usize, connection: &Connection) {
        if self.open.remove(&(worker, connection.id())).is_none() {
            return;
        }
        let stats = connection.stats();
        self.over += Totals::of(connection, &stats);
        if stats.rtt.is_measured {
            self.smoothed.observe(seconds(stats.rtt.smoothed.into()));
            self.least.observe(seconds(stats.rtt.min.into()));
        }
        self.lost.observe(share_lost(&stats));
        self.window.observe(stats.congestion.window.get() as f64);
        self.datagram.observe(stats.max_datagram_size as f64);
        let ecn = match stats.ecn {
            EcnState::Capable => 0,
            EcnState::Failed => 1,
            EcnState::Testing | EcnState::Unknown => 2,
        };
        self.ecn[ecn] += 1;
    }
}

fn seconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64()
}

fn index(address: SocketAddr) -> usize {
    usize::from(address.is_ipv6())
}

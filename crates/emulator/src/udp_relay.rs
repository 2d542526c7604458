//! A UDP relay that impairs both directions.
//!
//! Every client address has an upstream socket and a pair of directions of its own, as if it came over an access
//! link of its own; the server sees one port a client. Real time is as exact as tokio's timer (1 ms).

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use posthaste_path::{Path, PathConfig, PathStats};
use posthaste_units::{Rng, Time};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

/// Packets of one client that may wait for its task; more are dropped and counted as overflowed.
pub const MAX_QUEUED_PER_CLIENT: usize = 4_096;

/// A client that neither sends nor receives for so long loses its place (its NAT binding, so to say).
const CLIENT_IDLE: std::time::Duration = std::time::Duration::from_secs(120);

/// The largest UDP payload.
const MAX_DATAGRAM: usize = 65_535;

/// What to relay and how.
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// Where clients send to; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The server.
    pub upstream: SocketAddr,
    /// From the server to each client.
    pub down: PathConfig,
    /// From each client to the server.
    pub up: PathConfig,
    /// Two relays with the same seed that see the same packets at the same times treat them alike.
    pub seed: u64,
    /// Clients at once; packets of further ones are dropped and counted.
    pub max_clients: usize,
}

/// Counts since the start, summed over clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// From servers to clients.
    pub down: PathStats,
    /// From clients to servers.
    pub up: PathStats,
    /// Clients that were given a place.
    pub clients: u64,
    /// Packets dropped because all places were taken.
    pub refused: u64,
    /// Packets that a socket did not take or give (a full buffer, a dead server).
    pub socket_errors: u64,
}

/// A running relay; dropping it stops it.
#[derive(Debug)]
pub struct UdpRelay {
    local_addr: SocketAddr,
    stats: Arc<Mutex<RelayStats>>,
    task: JoinHandle<()>,
}

impl UdpRelay {
    /// Binds `config.listen` and relays from then on, on the current tokio runtime.
    ///
    /// # Errors
    /// The address cannot be bound, or a [`PathConfig`] is out of range (`InvalidInput`).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start(config: RelayConfig) -> io::Result<Self> {
        for path in [&config.down, &config.up] {
            path.validate().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        }
        let listener = Arc::new(UdpSocket::bind(config.listen).await?);
        let local_addr = listener.local_addr()?;
        let stats = Arc::new(Mutex::new(RelayStats::default()));
        let relay = Relay {
            listener,
            rng: Rng::from_test_seed(config.seed),
            config,
            stats: Arc::clone(&stats),
            clients: HashMap::new(),
            tasks: JoinSet::new(),
        };
        Ok(Self { local_addr, stats, task: tokio::spawn(relay.run()) })
    }

    /// Where clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Counts since the start.
    pub fn stats(&self) -> RelayStats {
        *lock(&self.stats)
    }

    /// Stops, drops what is under way, and returns the final counts once every socket is closed.
    pub async fn shutdown(mut self) -> RelayStats {
        self.task.abort();
        // The error says that the task was cancelled, which is what was asked for.
        let _ = (&mut self.task).await;
        self.stats()
    }
}

impl Drop for UdpRelay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Counts stay whole even if a task panicked while it held them: every update is a plain addition.
fn lock(stats: &Mutex<RelayStats>) -> MutexGuard<'_, RelayStats> {
    stats.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task that owns the listening socket.
struct Relay {
    listener: Arc<UdpSocket>,
    rng: Rng,
    config: RelayConfig,
    stats: Arc<Mutex<RelayStats>>,
    clients: HashMap<SocketAddr, mpsc::Sender<Bytes>>,
    /// The clients' tasks; dropped, hence ended, with the relay.
    tasks: JoinSet<()>,
}

impl Relay {
    async fn run(mut self) {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            match self.listener.recv_from(&mut buffer).await {
                Ok((length, client)) => {
                    self.on_client_packet(client, Bytes::copy_from_slice(&buffer[..length])).await;
                }
                // A client that went away shows as an ICMP error on the shared socket; others go on.
                Err(error) => {
                    tracing::debug!(%error, "receiving from clients");
                    lock(&self.stats).socket_errors += 1;
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    async fn on_client_packet(&mut self, client: SocketAddr, packet: Bytes) {
        let packet = match self.clients.get(&client).map(|sender| sender.try_send(packet.clone())) {
            Some(Ok(())) => return,
            Some(Err(mpsc::error::TrySendError::Full(_))) => {
                let mut stats = lock(&self.stats);
                stats.up.offered += 1;
                stats.up.overflowed += 1;
                return;
            }
            Some(Err(mpsc::error::TrySendError::Closed(packet))) => packet,
            None => packet,
        };
        match self.admit(client).await {
            Ok(Some(sender)) => {
                // A new channel has room.
                let _ = sender.try_send(packet);
                self.clients.insert(client, sender);
            }
            Ok(None) => lock(&self.stats).refused += 1,
            Err(error) => {
                tracing::warn!(%error, "no socket towards the server");
                lock(&self.stats).socket_errors += 1;
            }
        }
    }

    /// A task for a new client, or `None` if all places are taken.
    async fn admit(&mut self, client: SocketAddr) -> io::Result<Option<mpsc::Sender<Bytes>>> {
        self.clients.retain(|_, sender| !sender.is_closed());
        while self.tasks.try_join_next().is_some() {}
        if self.clients.len() >= self.config.max_clients {
            return Ok(None);
        }
        let any: SocketAddr = if self.config.upstream.is_ipv4() {
            (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let upstream = UdpSocket::bind(any).await?;
        upstream.connect(self.config.upstream).await?;
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let (sender, from_client) = mpsc::channel(MAX_QUEUED_PER_CLIENT);
        let link = ClientLink {
            client,
            listener: Arc::clone(&self.listener),
            upstream,
            up: Direction::new(Path::new(self.config.up.clone(), self.rng.fork()).map_err(invalid)?),
            down: Direction::new(Path::new(self.config.down.clone(), self.rng.fork()).map_err(invalid)?),
            stats: Arc::clone(&self.stats),
            epoch: Instant::now(),
        };
        lock(&self.stats).clients += 1;
        self.tasks.spawn(link.run(from_client));
        Ok(Some(sender))
    }
}

/// A path and what of its counts has been published.
struct Direction {
    path: Path,
    published: PathStats,
}

impl Direction {
    fn new(path: Path) -> Self {
        Self { path, published: PathStats::default() }
    }

    fn news(&mut self) -> PathStats {
        let news = self.path.stats().since(&self.published);
        self.published = self.path.stats();
        news
    }
}

/// The task that owns one client's two directions.
struct ClientLink {
    client: SocketAddr,
    listener: Arc<UdpSocket>,
    upstream: UdpSocket,
    up: Direction,
    down: Direction,
    stats: Arc<Mutex<RelayStats>>,
    epoch: Instant,
}

impl ClientLink {
    async fn run(mut self, mut from_client: mpsc::Receiver<Bytes>) {
        let mut buffer = vec![0; MAX_DATAGRAM];
        let mut idle_at = Instant::now() + CLIENT_IDLE;
        loop {
            let due =
                [self.up.path.next_timeout(), self.down.path.next_timeout()].into_iter().flatten().min();
            let wake = due.map_or(idle_at, |due| self.instant(due));
            tokio::select! {
                packet = from_client.recv() => {
                    let Some(packet) = packet else { return };
                    idle_at = Instant::now() + CLIENT_IDLE;
                    self.up.path.on_packet(self.now(), packet);
                }
                received = self.upstream.recv(&mut buffer) => if let Ok(length) = received {
                    idle_at = Instant::now() + CLIENT_IDLE;
                    self.down.path.on_packet(self.now(), Bytes::copy_from_slice(&buffer[..length]));
                } else {
                    // The server's port is closed: the client finds out as over a real network, by silence.
                    lock(&self.stats).socket_errors += 1;
                    tokio::task::yield_now().await;
                },
                () = tokio::time::sleep_until(wake) => {
                    if due.is_none() {
                        return;
                    }
                }
            }
            self.forward().await;
        }
    }

    /// Sends everything that is due and publishes the counts.
    async fn forward(&mut self) {
        let now = self.now();
        let mut socket_errors = 0;
        while let Some(packet) = self.up.path.poll(now) {
            socket_errors += u64::from(self.upstream.send(&packet).await.is_err());
        }
        while let Some(packet) = self.down.path.poll(now) {
            socket_errors += u64::from(self.listener.send_to(&packet, self.client).await.is_err());
        }
        let (up, down) = (self.up.news(), self.down.news());
        let mut stats = lock(&self.stats);
        stats.up += up;
        stats.down += down;
        stats.socket_errors += socket_errors;
    }

    fn now(&self) -> Time {
        Time::ZERO + Instant::now().duration_since(self.epoch).into()
    }

    fn instant(&self, time: Time) -> Instant {
        self.epoch + std::time::Duration::from_nanos(time.as_nanos())
    }
}

#[cfg(test)]
#[path = "udp_relay_tests.rs"]
mod tests;

//! The thread that carries a relay's packets.
//!
//! It works in rounds: take what has arrived off the sockets and hand it to the paths, with the time at which the
//! system received it; send everything that is due, each packet at its time and none before; wait for the next.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use posthaste_path::{ConfigError, Path, PathStats};
use posthaste_units::{Duration, Rng, Time};

use crate::clock::Clock;
use crate::datagram::{Datagram, headers_towards};
use crate::lateness::LatenessHistogram;
use crate::outage::{Losses, Outage};
use crate::system::{Received, Socket, Waiter, prefer_precision};
use crate::udp_relay::{RelayConfig, RelayStats, Shared};

/// A client that neither sends nor receives for so long loses its place (its NAT binding, so to say).
const CLIENT_IDLE: Duration = Duration::from_secs(120);

/// The largest UDP payload.
const MAX_DATAGRAM: usize = 65_535;

/// Datagrams taken off one socket in a round: what is due must not wait for a flood to end.
const RECEIVED_PER_ROUND: usize = 256;

/// A time stamp older than this is a clock that was set, not a packet that waited.
const OLDEST: Duration = Duration::from_secs(1);

/// What the thread owns.
pub(crate) struct Relay {
    config: RelayConfig,
    rng: Rng,
    /// The relay's time; a client's paths count from its first packet.
    clock: Clock,
    waiter: Waiter,
    listener: Socket,
    clients: BTreeMap<SocketAddr, Client>,
    shared: Arc<Shared>,
    /// What this round has counted.
    news: News,
    /// Losses by the system's hand in sockets that are closed.
    missed_before: u64,
    buffer: Vec<u8>,
}

/// What is counted between two publications.
#[derive(Default)]
struct News {
    stats: RelayStats,
    lateness: Vec<Duration>,
}

/// One client and its two directions.
struct Client {
    /// When its first packet arrived: its paths' time zero, so that what they do does not depend on how long the
    /// relay has waited for it.
    began: Time,
    upstream: Socket,
    up: Direction,
    down: Direction,
    idle_at: Time,
    /// Since something reached the client, in both directions.
    losses: Losses,
}

/// A path and what of its counts has been published.
struct Direction {
    path: Path<Datagram>,
    published: PathStats,
    losses: Losses,
    /// No packet may enter before this: something that happened then is over.
    settled: Time,
}

impl Relay {
    pub(crate) fn new(config: RelayConfig, waiter: Waiter, shared: Arc<Shared>) -> io::Result<Self> {
        for path in [&config.down, &config.up] {
            path.validate().map_err(invalid)?;
        }
        let mut rng = Rng::from_test_seed(config.seed);
        // The lab's runs give their first fork away (to TLS), the next two to the first link up and down. Taken in
        // the same order, the same seed draws the same fates there and here.
        let _ = rng.fork();
        Ok(Self {
            rng,
            clock: Clock::start(),
            waiter,
            listener: Socket::bind(config.listen)?,
            clients: BTreeMap::new(),
            shared,
            news: News::default(),
            missed_before: 0,
            buffer: vec![0; MAX_DATAGRAM],
            config,
        })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(crate) fn run(mut self) {
        prefer_precision();
        let mut ready = Vec::new();
        while !self.shared.is_stopped.load(Ordering::Relaxed) {
            self.receive(&ready);
            self.send_due();
            self.forget_idle();
            self.publish();
            let now = self.clock.now();
            let timeout = self.next_due().map_or(CLIENT_IDLE, |due| due.since(now));
            let upstreams = self.clients.values().map(|client| &client.upstream);
            let sockets = std::iter::once(&self.listener).chain(upstreams);
            if let Err(error) = self.waiter.wait(sockets, timeout, &mut ready) {
                tracing::error!(%error, "the relay cannot wait any more and stops");
                return;
            }
        }
    }

    /// Takes what has arrived: `ready` are the sockets that had something, the listener first.
    fn receive(&mut self, ready: &[usize]) {
        // New clients change the order of the others' sockets, so theirs come first.
        let mut next = ready.iter().copied().filter(|&index| index > 0).peekable();
        for (index, client) in self.clients.values_mut().enumerate() {
            if next.next_if_eq(&(index + 1)).is_some() {
                client.receive(&self.clock, &mut self.buffer, &mut self.news.stats);
            }
        }
        if ready.first() == Some(&0) {
            self.receive_from_clients();
        }
    }

    fn receive_from_clients(&mut self) {
        for _ in 0..RECEIVED_PER_ROUND {
            match self.listener.receive(&mut self.buffer) {
                Ok(Some(received)) => self.on_client_packet(received),
                Ok(None) => return,
                // A client that went away shows as an ICMP error on the shared socket; others go on.
                Err(error) => {
                    tracing::debug!(%error, "receiving from clients");
                    self.news.stats.socket_errors += 1;
                }
            }
        }
    }

    fn on_client_packet(&mut self, received: Received) {
        if !self.clients.contains_key(&received.from) {
            if self.clients.len() >= self.config.max_clients {
                self.news.stats.refused += 1;
                return;
            }
            match self.admit(received.age) {
                Ok(client) => {
                    self.clients.insert(received.from, client);
                    self.news.stats.clients += 1;
                }
                Err(error) => {
                    tracing::warn!(%error, "no socket towards the server");
                    self.news.stats.socket_errors += 1;
                    return;
                }
            }
        }
        let headers = headers_towards(self.config.upstream);
        if let Some(client) = self.clients.get_mut(&received.from) {
            let now = self.clock.now();
            client.idle_at = now + CLIENT_IDLE;
            client.up.enter(since(client.began, now), received, &self.buffer, headers);
            client.losses.on_entered(client.up.settled);
        }
    }

    /// A place for a client whose first packet was received `age` ago.
    fn admit(&mut self, age: Duration) -> io::Result<Client> {
        let any: SocketAddr = if self.config.upstream.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let upstream = Socket::bind(any)?;
        upstream.connect(self.config.upstream)?;
        let up = Direction::new(Path::new(self.config.up.clone(), self.rng.fork()).map_err(invalid)?);
        let down = Direction::new(Path::new(self.config.down.clone(), self.rng.fork()).map_err(invalid)?);
        let now = self.clock.now();
        Ok(Client {
            began: arrival(now, age),
            upstream,
            up,
            down,
            idle_at: now + CLIENT_IDLE,
            losses: Losses::default(),
        })
    }

    /// Sends everything that is due.
    fn send_due(&mut self) {
        for (&address, client) in &mut self.clients {
            let Client { began, upstream, up, down, losses, .. } = client;
            let clock = || since(*began, self.clock.now());
            up.send_due(clock, &mut self.news, |datagram| {
                losses.on_delivered();
                upstream.send(&datagram.payload, datagram.ecn, None)
            });
            down.send_due(clock, &mut self.news, |datagram| {
                losses.end(clock());
                self.listener.send(&datagram.payload, datagram.ecn, Some(address))
            });
        }
    }

    fn forget_idle(&mut self) {
        let now = self.clock.now();
        let missed_before = &mut self.missed_before;
        self.clients.retain(|_, client| {
            let stays = client.idle_at > now || client.next_due().is_some();
            if !stays {
                *missed_before += client.upstream.overflowed();
            }
            stays
        });
    }

    /// When something is to be done without a packet that arrives.
    fn next_due(&self) -> Option<Time> {
        self.clients.values().map(|client| client.next_due().unwrap_or(client.idle_at)).min()
    }

    fn publish(&mut self) {
        let mut counts = self.shared.counts();
        let news = std::mem::take(&mut self.news.stats);
        for (&address, client) in &mut self.clients {
            counts.stats.up += client.up.news();
            counts.stats.down += client.down.news();
            let is_recorded = counts.outages.contains_key(&address);
            if let Some((length, lost)) = client.longest_outage()
                && (is_recorded || counts.outages.len() < self.config.max_clients)
            {
                counts.outages.insert(address, Outage { client: address, length, lost });
            }
        }
        counts.stats.clients += news.clients;
        counts.stats.refused += news.refused;
        counts.stats.socket_errors += news.socket_errors;
        let upstreams = self.clients.values().map(|client| client.upstream.overflowed());
        counts.stats.missed = self.missed_before + self.listener.overflowed() + upstreams.sum::<u64>();
        let histogram: &mut LatenessHistogram = &mut counts.lateness;
        self.news.lateness.drain(..).for_each(|lateness| histogram.record(lateness));
    }
}

/// `now` as time since `began`.
fn since(began: Time, now: Time) -> Time {
    Time::ZERO + now.since(began)
}

/// When a packet arrived that has waited for so long.
fn arrival(now: Time, age: Duration) -> Time {
    if age > OLDEST { now } else { now - age }
}

fn invalid(error: ConfigError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

impl Client {
    fn receive(&mut self, clock: &Clock, buffer: &mut [u8], stats: &mut RelayStats) {
        for _ in 0..RECEIVED_PER_ROUND {
            match self.upstream.receive(buffer) {
                Ok(Some(received)) => {
                    let now = clock.now();
                    self.idle_at = now + CLIENT_IDLE;
                    self.down.enter(since(self.began, now), received, buffer, headers_towards(received.from));
                    self.losses.on_entered(self.down.settled);
                }
                Ok(None) => return,
                // The server's port is closed: the client finds out as over a real network, by silence.
                Err(_) => stats.socket_errors += 1,
            }
        }
    }

    /// Its longest outage, and what was lost in it.
    fn longest_outage(&self) -> Option<(Duration, u64)> {
        let last = self.up.settled.max(self.down.settled);
        [self.losses, self.up.losses, self.down.losses].iter().filter_map(|losses| losses.longest(last)).max()
    }

    /// When its paths have something to do, on the relay's clock.
    fn next_due(&self) -> Option<Time> {
        let due =
            [&self.up, &self.down].into_iter().filter_map(|direction| direction.path.next_timeout()).min();
        due.map(|due| self.began + due.since(Time::ZERO))
    }
}

impl Direction {
    fn new(path: Path<Datagram>) -> Self {
        Self { path, published: PathStats::default(), losses: Losses::default(), settled: Time::ZERO }
    }

    /// A packet enters at the time at which the system received it, however late the thread woke.
    fn enter(&mut self, now: Time, received: Received, buffer: &[u8], headers: u8) {
        self.settled = self.settled.max(arrival(now, received.age));
        self.losses.on_entered(self.settled);
        let payload = Bytes::copy_from_slice(&buffer[..received.length]);
        self.path.on_packet(self.settled, Datagram::new(payload, received.ecn, headers));
    }

    /// Steps from one of the path's times to the next, so that each packet's own is known.
    fn send_due(
        &mut self,
        clock: impl Fn() -> Time,
        news: &mut News,
        mut send: impl FnMut(&Datagram) -> io::Result<()>,
    ) {
        let now = clock();
        while let Some(due) = self.path.next_timeout().filter(|&due| due <= now) {
            self.settled = self.settled.max(due);
            while let Some(datagram) = self.path.poll(due) {
                self.losses.end(due);
                news.lateness.push(clock().since(due));
                news.stats.socket_errors += u64::from(send(&datagram).is_err());
            }
        }
    }

    fn news(&mut self) -> PathStats {
        let news = self.path.stats().since(&self.published);
        self.published = self.path.stats();
        news
    }
}

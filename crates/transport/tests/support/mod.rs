//! A client and a server endpoint in memory, joined by two simulated links, in virtual time.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

pub mod arena;
pub mod fuzzed;
pub mod resuming;
pub mod rogue;
pub mod tls;
pub mod transfer;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use posthaste_transport::{
    ClientConfig, Connection, ConnectionHandle, DatagramInfo, EcnCodepoint, Endpoint, Event, ServerConfig,
    TransportConfig,
};
use posthaste_units::{Duration, Rng, Time};

/// Transport settings with the default profile.
pub fn defaults() -> TransportConfig {
    TransportConfig::new(posthaste_schemes::default_profile())
}

/// What a link does to datagrams. Probabilities are in 0..=1.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    pub delay: Duration,
    pub loss: f64,
    /// A reordered datagram is delayed three times as long.
    pub reorder: f64,
    pub duplicate: f64,
    /// One bit of a corrupted datagram is flipped.
    pub corrupt: f64,
    /// A CE mark is set on ECN-capable datagrams.
    pub mark: f64,
    /// Larger datagrams vanish.
    pub mtu: usize,
}

impl Link {
    pub const CLEAN: Self = Self {
        delay: Duration::from_millis(10),
        loss: 0.0,
        reorder: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
        mark: 0.0,
        mtu: usize::MAX,
    };
}

/// A datagram under way.
struct Flight {
    info: DatagramInfo,
    data: Vec<u8>,
}

/// One end.
pub struct Host {
    pub endpoint: Endpoint,
    pub address: SocketAddr,
    pub events: Vec<(ConnectionHandle, Event)>,
    pub accepted: Vec<ConnectionHandle>,
    /// Datagrams that left, in order.
    pub sent: u64,
    inbox: BTreeMap<(Time, u64), Flight>,
}

/// A datagram that an end has sent, whatever became of it.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at: Time,
    pub from_client: bool,
    pub to: SocketAddr,
    pub size: usize,
    pub is_marked: bool,
}

/// Both ends and the time between them.
pub struct Pair {
    pub now: Time,
    pub client: Host,
    pub server: Host,
    pub up: Link,
    pub down: Link,
    pub rng: Rng,
    /// FNV-1a over every datagram and its time: equal for equal runs.
    pub trace_hash: u64,
    /// Every datagram sent while set, with its sender (true: client).
    pub capture: Option<Vec<(bool, Vec<u8>)>>,
    pub log: Vec<Sent>,
    /// Datagrams that vanish: their sender (true: client), and how many that has sent before.
    pub doomed: Vec<(bool, u64)>,
    /// Connections whose datagrams vanish: the beginnings of the IDs that they are sent to.
    pub silenced: Vec<Name>,
    /// Connections of the client that the server sees at another address, by what the client sends to.
    pub aliases: Vec<(Name, SocketAddr)>,
    next_flight: u64,
    /// Steps in a row that took no time.
    standing: u32,
}

/// The beginning of an ID that datagrams with a short header are sent to.
pub type Name = [u8; 4];

/// Whom a datagram is for, if it has a short header.
pub fn name_of(datagram: &[u8]) -> Option<Name> {
    match datagram {
        [first, name @ ..] if first & 0x80 == 0 => name.first_chunk().copied(),
        _ => None,
    }
}

/// Seed of the default pair.
const SEED: u64 = 1;

impl Default for Pair {
    fn default() -> Self {
        Self::new(SEED, crate::support::defaults(), crate::support::defaults())
    }
}

impl Pair {
    /// A pair whose endpoints and links draw from `seed`.
    pub fn new(seed: u64, _client: TransportConfig, server: TransportConfig) -> Self {
        Self::with_server(seed, tls::server_config(seed).with_transport(Arc::new(server)))
    }

    pub fn with_server(seed: u64, server: ServerConfig) -> Self {
        let mut rng = Rng::from_test_seed(seed);
        let mut endpoint_seed = || {
            let mut bytes = [0; 32];
            rng.fill(&mut bytes);
            bytes
        };
        let client = Host::new(Endpoint::new(endpoint_seed(), None), "127.0.0.1:1000");
        let server = Host::new(Endpoint::new(endpoint_seed(), Some(server)), "127.0.0.1:443");
        Self {
            now: Time::ZERO,
            client,
            server,
            up: Link::CLEAN,
            down: Link::CLEAN,
            rng,
            trace_hash: 0xcbf2_9ce4_8422_2325,
            capture: None,
            log: Vec::new(),
            doomed: Vec::new(),
            silenced: Vec::new(),
            aliases: Vec::new(),
            next_flight: 0,
            standing: 0,
        }
    }

    /// Begins a connection with the default client configuration.
    pub fn connect(&mut self) -> ConnectionHandle {
        self.connect_with(&tls::client_config(SEED))
    }

    pub fn connect_with(&mut self, config: &ClientConfig) -> ConnectionHandle {
        let remote = self.server.address;
        self.client.endpoint.connect(self.now, config, remote, "localhost").expect("a valid configuration")
    }

    /// Connects and runs until the handshake is confirmed at both ends; the client's and the server's handle.
    pub fn establish(&mut self) -> (ConnectionHandle, ConnectionHandle) {
        let client = self.connect();
        self.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
        let server = *self.server.accepted.first().expect("the server has accepted");
        assert!(self.server.has(server, |event| *event == Event::Confirmed));
        (client, server)
    }

    /// Drains both ends at the present time: datagrams to the links, events to the hosts' lists.
    pub fn drain(&mut self) {
        self.transmit(true);
        self.transmit(false);
        self.client.collect();
        self.server.collect();
    }

    fn transmit(&mut self, from_client: bool) {
        let mut buffer = Vec::new();
        loop {
            let (from, link) =
                if from_client { (&mut self.client, self.up) } else { (&mut self.server, self.down) };
            buffer.clear();
            let Some(transmit) = from.endpoint.poll_transmit(self.now, &mut buffer, 10) else { return };
            assert_eq!(transmit.size, buffer.len());
            let info = DatagramInfo { remote: from.address, local_ip: None, ecn: transmit.ecn };
            let size = transmit.segment_size.unwrap_or(transmit.size);
            let datagrams: Vec<Vec<u8>> = buffer.chunks(size).map(<[u8]>::to_vec).collect();
            let first = from.sent;
            from.sent += datagrams.len() as u64;
            for (index, data) in (first..).zip(datagrams) {
                let (to, size, is_marked) = (transmit.remote, data.len(), transmit.ecn.is_some());
                self.log.push(Sent { at: self.now, from_client, to, size, is_marked });
                let name = name_of(&data);
                let is_silenced = name.is_some_and(|name| self.silenced.contains(&name));
                let is_doomed = self.doomed.contains(&(from_client, index)) || is_silenced;
                if !self.is_at(from_client, to) || data.len() > link.mtu || is_doomed {
                    // Nobody is there any more, or the way is too narrow.
                    continue;
                }
                let alias = self.aliases.iter().find(|(alias, _)| from_client && Some(*alias) == name);
                let remote = alias.map_or(info.remote, |(_, address)| *address);
                self.send(from_client, link, DatagramInfo { remote, ..info }, data);
            }
        }
    }

    /// True if an end's datagrams to this address reach the other.
    fn is_at(&self, from_client: bool, to: SocketAddr) -> bool {
        if from_client {
            return to == self.server.address;
        }
        to == self.client.address || self.aliases.iter().any(|(_, address)| *address == to)
    }

    /// Puts a datagram onto a link.
    pub fn send(&mut self, from_client: bool, link: Link, mut info: DatagramInfo, mut data: Vec<u8>) {
        self.hash(from_client, &data);
        if let Some(capture) = &mut self.capture {
            capture.push((from_client, data.clone()));
        }
        if self.rng.chance(link.loss) {
            return;
        }
        if info.ecn.is_some() && self.rng.chance(link.mark) {
            info.ecn = Some(EcnCodepoint::Ce);
        }
        if self.rng.chance(link.corrupt) {
            let at = self.rng.below(data.len() as u64) as usize;
            data[at] ^= 1 << self.rng.below(8);
        }
        let copies = if self.rng.chance(link.duplicate) { 2 } else { 1 };
        for _ in 0..copies {
            let factor = if self.rng.chance(link.reorder) { 3 } else { 1 };
            let at = self.now + link.delay * factor;
            let to = if from_client { &mut self.server } else { &mut self.client };
            to.inbox.insert((at, self.next_flight), Flight { info, data: data.clone() });
            self.next_flight += 1;
        }
    }

    fn hash(&mut self, from_client: bool, data: &[u8]) {
        let header = [u8::from(from_client)].into_iter().chain(self.now.as_nanos().to_le_bytes());
        for byte in header.chain(data.iter().copied()) {
            self.trace_hash = (self.trace_hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// The next time at which something happens.
    pub fn next_time(&mut self) -> Option<Time> {
        let times = [
            self.client.inbox.keys().next().map(|(at, _)| *at),
            self.server.inbox.keys().next().map(|(at, _)| *at),
            self.client.endpoint.next_timeout(),
            self.server.endpoint.next_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    /// Drains, then goes to the next moment at which something happens. False if nothing ever will.
    pub fn step(&mut self) -> bool {
        self.drain();
        if !self.advance() {
            return false;
        }
        self.drain();
        true
    }

    /// Goes to the next moment at which something happens, and sends nothing yet. False if nothing ever will.
    fn advance(&mut self) -> bool {
        let Some(at) = self.next_time() else { return false };
        self.standing = if at > self.now { 0 } else { self.standing + 1 };
        assert!(self.standing < 1000, "the clock stands still at {:?}", self.now);
        self.now = self.now.max(at);
        self.client.advance(self.now);
        self.server.advance(self.now);
        true
    }

    /// Steps until `done`; panics if that does not come about in ten virtual minutes.
    pub fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let deadline = self.now + Duration::from_secs(600);
        self.drain();
        while !done(self) {
            assert!(self.step(), "nothing will happen any more at {:?}", self.now);
            assert!(
                self.now < deadline,
                "not done after ten minutes; client events {:?}",
                self.client.events
            );
        }
    }

    /// Like [`Self::run_until`], but `act`, which is called as the time has come, does so before either end sends: an
    /// application that answers at once, as those of the lab do.
    pub fn run_promptly_until(&mut self, mut act: impl FnMut(&mut Self) -> bool) {
        let deadline = self.now + Duration::from_secs(600);
        self.drain();
        loop {
            let is_done = act(self);
            self.drain();
            if is_done {
                return;
            }
            assert!(self.advance(), "nothing will happen any more at {:?}", self.now);
            assert!(self.now < deadline, "not done after ten minutes");
            self.client.collect();
            self.server.collect();
        }
    }

    /// Shows `meddle` every datagram that arrives next, with a way to hand its receiver others before it.
    pub fn meddle(&mut self, meddle: &mut impl FnMut(&[u8], &mut dyn FnMut(&[u8]))) {
        let Some(at) = self.next_time() else { return };
        for host in [&mut self.client, &mut self.server] {
            let Host { endpoint, inbox, .. } = host;
            for flight in inbox.range(..=(at, u64::MAX)).map(|(_, flight)| flight) {
                meddle(&flight.data, &mut |data| {
                    endpoint.on_datagram(self.now, &flight.info, BytesMut::from(data));
                });
            }
        }
    }

    /// Steps for a span of virtual time.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.drain();
        while self.next_time().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = end;
    }
}

impl Host {
    fn new(endpoint: Endpoint, address: &str) -> Self {
        let address = address.parse().expect("an address");
        Self { endpoint, address, events: Vec::new(), accepted: Vec::new(), sent: 0, inbox: BTreeMap::new() }
    }

    fn advance(&mut self, now: Time) {
        while let Some(entry) = self.inbox.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let Flight { info, data } = entry.remove();
            self.endpoint.on_datagram(now, &info, BytesMut::from(&data[..]));
        }
        self.endpoint.on_timeout(now);
    }

    fn collect(&mut self) {
        while let Some((handle, event)) = self.endpoint.poll_event() {
            if event == Event::Incoming {
                self.accepted.push(handle);
            }
            self.events.push((handle, event));
        }
    }

    /// True if an event of the connection satisfies `test`.
    pub fn has(&self, handle: ConnectionHandle, test: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(|(of, event)| *of == handle && test(event))
    }

    /// The connection.
    pub fn connection(&mut self, handle: ConnectionHandle) -> &mut Connection {
        let Self { endpoint, events, .. } = self;
        let connection = endpoint.connection_mut(handle);
        connection.unwrap_or_else(|| panic!("the connection lives, but: {:?}", events.last_chunk::<3>()))
    }
}
